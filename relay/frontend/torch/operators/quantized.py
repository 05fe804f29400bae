"""Imports quantized programs: `quantized_decomposed` operators of PT2E, and those of torchao.

PyTorch quantizes by multiplying with the float32 inverse of the scale, with halves to even: `clamp(rint(x * (1 /
scale)) + zero_point)`; it dequantizes as `f32(code - zero_point) * f32(scale)`.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import element_type
from relay.frontend.importing.builder import linear_parameters
from relay.frontend.importing.formulas import Scalar
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node, ScalarType, is_value
from relay.frontend.torch.table import op
from relay.interpreters.arithmetic import code_range

PT2E = "quantized_decomposed"


def _number(importer: Importer, node: Node, name: str, element: Attribute) -> SSAValue:
    """A scale or zero point, given as a number or a tensor, in this element type."""
    given = node.arguments.get(name)
    value = given if is_value(given) else importer.unnamed(np.asarray(node.number_of(name, 0)))
    return importer.cast(value, element)


def _parameters(
    importer: Importer, data: SSAValue, scale: SSAValue, zero: SSAValue, axis: int
) -> dict[str, Attribute] | None:
    """Scale and zero point as properties; None if they are not constant."""
    scales, zeros = importer.known(scale), importer.known(zero)
    if scales is None or zeros is None or scales.ndim > 1 or not bool((scales > 0).all() and np.isfinite(scales).all()):
        return None
    point = zeros.reshape(-1).astype(np.int32)
    whole = scales.size == point.size == 1 and not scales.ndim
    return linear_parameters(scales.astype(np.float32), point, None if whole else axis)


def _spread(importer: Importer, data: SSAValue, axis: int, *values: SSAValue) -> list[Scalar]:
    """Values such as scale and zero point, reshaped so that vectors vary along an axis of the data."""
    if importer.rank(values[0]) == 1 and importer.rank(data) > 1:
        shape = [-1 if i == axis else 1 for i in range(importer.rank(data))]
        return [Scalar(importer, importer.reshape(each, shape)) for each in values]
    return [Scalar(importer, each) for each in values]


def _range(node: Node, dtype: np.dtype[np.generic], low: str = "quant_min", high: str = "quant_max") -> tuple[int, int]:
    least, most = code_range(dtype)
    return node.integer(low, least), node.integer(high, most)


def quantized(
    importer: Importer, data: SSAValue, scale: SSAValue, zero: SSAValue, dtype: np.dtype[np.generic],
    bounds: tuple[int, int], axis: int = 0,
) -> SSAValue:  # fmt: skip
    """Quantize floats, with constant or computed scales that broadcast, to bounds that may be narrower than the
    type."""
    type, data = element_type(dtype), importer.cast(data, f32)
    found = _parameters(importer, data, scale, zero, axis)
    if found is not None and dtype.itemsize < 4:
        codes = importer.call(qnn.QuantizeOp, data, **found, rounding="even_inverse", out_dtype=type)
        return codes if bounds == code_range(dtype) else importer.clip(codes, *bounds)
    factor, point = _spread(importer, data, axis, scale, zero)
    steps = (Scalar(importer, data) * (factor.number(1) / factor)).to_even()
    steps = steps + Scalar(importer, importer.cast(point.value, f32))
    return importer.cast(steps.between(*bounds).value, type)


def dequantized(importer: Importer, codes: SSAValue, scale: SSAValue, zero: SSAValue, axis: int = 0) -> SSAValue:
    found = _parameters(importer, codes, scale, zero, axis)
    if found is not None:
        return importer.call(qnn.DequantizeOp, codes, **found, product="f32")
    factor, point = _spread(importer, codes, axis, scale, zero)
    steps = importer.call(relay.SubtractOp, importer.cast(codes, i32), importer.cast(point.value, i32))
    return importer.call(relay.MultiplyOp, importer.cast(steps, f32), importer.cast(factor.value, f32))


def _dtype(node: Node, name: str = "dtype") -> np.dtype[np.generic]:
    found = node.dtype(name)
    if found is None or found.kind not in "iu":
        raise node.malformed(f"the argument {name} is {found}, no type of integers")
    return found


def _given(importer: Importer, node: Node) -> tuple[SSAValue, SSAValue, int]:
    """The scale, zero point and axis of a node; the first two are vectors unless they apply to the whole tensor."""
    plural = "" if "tensor" in node.packet else "s"
    scale, zero = (_number(importer, node, f"{n}{plural}", e) for n, e in (("scale", f32), ("zero_point", i32)))
    if not plural:
        scale, zero = importer.reshape(scale, []), importer.reshape(zero, [])
    return scale, zero, node.axis(node.integer("axis", 0), node.rank("input"))


@op(*(f"{PT2E}.quantize_per_{kind}" for kind in ("tensor", "channel", "token")))
def quantize(importer: Importer, node: Node) -> SSAValue:
    dtype = _dtype(node)
    scale, zero, axis = _given(importer, node)
    return quantized(importer, node.value("input"), scale, zero, dtype, _range(node, dtype), axis)


@op(*(f"{PT2E}.dequantize_per_{kind}" for kind in ("tensor", "channel", "token")))
def dequantize(importer: Importer, node: Node) -> SSAValue:
    found = dequantized(importer, node.value("input"), *_given(importer, node))
    return importer.typed(found, node.dtype("out_dtype") or node.dtype("output_dtype"))


def _qparams(
    importer: Importer, least: SSAValue, most: SSAValue, bounds: tuple[int, int], epsilon: float, symmetric: bool
) -> tuple[SSAValue, SSAValue]:
    """The scale and zero point for values between `least` and `most`, a range that is widened to contain 0. Source:
    torch.ao.quantization.fx._decomposed, torchao.quantization.quant_primitives."""
    first, last = bounds
    low, high = Scalar(importer, least).of(relay.MinimumOp, 0), Scalar(importer, most).of(relay.MaximumOp, 0)
    if symmetric:
        scale = ((-low).of(relay.MaximumOp, high) / ((last - first) / 2)).of(relay.MaximumOp, epsilon)
        zero = importer.unnamed(np.asarray((first + last + 1) // 2, np.int64))
        return scale.value, importer.filled(zero, importer.shape(scale.value))
    scale = ((high - low) / (last - first)).of(relay.MaximumOp, epsilon)
    steps = (low / scale).to_even()
    return scale.value, importer.cast((steps.number(first) - steps).between(first, last).value, i64)


@op(f"{PT2E}.choose_qparams", f"{PT2E}.choose_qparams_symmetric")
def choose(importer: Importer, node: Node) -> list[SSAValue]:
    """Import choose_qparams: scale and zero point of the whole tensor, computed at run time."""
    x = node.value("input")
    axes = list(range(importer.rank(x)))
    low, high = (importer.call(kind, x, axis=axes) for kind in (relay.MinOp, relay.MaxOp))
    bounds = _range(node, _dtype(node), *(("qmin", "qmax") if node.has("qmin") else ("quant_min", "quant_max")))
    scale, zero = _qparams(importer, low, high, bounds, node.real("eps"), "symmetric" in node.packet)
    return [importer.reshape(importer.cast(scale, element_type(np.float64)), [1]), importer.reshape(zero, [1])]


def _blocks(node: Node) -> tuple[list[int], list[int], list[int]]:
    """Return three lists: the data's sizes with each axis split in two, the number of blocks and the size of a block;
    the same with 1 for the size of a block, the shape of the scales; and the positions of the axes within a block."""
    dims = node.static("input")
    sizes = [own if size == -1 else size for own, size in zip(dims, node.integers("block_size"), strict=True)]
    if any(own % size for own, size in zip(dims, sizes, strict=True)):
        raise node.malformed(f"the argument block_size is {sizes} for the sizes {list(dims)}")
    parts = [each for own, size in zip(dims, sizes, strict=True) for each in (own // size, size)]
    spread = [each for own, size in zip(dims, sizes, strict=True) for each in (own // size, 1)]
    return parts, spread, list(range(1, len(parts), 2))


def _torchao_type(node: Node, name: str) -> np.dtype[np.generic]:
    """The element type in which quantized values are stored: the argument `name`, or int8 if the argument is no
    `ScalarType` of PyTorch's export format, such as a type narrower than a byte."""
    given = node.arguments.get(name)
    return _dtype(node, name) if isinstance(given, ScalarType) else np.dtype(np.int8)


