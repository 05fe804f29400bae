"""Imports quantized convolutions and products: sums in i32, and their rescaling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32, i16, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.builder import number, product_parameters
from relay.frontend.importing.fused import Codes, Kernel, packed_kernel, requantize
from relay.frontend.importing.windows import convolved, flat_padding
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.operators import nn
from relay.frontend.onnx.operators.quantized.parameters import (
    codes_of,
    either_layout,
    nearest,
    result_codes,
    scales_of,
)
from relay.frontend.onnx.table import MICROSOFT, op
from relay.interpreters.arithmetic import code_range

Scales = tuple[np.float32, Array]
"""The scales of data and kernel, as qnn ops state them."""
Zeros = tuple[SSAValue | None, SSAValue | None]
"""The zero points of data and kernel, None for omitted ones."""
UNSCALED: Scales = np.float32(1), np.ones(1, np.float32)
"""The scales of integer products, to which no scale applies."""


def _parameters(
    importer: Importer, data: SSAValue, scale: np.float32, zero: SSAValue | int, kernel: Kernel
) -> dict[str, Attribute]:
    """The properties with the quantization of data and kernel; a zero point that is only known at run time is left
    out."""
    codes = Codes(scale, 0 if isinstance(zero, SSAValue) else zero, importer.dtype(data))
    return product_parameters(codes, kernel.scales, int(kernel.zeros[0]))


def convolution_sums(importer: Importer, node: Node, kernel: int, zeros: Zeros, scales: Scales) -> SSAValue:
    """The sums of a convolution with one to three spatial axes, channels first, of input 0 and the input `kernel`;
    padding adds nothing. If the data's zero point is only known at run time, its product with the sums of the kernel is
    subtracted."""
    dims = node.shape(0)
    weights = importer.known(node.input(kernel))
    kernel_zeros = np.zeros(1, np.int64) if zeros[1] is None else importer.known(zeros[1])
    if node.rank(kernel) != len(dims) or len(dims) not in (3, 4, 5):
        raise node.unsupported(f"data of rank {len(dims)} and a kernel of rank {node.rank(kernel)}", "3 to 5 both")
    if weights is None or kernel_zeros is None or len(dims) == 5:
        return _any_convolution(importer, node, kernel, zeros)
    x, strides, dilation, padding = nn.window(importer, node, weights.shape[2:])
    if len(dims) == 3:
        sizes = importer.shape(x)
        x, weights = importer.reshape(x, [*sizes[:2], 1, sizes[2]]), weights[:, :, None]
        strides, dilation, padding = [1, *strides], [1, *dilation], [(0, 0), *padding]
    groups, zero = node.integer("group", 1), _single(importer, zeros[0])
    packing = Kernel(weights, scales[1], kernel_zeros.astype(np.int64).reshape(-1), 0).of_output_channels()
    out, per_group = weights.shape[:2]
    if groups < 1 or out % groups or dims[1] not in (per_group * groups, DYNAMIC):
        raise node.malformed(f"{dims[1]} channels and a kernel of shape {list(weights.shape)} in {groups} groups")
    layout, packed = packed_kernel(packing.codes, groups)
    filters = importer.constant(packed, node.proto.input[kernel])
    properties = _parameters(importer, x, scales[0], zero, packing)
    window = {"strides": strides, "dilation": dilation, "padding": flat_padding(padding), "groups": groups}

    def sums(value: SSAValue) -> SSAValue:
        words = {"data_layout": "NCHW", "kernel_layout": layout}
        return importer.call(qnn.Conv2dOp, value, filters, **properties, **window, **words)

    result = sums(x)
    if isinstance(zero, SSAValue):
        correction = importer.call(relay.MultiplyOp, sums(_ones(importer, x)), importer.cast(zero, i32))
        result = importer.call(relay.SubtractOp, result, correction)
    if len(dims) == 3:
        sizes = importer.shape(result)
        result = importer.reshape(result, [*sizes[:2], sizes[3]])
    return result


def _any_convolution(importer: Importer, node: Node, kernel: int, zeros: Zeros) -> SSAValue:
    """The sums of a convolution that qnn.conv2d does not support: with three spatial axes, or with a kernel or kernel
    zero points that are only known at run time."""
    x, strides, dilations, padding = nn.window(importer, node, node.static(kernel)[2:])
    (x, weights), properties = _differences(importer, (x, node.input(kernel)), zeros, channels=True)
    groups, more = node.integer("group", 1), {"out_dtype": i32, **properties}
    return convolved(importer, x, weights, strides, dilations, padding, groups, more=more)


def _differences(
    importer: Importer, operands: Sequence[SSAValue], zeros: Zeros, channels: bool = False
) -> tuple[list[SSAValue], dict[str, Attribute]]:
    """Subtract the zero points from both operands, in 16 bits; a zero point that is one constant number is not
    subtracted, but returned as a property. A vector of zero points has one element per row of the first operand or per
    column of the second; with `channels`, one per output channel of the kernel."""
    properties: dict[str, Attribute] = {}
    sides: list[SSAValue] = []
    for side, given, prefix in zip(operands, zeros, ("input", "kernel"), strict=True):
        zero = _single(importer, given)
        if isinstance(zero, SSAValue):
            if importer.shape(zero) not in ((), (1,)) and (channels or prefix == "input") and importer.rank(zero) == 1:
                zero = importer.reshape(zero, [-1, *[1] * (importer.rank(side) - 1 if channels else 1)])
            side = importer.call(relay.SubtractOp, importer.cast(side, i16), importer.cast(zero, i16))
        elif zero:
            properties[f"{prefix}_zero_point"] = number(zero)
        sides.append(side)
    return sides, properties


def _ones(importer: Importer, value: SSAValue) -> SSAValue:
    """An image of ones with the sizes and element type of the value; its batch is 1 if all sizes are known, else the
    value's."""
    dims = importer.shape(value)
    if DYNAMIC in dims:
        return importer.call(relay.OnesLikeOp, value)
    return importer.unnamed(np.ones((1, *dims[1:]), importer.dtype(value)))


