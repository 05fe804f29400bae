"""Whether the numbers that a model computes of an open size are linear in it: then two sizes tell those of all others.

Builds that serve many sizes are made from the modules of a few. What such a module keeps is compared there; what was
folded is gone. So the folds of three sizes are compared here: a comparison, a quotient or a clamped end of a slice may
be the same for all three and another one for a size between or behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import is_tensor, shape
from relay.module import IRModule, is_constant
from relay.sizes import Symbol
from relay.transforms.shape_arithmetic import Fold

SUMS = (relay.AddOp, relay.SubtractOp, relay.ConcatenateOp, relay.StackOp)
MOVES = (
    *(relay.CastOp, relay.CopyOp, relay.NegativeOp, relay.ReshapeOp, relay.SqueezeOp, relay.ExpandDimsOp),
    *(relay.TakeOp, relay.StridedSliceOp, relay.TransposeOp, relay.BroadcastToOp),
)
"""Ops that are linear in their first operand."""
SHAPED = (relay.DynReshapeOp, relay.DynBroadcastToOp, relay.DynFullOp)
ENDLESS = (1 << 31) - 1
"""An end of a slice from here on means all elements."""
FAR = 1 << 24
"""A size that stands for any, where there is no maximum."""
WHY = "a size decides which values are computed"


def is_linear(folds: Mapping[int, Sequence[Fold]], symbol: Symbol) -> bool:
    """Whether what is folded is linear in a size from its minimum to its maximum. `folds` are those of three sizes: the
    minimum, and two neighbours."""
    sizes = sorted(folds)
    rows = [folds[size] for size in sizes]
    if len({tuple(fold.kind for fold in row) for row in rows}) > 1:
        return False
    ends = (symbol.minimum, FAR if symbol.maximum is None else symbol.maximum)
    return all(_linear(row, sizes, ends) for row in zip(*rows, strict=True))


def have_linear_shapes(modules: Mapping[int, IRModule]) -> bool:
    """Whether modules for three sizes have the same ops, and all sizes of their results are linear."""
    sizes = sorted(modules)
    walks = [[op for op in modules[size].op.walk() if not is_constant(op)] for size in sizes]
    if len({tuple(op.name for op in walk) for walk in walks}) > 1:
        return False
    for ops in zip(*walks, strict=True):
        for results in zip(*(op.results for op in ops), strict=True):
            dims = [np.array(shape(value) if is_tensor(value.type) else ()) for value in results]
            if not _alike(dims) or not _on_a_line(np.stack(dims), sizes):
                return False
    return True


def _linear(row: Sequence[Fold], sizes: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether an op is, that was folded for three sizes."""
    kind = row[0].kind
    arrays = [np.stack(each) for each in zip(*(fold.numbers for fold in row), strict=True) if _alike(each)]
    results = [fold.result for fold in row if fold.result is not None]
    if len(arrays) < len(row[0].numbers) or (results and not _alike(results)):
        return False
    if not all(_on_a_line(each, sizes) for each in (*arrays, *([np.stack(results)] if results else []))):
        return False
    differ = [place for place, each in enumerate(arrays) if (each != each[0]).any()]
    if issubclass(kind, relay.DynStridedSliceOp):
        return _keeps(arrays, np.array([fold.dims for fold in row]), sizes, ends)
    if issubclass(kind, relay.DynArangeOp):
        start, stop, step = arrays
        counts = [_at(stop - start, sizes, end) for end in ends]
        return not differ or bool((step == 1).all() and min(counts) >= 0)
    if not differ or issubclass(kind, SUMS + SHAPED):
        return True
    if issubclass(kind, relay.MultiplyOp):
        return len(differ) == 1
    return issubclass(kind, MOVES) and differ == [0] and (not results or results[0].dtype.itemsize >= 4)


def _alike(arrays: Sequence[Array]) -> bool:
    return len({each.shape for each in arrays}) == 1


def _on_a_line(rows: Array, sizes: Sequence[int]) -> bool:
    """Whether the numbers of the first size follow from those of the two others."""
    if rows.dtype.kind not in "iu":
        return bool((rows == rows[0]).all()) or np.allclose(_at(rows, sizes, sizes[0]), rows[0], rtol=1e-6)
    return bool((_at(rows, sizes, sizes[0]) == rows[0]).all())


def _at(rows: Array, sizes: Sequence[int], size: int) -> Array:
    """The numbers for a size, by those of the last two."""
    first, last = rows[-2:].astype(np.float64 if rows.dtype.kind == "f" else np.int64)
    return last + (last - first) * ((size - sizes[-1]) // (sizes[-1] - sizes[-2]))


def _keeps(numbers: Sequence[Array], dims: Array, sizes: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether the begins and ends of slices, counted from one side, lie inside their axes for all sizes."""
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
    """Where a bound is counted from; empty where it lies outside."""
    if number >= ENDLESS:
        return "all"
    return "front" if 0 <= number <= size else "back" if -size <= number < 0 else ""
