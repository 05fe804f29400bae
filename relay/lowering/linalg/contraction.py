"""Convolutions and matrix products: one `linalg.generic` each, whose body is extend, subtract zero point, multiply,
add."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType, Signedness, f32, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.dialects.element_types import is_narrow
from relay.dialects.op import tensor
from relay.errors import Unsupported
from relay.lowering.linalg import narrow
from relay.lowering.linalg.emitter import Body, Emitter, axes, dims, over, sliding
from relay.transforms.location import place

CODES = IntegerType(8, Signedness.UNSIGNED)
"""The type of weight codes that have a zero point."""
Contraction = relay.Conv2dOp | relay.DenseOp | relay.BatchMatmulOp
DATA_BITS = "relay.data_bits"
"""The attribute of a product that keeps `data_bits` of `relay.nn.weight_only_dense`."""


def zero_point(attr: IntegerAttr | None) -> int:
    return 0 if attr is None else attr.value.data


def multiply_add(op: Contraction) -> Body:
    """Return the body `acc + (data - input zero point) * (kernel - kernel zero point)`, computed in the accumulator's
    type. Floats have no zero point; bf16 and narrower ones are widened to f32 first."""
    sources = [tensor(value).element_type for value in op.operands]
    zeros = zero_point(op.input_zero_point), zero_point(op.kernel_zero_point)

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        accumulator = args[2]
        to = accumulator.type
        if isinstance(to, AnyFloat):
            sides = zip(args[:2], sources, strict=True)
            a, b = (narrow.widen(e, value, source)[0] if is_narrow(source) else value for value, source in sides)
            return [e(arith.AddfOp(accumulator, e(arith.MulfOp(a, b))))]
        factors: list[SSAValue] = []
        for value, source, zero in zip(args[:2], sources, zeros, strict=True):
            wide = e.widen(value, source, to)
            factors.append(e(arith.SubiOp(wide, e.constant(zero, to))) if zero else wide)
        return [e(arith.AddiOp(accumulator, e(arith.MuliOp(factors[0], factors[1]))))]

    return body


def contract(
    e: Emitter,
    op: Contraction,
    data: tuple[SSAValue, AffineMap],
    kernel: tuple[SSAValue, AffineMap],
    shape: Sequence[int],
    reductions: int,
) -> SSAValue:
    """Emit a `linalg.generic` that adds the products of data and kernel to a new tensor of zeros; return its result.
    `shape` is the result's shape. The loops are one for each of its dimensions, then `reductions` loops that are summed
    over. `data` and `kernel`: a value and its indexing map each."""
    accumulator = e.filled(shape, op.out_dtype, 0)
    output = axes(len(shape) + reductions, *range(len(shape)))
    return e.generic([data, kernel], [(accumulator, output)], reductions, multiply_add(op))[0]


def conv2d(e: Emitter, op: relay.Conv2dOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to loops over (n, y, x, o, i, j, c); grouped: (n, y, x, g, o, i, j, c); depthwise: (n, y, x, c, [m,] i,
    j)."""
    data, kernel = operands
    top, left, bottom, right = int_values(op.padding)
    data = e.pad(data, [(0, 0), (top, bottom), (left, right), (0, 0)], zero_point(op.input_zero_point))
    result = tensor(op.result).get_shape()
    if op.depthwise:
        return [depthwise(e, op, data, kernel, result)]
    groups = op.groups.value.data
    if groups > 1:
        return [grouped(e, op, data, kernel, result, groups)]
    image = over(7, [AffineExpr.dimension(0), *window(op, 4, 5), AffineExpr.dimension(6)])
    return [contract(e, op, (data, image), (kernel, axes(7, 3, 4, 5, 6)), result, 3)]


def window(op: relay.Conv2dOp, i: int, j: int) -> tuple[AffineExpr, AffineExpr]:
    """Return the row and the column of the padded image that a convolution reads, as affine expressions of the loops:
    dimensions 1 and 2 are the output row and column, `i` and `j` the dimensions of the kernel's row and column."""
    (sy, sx), (dy, dx) = int_values(op.strides), int_values(op.dilation)
    return sliding(1, sy, i, dy), sliding(2, sx, j, dx)


