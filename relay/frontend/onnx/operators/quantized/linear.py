"""Imports QuantizeLinear and DequantizeLinear: as qnn ops if scale and zero point are constants, else by arithmetic."""

from __future__ import annotations

from functools import partial

import numpy as np
from xdsl.dialects.builtin import UnitAttr, f32, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of
from relay.dialects.element_types import bits_of, is_float
from relay.dialects.op import is_code, is_integer
from relay.frontend.importing.builder import linear_parameters
from relay.frontend.onnx.builder import Importer, NarrowWeights
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.operators.quantized.parameters import nearest
from relay.frontend.onnx.table import MICROSOFT, op
from relay.interpreters.arithmetic import code_range


def _axis(importer: Importer, node: Node) -> int:
    rank = importer.rank(node.input(0))
    return node.axis(node.integer("axis", 1), rank) if importer.rank(node.input(1)) and rank else 0


def _constants(importer: Importer, node: Node) -> dict[str, Attribute] | None:
    """Scale, zero point and axis as properties; None unless they are constants with one element, or one per index of
    the axis."""
    scale = importer.known(node.input(1))
    given = node.optional(2)
    zero = np.zeros((), np.int32) if given is None else importer.known(given)
    if scale is None or zero is None or scale.dtype != np.float32 or node.integer("block_size", 0):
        return None
    if not bool(np.isfinite(scale).all() and (scale > 0).all()) or zero.dtype.kind not in "iu" or scale.ndim > 1:
        return None
    axis = None if scale.size == zero.size == 1 else _axis(importer, node)
    return linear_parameters(scale, zero.astype(np.int32), axis)


def _spread(importer: Importer, node: Node, value: SSAValue) -> SSAValue:
    """A scale or zero point (for the whole tensor, per index of the axis, or per block), reshaped and repeated so that
    it broadcasts to the elements of input 0."""
    dims, own = importer.shape(node.input(0)), importer.shape(value)
    block = node.integer("block_size", 0)
    if not own or own == (1,):
        return importer.reshape(value, [])
    axis = _axis(importer, node)
    if not block:
        return importer.reshape(value, [-1 if i == axis else 1 for i in range(len(dims))]) if len(own) == 1 else value
    if len(own) != len(dims):
        raise node.malformed(f"the scale of blocks has rank {len(own)}, not {len(dims)}")
    value = importer.reshape(value, [*own[: axis + 1], 1, *own[axis + 1 :]])
    value = importer.broadcast(value, [*own[: axis + 1], block, *own[axis + 1 :]])
    value = importer.reshape(value, [*own[:axis], own[axis] * block, *own[axis + 1 :]])
    return importer.slice(value, {axis: (0, dims[axis])})


def _code_type(importer: Importer, node: Node) -> Attribute:
    """The element type of the result of QuantizeLinear."""
    if (given := node.optional(2)) is not None:
        return importer.element(given)
    number = node.integer("output_dtype", 0)
    return importer.element_of(number or 2, node)


@op("QuantizeLinear")
@op("QuantizeLinear", domain=MICROSOFT)
def quantize(importer: Importer, node: Node) -> SSAValue:
    """Import QuantizeLinear: `clamp(rint(x / scale) + zero_point)`; to floats of few bits `cast(x / scale)`."""
    data, type = node.input(0), _code_type(importer, node)
    constants = _constants(importer, node)
    if constants is not None and importer.element(data) == f32 and is_code(type, 4, 8, 16):
        return importer.call(qnn.QuantizeOp, data, **constants, rounding="even", out_dtype=type)
    scale = node.input(1)
    if precision := node.integer("precision", 0):
        scale = importer.cast_to(scale, precision, node)
    if not importer.is_float(scale):
        raise node.unsupported(f"its scale is {importer.element(scale)}")
    steps = importer.call(relay.DivideOp, importer.cast(data, importer.element(scale)), _spread(importer, node, scale))
    if not is_integer(type):
        saturates = UnitAttr() if bits_of(type) <= 8 and node.integer("saturate", 1) else None
        return importer.call(relay.CastOp, steps, dtype=type, saturate=saturates)
    steps = nearest(importer, importer.cast(steps, f32))
    if (zero := node.optional(2)) is not None:
        zero = importer.cast(importer.cast(_spread(importer, node, zero), i32), f32)
        steps = importer.call(relay.AddOp, steps, zero)
    steps = importer.clip(steps, *code_range(dtype_of(type)))
    return importer.cast(importer.cast(steps, i32), type)


