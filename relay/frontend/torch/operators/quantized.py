"""Quantized programs: `quantized_decomposed` of PT2E, and the forms of torchao.

torch quantizes by the product with the float32 inverse of the scale, halves to even: `clamp(rint(x * (1 / scale)) +
zero_point)`; it dequantizes as `f32(code - zero_point) * f32(scale)`.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import element_type, elements, scalar_attr
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.builder import real
from relay.frontend.importing.formulas import nearest_even
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node, ScalarType, is_value
from relay.frontend.torch.table import op

PT2E = "quantized_decomposed"


def _number(importer: Importer, node: Node, name: str, element: Attribute) -> SSAValue:
    """A scale or zero point, a number or a tensor, in this element type."""
    given = node.arguments.get(name)
    value = given if is_value(given) else importer.unnamed(np.asarray(node.number_of(name, 0)))
    return importer.cast(value, element)


def _parameters(
    importer: Importer, data: SSAValue, scale: SSAValue, zero: SSAValue, axis: int
) -> dict[str, Attribute] | None:
    """Scale and zero point as properties; None where they are not constant."""
    scales, zeros = importer.known(scale), importer.known(zero)
    if scales is None or zeros is None or scales.ndim > 1 or not bool((scales > 0).all() and np.isfinite(scales).all()):
        return None
    point = zeros.reshape(-1).astype(np.int32)
    if scales.size == 1 and point.size == 1 and not scales.ndim:
        return {"scale": real(scales.item()), "zero_point": IntegerAttr(int(point[0]), i32)}
    one = bool((point == point[0]).all())
    return {
        "scale": elements(scales.astype(np.float32), np.float32, label="scale"),
        "zero_point": scalar_attr(int(point[0]), i32) if one else elements(point, np.int32, label="zero_point"),
        "axis": IntegerAttr(axis, i64),
    }


def _range(node: Node, dtype: np.dtype[np.generic], low: str = "quant_min", high: str = "quant_max") -> tuple[int, int]:
    info = np.iinfo(np.dtype(dtype.name))
    return node.integer(low, int(info.min)), node.integer(high, int(info.max))


def quantized(
    importer: Importer, data: SSAValue, scale: SSAValue, zero: SSAValue, dtype: np.dtype[np.generic],
    bounds: tuple[int, int], axis: int = 0,
) -> SSAValue:  # fmt: skip
    """Codes of floats, by scales that broadcast where they are values; between bounds that may be narrower."""
    type, info = element_type(dtype), np.iinfo(np.dtype(dtype.name))
    data = importer.cast(data, f32)
    found = _parameters(importer, data, scale, zero, axis)
    if found is not None and dtype.itemsize < 4:
        codes = importer.emit(
            qnn.QuantizeOp, [data], found | {"rounding": StringAttr("even_inverse"), "out_dtype": type}
        )
        whole = bounds == (info.min, info.max)
        return codes.result if whole else importer.clip(codes.result, *bounds)
    if importer.rank(scale) == 1 and importer.rank(data) > 1:
        spread = [-1 if i == axis else 1 for i in range(importer.rank(data))]
        scale, zero = importer.reshape(scale, spread), importer.reshape(zero, spread)
    inverse = importer.call(relay.DivideOp, importer.like(1, scale), scale)
    steps = nearest_even(importer, importer.call(relay.MultiplyOp, data, inverse))
    steps = importer.call(relay.AddOp, steps, importer.cast(zero, f32))
    return importer.cast(importer.clip(steps, *bounds), type)


def dequantized(importer: Importer, codes: SSAValue, scale: SSAValue, zero: SSAValue, axis: int = 0) -> SSAValue:
    found = _parameters(importer, codes, scale, zero, axis)
    if found is not None:
        return importer.emit(qnn.DequantizeOp, [codes], found | {"product": StringAttr("f32")}).result
    if importer.rank(scale) == 1 and importer.rank(codes) > 1:
        spread = [-1 if i == axis else 1 for i in range(importer.rank(codes))]
        scale, zero = importer.reshape(scale, spread), importer.reshape(zero, spread)
    steps = importer.call(relay.SubtractOp, importer.cast(codes, i32), importer.cast(zero, i32))
    return importer.call(relay.MultiplyOp, importer.cast(steps, f32), importer.cast(scale, f32))


def _dtype(node: Node, name: str = "dtype") -> np.dtype[np.generic]:
    found = node.dtype(name)
    if found is None or found.kind not in "iu":
        raise node.malformed("names no type of codes")
    return found


@op(*(f"{PT2E}.quantize_per_{kind}" for kind in ("tensor", "channel", "token")))
def quantize(importer: Importer, node: Node) -> SSAValue:
    several = "tensor" not in node.packet
    scale = _number(importer, node, "scales" if several else "scale", f32)
    zero = _number(importer, node, "zero_points" if several else "zero_point", i32)
    if not several:
        scale, zero = importer.reshape(scale, []), importer.reshape(zero, [])
    dtype = _dtype(node)
    axis = node.axis(node.integer("axis", 0), node.rank("input"))
    return quantized(importer, node.value("input"), scale, zero, dtype, _range(node, dtype), axis)


@op(*(f"{PT2E}.dequantize_per_{kind}" for kind in ("tensor", "channel", "token")))
def dequantize(importer: Importer, node: Node) -> SSAValue:
    several = "tensor" not in node.packet
    scale = _number(importer, node, "scales" if several else "scale", f32)
    zero = _number(importer, node, "zero_points" if several else "zero_point", i32)
    if not several:
        scale, zero = importer.reshape(scale, []), importer.reshape(zero, [])
    axis = node.axis(node.integer("axis", 0), node.rank("input"))
    found = dequantized(importer, node.value("input"), scale, zero, axis)
    wanted = node.dtype("out_dtype") or node.dtype("output_dtype")
    return found if wanted is None else importer.cast(found, element_type(wanted))


def _qparams(
    importer: Importer, low: SSAValue, high: SSAValue, bounds: tuple[int, int], epsilon: float, symmetric: bool
) -> tuple[SSAValue, SSAValue]:
    """Scale and zero point for numbers between two values, which are widened to hold 0.
    Source: torch.ao.quantization.fx._decomposed, torchao.quantization.quant_primitives."""
    call, (first, last) = importer.call, bounds
    low, high = call(relay.MinimumOp, low, importer.like(0, low)), call(relay.MaximumOp, high, importer.like(0, high))
    if symmetric:
        high = call(relay.MaximumOp, call(relay.NegativeOp, low), high)
        scale = call(relay.DivideOp, high, importer.like((last - first) / 2, high))
        scale = call(relay.MaximumOp, scale, importer.like(epsilon, scale))
        return scale, importer.filled(
            importer.unnamed(np.asarray((first + last + 1) // 2, np.int64)), importer.shape(scale)
        )
    scale = call(relay.DivideOp, call(relay.SubtractOp, high, low), importer.like(last - first, high))
    scale = call(relay.MaximumOp, scale, importer.like(epsilon, scale))
    steps = nearest_even(importer, call(relay.DivideOp, low, scale))
    zero = importer.clip(call(relay.SubtractOp, importer.like(first, steps), steps), first, last)
    return scale, importer.cast(zero, i64)


@op(f"{PT2E}.choose_qparams", f"{PT2E}.choose_qparams_symmetric")
def choose(importer: Importer, node: Node) -> list[SSAValue]:
    """Of the whole tensor, found at run time."""
    x = node.value("input")
    axes = list(range(importer.rank(x)))
    low, high = (importer.call(kind, x, axis=axes) for kind in (relay.MinOp, relay.MaxOp))
    bounds = _range(node, _dtype(node), *(("qmin", "qmax") if node.has("qmin") else ("quant_min", "quant_max")))
    scale, zero = _qparams(importer, low, high, bounds, node.real("eps"), "symmetric" in node.packet)
    return [importer.reshape(importer.cast(scale, element_type(np.float64)), [1]), importer.reshape(zero, [1])]


def _blocks(importer: Importer, node: Node, data: SSAValue, block: list[int]) -> tuple[list[int], list[int], list[int]]:
    """The data's shape with each axis as blocks and elements of one; that of a number a block; axes of the elements."""
    dims = importer.shape(data)
    if DYNAMIC in dims:
        raise node.unsupported(f"has blocks of {data.type}", "give its shapes")
    sizes = [own if size == -1 else size for own, size in zip(dims, block, strict=True)]
    if any(own % size for own, size in zip(dims, sizes, strict=True)):
        raise node.malformed(f"has blocks {sizes} of {list(dims)}")
    parts = [each for own, size in zip(dims, sizes, strict=True) for each in (own // size, size)]
    spread = [each for own, size in zip(dims, sizes, strict=True) for each in (own // size, 1)]
    return parts, spread, list(range(1, len(parts), 2))


def _block_sizes(node: Node) -> list[int]:
    return node.integers("block_size")


def _torchao_type(node: Node, name: str) -> np.dtype[np.generic]:
    """The element type that codes are stored in; those of fewer bits are in bytes."""
    given = node.arguments.get(name)
    return _dtype(node, name) if isinstance(given, ScalarType) else np.dtype(np.int8)


@op("torchao.choose_qparams_affine")
def choose_affine(importer: Importer, node: Node) -> list[SSAValue]:
    """Of each block, found at run time."""
    x, kind = node.value("input"), node.word("mapping_type")
    parts, _, axes = _blocks(importer, node, x, _block_sizes(node))
    flat = importer.reshape(x, parts)
    low, high = (importer.call(reduce, flat, axis=axes) for reduce in (relay.MinOp, relay.MaxOp))
    bounds = _range(node, _torchao_type(node, "target_dtype"))
    if kind not in ("SYMMETRIC", "ASYMMETRIC"):
        raise node.unsupported(f"maps {kind[:40]!r}", "SYMMETRIC and ASYMMETRIC are supported")
    epsilon = node.real("eps", float(np.finfo(np.float32).eps))
    scale, zero = _qparams(importer, low, high, bounds, epsilon, kind == "SYMMETRIC")
    types = (node.dtype("scale_dtype"), node.dtype("zero_point_dtype"))
    sizes = zip(importer.shape(x), parts[::2], parts[1::2], strict=True)
    kept = [count for own, count, size in sizes if node.flag("keepdim") or size != own or size == 1]
    found: list[SSAValue] = []
    for value, dtype in zip((scale, zero), types, strict=True):
        value = value if dtype is None else importer.cast(value, element_type(dtype))
        found.append(importer.reshape(value, kept))
    return found


@op("torchao.quantize_affine")
def quantize_affine(importer: Importer, node: Node) -> SSAValue:
    x, dtype = node.value("input"), _torchao_type(node, "output_dtype")
    parts, spread, _ = _blocks(importer, node, x, _block_sizes(node))
    scale = importer.reshape(_number(importer, node, "scale", f32), spread)
    zero = _number(importer, node, "zero_point", f32) if node.has("zero_point") else importer.like(0, scale)
    zero = importer.reshape(zero, spread) if importer.rank(zero) else zero
    steps = importer.call(relay.DivideOp, importer.like(1, scale), scale)
    steps = nearest_even(
        importer, importer.call(relay.MultiplyOp, importer.reshape(importer.cast(x, f32), parts), steps)
    )
    steps = importer.clip(importer.call(relay.AddOp, steps, zero), *_range(node, dtype))
    return importer.reshape(importer.cast(steps, element_type(dtype)), importer.shape(x))


@op("torchao.dequantize_affine")
def dequantize_affine(importer: Importer, node: Node) -> SSAValue:
    """Blocks along one axis of constant codes; any others by arithmetic."""
    x = node.value("input")
    parts, spread, _ = _blocks(importer, node, x, _block_sizes(node))
    scale = importer.reshape(_number(importer, node, "scale", f32), spread)
    steps = importer.cast(importer.reshape(x, parts), f32)
    if node.has("zero_point"):
        zero = _number(importer, node, "zero_point", f32)
        zero = importer.reshape(zero, spread) if importer.rank(zero) else zero
        steps = importer.call(relay.SubtractOp, steps, zero)
    found = importer.reshape(importer.call(relay.MultiplyOp, steps, scale), importer.shape(x))
    wanted = node.dtype("output_dtype")
    return found if wanted is None else importer.cast(found, element_type(wanted))
