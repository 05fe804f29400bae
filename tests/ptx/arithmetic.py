"""What instructions on registers compute, vectorised over threads. Source: PTX ISA 8.7, 9.7.1 (integer arithmetic) to
9.7.9 (data movement and conversion)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.ptx.parser import PtxError

Values = npt.NDArray[Any]
TYPES: dict[str, Any] = {
    "pred": np.bool_,
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
ROUNDINGS: dict[str, Callable[..., Any]] = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}


def shift_left(a: Values, b: Values) -> Values:
    """Shifts by more than the width give 0."""
    bits = a.dtype.itemsize * 8
    found = np.left_shift(a, np.minimum(b, bits - 1).astype(a.dtype))
    return np.where(b < bits, found, a.dtype.type(0))


def shift_right(a: Values, b: Values) -> Values:
    """Signed numbers keep their sign; shifts by more than the width give what was shifted in."""
    bits = a.dtype.itemsize * 8
    found = np.right_shift(a, np.minimum(b, bits - 1).astype(a.dtype))
    return found if a.dtype.kind == "i" else np.where(b < bits, found, a.dtype.type(0))


def multiply_high(a: Values, b: Values) -> Values:
    """The upper half of a product."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(bits)).astype(a.dtype)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = a.view(np.uint64), b.view(np.uint64)
    low, middle = (x & mask) * (y & mask), (x >> half) * (y & mask)
    other = (x & mask) * (y >> half) + (middle & mask) + (low >> half)
    high = (x >> half) * (y >> half) + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def multiply_wide(a: Values, b: Values) -> Values:
    """A product of twice the width."""
    wide = np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")
    return a.astype(wide) * b.astype(wide)


def extract(a: Values, b: Values, c: Values) -> Values:
    """bfe: `c` bits from bit `b` on; signed fields are extended with their sign."""
    bits = a.dtype.itemsize * 8
    first, count = b.astype(np.int64) & 255, c.astype(np.int64) & 255
    if a.dtype.kind == "i":
        raise PtxError("bfe of signed numbers is not in the subset")
    field = shift_right(a, first)
    mask = shift_left(np.full_like(field, 1), np.minimum(count, bits)) - field.dtype.type(1)
    return field & mask


def permute(a: Values, b: Values, c: Values) -> Values:
    """prmt: each of 4 nibbles of `c` chooses one of 8 bytes of `a` and `b`; its highest bit copies that byte's sign."""
    a, b, c = np.broadcast_arrays(a, b, c)
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    found = np.zeros(both.shape, np.uint32)
    for place in range(4):
        choice = c >> np.uint32(4 * place)
        byte = (both >> ((choice & np.uint32(7)).astype(np.uint64) * np.uint64(8))).astype(np.uint8)
        sign = np.where(byte & 128, np.uint8(255), np.uint8(0))
        found |= np.where(choice & np.uint32(8), sign, byte).astype(np.uint32) << np.uint32(8 * place)
    return found


def dot(kinds: tuple[str, str], a: Values, b: Values, c: Values) -> Values:
    """dp4a: the sum of four products of bytes, and `c`."""
    total = c.astype(np.int32)
    for place in range(4):
        x, y = ((v >> np.uint32(8 * place)).astype(np.uint8) for v in (a, b))
        factors = [v.view(np.int8) if kind == "s32" else v for v, kind in zip((x, y), kinds, strict=True)]
        total = total + factors[0].astype(np.int32) * factors[1].astype(np.int32)
    return total


def dot_of_halves(half: str, kinds: tuple[str, str], a: Values, b: Values, c: Values) -> Values:
    """dp2a: the sum of two products of a half word of `a` and a byte of a half of `b`, and `c`."""
    total = c.astype(np.int32)
    for place in range(2):
        x = (a >> np.uint32(16 * place)).astype(np.uint16)
        y = (b >> np.uint32(8 * place + 16 * (half == "hi"))).astype(np.uint8)
        x, y = (v.view(f"i{v.itemsize}") if kind == "s32" else v for v, kind in zip((x, y), kinds, strict=True))
        total = total + x.astype(np.int32) * y.astype(np.int32)
    return total


def leading_zeros(a: Values) -> Values:
    """How many of the highest bits are 0."""
    bits = a.dtype.itemsize * 8
    found = np.full(a.shape, bits, np.uint32)
    for bit in range(bits):
        found = np.where((a >> a.dtype.type(bit)) & a.dtype.type(1), np.uint32(bits - 1 - bit), found)
    return found


