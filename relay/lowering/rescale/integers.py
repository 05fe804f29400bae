"""Floats to integers by additions: the lowest bits of a float32 from 2^23 on are an integer.

A processor of a GPU converts 16 numbers in a clock, and adds 128. All is exact for magnitudes below `SMALL`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Operation, SSAValue

from relay.lowering.linalg.emitter import OGT, Emitter, number

SMALL = 2.0**22
"""Sums stay between 2^22 and 2^24; from 2^23 on the unit is one."""
MIDDLE = 1.5 * 2.0**23


def nearest(e: Emitter, total: SSAValue) -> SSAValue:
    """roundeven(total) as i32: total + 1.5 2^23 is rounded to an integer."""
    return lowest(e, e(arith.AddfOp(total, e.constant(MIDDLE, f32))), MIDDLE)


def lowest(e: Emitter, number: SSAValue, base: float) -> SSAValue:
    """A float between 2^22 and 2^24, less the base, as i32."""
    bits = int(np.float32(base).view(np.int32))
    return e(arith.SubiOp(e(arith.BitcastOp(number, i32)), e.constant(bits, i32)))


@dataclass(frozen=True)
class Clip:
    """`min(max(x, low), high)` of floats, or with `x > low ? x : low` in place of the maximum, which `raises` what is
    no number to `low`."""

    x: SSAValue
    low: float
    high: float
    raises: bool


def clip_of(op: Operation) -> Clip | None:
    """What a minimum clips, if what it is applied to has a lower bound."""
    if not isinstance(op, arith.MinimumfOp):
        return None
    lower, high = op.lhs.owner, number(op.rhs)
    if not isinstance(lower, Operation) or lower.name not in ("arith.select", "arith.maximumf"):
        return None
    if raises := lower.name == "arith.select":
        compared = lower.operands[0].owner
        if not isinstance(compared, Operation) or compared.name != "arith.cmpf":
            return None
        if compared.properties["predicate"] != OGT or tuple(compared.operands) != tuple(lower.operands[1:]):
            return None
    low = number(lower.operands[-1])
    return None if low is None or high is None else Clip(lower.operands[-2], low, high, raises)