@op("DequantizeLinear")
@op("DequantizeLinear", domain=MICROSOFT)
def dequantize(importer: Importer, node: Node) -> SSAValue:
    """Import DequantizeLinear: `(x - zero_point) * scale` in the type of the scale."""
    data, scale = node.input(0), node.input(1)
    type, constants = importer.element(data), _constants(importer, node)
    wanted = node.integer("output_dtype", 0)
    if constants is not None and is_integer(type) and wanted in (0, 1):
        return importer.call(qnn.DequantizeOp, data, **constants, product="f32")
    steps, zero = data, node.optional(2)
    if is_integer(type):
        steps = importer.cast(data, i32)
        if zero is not None:
            steps = importer.call(relay.SubtractOp, steps, importer.cast(_spread(importer, node, zero), i32))
    steps, spread = importer.cast(steps, importer.element(scale)), _spread(importer, node, scale)
    result = importer.call(relay.MultiplyOp, steps, spread)
    if wanted not in (0, 1):
        return importer.cast_to(result, wanted, node)
    importer.narrow[result] = partial(narrow_of, importer, node)
    return result


def narrow_of(importer: Importer, node: Node, turned: bool) -> NarrowWeights | None:
    """The constant quantized weights of a DequantizeLinear, [inputs, units] or, if `turned`, [units, inputs], with
    whole blocks along the inputs; None if it has no such weights. Floats of few bits may have one scale for all weights
    or one per unit; a block then has all inputs."""
    block, arrays = node.integer("block_size", 0), [importer.known(node.input(place)) for place in (0, 1)]
    zero = importer.known(node.input(2)) if node.optional(2) is not None else np.zeros((), np.int8)
    codes, scales = arrays
    if codes is None or scales is None or zero is None or scales.dtype != np.float32 or codes.ndim != 2:
        return None
    axis, floats = _axis(importer, node), is_float(importer.element(node.input(0)))
    if turned:
        axis, codes = 1 - axis, codes.T
        scales, zero = (array.T if array.ndim == 2 else array for array in (scales, zero))
    if floats and not block and (scales.size == 1 or axis == 1):
        scales, axis, block = np.broadcast_to(scales.reshape(-1), codes.shape[1:])[None], 0, codes.shape[0]
    if axis != 0 or not block or codes.shape[0] != len(scales) * block or codes.itemsize != 1:
        return None
    name, scale_name, *_ = node.proto.input
    names, units, scales = (name, scale_name), codes.shape[1], np.ascontiguousarray(scales.T)
    if floats:
        return NarrowWeights(codes.T.reshape(units, -1, block), np.zeros(scales.shape, np.uint8), scales, names)
    bits = bits_of(importer.element(node.input(0)))
    low = 1 << (bits - 1) if codes.dtype.name.startswith("int") else 0
    steps = codes.astype(np.int16).T.reshape(units, -1, block) + low
    zeros = np.broadcast_to(zero.T.astype(np.int16) + low, scales.shape)
    return NarrowWeights(steps.astype(np.uint8), zeros.astype(np.uint8), scales, names)


def dequantized(array: Array, scales: Array, zeros: Array | int, axis: int, block: int) -> Array:
    """The float32 elements of a constant that is quantized in blocks along an axis."""
    spread = [np.repeat(each, block, axis) if np.ndim(each) else each for each in (scales.astype(np.float32), zeros)]
    cut = tuple(slice(0, size) for size in array.shape)
    scale, zero = (each[cut] if isinstance(each, np.ndarray) else each for each in spread)
    return (array.astype(np.float32) - zero) * scale
