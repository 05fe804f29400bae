"""gemmlowp's fixed-point primitives on scalars, bit-exact. Source: gemmlowp `fixedpoint.h`; TFLite `GetReciprocal`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import ModuleOp, i8, i32, i64
from xdsl.dialects.tosa import RoundingMode, RoundingModeAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import created
from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.call_graph import calls_in
from relay.lowering.linalg.emitter import Emitter, number

RESHAPES = frozenset({"relay.reshape", "tensor.expand_shape", "tensor.collapse_shape"})
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1

MODES = {
    "tflite": RoundingMode.DOUBLE_ROUND,
    "tflite_single": RoundingMode.SINGLE_ROUND,
    "upward": RoundingMode.SINGLE_ROUND,
}
"""The rounding mode of `tosa.apply_scale` for each `rounding` of `relay.fixed_point_multiply`. Both kinds of single
rounding round halves up, which is `SINGLE_ROUND`."""


def fixed_point_multiply(e: Emitter, op: relay.FixedPointMultiplyOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit `tosa.apply_scale` with shift 31 - exponent. For the rounding `tflite`, a positive exponent shifts the value
    left first, with wrap-around. The rounding `tonearest` is no rounding mode of `tosa.apply_scale`, and becomes plain
    arithmetic."""
    value, multiplier, exponent = xs
    if op.rounding.data == "tonearest":
        return [to_nearest(e, value, multiplier, exponent)]
    known = number(exponent)
    if MODES[op.rounding.data] == RoundingMode.SINGLE_ROUND:
        if known is None:
            shift = e(arith.TruncIOp(e(arith.SubiOp(e.constant(31, i32), exponent)), i8))
        else:
            shift = e.constant(31 - int(known), i8)
    elif known is None:
        if may_be_positive(op.shift):
            zero = e.constant(0, i32)
            value = e(arith.ShLIOp(value, e(arith.MaxSIOp(exponent, zero))))
            exponent = e(arith.MinSIOp(exponent, zero))
        shift = e(arith.TruncIOp(e(arith.SubiOp(e.constant(31, i32), exponent)), i8))
    else:
        if known > 0:
            value = e(arith.ShLIOp(value, exponent))
        shift = e.constant(31 - min(int(known), 0), i8)
    mode = RoundingModeAttr(MODES[op.rounding.data])
    return [e(created(ApplyScaleOp, [value, multiplier, shift], [i32], {"rounding_mode": mode}))]


def may_be_positive(value: SSAValue) -> bool:
    """Whether an element of the tensor may be positive; False only for constants without such elements, including
    arguments for which all calls pass such constants."""
    owner = value.owner
    if isinstance(owner, relay.ConstantOp | arith.ConstantOp):
        return bool(to_numpy(owner.value).max(initial=0) > 0)
    if isinstance(owner, Operation):
        return owner.name not in RESHAPES or may_be_positive(owner.operands[0])
    function, number = owner.parent_op(), value.index if isinstance(value, BlockArgument) else 0
    module = function.parent_op() if isinstance(function, func.FuncOp) else None
    if not isinstance(module, ModuleOp) or not isinstance(function, func.FuncOp):
        return True
    calls = calls_in(module).of(function)
    return not calls or any(may_be_positive(call.arguments[number]) for call in calls)


def to_nearest(e: Emitter, value: SSAValue, multiplier: SSAValue, exponent: SSAValue) -> SSAValue:
    """Emit `(p + 2^(s-1) - (p < 0)) >> s` in i64, where p is `value * multiplier` and s = 31 - exponent. Halves are
    rounded away from zero."""
    product = e(arith.MuliOp(e(arith.ExtSIOp(value, i64)), e(arith.ExtSIOp(multiplier, i64))))
    shift = e(arith.ExtSIOp(e(arith.SubiOp(e.constant(31, i32), exponent)), i64))
    half = e(arith.ShLIOp(e.constant(1, i64), e(arith.SubiOp(shift, e.constant(1, i64)))))
    sign = e(arith.ShRSIOp(product, e.constant(63, i64)))
    rounded = e(arith.AddiOp(e(arith.AddiOp(product, half)), sign))
    return e(arith.TruncIOp(e(arith.ShRSIOp(rounded, shift)), i32))


