"""Reads the loops of a `linalg.generic`: their kinds, and the coefficients of the maps that index operands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)


def coefficients(expression: AffineExpr) -> tuple[dict[int, int], int] | None:
    """Return `{dimension: factor}` and the constant of a linear expression; None if the expression is not linear."""
    match expression:
        case AffineDimExpr():
            return {expression.position: 1}, 0
        case AffineConstantExpr():
            return {}, expression.value
        case AffineBinaryOpExpr():
            left, right = coefficients(expression.lhs), coefficients(expression.rhs)
            if left is None or right is None:
                return None
            if expression.kind is AffineBinaryOpKind.Add:
                sums = {dim: left[0].get(dim, 0) + right[0].get(dim, 0) for dim in left[0] | right[0]}
                return sums, left[1] + right[1]
            if expression.kind is AffineBinaryOpKind.Mul and (not left[0] or not right[0]):
                scaled, factor = (right, left[1]) if not left[0] else (left, right[1])
                return {d: f * factor for d, f in scaled[0].items()}, scaled[1] * factor
            return None
        case _:
            return None


def is_identity(map: AffineMap, rank: int) -> bool:
    """Whether the map is (d0, ..., dn-1) -> (d0, ..., dn-1)."""
    return len(map.results) == rank and dims_of(map) == list(range(rank))


def dims_of(map: AffineMap) -> list[int | None]:
    """Return the dimension that each result of the map is; None for a result that is another expression."""
    return [r.position if isinstance(r, AffineDimExpr) else None for r in map.results]


def uses(map: AffineMap, dimension: int) -> bool:
    """Whether any result of the map depends on the dimension."""
    found = (coefficients(result) for result in map.results)
    return any(linear is None or linear[0].get(dimension, 0) != 0 for linear in found)


def kinds_of(op: GenericOp) -> str:
    """Return a letter for each loop of the operation: p for parallel, r for reduction."""
    return "".join("p" if kind.data is IteratorType.PARALLEL else "r" for kind in op.iterator_types)


def is_parallel(op: GenericOp) -> bool:
    """Whether no loop of the operation is a reduction."""
    return "r" not in kinds_of(op)


def strides(shape: Sequence[int]) -> list[int]:
    """Return the row-major strides of a shape, in elements."""
    return list(accumulate(shape[:0:-1], mul, initial=1))[::-1]
