"""Patterns of `simplify`: they remove relay ops that change nothing, and use fewer or smaller ops."""

from __future__ import annotations

from itertools import groupby
from math import prod

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, int_values, ints, to_numpy
from relay.dialects.layout import Layout
from relay.dialects.op import DYNAMIC, rank, shape, tensor
from relay.interpreters import evaluate
from relay.module import is_constant
from relay.transforms.algebra import Algebra
from relay.transforms.expansion import Expansion, known_numbers, limits
from relay.transforms.later_reshapes import LaterReshape, common_factors
from relay.transforms.one_table import OneTable

SIDE = 5
"""The largest side length, in cells, of the windows into which `LargeWindow` splits a window. For small windows there
are few different cases at the image's border, each of which needs code of its own: which rows and columns of the window
are outside."""


class LargeWindow(RewritePattern):
    """relay.nn.max_pool2d of k cells %x  =>  relay.nn.max_pool2d of k - 4 cells (relay.nn.max_pool2d of 5 cells %x)

    k is the side of a window of stride 1 that is over 5 cells. The pattern applies where the two poolings together read
    fewer cells; it is repeated, so that 13x13 becomes three poolings of 5x5. The padding is divided between the two
    poolings. The results are equal: the smaller windows together cover the large one, and padding never wins a maximum.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.MaxPool2dOp, rewriter: PatternRewriter) -> None:
        windows, padding = op.windows(), op.each_padding()
        if not op.plain or any(stride > 1 for _, stride, _ in windows):
            return
        cells = [side for side, _, _ in windows]
        sizes = op.sizes()
        spatial = [sizes[letter] for letter in op.SPATIAL]
        if max(cells) <= SIDE or DYNAMIC in spatial:
            return
        near = [min(side, SIDE) for side in cells]
        far = [side - first + 1 for side, first in zip(cells, near, strict=True)]
        first = [tuple(share(n, a, b) for n in both) for both, a, b in zip(padding, near, far, strict=True)]
        second = [(x - a, y - b) for (x, y), (a, b) in zip(padding, first, strict=True)]
        between = [n + a + b - side + 1 for n, (a, b), side in zip(spatial, first, near, strict=True)]
        count = prod(op.counts(spatial))
        if min(between) < 1 or prod(between) * prod(near) + count * prod(far) >= count * prod(cells):
            return
        new, x = Expansion(op), op.data
        for window, around in ((near, first), (far, second)):
            flat = [before for before, _ in around] + [after for _, after in around]
            sides: dict[str, Attribute] = {"pool_size": ints(window), "padding": ints(flat)}
            x = new.value(relay.MaxPool2dOp, x, properties={**op.properties, **sides})
        new.replace(rewriter, x)


def share(padding: int, near: int, far: int) -> int:
    """Divide the `padding` on one side of a pooling between the two consecutive poolings that replace it: return the
    part of the first one. It is at most `(near - 1) // 2` for the first window of `near` elements, or more where the
    part of the second one would otherwise exceed `far - 1`, for its window of `far` elements."""
    return max(min(padding, (near - 1) // 2), padding - (far - 1))


class JoinedTransposes(RewritePattern):
    """relay.transpose (relay.reshape (relay.transpose %x)) => relay.reshape (relay.transpose (relay.reshape %x)), where
    the reshape only splits and merges axes, and nothing else reads the intermediate values. The channel shuffle (split,
    swap, merge) of a channels-first model is then one transpose of rows."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.TransposeOp, rewriter: PatternRewriter) -> None:
        middle = op.input.owner
        if not isinstance(middle, relay.ReshapeOp) or not middle.result.has_one_use():
            return
        first = middle.input.owner
        if not isinstance(first, relay.TransposeOp) or not first.result.has_one_use():
            return
        factors = common_factors(shape(first.result), shape(middle.result)) or ()
        parts = [part for part in factors if part[0] > 1]
        if not parts:
            return
        before, after = (
            [[n for n, part in enumerate(parts) if part[place] == axis] for axis in range(rank(value))]
            for place, value in ((1, first.result), (2, middle.result))
        )
        inverse = sorted(range(len(before)), key=int_values(first.axes).__getitem__)
        source = [part for axis in inverse for part in before[axis]]
        target = [source.index(part) for axis in int_values(op.axes) for part in after[axis]]
        rows = [[n for _, n in run] for _, run in groupby(enumerate(target), lambda pair: pair[1] - pair[0])]
        starts = sorted(run[0] for run in rows)
        joined = [prod(parts[source[n]][0] for n in run) for run in sorted(rows)]
        new = Expansion(op)
        x = new.reshape(first.input, joined)
        x = new.transpose(x, [starts.index(run[0]) for run in rows])
        new.replace(rewriter, new.reshape(x, shape(op.result)))
        rewriter.erase(middle)
        rewriter.erase(first)


