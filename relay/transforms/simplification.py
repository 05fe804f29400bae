"""Patterns of `simplify`: relay ops that change nothing, and pairs that one op can do."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, int_values, ints, to_numpy
from relay.dialects.layout import Layout
from relay.dialects.op import DYNAMIC, rank, shape, tensor
from relay.interpreters import evaluate
from relay.module import is_constant
from relay.transforms.algebra import Algebra
from relay.transforms.expansion import Expansion, limits
from relay.transforms.grouped_heads import GroupedHeads
from relay.transforms.joined_transposes import JoinedTransposes
from relay.transforms.large_windows import LargeWindow
from relay.transforms.later_reshapes import LaterReshape
from relay.transforms.one_table import OneTable


class SameType(RewritePattern):
    """relay.reshape, relay.cast, relay.broadcast_to, relay.nn.pad, relay.concatenate of one %x, to its type  =>  %x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: relay.ReshapeOp | relay.CastOp | relay.BroadcastToOp | relay.PadOp | relay.ConcatenateOp,
        rewriter: PatternRewriter,
    ) -> None:
        if len(op.operands) == 1 and op.operands[0].type == op.result.type:
            rewriter.replace(op, [], [op.operands[0]])


class WholeSlice(RewritePattern):
    """relay.strided_slice of all of %x, in order  =>  %x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.StridedSliceOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type and all(s > 0 for s in int_values(op.strides)):
            rewriter.replace(op, [], [op.input])


class ReshapeOfReshape(RewritePattern):
    """relay.reshape (relay.reshape %x)  =>  relay.reshape %x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.ReshapeOp, rewriter: PatternRewriter) -> None:
        if not isinstance(inner := op.input.owner, relay.ReshapeOp):
            return
        new = Expansion(op)
        new.replace(rewriter, new.value(relay.ReshapeOp, inner.input, properties={"newshape": op.newshape}))
        if not inner.result.uses:
            rewriter.erase(inner)


class Transpose(RewritePattern):
    """relay.transpose {0, 1, ...} %x  =>  %x; relay.transpose {a} (relay.transpose {b} %x)  =>  one {b[a]}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.TransposeOp, rewriter: PatternRewriter) -> None:
        axes = int_values(op.axes)
        if list(axes) == list(range(len(axes))):
            rewriter.replace(op, [], [op.input])
        elif isinstance(inner := op.input.owner, relay.TransposeOp):
            new, before = Expansion(op), int_values(inner.axes)
            joined = ints([before[axis] for axis in axes])
            new.replace(rewriter, new.value(relay.TransposeOp, inner.input, properties={"axes": joined}))


class OneMatrix(RewritePattern):
    """A product of stacks of rows with one matrix  =>  relay.reshape (that of all rows (relay.reshape %x))

    relay.nn.batch_matmul between codes in QDQ form stays until it has integers: it stands for sizes that the importer
    did not know. So does that of one matrix with a computed one, which `GroupedHeads` makes of legal ops, too.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: relay.DenseOp | relay.WeightOnlyDenseOp | qnn.DenseOp | relay.BatchMatmulOp,
        rewriter: PatternRewriter,
    ) -> None:
        x, matrix = op.operands[:2]
        dims, its = shape(x), shape(matrix)
        if len(dims) < 3 or DYNAMIC in (*dims, *its):
            return
        new, rows = Expansion(op), (prod(dims[:-1]), dims[-1])
        if not isinstance(op, relay.BatchMatmulOp):
            found = new.value(type(op), new.reshape(x, rows), *op.operands[1:], properties=op.properties)
        else:
            coded = any(isinstance(each.owner, qnn.DequantizeOp) for each in op.operands)
            alone = prod(dims[:-2]) == 1 and not is_constant(op.operands[1])
            if coded or alone or op.transpose_a.value.data or prod(its[:-2]) != 1:
                return
            properties = {"transpose_b": op.transpose_b, "out_dtype": op.out_dtype}
            operands = new.reshape(x, rows), new.reshape(matrix, its[-2:])
            found = new.value(relay.MatmulOp, *operands, properties=properties)
        new.replace(rewriter, new.reshape(found, shape(op.results[0])))