@op("torchao.choose_qparams_affine")
def choose_affine(importer: Importer, node: Node) -> list[SSAValue]:
    """Import choose_qparams_affine: scale and zero point of each block, computed at run time."""
    x, kind = node.value("input"), node.one_of("mapping_type", ("SYMMETRIC", "ASYMMETRIC"))
    parts, _, axes = _blocks(node)
    flat = importer.reshape(x, parts)
    low, high = (importer.call(reduce, flat, axis=axes) for reduce in (relay.MinOp, relay.MaxOp))
    bounds = _range(node, _torchao_type(node, "target_dtype"))
    epsilon = node.real("eps", float(np.finfo(np.float32).eps))
    scale, zero = _qparams(importer, low, high, bounds, epsilon, kind == "SYMMETRIC")
    types = (node.dtype("scale_dtype"), node.dtype("zero_point_dtype"))
    sizes = zip(importer.shape(x), parts[::2], parts[1::2], strict=True)
    kept = [count for own, count, size in sizes if node.flag("keepdim") or size != own or size == 1]
    pairs = zip((scale, zero), types, strict=True)
    return [importer.reshape(importer.typed(value, dtype), kept) for value, dtype in pairs]


def _affine(importer: Importer, node: Node) -> tuple[Scalar, Scalar, Scalar | None]:
    """The input as float32, with each axis split into blocks and elements of a block; and the scales and zero points
    (None if the node has none), which broadcast to it: one element for each block."""
    x = node.value("input")
    parts, spread, _ = _blocks(node)
    data = Scalar(importer, importer.cast(importer.reshape(x, parts), f32))
    values = [_number(importer, node, name, f32) for name in ("scale", "zero_point") if node.has(name)]
    scale, *zero = (Scalar(importer, importer.reshape(v, spread) if importer.rank(v) else v) for v in values)
    return data, scale, zero[0] if zero else None


@op("torchao.quantize_affine")
def quantize_affine(importer: Importer, node: Node) -> SSAValue:
    dtype = _torchao_type(node, "output_dtype")
    data, scale, zero = _affine(importer, node)
    steps = (data * (scale.number(1) / scale)).to_even()
    steps = (steps if zero is None else steps + zero).between(*_range(node, dtype))
    return importer.reshape(importer.cast(steps.value, element_type(dtype)), node.shape("input"))


@op("torchao.dequantize_affine")
def dequantize_affine(importer: Importer, node: Node) -> SSAValue:
    """Import dequantize_affine: constants with blocks along one axis stay quantized; others are dequantized by
    arithmetic."""
    steps, scale, zero = _affine(importer, node)
    found = (steps if zero is None else steps - zero) * scale
    return importer.typed(importer.reshape(found.value, node.shape("input")), node.dtype("output_dtype"))
