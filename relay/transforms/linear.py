"""Decides whether the integers that a model computes from an unknown size are linear functions of this size.

If they are linear, the values for two sizes determine those for every other size. So a build that serves many sizes is
made from the modules for a few. Constants that remain in these modules are compared when the build is made; values that
were folded no longer exist then, so this module compares the records of folds (`Fold`) for three sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import TensorOp, shape
from relay.errors import Unsupported
from relay.interpreters import evaluate
from relay.module import IRModule
from relay.sizes import Symbol
from relay.transforms.shape_arithmetic import Fold, measured

SUMS = (relay.AddOp, relay.SubtractOp, relay.ConcatenateOp, relay.StackOp)
MOVES = (
    *(relay.CastOp, relay.CopyOp, relay.NegativeOp, relay.ReshapeOp, relay.SqueezeOp, relay.ExpandDimsOp),
    *(relay.TakeOp, relay.StridedSliceOp, relay.TransposeOp, relay.BroadcastToOp, relay.CumsumOp),
)
"""Ops that are linear in their first operand."""
SHAPED = (relay.DynReshapeOp, relay.DynBroadcastToOp, relay.DynFullOp)
ENDLESS = (1 << 31) - 1
"""An end of a slice of at least this value means the end of the axis."""
FAR = 1 << 24
"""The largest size for which linearity is checked if a symbol has no maximum."""
WHY = "a size decides which values are computed"


def is_linear(folds: Mapping[int, Sequence[Fold]], symbol: Symbol) -> bool:
    """Whether the value of every folded op is a linear function of the size `symbol` from its minimum to its maximum.
    `folds` maps each of three sizes, the minimum and two adjacent ones, to records of the ops that could be folded when
    the model was given this size."""
    sizes = sorted(folds)
    rows = [folds[size] for size in sizes]
    if len({tuple(fold.kind for fold in row) for row in rows}) > 1:
        return False
    ends = (symbol.minimum, FAR if symbol.maximum is None else symbol.maximum)
    return all(_linear(row, sizes, ends) for row in zip(*rows, strict=True))


def are_alike(modules: Mapping[int, IRModule]) -> bool:
    """Whether modules for three sizes have equal ops, and whether the sizes of results, and values computed from sizes
    and constants alone (which later passes fold), are linear in the size."""
    sizes = sorted(modules)
    rows = aligned([[op for op in modules[size].op.walk() if isinstance(op, TensorOp)] for size in sizes])
    computed = _Computed(sizes)
    return rows is not None and all(computed.is_linear(ops) for ops in rows)


def aligned(walks: Sequence[Sequence[TensorOp]]) -> list[list[TensorOp | None]] | None:
    """The corresponding ops of several modules, as rows with one op of each module; `walks` are the modules' ops in
    order. A module lacks a `relay.broadcast_to` if it would repeat nothing for the module's sizes: the row of this op,
    which the last module must have, then has None for that module. Returns None if the modules differ in any other
    way."""
    found: list[list[TensorOp | None]] = []
    waiting = [[*reversed(walk)] for walk in walks]
    while any(waiting):
        heads = [walk[-1] if walk else None for walk in waiting]
        row: list[TensorOp | None] = [*heads]
        if len({type(head) for head in heads}) > 1:
            row = [head if isinstance(head, relay.BroadcastToOp) else None for head in heads]
            if row[-1] is None:
                return None
        found.append(row)
        for walk, op in zip(waiting, row, strict=True):
            if op is not None:
                walk.pop()
    return found


class _Computed:
    """Values computed from sizes and constants, in modules for three sizes: `varied` maps a value of the last module to
    its array for each size; `fixed` holds values that are equal for all."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.varied: dict[SSAValue, Sequence[Array]] = {}
        self.fixed: dict[SSAValue, Array | None] = {}

    def is_linear(self, ops: Sequence[TensorOp | None]) -> bool:
        """Whether the sizes of an op's results are linear in the unknown size, and also their elements, if these follow
        from sizes and constants alone. `ops`: the op in the module of each size; None for a module from which it was
        removed, because its result equals its operand there."""
        last, there = ops[-1], [op for op in ops if op is not None]
        assert last is not None
        for results in zip(*(op.results for op in there), strict=True):
            dims = [np.array(shape(value)) for value in results]
            if not _alike(dims) or not on_a_line(np.stack(dims), self.sizes[-len(dims) :]):
                return False
        measures = isinstance(last, relay.MeasureOp)
        if not measures and not all(value in self.varied or value in self.fixed for value in last.operands):
            return True
        differ = [] if measures else [place for place, value in enumerate(last.operands) if value in self.varied]
        alike = all(
            op is not None and op.properties == last.properties and op.result_types == last.result_types for op in ops
        )
        if alike and not differ and not measures:
            self.fixed.update(dict.fromkeys(last.results))
            return True
        try:
            rows = [self.evaluated(op, last, number) for number, op in enumerate(ops)]
        except Unsupported:  # no pass folds it
            return True
        for result, arrays in zip(last.results, zip(*rows, strict=True), strict=True):
            self.varied[result] = arrays
            if not self.continues(arrays, isinstance(last, SUMS)):
                return False
        grow = any(not _alike(self.varied[last.operands[place]]) for place in differ)
        by_elements = last.ELEMENTWISE or (isinstance(last, relay.TakeOp) and differ == [1])
        return not differ or (grow and by_elements) or is_linear_in(type(last), differ, rows[0][0])

    def evaluated(self, op: TensorOp | None, last: TensorOp, number: int) -> Sequence[Array]:
        """The results of an op in module number `number`; `last` is the same op in the last module. `op` is None if it
        was removed from module `number` because its result equals its operand there; then its operands are returned."""
        if isinstance(op, relay.MeasureOp):
            return [measured(op)]
        if isinstance(op, relay.ConstantOp):
            return [to_numpy(op.value)]
        given = [self.varied[v][number] if v in self.varied else self.constant(v) for v in last.operands]
        return given if op is None else evaluate(op, given)

    def constant(self, value: SSAValue) -> Array:
        """The array of a value that does not depend on the size, so that it is the same in all compared modules; it is
        evaluated on first use."""
        found, op = self.fixed[value], value.owner
        if found is None:
            assert isinstance(op, TensorOp)
            found = self.evaluated(op, op, 0)[op.results.index(value)]
            self.fixed[value] = found
        return found

    def continues(self, arrays: Sequence[Array], sums: bool) -> bool:
        """Whether the elements of an op's result are linear functions of the model's unknown size. `arrays`: the result
        for each of `self.sizes`. If the result's shape grows with the size, only the elements that all arrays have are
        compared; in addition, the last two arrays must be equal where they overlap, unless `sums`: the op is an
        addition, subtraction, concatenation or stack."""
        if _alike(arrays):
            return on_a_line(np.stack(arrays), self.sizes)
        least, less = (tuple(map(slice, each.shape)) for each in (arrays[0], arrays[-2]))
        common = np.stack([each[least] for each in arrays])
        return on_a_line(common, self.sizes) and (sums or bool((arrays[-1][less] == arrays[-2]).all()))