def high_multiply(e: Emitter, a: SSAValue, b: SSAValue) -> SSAValue:
    """Emit `(a * b + 2^30) >> 31`, where the square of the lowest number saturates."""
    product = e(arith.MuliOp(e(arith.ExtSIOp(a, i64)), e(arith.ExtSIOp(b, i64))))
    rounded = e(arith.ShRSIOp(e(arith.AddiOp(product, e.constant(1 << 30, i64))), e.constant(31, i64)))
    one_is_not_lowest = any(number(x) not in (None, LOWEST) for x in (a, b))
    saturated = rounded if one_is_not_lowest else e(arith.MinSIOp(rounded, e.constant(HIGHEST, i64)))
    return e(arith.TruncIOp(saturated, i32))


def rounding_right_shift(e: Emitter, x: SSAValue, amount: SSAValue) -> SSAValue:
    """Emit `x / 2^n` for an i32 x and `n = amount`, with halves rounded away from zero:
    `(x >> n) + ((x & mask) > (mask >> 1) + (x < 0))`, `mask = 2^n - 1`."""
    known = number(amount)
    if known == 0:
        return x
    if known is not None:
        bits = (1 << int(known)) - 1
        mask, half = e.constant(bits, i32), e.constant(bits >> 1, i32)
    else:
        one = e.constant(1, i32)
        mask = e(arith.SubiOp(e(arith.ShLIOp(one, amount)), one))
        half = e(arith.ShRUIOp(mask, one))
    negative = e(arith.ExtUIOp(e(arith.CmpiOp(x, e.constant(0, i32), "slt")), i32))
    threshold = e(arith.AddiOp(half, negative))
    up = e(arith.CmpiOp(e(arith.AndIOp(x, mask)), threshold, "sgt"))
    return e(arith.AddiOp(e(arith.ShRSIOp(x, amount)), e(arith.ExtUIOp(up, i32))))


def saturating_left_shift(e: Emitter, x: SSAValue, amount: int) -> SSAValue:
    """Emit `x * 2^amount`, saturated."""
    threshold = (1 << (31 - amount)) - 1
    shifted = e(arith.ShLIOp(x, e.constant(amount, i32)))
    over = e(arith.CmpiOp(x, e.constant(threshold, i32), "sgt"))
    under = e(arith.CmpiOp(x, e.constant(-threshold, i32), "slt"))
    upper = e(arith.SelectOp(over, e.constant(HIGHEST, i32), shifted))
    return e(arith.SelectOp(under, e.constant(LOWEST, i32), upper))


def reciprocal(e: Emitter, x: SSAValue) -> Sequence[SSAValue]:
    """Return (mantissa, headroom) of `relay.fixed_point_reciprocal`, by three Newton-Raphson steps in Q2.29."""
    headroom = e(math.CountLeadingZerosOp(x))
    fraction = e(arith.AddiOp(e(arith.ShLIOp(x, headroom)), e.constant(LOWEST, i32)))
    half = e(arith.AddiOp(e(arith.ShRUIOp(fraction, e.constant(1, i32))), e.constant(1 << 30, i32)))
    scaled = high_multiply(e, half, e.constant(-1010580540, i32))
    guess = e(arith.AddiOp(e.constant(1515870810, i32), scaled))
    for _ in range(3):
        error = e(arith.SubiOp(e.constant(1 << 29, i32), high_multiply(e, half, guess)))
        guess = e(arith.AddiOp(guess, saturating_left_shift(e, high_multiply(e, guess, error), 2)))
    return saturating_left_shift(e, guess, 1), headroom
