"""Compare builds of a model for different numbers of past positions, to find what depends on this number.

The model is built for three different numbers of past positions, and the three functions are compared operation by
operation. They may differ in three ways: in tensors with one axis over all positions, whose first part is the tensor
for fewer positions; in integers that are computed from sizes alone and are linear in the number of past positions; and
in slices that begin where the past ends. Elements after the last position are undefined. So no operation may combine
elements along that axis, except a softmax, which is masked, and a product whose other operand is 0 after the last
position.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from relay import signature
from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, int_values, to_numpy
from relay.dialects.op import TensorOp, axis_of, rank, shape, tensor
from relay.dialects.relay.creation import CumulativeOp
from relay.dialects.relay.matmul import MatmulBase
from relay.dialects.relay.shape import is_constant
from relay.errors import Unsupported
from relay.interpreters import evaluate
from relay.symbols import Symbol
from relay.transforms.linear import is_linear_in, on_a_line
from relay.transforms.location import place
from relay.transforms.shape_arithmetic import measured

MOST = 1 << 16
"""The largest number of elements of a constant tensor whose value is computed, in order to compare the values that it
has in the three functions built for different numbers of past positions."""
RESHAPES = (relay.ReshapeOp, relay.ExpandDimsOp, relay.SqueezeOp)
SIZED = (relay.MeasureOp, relay.ArangeOp, relay.ConstantOp)
"""Ops whose results are sizes, or constants that may have been folded from sizes. Such constants are linear in the
number of past positions: `is_linear` of `linear.py` has checked all folds before the functions are compared here."""
MOVES = (*RESHAPES, relay.TransposeOp, relay.BroadcastToOp)
HINT = "without a maximum, each number of past positions has a build of its own"
MEET = "positions of the past meet in it, and of the maximum not all are there yet"


def unguarded(weights: SSAValue) -> SSAValue | None:
    """The softmax from which `weights` are computed, if they are `where(isnan(softmax), 0, softmax)`, as torch writes
    for rows whose scores are all -inf; else None."""
    where = weights.owner
    if not isinstance(where, relay.WhereOp) or not isinstance(test := where.condition.owner, relay.IsnanOp):
        return None
    zero = where.lhs.owner
    fits = is_constant(zero) and not to_numpy(zero.value).any() and isinstance(where.rhs.owner, relay.SoftmaxOp)
    return where.rhs if fits and test.input is where.rhs else None


def joined(function: FuncOp, argument: int, axis: int) -> relay.ConcatenateOp:
    """The concatenation that appends new rows to a cache, an argument of the function. Raises Unsupported unless it is
    the cache's only user and the function returns its result."""
    value = function.body.block.args[argument]
    users = [use.operation for use in value.uses if not isinstance(use.operation, relay.MeasureOp)]
    join = users[0] if len(users) == 1 else None
    end = function.body.block.last_op
    if (
        not isinstance(join, relay.ConcatenateOp)
        or join.operands[0] is not value
        or len(join.operands) != 2
        or join.axis.value.data % rank(join.result) != axis
        or end is None
        or list(end.operands).count(join.result) != 1
    ):
        name = signature.read(function)[0][argument].name
        what = "is not joined with new rows to a result, and used for nothing else"
        raise Unsupported(f"input '{name}'", what, HINT)
    return join


