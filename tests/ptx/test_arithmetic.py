"""Instructions on registers against exact numbers of Python."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.ptx.arithmetic import Values, computation

RNG = np.random.default_rng(28)


def compute(opcode: str, *operands: Values) -> Values:
    found = computation(opcode, len(operands))
    assert found is not None
    with np.errstate(all="ignore"):
        return found.function(*operands)


def integers(kind: str, bits: int, count: int = 300) -> Values:
    """Random numbers, and those at the ends."""
    limits = np.iinfo(f"{kind}{bits // 8}")
    found = RNG.integers(limits.min, limits.max, count, f"{kind}{bits // 8}", endpoint=True)
    found[:3] = limits.min, limits.max, 0
    return found


def floats(count: int = 3000) -> Values:
    """Numbers of near exponents, so that sums cancel and are halves of units in the last place."""
    mantissa = RNG.integers(1 << 23, 1 << 24, count).astype(np.float64)
    return (mantissa * 2.0 ** RNG.integers(-26, -20, count) * RNG.choice([-1, 1], count)).astype(np.float32)


@pytest.mark.parametrize("rounding", ["rn", "rz"])
def test_fma_is_rounded_once(rounding: str):
    a, b, c = floats(), floats(), floats()
    c[::3] = -(a[::3] * b[::3])
    c[1::3] = np.ldexp(np.float32(1), RNG.integers(-60, 3, len(c[1::3]))).astype(np.float32)
    a[4::5], b[4::5] = np.float32(1), np.float32(1) + np.float32(2**-12)
    found = compute(f"fma.{rounding}.f32", a, b, c)
    for x, y, z, r in zip(a, b, c, found, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        near = np.float32(float(exact))
        around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
        if rounding == "rz":
            inside = [v for v in around if abs(Fraction(float(v))) <= abs(exact)]
            wanted = max(inside, key=lambda v: abs(float(v)))
        else:
            wanted = min(around, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))
        assert r == wanted


@pytest.mark.parametrize("type", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_products_of_integers(type: str):
    kind, bits = ("i" if type[0] == "s" else "u"), int(type[1:])
    a, b = integers(kind, bits), integers(kind, bits)
    exact = [int(x) * int(y) for x, y in zip(a, b, strict=True)]
    high = compute(f"mul.hi.{type}", a, b)
    assert [int(v) for v in high] == [product >> bits for product in exact]
    low = compute(f"mul.lo.{type}", a, b)
    assert [int(v) % (1 << bits) for v in low] == [product % (1 << bits) for product in exact]
    if bits < 64:
        assert [int(v) for v in compute(f"mul.wide.{type}", a, b)] == exact


@pytest.mark.parametrize("type", ["b32", "u32", "s32", "b64", "s64", "u16", "s16"])
def test_shifts_beyond_the_width(type: str):
    kind, bits = ("i" if type[0] == "s" else "u"), int(type[1:])
    a, by = integers(kind, bits), RNG.integers(0, 2 * bits, 300).astype(np.uint32)
    if type[0] == "b":
        wanted = [(int(x) << int(n)) % (1 << bits) for x, n in zip(a, by, strict=True)]
        assert compute(f"shl.{type}", a, by).tolist() == wanted
    else:
        assert compute(f"shr.{type}", a, by).tolist() == [int(x) >> int(n) for x, n in zip(a, by, strict=True)]


def test_bytes_are_chosen():
    a, b = np.array([0x33221180], np.uint32), np.array([0x77665544], np.uint32)
    for choice, wanted in [(0x3210, 0x33221180), (0x7654, 0x77665544), (0x5410, 0x55441180), (0x0008, 0x808080FF)]:
        assert compute("prmt.b32", a, b, np.array([choice], np.uint32)).tolist() == [wanted]


def test_fields_are_extracted():
    a = integers("u", 64)
    for first, count in [(0, 64), (4, 1), (61, 20), (5, 0), (2, 3)]:
        found = compute("bfe.u64", a, np.array(first, np.uint32), np.array(count, np.uint32))
        assert found.tolist() == [int(x) >> first & (1 << count) - 1 for x in a]


@pytest.mark.parametrize("kinds", ["s32.s32", "u32.s32", "u32.u32"])
def test_dot_products_of_bytes(kinds: str):
    a, b, c = integers("u", 32), integers("u", 32), integers("i", 32)
    c //= 2
    factors = [
        v.view(np.int8 if kind == "s32" else np.uint8).reshape(-1, 4).astype(int)
        for v, kind in zip((a, b), kinds.split("."), strict=True)
    ]
    assert np.array_equal(compute(f"dp4a.{kinds}", a, b, c), (factors[0] * factors[1]).sum(axis=1) + c)


def test_products_of_half_words():
    a, b, c = np.array([0x8000FFFF], np.uint32), np.array([0x80FF7F03], np.uint32), np.array([10], np.int32)
    assert compute("dp2a.lo.u32.s32", a, b, c).tolist() == [0xFFFF * 3 + 0x8000 * 127 + 10]
    assert compute("dp2a.hi.u32.s32", a, b, c).tolist() == [0xFFFF * -1 + 0x8000 * -128 + 10]
    assert compute("dp2a.lo.s32.u32", a, b, c).tolist() == [-1 * 3 - 0x8000 * 127 + 10]
    assert compute("dp2a.hi.s32.u32", a, b, c).tolist() == [-1 * 0xFF - 0x8000 * 0x80 + 10]


def test_conversions_saturate():
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 2.7, -2.7, 2147483520.0], np.float32)
    wanted = [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2, -2, 2147483520]
    assert compute("cvt.rzi.s32.f32", x).tolist() == wanted
    assert compute("cvt.rni.s32.f32", np.array([0.5, 1.5, -2.5], np.float32)).tolist() == [0, 2, -2]
    assert compute("cvt.s8.s32", np.array([200, -300], np.int32)).tolist() == [-56, -44]
    assert compute("cvt.sat.s8.s32", np.array([200, -300, 5], np.int32)).tolist() == [127, -128, 5]
    assert compute("cvt.rn.f32.s32", np.array([16777217], np.int32)).tolist() == [16777216.0]


def test_floats_are_rounded():
    """To halves, ties to even, the first operand above the second one; to tf32, ties away from zero."""
    a, b = np.array([1.5, np.inf, 3.0], np.float32), np.array([-2.0, 2.0**-24, 65536.0], np.float32)
    assert compute("cvt.rn.f16x2.f32", a, b).tolist() == [0x3E00C000, 0x7C000001, 0x42007C00]
    assert compute("cvt.rn.bf16x2.f32", a, b).tolist() == [0x3FC0C000, 0x7F803380, 0x40404780]
    ties = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, np.nan], np.float32)
    assert compute("cvt.rn.bf16x2.f32", ties, ties).tolist() == [0x3F803F80, 0x3F823F82, 0x7FFF7FFF]
    c = np.array([1 + 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12], np.float32)
    assert compute("cvt.rna.tf32.f32", c).tolist() == [0x3F802000, 0xBF802000, 0x3F800000]


def test_bytes_are_packed():
    """The ISA: the lower bytes are those of b, then a; c moves up by 16 bits."""
    a, b, c = np.array([-300, 7], np.int32), np.array([300, -2], np.int32), np.array([0xABCD1234, 1], np.uint32)
    assert compute("cvt.pack.sat.s8.s32.b32", a, b, c).tolist() == [0x1234807F, 0x000107FE]
    assert compute("cvt.pack.sat.u8.s32.b32", a, b, c).tolist() == [0x123400FF, 0x00010700]


def test_signs_zeros_and_minima():
    one, nan = np.array([-1.5, 2.0], np.float32), np.array([np.nan, 1.0], np.float32)
    assert compute("copysign.f32", one, np.array([3.0, -4.0], np.float32)).tolist() == [-3.0, 4.0]
    assert compute("min.f32", one, nan).tolist() == [-1.5, 1.0] and np.isnan(compute("max.NaN.f32", one, nan)[0])
    assert compute("clz.b32", np.array([0, 1, 1 << 31], np.uint32)).tolist() == [32, 31, 0]
