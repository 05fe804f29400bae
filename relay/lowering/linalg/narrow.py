"""Scalars of types that exist only in memory: a float of at most 16 bits is stored as the bits of an integer, an
integer of 2 or 4 bits as a byte whose other bits are 0."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    FloatNanEncoding,
    FloatNonfiniteBehavior,
    FloatSemantics,
    IntegerType,
    ReducedPrecisionFloatType,
    Signedness,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.element_types import is_narrow, storage_type
from relay.dialects.op import is_integer, tensor
from relay.lowering.linalg.emitter import Emitter

BF16 = FloatSemantics(exponent_bits=8, mantissa_bits=7, exponent_bias=127)
INFINITY = 0x7F800000
"""The bits of an f32 infinity; larger ones are NaNs."""


def semantics(type: Attribute) -> FloatSemantics:
    """Return the format of a float type of few bits."""
    assert isinstance(type, BFloat16Type | ReducedPrecisionFloatType)
    return BF16 if isinstance(type, BFloat16Type) else type.SEMANTICS


def refusal(op: relay.CastOp) -> tuple[str, str] | None:
    """Return the reason why a cast has no lowering, and a hint: for casts to a float type without a sign bit, and casts
    of 64-bit integers to bf16 or a smaller float type. Return None for all other casts."""
    source, target = tensor(op.input).element_type, op.dtype
    if isinstance(target, ReducedPrecisionFloatType) and not target.SEMANTICS.has_sign:
        return f"has no lowering from {source} to {target}", "casts of constants are folded"
    if (
        is_narrow(target)
        and not isinstance(target, IntegerType)
        and source in (i64, IntegerType(64, Signedness.UNSIGNED))
    ):
        return f"has no lowering from {source} to {target}", "cast to i32 or f64 before"
    return None


def most(form: FloatSemantics) -> int:
    """Return the bits of a format's largest finite number."""
    top = form.max_exponent << form.mantissa_bits
    if form.nonfinite is FloatNonfiniteBehavior.IEEE:
        return top - 1
    return (top | form.max_mantissa) - (form.nan_encoding is FloatNanEncoding.ALL_ONES)


def widen(e: Emitter, code: SSAValue, type: Attribute) -> tuple[SSAValue, Attribute]:
    """Return the number that the bits in memory represent, in the type in which it is computed, and that type."""
    if is_integer(type):
        if type.signedness.data == Signedness.UNSIGNED:
            return code, IntegerType(8, Signedness.UNSIGNED)
        free = e.constant(8 - type.width.data, IntegerType(8))
        return e(arith.ShRSIOp(e(arith.ShLIOp(code, free)), free)), IntegerType(8)
    form = semantics(type)
    bits = e(arith.ExtUIOp(code, i32))
    if form is BF16:
        return e(arith.BitcastOp(e(arith.ShLIOp(bits, e.constant(16, i32))), f32)), f32
    if not form.has_sign:
        return exponent(e, bits), f32
    magnitude = e(arith.AndIOp(bits, e.constant((1 << form.sign_shift) - 1, i32)))
    raised = e(arith.ShLIOp(magnitude, e.constant(23 - form.mantissa_bits, i32)))
    scale = e.constant(2.0 ** (127 - form.exponent_bias), f32)
    found = e(arith.BitcastOp(e(arith.MulfOp(e(arith.BitcastOp(raised, f32)), scale)), i32))
    if form.nonfinite is FloatNonfiniteBehavior.IEEE:
        beyond = e(arith.CmpiOp(magnitude, e.constant(most(form), i32), "sgt"))
        found = e(arith.SelectOp(beyond, e(arith.OrIOp(raised, e.constant(INFINITY, i32))), found))
    elif form.nonfinite is FloatNonfiniteBehavior.NAN_ONLY:
        marked, nan = (bits, 1 << form.sign_shift) if negative_zero(form) else (magnitude, most(form) + 1)
        is_nan = e(arith.CmpiOp(marked, e.constant(nan, i32), "eq"))
        found = e(arith.SelectOp(is_nan, e.constant(INFINITY | 1 << 22, i32), found))
    sign = e(arith.ShLIOp(e(arith.XOrIOp(bits, magnitude)), e.constant(31 - form.sign_shift, i32)))
    return e(arith.BitcastOp(e(arith.OrIOp(found, sign)), f32)), f32


def exponent(e: Emitter, bits: SSAValue) -> SSAValue:
    """Return `2^(bits - 127)` in f32, where 0 yields a subnormal number and 255 NaN."""
    found = e(arith.ShLIOp(bits, e.constant(23, i32)))
    for code, number in ((0, 1 << 22), (255, INFINITY | 1 << 22)):
        is_code = e(arith.CmpiOp(bits, e.constant(code, i32), "eq"))
        found = e(arith.SelectOp(is_code, e.constant(number, i32), found))
    return e(arith.BitcastOp(found, f32))


def negative_zero(form: FloatSemantics) -> bool:
    """Whether the bits of -0 represent the only NaN."""
    return form.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO


def narrow_integer(e: Emitter, value: SSAValue, type: IntegerType) -> SSAValue:
    """Convert `value`, an integer of at least 8 bits, to the form in which an integer of the narrow type (2 or 4 bits)
    is in memory: return a byte with its lowest 2 or 4 bits, whose other bits are 0."""
    byte = IntegerType(8)
    if value.type != byte:
        value = e(arith.TruncIOp(value, byte))
    return e(arith.AndIOp(value, e.constant((1 << type.width.data) - 1, byte)))