def _single(importer: Importer, zero: SSAValue | None) -> SSAValue | int:
    """A zero point as a number if it is a constant of one element."""
    if zero is None:
        return 0
    found = importer.known(zero)
    if found is None or found.size != 1:
        return zero
    return int(found.reshape(-1)[0])


@op("QLinearConv", since=10)
@op("QLinearConv", domain=MICROSOFT)
@either_layout
def convolution(importer: Importer, node: Node) -> SSAValue:
    zeros = node.optional(2), node.optional(5)
    if any(importer.known(node.input(number)) is None for number in (1, 2, 4, 6, 7)):
        sums = nn.biased(importer, node, convolution_sums(importer, node, 3, zeros, UNSCALED), 8)
        return rescaled(importer, node, sums, importer.rank(sums) - 2)
    source, scales = codes_of(importer, node, 0, 1, 2), scales_of(node, 4)
    sums = nn.biased(importer, node, convolution_sums(importer, node, 3, zeros, (source.scale, scales)), 8)
    properties = requantize(source.scale * scales, result_codes(importer, node, 6), axis=1)
    return importer.call(qnn.RequantizeOp, sums, **properties)


@op("ConvInteger", since=10)
def convolution_integer(importer: Importer, node: Node) -> SSAValue:
    return convolution_sums(importer, node, 1, (node.optional(2), node.optional(3)), UNSCALED)


def product_sums(
    importer: Importer,
    operands: tuple[SSAValue, SSAValue],
    zeros: Zeros,
    name: str,
    scales: Scales,
) -> SSAValue:
    """`(a - zero) @ (b - zero)` of quantized values, summed in i32, as numpy's matmul: the zero points of b are one
    number or one per column; a constant matrix b is packed at import."""
    a, b = operands
    matrix, columns = importer.known(b), np.zeros(1, np.int64)
    if zeros[1] is not None:
        found = importer.known(zeros[1])
        matrix, columns = (None, columns) if found is None else (matrix, found.astype(np.int64).reshape(-1))
    zero = _single(importer, zeros[0])
    row_zeros = isinstance(zero, SSAValue) and importer.shape(zero) not in ((), (1,))
    if matrix is None or matrix.ndim != 2 or row_zeros:
        return _any_product(importer, a, b, zeros)
    packing = Kernel(np.ascontiguousarray(matrix.T), scales[1], columns, 0).of_output_channels()
    properties = _parameters(importer, a, scales[0], zero, packing)
    result = importer.call(qnn.DenseOp, a, importer.constant(packing.codes, name), **properties)
    if isinstance(zero, SSAValue):
        totals = importer.unnamed((packing.codes.astype(np.int64) - packing.zeros[0]).sum(axis=1).astype(np.int32))
        correction = importer.call(relay.MultiplyOp, importer.reshape(importer.cast(zero, i32), []), totals)
        result = importer.call(relay.SubtractOp, result, correction)
    return result