def depthwise(e: Emitter, op: relay.Conv2dOp, data: SSAValue, kernel: SSAValue, result: Sequence[int]) -> SSAValue:
    """Lower a depthwise convolution: a kernel [h, w, c, 1] is collapsed to [h, w, c]; with a multiplier m the result is
    [n, y, x, c, m], collapsed."""
    height, width, channels, multiplier = dims(kernel)
    if multiplier == 1:
        kernel = e.collapse(kernel, [[0], [1], [2, 3]], [height, width, channels])
        image = over(6, [AffineExpr.dimension(0), *window(op, 4, 5), AffineExpr.dimension(3)])
        return contract(e, op, (data, image), (kernel, axes(6, 4, 5, 3)), result, 2)
    image = over(7, [AffineExpr.dimension(0), *window(op, 5, 6), AffineExpr.dimension(3)])
    shape = [*result[:3], channels, multiplier]
    product = contract(e, op, (data, image), (kernel, axes(7, 5, 6, 3, 4)), shape, 2)
    return e.collapse(product, [[0], [1], [2], [3, 4]], result)


def grouped(
    e: Emitter, op: relay.Conv2dOp, data: SSAValue, kernel: SSAValue, result: Sequence[int], groups: int
) -> SSAValue:
    """Lower a grouped convolution: channels are split into (group, channel in group) on both sides."""
    batch, height, width, channels = dims(data)
    out, *window_shape = dims(kernel)
    split = [[0], [1], [2], [3, 4]]
    data = e.expand(data, split, [batch, height, width, groups, channels // groups])
    kernel = e.expand(kernel, [[0, 1], [2], [3], [4]], [groups, out // groups, *window_shape])
    image = over(8, [AffineExpr.dimension(0), *window(op, 5, 6), AffineExpr.dimension(3), AffineExpr.dimension(7)])
    shape = [*result[:3], groups, out // groups]
    product = contract(e, op, (data, image), (kernel, axes(8, 3, 4, 5, 6, 7)), shape, 3)
    return e.collapse(product, split, result)


def dense(e: Emitter, op: relay.DenseOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to loops over (m, o, k), with the leading axes of the data flattened to m."""
    data, kernel = operands
    units, inputs = dims(kernel)
    rows = prod(dims(data)[:-1])
    data = e.reshape(data, [rows, inputs])
    product = contract(e, op, (data, axes(3, 0, 2)), (kernel, axes(3, 1, 2)), [rows, units], 1)
    return [e.reshape(product, tensor(op.result).get_shape())]


def batch_matmul(e: Emitter, op: relay.BatchMatmulOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to loops over (batch, m, n, k); each operand is read as it is stored."""
    left, right = operands
    if len(dims(left)) != 3 or dims(left)[0] != dims(right)[0]:
        raise Unsupported(place(op), "broadcasts its leading axes", "run legalize first")
    a = axes(4, 0, 3, 1) if op.transpose_a.value.data else axes(4, 0, 1, 3)
    b = axes(4, 0, 2, 3) if op.transpose_b.value.data else axes(4, 0, 3, 2)
    return [contract(e, op, (left, a), (right, b), tensor(op.result).get_shape(), 1)]


def weight_only_dense(e: Emitter, op: relay.WeightOnlyDenseOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to loops over (m, o, g, i), with the leading axes of the data flattened to m; `i` is a position in block
    `g`."""
    data, codes, scales, zeros = operands
    units, blocks, block = dims(codes)
    rows = prod(dims(data)[:-1])
    data = e.reshape(data, [rows, blocks * block])
    start = e.filled([rows, units], f32, 0)
    inputs = [(data, over(4, [AffineExpr.dimension(0), sliding(2, block, 3, 1)])), (codes, axes(4, 1, 2, 3)),
              (scales, axes(4, 1, 2)), (zeros, axes(4, 1, 2))]  # fmt: skip
    body = weight_only_body(tensor(op.codes).element_type)
    (product,) = e.generic(inputs, [(start, axes(4, 0, 1))], 2, body)
    if op.data_bits is not None and isinstance(product.owner, Operation):
        product.owner.attributes[DATA_BITS] = op.data_bits
    return [e.reshape(product, tensor(op.result).get_shape())]


def weight_only_body(type: Attribute) -> Body:
    """Return the body of a product with quantized weights: `acc + x * ((code - zero point) * scale)` in f32. `type`:
    the type of the codes; 8-bit unsigned codes are subtracted as integers, others as floats."""

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        x, code, scale, zero, accumulator = args
        if type == CODES:
            step = e(arith.SubiOp(e(arith.ExtUIOp(code, i32)), e(arith.ExtUIOp(zero, i32))))
            number = e(arith.SIToFPOp(step, f32))
        else:
            number = e(arith.SubfOp(narrow.widen(e, code, type)[0], e(arith.UIToFPOp(zero, f32))))
        return [e(arith.AddfOp(accumulator, e(arith.MulfOp(x, e(arith.MulfOp(number, scale))))))]

    return body