def exactly(a: float, b: float, c: float) -> float:
    """a b + c, rounded once: quotients of integers become the nearest float."""
    if not (isfinite(a) and isfinite(b) and isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return float(exact) if exact else a * b + c


def fused(rounding: str, a: Values, b: Values, c: Values) -> Values:
    """fma of float32, rounded once: products of two are exact in float64; their sum with a third is rounded to odd
    there, which the last rounding sees through (Boldo and Melquiond, Emulation of FMA and correctly rounded sums)."""
    if a.dtype == np.float64 and rounding == "rn":
        return np.array([exactly(*row) for row in zip(*np.broadcast_arrays(a, b, c), strict=True)])
    if a.dtype != np.float32:
        raise PtxError(f"fma.{rounding} of {a.dtype} is not in the subset")
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    odd = np.where(
        np.isfinite(total) & (error != 0) & even, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total
    )
    found = odd.astype(np.float32)
    if rounding == "rn":
        return found
    if rounding != "rz":
        raise PtxError(f"fma.{rounding} is not in the subset")
    too_far = np.isfinite(odd) & (np.abs(found.astype(np.float64)) > np.abs(odd))
    return np.where(too_far, np.nextafter(found, np.float32(0)), found)


def saturated(a: Values, to: Any) -> Values:
    """Clamped to what an integer type holds; no number becomes 0."""
    limits = np.iinfo(to)
    if a.dtype.kind == "f":
        low, high = float(limits.min), float(limits.max)
        inside = (a > low) & (a < high)
        found = np.where(inside, a, 0).astype(to)
        return np.where(a >= high, to.type(limits.max), np.where(a <= low, to.type(limits.min), found))
    return np.clip(a.astype(object) if a.dtype.itemsize == 8 else a.astype(np.int64), limits.min, limits.max).astype(to)


def converted(modifiers: list[str], to: str, a: Values) -> Values:
    """cvt to a type, from the type that the values have."""
    target = TYPES[to]
    rounding = next((ROUNDINGS[word] for word in modifiers if word in ROUNDINGS), None)
    unknown = set(modifiers) - {*ROUNDINGS, "rn", "sat"}
    if unknown or (a.dtype.kind == "f" and target.kind != "f" and rounding is None):
        raise PtxError(f"cvt.{'.'.join(modifiers)} is not in the subset")
    if rounding is not None:
        a = rounding(a)
    if target.kind == "f":
        return a.astype(target)
    return saturated(a, target) if a.dtype.kind == "f" or "sat" in modifiers else a.astype(target)


def two_halves(to: str, a: Values, b: Values) -> Values:
    """cvt.rn to f16x2 or bf16x2: `a` rounded is the upper half of the word, `b` the lower one."""
    high, low = (near_bf16(v) if to == "bf16x2" else v.astype(np.float16).view(np.uint16) for v in (a, b))
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def near_bf16(a: Values) -> Values:
    """The upper halves of floats, rounded to nearest, ties to even; what is no number is 0x7fff."""
    bits = a.view(np.uint32).astype(np.uint64)
    near = (bits + np.uint64(0x7FFF) + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(a), 0x7FFF, near).astype(np.uint16)


def near_tf32(a: Values) -> Values:
    """cvt.rna.tf32.f32: 10 bits of the fraction, rounded to nearest, ties away from zero; the other 13 are 0 here."""
    bits = a.view(np.uint32)
    return np.where(np.isfinite(a), (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000), bits)


def packed(to: str, a: Values, b: Values, c: Values) -> Values:
    """cvt.pack.sat to bytes: `b` saturated is the lowest, `a` the next, the lower half of `c` the upper half."""
    low, high = (saturated(v, TYPES[to]).view(np.uint8).astype(np.uint32) for v in (b, a))
    return low | high << np.uint32(8) | (c & np.uint32(0xFFFF)) << np.uint32(16)


def with_sign(a: Values, b: Values) -> Values:
    """copysign: the magnitude of `b` with the sign of `a`."""
    return np.copysign(b, a)


def multiply_add(a: Values, b: Values, c: Values) -> Values:
    return a * b + c


def multiply_wide_add(a: Values, b: Values, c: Values) -> Values:
    return multiply_wide(a, b) + c


def smaller(a: Values, b: Values) -> Values:
    """The other one where one is no number."""
    return np.fmin(a, b) if a.dtype.kind == "f" else np.minimum(a, b)


def larger(a: Values, b: Values) -> Values:
    """The other one where one is no number."""
    return np.fmax(a, b) if a.dtype.kind == "f" else np.maximum(a, b)


def selected(a: Values, b: Values, chosen: Values) -> Values:
    return np.where(chosen, a, b)


SAME: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "add.rn": np.add,
    "sub": np.subtract,
    "sub.rn": np.subtract,
    "mul.lo": np.multiply,
    "mul.rn": np.multiply,
    "mul": np.multiply,
    "mul.hi": multiply_high,
    "mad.lo": multiply_add,
    "div.rn": np.divide,
    "sqrt.rn": np.sqrt,
    "rcp.rn": np.reciprocal,
    "neg": np.negative,
    "abs": np.abs,
    "not": np.bitwise_not,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "copysign": with_sign,
    "prmt": permute,
    "fma.rn": partial(fused, "rn"),
    "fma.rz": partial(fused, "rz"),
    "min": smaller,
    "max": larger,
    "min.NaN": np.minimum,
    "max.NaN": np.maximum,
}
"""Instructions whose operands and result have the type that they end in, without that type."""


