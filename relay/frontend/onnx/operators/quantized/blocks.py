"""Imports weights in few bits with a scale per block, which stay quantized."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.rows import Rows, rows_of
from relay.frontend.onnx.builder import Importer, NarrowWeights
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.operators.quantized.linear import dequantized
from relay.frontend.onnx.table import MICROSOFT, op

BYTES = 4
"""The value of the attribute `accuracy_level` at which a product rounds its data to 8 bits, block by block."""
SMALLEST = 2.0**-100
"""The smallest value used as the largest magnitude of a block, so that blocks of tiny numbers do not divide by 0."""


def rounded(importer: Importer, x: SSAValue, count: int, block: int) -> SSAValue:
    """The data rounded per block to integer multiples of 1/127 of the block's largest magnitude."""
    sizes = importer.shape(x)
    data = Scalar(importer, importer.reshape(x, [*sizes[:-1], count, block]))
    largest = data.of(relay.AbsOp).of(relay.MaxOp, axis=[-1], keepdims=True).of(relay.MaximumOp, SMALLEST)
    codes = (data * (largest.number(127) / largest)).to_even()
    return importer.reshape((codes * (largest * (1 / 127))).value, sizes)


def unpacked(packed: Array, bits: int, count: int) -> Array:
    """The unpacked elements of `bits` bits in each row of bytes, lowest bits first; `count` per row."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return numbers.reshape(*packed.shape[:-1], -1)[..., :count]


def whole(zero_points: Array) -> bool:
    """Whether zero points are integers, like the quantized values."""
    return np.array_equal(zero_points.astype(np.uint8), zero_points)


def _bits(node: Node) -> int:
    bits = node.integer("bits", 4)
    if bits not in (2, 4, 8):
        raise node.unsupported(f"weights of {bits} bits", "they may have 2, 4 or 8")
    return bits


@op("MatMulNBits", domain=MICROSOFT)
def product(importer: Importer, node: Node) -> SSAValue:
    """Import MatMulNBits: `a @ w.T` in floats, with `w[n, k] = (code - zero_point) * scale` in blocks along k."""
    bits, inner, columns, block = _bits(node), node.integer("K"), node.integer("N"), node.integer("block_size")
    if node.optional(4) is not None:
        raise node.unsupported("has an order of groups (g_idx)")
    count = -(-inner // block)
    packed, scales = node.array(1), node.array(2)
    if packed.size != columns * count * block * bits // 8 or scales.size != columns * count:
        raise node.malformed(f"has {packed.size} bytes of weights and {scales.size} scales")
    codes = unpacked(packed.reshape(columns, -1).view(np.uint8), bits, inner)
    given = node.array(3) if node.optional(3) is not None else np.full((columns, count), 1 << (bits - 1), np.float32)
    zeros = given.reshape(columns, -1)
    if given.dtype == np.uint8:
        zeros = unpacked(zeros, bits, count)
    x, (_, name, scale_name, *_) = node.input(0), node.proto.input
    scales = scales.reshape(columns, count)
    if inner == count * block and scales.dtype == importer.dtype(x) == np.float32 and whole(zeros):
        weights = NarrowWeights(
            codes.reshape(columns, count, block), zeros.astype(np.uint8), scales, (name, scale_name)
        )
        rounds = node.integer("accuracy_level", 0) == BYTES
        x, properties = (rounded(importer, x, count, block), {"data_bits": 8}) if rounds else (x, {})
        result = importer.narrow_product(x, weights, **properties)
    else:
        floats = dequantized(codes, scales, zeros.astype(np.float32), 1, block)
        kernel = importer.constant(floats.astype(importer.dtype(x)), name)
        result = importer.call(relay.DenseOp, x, kernel, out_dtype=importer.element(x))
    return importer.add(result, node.optional(5))


@op("GatherBlockQuantized", domain=MICROSOFT)
def gather(importer: Importer, node: Node) -> SSAValue:
    """Import GatherBlockQuantized: rows of a table that is quantized in blocks."""
    data, scales, block = node.array(0), node.array(2), node.integer("block_size", 128)
    zeros: Array | int = 0
    bits = _bits(node)
    axis = node.axis(node.integer("quantize_axis", 1), data.ndim)
    if data.dtype == np.uint8 and bits < 8:
        data, zeros = unpacked(data, bits, data.shape[-1] * 8 // bits), 1 << (bits - 1)
    elif data.dtype == np.uint8:
        zeros = 128
    if node.optional(3) is not None:
        zeros = node.array(3)
        if zeros.dtype == np.uint8 and bits < 8:
            zeros = unpacked(zeros, bits, scales.shape[-1])
        zeros = zeros.astype(np.float32)
    name, gathered = node.proto.input[0], node.axis(node.integer("gather_axis", 0), data.ndim)
    whole_rows = data.ndim == axis + 1 == 2 and gathered == 0 and data.shape[1] == scales.shape[1] * block
    if whole_rows and scales.dtype == np.float32 and data.itemsize == 1:
        table = Rows(name, data, scales, np.broadcast_to(zeros, scales.shape), bits)
        return rows_of(importer, table, node.input(1), "wrap")
    table = dequantized(data, scales, zeros, axis, block).astype(scales.dtype)
    return importer.taken(importer.constant(table, name), node.input(1), gathered)