class Pasts:
    """Compares three functions of a model, built for different numbers of past positions. The attributes describe
    values of the last one, `function`, which has the largest number; `Growing` rewrites it.

    `axes`: the axis of a value that runs over all positions. `behind`: the element that a value has after the last
    position, if it is known. `varied`: values without such an axis that depend on the number of past positions.
    `scaled` maps each product of queries and keys whose keys are multiplied by a factor to the unscaled keys and the
    factor: `rewrite` multiplies the queries instead, which are fewer. `guarded` maps each product of softmax weights in
    which 0 replaces NaN to the weights before this replacement: `rewrite` replaces NaNs in the product instead."""

    def __init__(self, functions: Sequence[FuncOp], pasts: Sequence[int], symbol: Symbol):
        """Compare `functions`, which are the same model built for each of the numbers of past positions `pasts`, and
        record how its values depend on this number (`symbol`). Raises Unsupported if they depend on it in a way that
        `rewrite` cannot express."""
        self.pasts, self.function = pasts, functions[-1]
        self.inputs, self.outputs = signature.read(self.function)
        taken = [info.name for info in (*self.inputs, *self.outputs)]
        self.name = symbol.name if symbol.name not in taken else f"{symbol.name}.position"
        block = self.function.body.block
        self.caches = {joined(self.function, *at): at for at in symbol.places}
        self.rows = min(shape(join.operands[1])[axis] for join, (_, axis) in self.caches.items())
        self.maximum = pasts[-1] + self.rows
        end = block.last_op
        assert end is not None
        self.given_back = {at[0]: list(end.operands).index(join.result) for join, at in self.caches.items()}
        self.axes: dict[SSAValue, int] = {}
        self.behind: dict[SSAValue, Array] = {}
        self.varied = set[SSAValue]()
        self.same: list[dict[SSAValue, SSAValue]] = [{} for _ in functions]
        self.three: dict[Operation, Sequence[Operation]] = {}
        self.numbers: dict[SSAValue, Sequence[Array] | None] = {}
        self.masked, self.begins = dict[relay.SoftmaxOp, None](), dict[relay.StridedSliceOp, dict[int, int]]()
        self.known: dict[SSAValue, Sequence[Array]] = {}
        self.scaled: dict[MatmulBase, tuple[SSAValue, SSAValue]] = {}
        self.guarded: dict[MatmulBase, SSAValue] = {}
        past = {argument for argument, _ in self.caches.values()}
        arguments = zip(*(each.body.block.args for each in functions), strict=True)
        for index, values in enumerate(arguments):
            self.correspond(values)
            if index not in past:
                self.note_axis(values, f"input '{self.inputs[index].name}'")
        for ops in zip(*(list(each.body.block.ops) for each in functions), strict=True):
            self.operation(ops)

    def correspond(self, values: Sequence[SSAValue]) -> None:
        for same, value in zip(self.same, values, strict=True):
            same[value] = values[-1]

    # What becomes of each operation

    def operation(self, ops: Sequence[Operation]) -> None:
        """Compare the same operation of three functions, which were built for different numbers of past positions of
        the sequence, and record the axis of its result that runs over all positions. Raises Unsupported unless the
        result for fewer positions is the first part of the result for the most."""
        op = ops[-1]
        self.three[op] = ops
        same = all(
            each.name == op.name and [known[value] for value in each.operands] == list(op.operands)
            for each, known in zip(ops, self.same, strict=True)
        )
        if not same:
            raise Unsupported(place(op), "its operands follow from the number of past positions", HINT)
        for values in zip(*(each.results for each in ops), strict=True):
            self.correspond(values)
        if op is self.function.body.block.last_op:
            self.results(op)
            return
        if isinstance(op, relay.ConcatenateOp) and op in self.caches:
            if shape(op.operands[1])[self.caches[op][1]] != self.rows or op.operands[1] in self.axes:
                raise Unsupported(place(op), "joins another number of new rows", HINT)
            self.axes[op.result] = self.caches[op][1]
            return
        for values in zip(*(each.results for each in ops), strict=True):
            self.note_axis(values, place(op))
        differs = any(each.properties != op.properties for each in ops)
        touched = differs or any(value in self.axes or value in self.varied for value in [*op.operands, *op.results])
        if not touched and not isinstance(op, relay.MeasureOp):
            return
        if not isinstance(op, TensorOp) or len(op.results) != 1:
            raise Unsupported(place(op), MEET, HINT)
        if self.follows_from_sizes(op, differs):
            return
        if not self.keeps_apart(op, differs):
            raise Unsupported(place(op), MEET, HINT)
        if op.results[0] not in self.axes:
            self.varied.add(op.results[0])

    def results(self, end: Operation) -> None:
        """Raise Unsupported if a result of the function other than a cache has an axis that runs over all positions,
        past and new."""
        for index, value in enumerate(end.operands):
            if value in self.axes and value.owner not in self.caches:
                raise Unsupported(f"output '{self.outputs[index].name}'", "is as long as all positions so far", HINT)

    def note_axis(self, values: Sequence[SSAValue], where: str) -> None:
        """Record which axis of a value runs over all positions, past and new. `values`: the same value in the functions
        for the different numbers of past positions. Raises Unsupported, with the place `where`, if the shapes differ in
        any other way."""
        dims = [shape(value) for value in values]
        if len({*map(len, dims)}) > 1:
            raise Unsupported(where, "its rank follows from the number of past positions", HINT)
        axes = [axis for axis, sizes in enumerate(zip(*dims, strict=True)) if len({*sizes}) > 1]
        if axes:
            sizes = [each[axes[0]] for each in dims]
            if len(axes) > 1 or sizes != [past + self.rows for past in self.pasts]:
                raise Unsupported(where, f"is of shape {list(dims[-1])} for {self.pasts[-1]} past positions", HINT)
            self.axes[values[-1]] = axes[0]

    def follows_from_sizes(self, op: TensorOp, differs: bool) -> bool:
        """Record the result of an op on sizes and constants. Returns whether it has one of three supported forms: equal
        for all numbers of past positions; the first part of the result for the maximum number; or linear in the number.
        `differs`: whether the op's properties differ between the functions."""
        [result] = op.results
        if isinstance(op, relay.WhereOp) and op.rhs in self.known and shape(op.rhs) == shape(result):
            conditions = self.known.get(op.condition)
            if conditions is not None and not any(each.any() for each in conditions):
                self.known[result] = self.known[op.rhs]  # indices, of which none is counted from the end
                return True
        values = [] if isinstance(op, relay.MeasureOp) else list(op.operands)
        touched = [value for value in values if value in self.axes or value in self.varied]
        if not all(value in self.known for value in touched) or (arrays := self.computed(result)) is None:
            return False
        linear = [place for place, value in enumerate(values) if value in self.varied]
        if linear and not is_linear_in(type(op), linear, arrays[-1]):
            return False
        if not linear and not isinstance(op, SIZED) and not self.keeps_apart(op, differs):
            return False
        if op in self.begins:
            return False
        if result in self.axes:
            firsts = [arrays[-1][tuple(map(slice, each.shape))] for each in arrays]
            if not all(map(np.array_equal, arrays, firsts)):
                return False
        elif not all(np.array_equal(each, arrays[0]) for each in arrays):
            if arrays[0].dtype.kind != "i" or not on_a_line(np.stack(arrays), self.pasts):
                return False
            self.varied.add(result)
        self.known[result] = arrays
        return True

    def computed(self, value: SSAValue) -> Sequence[Array] | None:
        """If a value is computed from sizes and constants only, the array that it equals in each of the compared
        functions (the model built for different numbers of past positions); else None."""
        if value not in self.numbers:
            self.numbers[value] = None  # of what follows from arguments
            op = value.owner
            if isinstance(op, TensorOp) and op in self.three and len(op.results) == 1 and prod(shape(value)) <= MOST:
                self.numbers[value] = self.evaluated([each for each in self.three[op] if isinstance(each, TensorOp)])
        return self.numbers[value]

    def evaluated(self, ops: Sequence[TensorOp]) -> Sequence[Array] | None:
        if isinstance(ops[-1], relay.MeasureOp):
            return [measured(op) for op in ops if isinstance(op, relay.MeasureOp)]
        given = [self.computed(value) for value in ops[-1].operands]
        operands = [each for each in given if each is not None]
        if len(operands) < len(given):
            return None
        try:
            return [evaluate(op, [each[number] for each in operands])[0] for number, op in enumerate(ops)]
        except Unsupported:
            return None

    def keeps_apart(self, op: TensorOp, differs: bool) -> bool:
        """Whether element i of the result along its axis over all (past and new) positions depends only on element i of
        the operands along theirs, so that undefined elements after the last position do not matter. `differs`: whether
        the op's properties differ between the functions for three numbers of past positions."""
        [result], axes = op.results, self.axes
        axis = axes.get(result)
        if isinstance(op, relay.StridedSliceOp):
            return self.slices(op)
        if differs and not isinstance(op, relay.ReshapeOp | relay.BroadcastToOp | relay.FullOp):
            return False
        if not any(value in axes for value in op.operands):
            return axis is None or isinstance(op, relay.BroadcastToOp | relay.FullOp)
        if isinstance(op, relay.SoftmaxOp):
            return self.softmax(op)
        if isinstance(op, MatmulBase):
            return self.product(op)
        if isinstance(op, relay.TakeOp):
            return self.takes(op)
        if isinstance(op, relay.GatherNdOp):
            return self.gathers(op)
        if axis is None:
            return False
        behind = self.behind.get(op.operands[0]) if isinstance(op, MOVES) else None
        if isinstance(op, RESHAPES):
            own = axes[op.operands[0]]
            fits = prod(shape(op.operands[0])[:own]) == prod(shape(result)[:axis])
        elif isinstance(op, relay.TransposeOp):
            fits = int_values(op.axes)[axis] == axes[op.operands[0]]
        elif op.ELEMENTWISE or isinstance(op, relay.BroadcastToOp):
            grown = [value for value in op.operands if value in axes]
            fits = all(axes[value] - rank(value) == axis - rank(result) for value in grown)
            behind = self.of_elements(op) if op.ELEMENTWISE else behind
        else:
            apart = isinstance(op, CumulativeOp) or (op.SAME_AXES and op.independent_along(axis))
            data = op.data_operands()
            fits = apart and all(axes.get(value) == (axis if value in data else None) for value in op.operands)
        if fits and behind is not None:
            self.behind[result] = behind
        return fits

    def softmax(self, op: relay.SoftmaxOp) -> bool:
        """If a softmax is along the axis of positions, record that `rewrite` must mask its data, and that its result is
        then 0 after the last position at run time. Returns whether the softmax is supported: that axis must be its
        data's last."""
        axis = self.axes[op.data]
        if axis == axis_of(op.axis.value.data, rank(op.data), op.name):
            self.masked[op] = None
            self.behind[op.result] = np.zeros((), dtype_of(tensor(op.result).element_type))
            return axis == rank(op.data) - 1
        return True

    def product(self, op: MatmulBase) -> bool:
        """Whether a matrix product stays right when the number of positions in the cache varies. Its rows or its
        columns may be the positions; it may sum over the positions only if one operand is 0 after the last position."""
        a, b = op.tensor_a, op.tensor_b
        inner = (rank(a) - (2 if op.transpose_a.value.data else 1), rank(b) - (1 if op.transpose_b.value.data else 2))
        sums = [value in self.axes and self.axes[value] == own for value, own in zip((a, b), inner, strict=True)]
        if any(sums):
            if (weights := unguarded(a)) is not None:
                self.guarded[op] = weights
            zeros = [self.behind[value] for value in (a, b) if value in self.behind]
            return (
                all(sums) and op.result not in self.axes and any(each.dtype.kind == "f" and each == 0 for each in zeros)
            )
        outer = [(value, rank(value) - 1 - (own != rank(value) - 2)) for value, own in zip((a, b), inner, strict=True)]
        grown = [(value, own) for value, own in outer if value in self.axes]
        scale = b.owner
        if isinstance(scale, relay.MultiplyOp) and b.has_one_use():
            for keys, number in (scale.operands, reversed(scale.operands)):
                if keys in self.axes and prod(shape(number)) == 1 and shape(keys) == shape(b):
                    self.scaled[op] = keys, number
        return len(grown) == 1 and self.axes[grown[0][0]] == grown[0][1]

    def takes(self, op: relay.TakeOp) -> bool:
        """Whether a take is supported. The position axis of a tensor runs over all positions of a sequence. Either the
        indices select along the data's position axis, and are known and not negative; or they select along another axis
        of the data, and the result keeps its position axis; or the tensor of indices has a position axis."""
        data, indices = op.input, op.indices
        dims, along = op.lines()
        own, places = self.axes.get(data), self.axes.get(indices)
        if own is not None and (own == along or len(dims) < rank(data)):
            if not self.counts_from_start(indices) or (
                len(dims) < rank(data) and prod(shape(data)) != shape(data)[own]
            ):
                return False
            own = None
        if own is not None and places is not None:
            return False
        wanted = along + places if places is not None else own
        if own is not None and own > along:
            wanted = own + rank(indices) - 1
        return self.axes.get(op.result) == wanted

    def gathers(self, op: relay.GatherNdOp) -> bool:
        """Whether a gather is supported. The position axis of a tensor runs over all positions of a sequence. Either
        the coordinates index the data's position axis, and are known and not negative; or they index other axes of the
        data only, and the result keeps its position axis; or the tensor of coordinates has a position axis."""
        own, places = self.axes.get(op.input), self.axes.get(op.indices)
        outer, count = rank(op.indices) - 1, shape(op.indices)[-1]
        if own is not None and own < count:
            if not self.counts_from_start(op.indices):
                return False
            own = None
        if places == outer or (own is not None and places is not None):
            return False
        return self.axes.get(op.result) == (places if own is None else own - count + outer)

    def counts_from_start(self, indices: SSAValue) -> bool:
        """Whether the indices are known and none is negative."""
        same = indices not in self.axes and indices not in self.varied
        numbers = self.known.get(indices) or (self.computed(indices) if same else None)
        return numbers is not None and min(int(each.min(initial=0)) for each in numbers) >= 0

    def slices(self, op: relay.StridedSliceOp) -> bool:
        """Whether a slice is supported: of all positions so far, of any range along other axes, or of the new
        positions."""
        every = [each for each in self.three[op] if isinstance(each, relay.StridedSliceOp)]
        begins, ends, strides = (
            [int_values(numbers) for numbers in column]
            for column in ([s.begin for s in every], [s.end for s in every], [s.strides for s in every])
        )
        moved = dict[int, int]()
        for axis, dim in enumerate(shape(op.input)):
            begin, end, stride = ([each[axis] for each in column] for column in (begins, ends, strides))
            grown, grows = self.axes.get(op.input) == axis, self.axes.get(op.result) == axis
            if stride[0] != 1 or len({*stride}) > 1:
                if grown or grows or len({*begin}) > 1 or len({*end}) > 1:
                    return False
            elif grows:
                if any(begin) or (grown and end[-1] != dim):
                    return False
            elif len({*begin}) > 1:
                if [each - begin[-1] for each in begin] != [past - self.pasts[-1] for past in self.pasts]:
                    return False
                moved[axis] = begin[-1] - self.pasts[-1]
            elif len({*end}) > 1:
                return False
        if moved:
            self.begins[op] = moved
            self.varied.add(op.result)
        return True

    def of_elements(self, op: TensorOp) -> Array | None:
        """The number that all elements of an elementwise operation's result after the last past position are equal to;
        None if it is unknown."""
        numbers = [self.number_behind(value) for value in op.operands]
        if isinstance(op, relay.WhereOp) and numbers[0] is None and numbers[1] == numbers[2]:
            return numbers[1]
        known = [each for each in numbers if each is not None]
        if len(known) < len(numbers):
            return None
        found = evaluate(op, [each.reshape((1,) * rank(value)) for each, value in zip(known, op.operands, strict=True)])
        return found[0].reshape(()) if found[0].size == 1 else None

    def number_behind(self, value: SSAValue) -> Array | None:
        """The number to which all elements of the value after the last position are equal. For a value that has no axis
        over positions, its only element, if that does not depend on the number of past positions. None if unknown."""
        if value in self.axes:
            return self.behind.get(value)
        arrays = self.computed(value)
        return None if arrays is None or arrays[-1].size != 1 or value in self.varied else arrays[-1].reshape(())
