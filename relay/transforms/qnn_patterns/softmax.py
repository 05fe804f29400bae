"""Softmax of codes in gemmlowp's fixed point, its exponential by table: a difference of codes has 256 values."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerType, Signedness
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from relay.dialects import qnn, relay
from relay.dialects.attributes import ints
from relay.dialects.op import shape, tensor
from relay.interpreters.arithmetic import rounding_right_shift
from relay.interpreters.qnn import softmax_exp_table
from relay.transforms.expansion import Expansion, limits
from relay.transforms.legalization import Legalization

ACCUMULATOR_BITS = 12
"""Integer bits of the sum: terms are Q12.19."""
KEEP = {"axis": ints([-1]), "keepdims": BoolAttr.from_bool(True)}


class Softmax(Legalization):
    """qnn.softmax %x  =>  k = ui8(max - %x); e = exp table[k]; s = sum of (e >> 12) by table; m, h = reciprocal of s;
    cast(clip(((m * e) >> 35 - h) + lowest code))

    The table is 0 where the reference leaves a term out. The subtraction wraps in 8 bits, where it is exact as ui8.
    Shifts beyond 31 (rows of 512 and more) are split in two.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: qnn.SoftmaxOp, rewriter: PatternRewriter) -> None:
        new, type = Expansion(op), tensor(op.result).element_type
        least, most = limits(type)
        table = softmax_exp_table(op.multiplier.value.data, op.shift.value.data)[::-1]
        largest = new.value(relay.MaxOp, op.input, properties=KEEP)
        code = new.cast(new.value(relay.SubtractOp, largest, op.input), IntegerType(8, Signedness.UNSIGNED))
        terms = new.lookup(code, rounding_right_shift(table, ACCUMULATOR_BITS), np.int32)
        reciprocal = new.add(relay.FixedPointReciprocalOp, [new.value(relay.SumOp, terms, properties=KEEP)])
        amount = new.value(relay.SubtractOp, new.constant(ACCUMULATOR_BITS + 31 - 8, np.int32), reciprocal.headroom)
        x = new.value(relay.HighMultiplyOp, reciprocal.mantissa, new.lookup(code, table, np.int32))
        if not 0 < shape(op.input)[-1] < 1 << 9:
            excess = new.clip(new.plus(amount, -31), 0, 31)
            x = new.value(relay.RightShiftOp, x, excess)
            amount = new.clip(amount, 0, 31)
        x = new.plus(new.value(relay.RoundingRightShiftOp, x, amount), least)
        new.replace(rewriter, new.cast(new.clip(x, least, most), type))


PATTERNS: list[type[Legalization]] = [Softmax]
