"""Arithmetic on indices beyond the builder's, and conditional code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue

from relay.dialects.op import created
from relay.lowering.builder import INDEX, Index, LoopBuilder


def binary(b: LoopBuilder, op: type[Operation], x: Index, y: Index) -> SSAValue:
    """Emit an op on indices, without folding."""
    return b.add(created(op, [b.index(x), b.index(y)], [INDEX])).results[0]


def minus(b: LoopBuilder, x: Index, y: Index) -> Index:
    """Return `x - y`."""
    if isinstance(x, int) and isinstance(y, int):
        return x - y
    return x if isinstance(y, int) and y == 0 else b.add(arith.SubiOp(b.index(x), b.index(y))).result


def quotient(b: LoopBuilder, x: Index, by: int) -> Index:
    """Return `x / by` for an `x` that is not negative, rounded down."""
    return x // by if isinstance(x, int) else x if by == 1 else binary(b, arith.DivUIOp, x, by)


def remainder(b: LoopBuilder, x: Index, by: int) -> Index:
    """Return `x mod by`."""
    return x % by if isinstance(x, int) else 0 if by == 1 else binary(b, arith.RemUIOp, x, by)


def below(b: LoopBuilder, x: Index, bound: Index) -> SSAValue:
    """Emit `0 <= x < bound`."""
    return b.add(arith.CmpiOp(b.index(x), b.index(bound), "ult")).result


def limited(b: LoopBuilder, at: Index, count: int, inside: bool, size: int = 1) -> tuple[SSAValue | None, Index]:
    """Return the condition that `at`, a multiple of `size`, is below `count`; and the smaller of `at` and `count -
    size`, an index from which `size` elements can always be accessed. If `at` is known to be `inside`, return None and
    `at`."""
    return (None, at) if inside else (below(b, at, count), binary(b, arith.MinUIOp, at, count - size))


def both(b: LoopBuilder, conditions: Sequence[SSAValue | None]) -> SSAValue | None:
    """Return the conjunction of conditions; None if all are None."""
    found: SSAValue | None = None
    for condition in conditions:
        if condition is not None:
            found = condition if found is None else b.add(arith.AndIOp(found, condition)).result
    return found


def when(
    b: LoopBuilder, condition: SSAValue | None, do: Callable[[], None], otherwise: Callable[[], None] | None = None
) -> None:
    """Emit code under a condition; unconditionally if it is None."""
    if condition is None:
        do()
        return
    outer, bodies = b.block, [Block(), Block()]
    for body, part in zip(bodies, (do, otherwise), strict=True):
        b.block = body
        if part is not None:
            part()
        b.add(scf.YieldOp())
    b.block = outer
    b.add(scf.IfOp(condition, [], Region(bodies[0]), Region(bodies[1]) if otherwise else None))


def either(
    b: LoopBuilder, condition: SSAValue, do: Callable[[], SSAValue], otherwise: Callable[[], SSAValue]
) -> SSAValue:
    """Return one of two values; only the selected one is computed at run time."""
    outer, bodies, values = b.block, [Block(), Block()], list[SSAValue]()
    for body, part in zip(bodies, (do, otherwise), strict=True):
        b.block = body
        values.append(part())
        b.add(scf.YieldOp(values[-1]))
    b.block = outer
    return b.add(scf.IfOp(condition, [values[0].type], Region(bodies[0]), Region(bodies[1]))).results[0]


def unravelled(b: LoopBuilder, number: Index, shape: Sequence[int]) -> list[Index]:
    """Return the coordinates of the element with this row-major number."""
    found = list[Index]()
    for position, size in enumerate(reversed(shape)):
        if size == 1:
            found.append(0)
        elif prod(shape[: len(shape) - position - 1]) == 1:
            found.append(number)
        else:
            found.append(remainder(b, number, size))
            number = quotient(b, number, size)
    return found[::-1]
