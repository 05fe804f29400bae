"""Conversion of floats to integers by additions: the lowest bits of a float32 from 2^23 on are an integer.

A processor of a GPU converts 16 numbers in a clock cycle, and adds 128. The results are exact for magnitudes below
`SMALL`.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from relay.lowering.linalg.emitter import Emitter

SMALL = 2.0**22
"""The functions below convert a float to an integer if its magnitude is below this bound: the float plus `MIDDLE` then
lies between 2^23 and 2^24, where neighbouring floats are 1 apart."""
MIDDLE = 1.5 * 2.0**23


def nearest(e: Emitter, total: SSAValue) -> SSAValue:
    """Return roundeven(total) as i32: total + 1.5 2^23 is rounded to an integer."""
    return lowest(e, e(arith.AddfOp(total, e.constant(MIDDLE, f32))), MIDDLE)


def lowest(e: Emitter, number: SSAValue, base: float) -> SSAValue:
    """Return `number - base` as i32, for floats `number` near `base`, where neighbouring floats are 1 apart: it is the
    difference of their bit patterns."""
    bits = int(np.float32(base).view(np.int32))
    return e(arith.SubiOp(e(arith.BitcastOp(number, i32)), e.constant(bits, i32)))