def _linear(row: Sequence[Fold], sizes: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether the result of a folded op is a linear function of the model's unknown size. `row`: the records of the
    op's folding, one for each of `sizes`; `ends`: the smallest and largest value of the unknown size."""
    kind = row[0].kind
    arrays = [np.stack(each) for each in zip(*(fold.numbers for fold in row), strict=True) if _alike(each)]
    results = [fold.result for fold in row if fold.result is not None]
    if len(arrays) < len(row[0].numbers) or (results and not _alike(results)):
        return False
    if not all(on_a_line(each, sizes) for each in (*arrays, *([np.stack(results)] if results else []))):
        return False
    differ = [place for place, each in enumerate(arrays) if (each != each[0]).any()]
    if issubclass(kind, relay.DynStridedSliceOp):
        return _keeps(arrays, np.array([fold.dims for fold in row]), sizes, ends)
    if issubclass(kind, relay.DynArangeOp):
        start, stop, step = arrays
        counts = [_at(stop - start, sizes, end) for end in ends]
        return not differ or bool((step == 1).all() and min(counts) >= 0)
    if issubclass(kind, relay.CompareOp):
        pairs = zip(*(each.astype(np.float64 if each.dtype.kind == "f" else np.int64) for each in arrays), strict=True)
        difference = np.stack([a - b for a, b in pairs])
        return len({np.sign(_at(difference, sizes, end)).tobytes() for end in ends}) == 1
    if issubclass(kind, relay.WhereOp):
        return 0 not in differ
    return not differ or issubclass(kind, SHAPED) or is_linear_in(kind, differ, *results[:1])


def is_linear_in(kind: type[TensorOp], operands: Sequence[int], result: Array | None = None) -> bool:
    """Whether a kind of op is linear in the operands with these indices. For one that moves, casts, negates or
    accumulates elements, `result` (a result of the op), if given, must have elements of at least 4 bytes, because
    narrower ones might wrap around."""
    if issubclass(kind, SUMS):
        return True
    if issubclass(kind, relay.MultiplyOp):
        return len(operands) == 1
    return issubclass(kind, MOVES) and operands == [0] and (result is None or result.dtype.itemsize >= 4)


def _alike(arrays: Sequence[Array]) -> bool:
    return len({each.shape for each in arrays}) == 1


def on_a_line(rows: Array, sizes: Sequence[int]) -> bool:
    """Whether the elements of `rows`, which has a row for each of `sizes`, are linear in the size: the first row must
    equal the extrapolation of the last two (`_at`), exactly if they are integers. True for a single row."""
    if len(rows) == 1:
        return True
    if rows.dtype.kind not in "iu":
        return bool((rows == rows[0]).all()) or np.allclose(_at(rows, sizes, sizes[0]), rows[0], rtol=1e-6)
    return bool((_at(rows, sizes, sizes[0]) == rows[0]).all())


def _at(rows: Array, sizes: Sequence[int], size: int) -> Array:
    """The values for a size, extrapolated linearly from those of the last two sizes."""
    first, last = rows[-2:].astype(np.float64 if rows.dtype.kind == "f" else np.int64)
    return last + (last - first) * ((size - sizes[-1]) // (sizes[-1] - sizes[-2]))


def _keeps(numbers: Sequence[Array], dims: Array, sizes: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether the bounds of a slice that depend on a size keep their meaning for every allowed size: at both `ends`,
    the smallest and the largest size, the bound lies inside its axis and is counted from the same end of it (negative
    bounds are counted from the back). `numbers` and `dims`: the slice's operands (begin, end, strides, and axes if
    given) and the data's shape, in a row for each of `sizes`; values for other sizes are extrapolated linearly."""
    begin, end, strides, *named = (each.reshape(len(each), -1) for each in numbers)
    for place in range(begin.shape[1]):
        axis = int(named[0][0, place]) if named else place
        own = np.stack([begin[:, place], end[:, place], strides[:, place], dims[:, axis]], 1)
        if (own == own[0]).all():
            continue
        bounds = [_at(own, sizes, each).tolist() for each in ends]
        for number in range(2):
            sides = {_side(bound[number], bound[3]) for bound in bounds}
            if len(sides) > 1 or "" in sides or (own[:, 2] != 1).any():
                return False
    return True


def _side(number: int, size: int) -> str:
    """The side from which `number`, a bound of a slice along an axis of `size` elements, counts: `front`, `back`, or
    `all` for `ENDLESS`; empty if it lies outside the axis."""
    if number >= ENDLESS:
        return "all"
    return "front" if 0 <= number <= size else "back" if -size <= number < 0 else ""