def _any_product(importer: Importer, a: SSAValue, b: SSAValue, zeros: Zeros) -> SSAValue:
    """The matrix product of `a` and `b` minus their zero points, in i32, if operands or zero points are not known at
    import."""
    single = importer.rank(a) == 1, importer.rank(b) == 1
    if single[0]:
        a = importer.reshape(a, [1, *importer.shape(a)])
    if single[1]:
        b = importer.reshape(b, [*importer.shape(b), 1])
    sides, properties = _differences(importer, (a, b), zeros)
    result = importer.call(relay.BatchMatmulOp, *sides, out_dtype=i32, transpose_b=False, **properties)
    dims = list(importer.shape(result))
    dims = dims[:-2] + [size for size, left in zip(dims[-2:], single, strict=True) if not left]
    return importer.reshape(result, dims)


@op("MatMulInteger", since=10)
def product_integer(importer: Importer, node: Node) -> SSAValue:
    zeros = node.optional(2), node.optional(3)
    return product_sums(importer, (node.input(0), node.input(1)), zeros, node.proto.input[1], UNSCALED)


@op("QLinearMatMul", since=10)
@op("QLinearMatMul", domain=MICROSOFT)
def product(importer: Importer, node: Node) -> SSAValue:
    name, zeros = node.proto.input[3], (node.optional(2), node.optional(5))
    if any(importer.known(node.input(number)) is None for number in (1, 4, 6, 7)):
        return rescaled(importer, node, product_sums(importer, (node.input(0), node.input(3)), zeros, name, UNSCALED))
    rows, scales = scales_of(node, 1), scales_of(node, 4)
    if rows.size != 1:
        raise node.unsupported("it has a scale per row")
    sums = product_sums(importer, (node.input(0), node.input(3)), zeros, name, (np.float32(rows[0]), scales))
    properties = requantize(np.float32(rows[0]) * scales, result_codes(importer, node, 6))
    return importer.call(qnn.RequantizeOp, sums, **properties)


def rescaled(importer: Importer, node: Node, sums: SSAValue, after: int = 0) -> SSAValue:
    """`clamp(rint(f32(sums) * (a * b / y)) + zero_point)` where a, b and y, the scales of both operands and the result,
    are only known at run time. A vector b varies along an axis that is followed by `after` axes."""
    a, b, y = (importer.cast(node.input(number), f32) for number in (1, 4, 6))
    if importer.shape(a) not in ((), (1,)):
        a = importer.reshape(a, [*importer.shape(a), 1])
    if after:
        b = importer.reshape(b, [-1, *[1] * after])
    factor = importer.call(relay.DivideOp, importer.call(relay.MultiplyOp, a, b), y)
    steps = nearest(importer, importer.call(relay.MultiplyOp, importer.cast(sums, f32), factor))
    zero = node.input(7)
    steps = importer.call(relay.AddOp, importer.cast(steps, i32), importer.cast(zero, i32))
    return importer.cast(importer.clip(steps, *code_range(importer.dtype(zero))), importer.element(zero))


@op("QGemm", domain=MICROSOFT)
def gemm(importer: Importer, node: Node) -> SSAValue:
    """Import QGemm: `alpha * a @ b + c` with c in i32; the result is float if it has no scale."""
    a, b = (
        importer.transpose(node.input(number), (1, 0)) if node.flag(flag) else node.input(number)
        for number, flag in ((0, "transA"), (3, "transB"))
    )
    left, scales = codes_of(importer, node, 0, 1, 2), scales_of(node, 4)
    name = node.proto.input[3]
    sums = product_sums(importer, (a, b), (node.optional(2), node.optional(5)), name, (left.scale, scales))
    sums = importer.add(sums, node.optional(6))
    factor = np.float32(node.real("alpha", 1.0)) * left.scale * scales
    if node.optional(7) is None:
        return importer.call(relay.MultiplyOp, importer.cast(sums, f32), importer.unnamed(factor))
    return importer.call(qnn.RequantizeOp, sums, **requantize(factor, result_codes(importer, node, 7)))