def narrow_float(e: Emitter, value: SSAValue, type: Attribute, saturate: bool) -> SSAValue:
    """Return the bits of an f32 rounded to a float of at most 16 bits, halves to even, as `relay.cast` specifies.

    Numbers that are normal in the narrow type are rounded by integer arithmetic; subnormal ones by an f32 addition of a
    constant whose unit in the last place is the smallest subnormal number.
    """
    form = semantics(type)
    if form is BF16:
        return narrow_to_bf16(e, value)
    lost = 23 - form.mantissa_bits
    bits = e(arith.BitcastOp(value, i32))
    magnitude = e(arith.AndIOp(bits, e.constant((1 << 31) - 1, i32)))
    odd = e(arith.AndIOp(e(arith.ShRUIOp(magnitude, e.constant(lost, i32))), e.constant(1, i32)))
    offset = ((form.exponent_bias - 127) << 23) + (1 << (lost - 1)) - 1
    rounded = e(arith.AddiOp(e(arith.AddiOp(magnitude, e.constant(offset, i32))), odd))
    code = e(arith.ShRUIOp(rounded, e.constant(lost, i32)))
    if form.exponent_bias != 127:
        unit = 2.0 ** (24 - form.mantissa_bits - form.exponent_bias)
        shifted = e(arith.AddfOp(e(arith.BitcastOp(magnitude, f32)), e.constant(unit, f32)))
        small = e(arith.SubiOp(e(arith.BitcastOp(shifted, i32)), e.constant(int(np.float32(unit).view(np.int32)), i32)))
        subnormal = e(arith.CmpiOp(magnitude, e.constant((128 - form.exponent_bias) << 23, i32), "slt"))
        code = e(arith.SelectOp(subnormal, small, code))
    too_large = e(arith.CmpiOp(code, e.constant(most(form), i32), "sgt"))
    code = e(arith.SelectOp(too_large, e.constant(beyond(form, saturate), i32), code))
    is_nan = e(arith.CmpiOp(magnitude, e.constant(INFINITY, i32), "sgt"))
    code = e(arith.SelectOp(is_nan, e.constant(nan_of(form), i32), code))
    sign = e(arith.ShRUIOp(e(arith.XOrIOp(bits, magnitude)), e.constant(31 - form.sign_shift, i32)))
    if negative_zero(form):
        is_zero = e(arith.CmpiOp(code, e.constant(0, i32), "eq"))
        sign = e(arith.SelectOp(is_zero, e.constant(0, i32), sign))
    join = arith.XOrIOp if form.nonfinite is FloatNonfiniteBehavior.FINITE_ONLY else arith.OrIOp
    return e(arith.TruncIOp(e(join(code, sign)), storage_type(type)))


def narrow_to_bf16(e: Emitter, value: SSAValue) -> SSAValue:
    """Return the 16 bits of the bf16 nearest to an f32, halves to even. The rounding is an addition to the f32's bits,
    whose carry reaches the exponent: numbers beyond the largest bf16 become infinities. NaNs stay NaN."""
    bits, lost = e(arith.BitcastOp(value, i32)), e.constant(16, i32)
    odd = e(arith.AndIOp(e(arith.ShRUIOp(bits, lost)), e.constant(1, i32)))
    rounded = e(arith.AddiOp(e(arith.AddiOp(bits, e.constant((1 << 15) - 1, i32))), odd))
    nan = e(arith.OrIOp(e(arith.AndIOp(bits, e.constant(-1 << 31, i32))), e.constant(nan_of(BF16) << 16, i32)))
    code = e(arith.SelectOp(e(arith.CmpfOp(value, value, "uno")), nan, rounded))
    return e(arith.TruncIOp(e(arith.ShRUIOp(code, lost)), IntegerType(16)))


def beyond(form: FloatSemantics, saturate: bool) -> int:
    """Return the bits, without sign, for numbers beyond the largest finite one."""
    if saturate or form.nonfinite is FloatNonfiniteBehavior.FINITE_ONLY:
        return most(form)
    return most(form) + 1 if form.nonfinite is FloatNonfiniteBehavior.IEEE else nan_of(form)


def nan_of(form: FloatSemantics) -> int:
    """Return the bits of a NaN, whose sign bit is 0 if the format allows it, or of negative zero if the format has no
    NaN."""
    if form.nonfinite is FloatNonfiniteBehavior.IEEE:
        return form.max_exponent << form.mantissa_bits | 1 << (form.mantissa_bits - 1)
    finite = form.nonfinite is FloatNonfiniteBehavior.FINITE_ONLY
    return 1 << form.sign_shift if finite or negative_zero(form) else most(form) + 1


def rounded_to_odd(e: Emitter, value: SSAValue) -> SSAValue:
    """Round an f64 to f32 with its last bit set if bits were lost: then a second rounding, to fewer bits, equals a
    single rounding."""
    near = e(arith.TruncFOp(value, f32))
    back = e(arith.ExtFOp(near, f64))
    beyond = e(arith.CmpfOp(e(math.AbsFOp(back)), e(math.AbsFOp(value)), "ogt"))
    inexact = e(arith.CmpfOp(back, value, "one"))
    below = e(arith.SubiOp(e(arith.BitcastOp(near, i32)), e(arith.ExtUIOp(beyond, i32))))
    return e(arith.BitcastOp(e(arith.OrIOp(below, e(arith.ExtUIOp(inexact, i32)))), f32))