@dataclass(frozen=True)
class Computation:
    """The types of an instruction's operands and of its result, and what it computes."""

    operands: tuple[str, ...]
    result: str
    function: Callable[..., Any]


PAIRS = {"s16x2": "s16", "u16x2": "u16"}


def paired(halves: Computation, *operands: Values) -> Values:
    """The same of both halves of registers."""
    whole = [np.ascontiguousarray(value) for value in np.broadcast_arrays(*operands)]
    found = halves.function(*(value.view(TYPES[halves.result]) for value in whole))
    return found.view(np.uint32)


def computation(opcode: str, count: int) -> Computation | None:
    """What an instruction of `count` operands besides its result computes; None for one that is no arithmetic. Raises
    PtxError for forms that are not in the subset."""
    root, *words = opcode.split(".")
    if root == "setp" and len(words) == 2 and words[0] in COMPARISONS:
        return Computation((words[1],) * 2, "pred", COMPARISONS[words[0]])
    if root == "selp":
        return Computation((words[0], words[0], "pred"), words[0], selected)
    if root in ("mov", "cvta"):
        return Computation((words[-1],), words[-1], np.copy)
    if root in ("shl", "shr"):
        return Computation((words[0], "u32"), words[0], shift_left if root == "shl" else shift_right)
    if root in ("mul", "mad") and words[0] == "wide":
        wide = f"{words[1][0]}{2 * int(words[1][1:])}"
        if root == "mul":
            return Computation((words[1],) * 2, wide, multiply_wide)
        return Computation((words[1], words[1], wide), wide, multiply_wide_add)
    if root == "bfe":
        return Computation((words[0], "u32", "u32"), words[0], extract)
    if root == "clz":
        return Computation((words[0],), "u32", leading_zeros)
    if root == "dp4a":
        kinds = (words[0], words[1])
        return Computation(("b32", "b32", "s32"), "s32", partial(dot, kinds))
    if root == "dp2a":
        half, *kinds = words
        return Computation(("b32", "b32", "s32"), "s32", partial(dot_of_halves, half, (kinds[0], kinds[1])))
    if opcode.startswith("cvt.pack.sat.") and words[2] in ("s8", "u8") and count == 3:
        return Computation((words[3], words[3], "b32"), "b32", partial(packed, words[2]))
    if words in (["rn", "f16x2", "f32"], ["rn", "bf16x2", "f32"]) and count == 2:
        return Computation(("f32", "f32"), "b32", partial(two_halves, words[1]))
    if words == ["rna", "tf32", "f32"]:
        return Computation(("f32",), "b32", near_tf32)
    if root == "cvt" and count == 1 and words[-2] in TYPES:
        *modifiers, to, of = words
        return Computation((of,), to, partial(converted, modifiers, to))
    if words and words[-1] in PAIRS:
        halves = computation(f"{opcode.removesuffix(words[-1])}{PAIRS[words[-1]]}", count)
        return halves and Computation(("b32",) * count, "b32", partial(paired, halves))
    function = SAME.get(opcode.rpartition(".")[0])
    if function is None or words[-1] not in TYPES:
        return None
    return Computation((words[-1],) * count, words[-1], function)