class GroupedHeads(RewritePattern):
    """relay.nn.batch_matmul %q, (each matrix of %k, n times)  =>  reshape (relay.nn.batch_matmul (reshape %q), %k)

    The rows of n matrices of %q become those of one. The last two axes of the matrices may be exchanged
    (`relay.transpose`) after the repetition.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.BatchMatmulOp, rewriter: PatternRewriter) -> None:
        a, dims = op.tensor_a, shape(op.tensor_a)
        repeated, turned = before_exchange(op.tensor_b)
        found = before_repeating(repeated)
        if found is None or op.transpose_a.value.data or DYNAMIC in (*dims, *shape(op.tensor_b)):
            return
        matrices, count = found
        heads, matrix = prod(dims[:-2]), shape(repeated)[-2:]
        if dims[:-2] != shape(repeated)[:-2]:
            return
        new = Expansion(op)
        rows = new.reshape(a, [heads // count, count * dims[-2], dims[-1]])
        each = new.reshape(matrices, [heads // count, *matrix])
        properties = {**op.properties, "transpose_b": IntegerAttr.from_bool(bool(op.transpose_b.value.data) != turned)}
        product = new.value(relay.BatchMatmulOp, rows, each, properties=properties)
        new.replace(rewriter, new.reshape(product, shape(op.result)))


def before_exchange(x: SSAValue) -> tuple[SSAValue, bool]:
    """The matrices before their last two axes were exchanged, and whether they were."""
    op, last = x.owner, rank(x) - 1
    if isinstance(op, relay.TransposeOp) and int_values(op.axes) == (*range(last - 1), last, last - 1):
        return op.input, True
    return x, False


def before_repeating(x: SSAValue) -> tuple[SSAValue, int] | None:
    """The stack of matrices before each was repeated n times in a row, and n; None if `x` is not such a repetition."""
    merge = x.owner
    copies = merge.input.owner if isinstance(merge, relay.ReshapeOp) else None
    if not isinstance(merge, relay.ReshapeOp) or not isinstance(copies, relay.BroadcastToOp):
        return None
    if shape(merge.input)[-2:] != shape(x)[-2:]:
        return None
    before, after = shape(copies.input), shape(copies.result)
    before = (1,) * (len(after) - len(before)) + before
    axes = [axis for axis, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    innermost = axes and prod(after[axes[0] + 1 : -2]) == 1
    return (copies.input, after[axes[0]]) if len(axes) == 1 and axes[0] < len(after) - 2 and innermost else None


class SameType(RewritePattern):
    """relay.reshape, relay.cast, relay.broadcast_to, relay.nn.pad or relay.concatenate %x  =>  %x

    This applies if %x is the only operand and the result has the type of %x.
    """

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
    """A product of stacks of rows with one matrix  =>  relay.reshape (the product of all rows (relay.reshape %x) with
    it)

    Two kinds of relay.nn.batch_matmul are left unchanged: of dequantized values (QDQ form), until it is converted to an
    integer op; and of a stack of one matrix with a matrix that is computed, the form that `GroupedHeads` makes.
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
    """relay.clip of integers to their type's whole range, or to bounds that the preceding clip has already => its
    operand"""

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
        numbers, neutral = known_numbers(op.rhs), 1 if isinstance(op, relay.MultiplyOp) else 0
        if numbers is None or op.lhs.type != op.result.type:
            return
        if numbers.dtype.kind in "iu" and bool(np.all(numbers == neutral)):
            rewriter.replace(op, [], [op.lhs])


class LookupOfLookup(RewritePattern):
    """relay.lookup (relay.lookup %x, a), b  =>  relay.lookup %x, b[a], where nothing else uses the inner one"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.LookupOp, rewriter: PatternRewriter) -> None:
        inner = op.input.owner
        if not isinstance(inner, relay.LookupOp) or not inner.result.has_one_use():
            return
        first, second = known_numbers(inner.table), known_numbers(op.table)
        if first is None or second is None:
            return
        (table,) = evaluate(op, [first, second])
        new = Expansion(op)
        new.replace(rewriter, new.lookup(inner.input, table, table.dtype))


class ZeroPointOfData(RewritePattern):
    """relay.nn.bias_add (relay.nn.conv2d, relay.nn.dense {input_zero_point = z} %x, k), b => the same without z, and
    with b - z * sum of k, where nothing else reads the product, k and b are constants, b has a number for each row of
    k, and nothing is padded. A product that is cast to a float without a bias gets the bias -z * sum of k. Layers that
    differ only in z can then use one kernel."""

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
            numbers, axis = known_numbers(op.bias), op.axis
        if numbers is None:
            return
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
    """The channel axis of a product's result; None if the product pads its data, or is depthwise."""
    if isinstance(product, relay.DenseOp):
        return rank(product.result) - 1
    layout = Layout.parse(product.result_layout.data)
    if any(int_values(product.padding)) or product.depthwise or layout.split:
        return None
    return layout.index("C")


def zero_point_sums(product: relay.Conv2dOp | relay.DenseOp) -> Array | None:
    """The zero point of the data times the sum of each row of the kernel; None if the zero point is 0 or the kernel is
    not constant."""
    kernel, zero = known_numbers(product.kernel), product.input_zero_point
    if zero is None or zero.value.data == 0 or kernel is None:
        return None
    weights = kernel.astype(np.int64)
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