class Clip(RewritePattern):
    """relay.clip of integers to all of their type, or to bounds that the clip before has already  =>  its operand"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.ClipOp, rewriter: PatternRewriter) -> None:
        type = tensor(op.input).element_type
        if dtype_of(type).kind not in "iu":
            return
        low, high = limits(type)
        if isinstance(inner := op.input.owner, relay.ClipOp) and to_numpy(inner.a_min) <= to_numpy(inner.a_max):
            low, high = int(to_numpy(inner.a_min)), int(to_numpy(inner.a_max))
        if to_numpy(op.a_min) <= low and to_numpy(op.a_max) >= high:
            rewriter.replace(op, [], [op.input])


class Neutral(RewritePattern):
    """relay.add, relay.subtract of an integer 0, relay.multiply by an integer 1  =>  the other operand"""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: relay.AddOp | relay.SubtractOp | relay.MultiplyOp, rewriter: PatternRewriter
    ) -> None:
        constant, neutral = op.rhs.owner, 1 if isinstance(op, relay.MultiplyOp) else 0
        if not isinstance(constant, relay.ConstantOp) or not is_constant(constant) or op.lhs.type != op.result.type:
            return
        numbers = to_numpy(constant.value)
        if numbers.dtype.kind in "iu" and bool(np.all(numbers == neutral)):
            rewriter.replace(op, [], [op.lhs])


class LookupOfLookup(RewritePattern):
    """relay.lookup (relay.lookup %x, a), b  =>  relay.lookup %x, b[a], where nothing else uses the inner one"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.LookupOp, rewriter: PatternRewriter) -> None:
        inner = op.input.owner
        if not isinstance(inner, relay.LookupOp) or not inner.result.has_one_use():
            return
        first, second = inner.table.owner, op.table.owner
        if not isinstance(first, relay.ConstantOp) or not isinstance(second, relay.ConstantOp):
            return
        if not is_constant(first) or not is_constant(second):
            return
        (table,) = evaluate(op, [to_numpy(first.value), to_numpy(second.value)])
        new = Expansion(op)
        new.replace(rewriter, new.lookup(inner.input, table, table.dtype))


class ZeroPointOfData(RewritePattern):
    """relay.nn.bias_add (relay.nn.conv2d, relay.nn.dense {input_zero_point = z} %x, k), b  =>  the same without z, and
    with b - z * sum of k, where nothing else reads the product, k and b are constants, b has a number for each row of
    k, and nothing is padded. What is cast to a float without a bias gets one, -z * sum of k.

    Layers that differ in z alone are one kernel then.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.BiasAddOp | relay.CastOp, rewriter: PatternRewriter) -> None:
        product = op.operands[0].owner
        if not isinstance(product, relay.Conv2dOp | relay.DenseOp) or not product.result.has_one_use():
            return
        channels, dtype = channels_of(product), dtype_of(tensor(product.result).element_type)
        if channels is None:
            return
        if isinstance(op, relay.CastOp):
            if dtype_of(op.dtype).kind != "f":
                return
            numbers, axis = np.zeros((), dtype), IntegerAttr(channels, i64)
        else:
            bias, axis = op.bias.owner, op.axis
            if not isinstance(bias, relay.ConstantOp) or not is_constant(bias):
                return
            numbers = to_numpy(bias.value)
        if axis.value.data % rank(product.result) != channels or (sums := zero_point_sums(product)) is None:
            return
        new, moved = Expansion(op), (numbers.astype(np.int64) - sums).astype(dtype)
        whole: dict[str, Attribute | None] = {**product.properties, "input_zero_point": None}
        sum = new.value(type(product), *product.operands, properties=whole)
        sum = new.value(relay.BiasAddOp, sum, new.constant(moved, dtype), properties={"axis": axis})
        if isinstance(op, relay.CastOp):
            sum = new.value(relay.CastOp, sum, properties=op.properties)
        new.replace(rewriter, sum)
        rewriter.erase(product)


def channels_of(product: relay.Conv2dOp | relay.DenseOp) -> int | None:
    """The axis of the channels of a product's result; None if it pads its data, or mixes no channels."""
    if isinstance(product, relay.DenseOp):
        return rank(product.result) - 1
    layout = Layout.parse(product.result_layout.data)
    if any(int_values(product.padding)) or product.depthwise or layout.split:
        return None
    return layout.index("C")


def zero_point_sums(product: relay.Conv2dOp | relay.DenseOp) -> Array | None:
    """The zero point of the data times the sum of each row of the kernel; None if either is none."""
    kernel, zero = product.kernel.owner, product.input_zero_point
    if zero is None or zero.value.data == 0 or not isinstance(kernel, relay.ConstantOp) or not is_constant(kernel):
        return None
    weights = to_numpy(kernel.value).astype(np.int64)
    if product.kernel_zero_point is not None:
        weights -= product.kernel_zero_point.value.data
    axis = product.kernel_layout.data.index("O") if isinstance(product, relay.Conv2dOp) else 0
    return zero.value.data * weights.sum(tuple(n for n in range(weights.ndim) if n != axis))


PATTERNS: list[type[RewritePattern]] = [
    Algebra,
    SameType,
    WholeSlice,
    ReshapeOfReshape,
    Transpose,
    JoinedTransposes,
    OneMatrix,
    GroupedHeads,
    LaterReshape,
    Clip,
    Neutral,
    LookupOfLookup,
    OneTable,
    ZeroPointOfData,
    LargeWindow,
]
