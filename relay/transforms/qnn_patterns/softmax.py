"""Patterns for softmax of quantized values in gemmlowp's fixed point, with a table of exponentials: a difference of
codes has 256 values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerType, ModuleOp, Signedness, f64, i16, i32
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, ints, to_numpy
from relay.dialects.op import DYNAMIC, shape, tensor
from relay.errors import Unsupported
from relay.interpreters.arithmetic import rounding_right_shift
from relay.interpreters.qnn import softmax_exp_table, softmax_powers
from relay.interpreters.softmax16 import exp_table, reciprocal_table
from relay.transforms.expansion import Expansion, limits
from relay.transforms.legalization import Legalization, pattern
from relay.transforms.location import place
from relay.transforms.qnn_patterns.rescale import to_even

ACCUMULATOR_BITS = 12
"""The number of integer bits of the sum: terms are Q12.19."""
KEEP = {"axis": ints([-1]), "keepdims": BoolAttr.from_bool(True)}


@pattern
def softmax(new: Expansion, op: qnn.SoftmaxOp) -> SSAValue:
    """qnn.softmax %x  =>  k = ui8(max - %x); e = exp table[k]; s = sum of e >> 12; m, h = reciprocal of s;
    cast(clip(((m * e) >> 35 - h) + lowest code))

    For vectorized code, e >> 12 is a table, too. The table is 0 where the reference skips a term. The subtraction wraps
    in 8 bits, where it is exact as ui8. Shifts beyond 31 (rows of 512 and more) are split in two.
    """
    type = tensor(op.result).element_type
    if type == i16:
        return softmax16(new, op)
    least, most = limits(type)
    table = softmax_exp_table(op.multiplier.value.data, op.shift.value.data)[::-1]
    largest = new.value(relay.MaxOp, op.input, properties=KEEP)
    code = new.cast(new.value(relay.SubtractOp, largest, op.input), IntegerType(8, Signedness.UNSIGNED))
    exponential: SSAValue | None = None
    if new.target.has_vectors:
        terms = new.lookup(code, rounding_right_shift(table, ACCUMULATOR_BITS), np.int32)
    else:  # a table is a kilobyte of flash
        exponential = new.lookup(code, table, np.int32)
        terms = new.value(relay.RoundingRightShiftOp, exponential, new.constant(ACCUMULATOR_BITS, np.int32))
    reciprocal = new.add(relay.FixedPointReciprocalOp, [new.value(relay.SumOp, terms, properties=KEEP)])
    amount = new.value(relay.SubtractOp, new.constant(ACCUMULATOR_BITS + 31 - 8, np.int32), reciprocal.headroom)
    if exponential is None:
        exponential = new.lookup(code, table, np.int32)
    x = new.value(relay.HighMultiplyOp, reciprocal.mantissa, exponential)
    if not 0 < shape(op.input)[-1] < 1 << 9:
        excess = new.clip(new.plus(amount, -31), 0, 31)
        x = new.value(relay.RightShiftOp, x, excess)
        amount = new.clip(amount, 0, 31)
    x = new.plus(new.value(relay.RoundingRightShiftOp, x, amount), least)
    return new.cast(new.clip(x, least, most), type)


def softmax16(new: Expansion, op: qnn.SoftmaxOp) -> SSAValue:
    """k = ui16(max - %x); e = table of exp [k]; s = sum of e; h = the number of leading zeros of s; r = table of
    `1 / (1 + x)`, where `s * 2^(h - 1)`, in [2^30, 2^31), is `(1 + x) * 2^30`; i16(clip((e * r + 2^(30 - h)) >> (31 -
    h)))"""
    largest = new.value(relay.MaxOp, op.input, properties=KEEP)
    code = new.cast(new.value(relay.SubtractOp, largest, op.input), IntegerType(16, Signedness.UNSIGNED))
    powers = new.cast(new.lookup(code, exp_table(op.multiplier.value.data, op.shift.value.data), np.int16), i32)
    total = new.value(relay.SumOp, powers, properties=KEEP)
    zeros = new.add(relay.FixedPointReciprocalOp, [total]).headroom
    moved = new.value(relay.LeftShiftOp, total, new.plus(zeros, -1))
    moved = new.value(relay.RightShiftOp, moved, new.constant(13, np.int32))
    moved = new.value(relay.RightShiftOp, new.plus(moved, 1), new.constant(1, np.int32))
    place = new.cast(new.clip(new.plus(moved, -(1 << 15) - (1 << 16)), *limits(i16)), i16)
    inverse = new.cast(new.lookup(place, reciprocal_table(), np.int16), i32)
    amount = new.value(relay.SubtractOp, new.constant(31, np.int32), zeros)
    half = new.value(relay.LeftShiftOp, new.constant(1, np.int32), new.plus(amount, -1))
    product = new.value(relay.AddOp, new.value(relay.MultiplyOp, powers, inverse), half)
    return new.cast(new.clip(new.value(relay.RightShiftOp, product, amount), 0, (1 << 15) - 1), i16)


@pattern
def table_softmax(new: Expansion, op: qnn.TableSoftmaxOp) -> SSAValue:
    """qnn.table_softmax %x  =>  e = table[ui8(max - %x)]; cast(clip(rint(f64(e) * floor(1 / scale) / sum of e) + zero
    point))

    The sum is over the first axis of the transposed array, so that terms are added one after the other, as in the
    reference, and not several at a time.
    """
    type, length = tensor(op.result).element_type, shape(op.input)[-1]
    if length == DYNAMIC:
        raise Unsupported(place(op), "the length of its rows is not known", "give the model fixed shapes")
    scale, target = (to_numpy(attr).astype(np.float32) for attr in (op.input_scale, op.output_scale))
    largest = new.value(relay.MaxOp, op.input, properties=KEEP)
    code = new.cast(new.value(relay.SubtractOp, largest, op.input), IntegerType(8, Signedness.UNSIGNED))
    table = table_of(np.float32(scale), length)
    power = new.cast(new.lookup(code, table, np.float32), f64)
    x = new.value(
        relay.DivideOp,
        new.times(power, np.floor(np.float32(1) / target)),
        new.cast(sums_in_order(new, code, table), f64),
    )
    least, most = limits(type)
    zero_point = op.output_zero_point.value.data
    x = new.cast(to_even(new, new.clip(x, least - zero_point, most - zero_point)), i32)
    return new.cast(new.plus(x, zero_point), type)


def tables_of_lengths(module: ModuleOp, length: int) -> dict[bytes, Callable[[int], Array]]:
    """The tables of exponentials that `TableSoftmax` makes for rows of `length`: a mapping from the bytes of each table
    to a function that makes the table of the same op for rows of another length."""
    found = dict[bytes, Callable[[int], Array]]()
    for op in module.walk():
        if isinstance(op, qnn.TableSoftmaxOp) and shape(op.input)[-1] == length:
            table = partial(table_of, np.float32(to_numpy(op.input_scale)))
            found[table(length).tobytes()] = table
    return found


def table_of(scale: np.float32, length: int) -> Array:
    """The table of exponentials for a softmax over rows of `length` codes, float32 [256]: entry k is `exp(-k * scale)`
    for a code that is k below the row's largest, times a constant for which sums of `length` entries fit in float32."""
    return np.ascontiguousarray(softmax_powers(scale, max(length, 1))[::-1])


def sums_in_order(new: Expansion, code: SSAValue, table: Array) -> SSAValue:
    """Look up the float32 values of codes in a table, and sum them along the last axis, one after the other; the last
    axis stays with size 1."""
    count = len(shape(code))
    swapped = [*range(count - 2), count - 1, count - 2]
    if count == 1:
        return new.reshape(sums_in_order(new, new.reshape(code, [1, *shape(code)]), table), [1])
    columns = new.transpose(code, swapped)
    total = new.value(relay.SumOp, new.lookup(columns, table, np.float32), properties=KEEP | {"axis": ints([-2])})
    return new.transpose(total, swapped)


PATTERNS: list[type[Legalization]] = [softmax, table_softmax]
