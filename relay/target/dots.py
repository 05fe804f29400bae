"""Dot product instructions of processors, for integers and for bf16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, IntegerType, bf16, i8, i16

REGISTER = 16
"""The size of an AArch64 vector register in bytes."""


@dataclass(frozen=True)
class Dot:
    """A dot product instruction: the features it needs, products per sum and the type of their factors, whether data is
    unsigned, the number of sums, its LLVM intrinsic, and whether that adds to an accumulator. `by_lane`: one lane of a
    register can be the data of all sums; `matrix`: it multiplies two rows of data by two of weights."""

    features: frozenset[str]
    group: int
    element: IntegerType | BFloat16Type
    unsigned: bool
    lanes: int
    intrinsic: str
    adds: bool = True
    by_lane: bool = False
    matrix: bool = False

    @property
    def rows(self) -> int:
        """The number of data rows that the instruction multiplies."""
        return 2 if self.matrix else 1

    @property
    def steps(self) -> int:
        """The number of consecutive steps of a reduction whose data, for one row, are in one register. A step
        multiplies `group` elements of the row. 1 if the instruction cannot select a part of the register."""
        size = self.group * self.element.bitwidth // 8
        return REGISTER // size if self.by_lane or self.matrix else 1


def _neon(features: str, unsigned: bool, name: str, matrix: bool = False) -> Dot:
    group = 8 if matrix else 4
    intrinsic = f"llvm.aarch64.neon.{name}.v4i32.v16i8"
    return Dot(frozenset(features.split()), group, i8, unsigned, 4, intrinsic, by_lane=not matrix, matrix=matrix)


def _bytes(features: str, unsigned: bool, lanes: int, name: str) -> Dot:
    return Dot(frozenset(features.split()), 4, i8, unsigned, lanes, f"llvm.{name}")


def _words(features: str, lanes: int, name: str, adds: bool = False) -> Dot:
    return Dot(frozenset(features.split()), 2, i16, False, lanes, f"llvm.{name}", adds)


def _halves(features: str, lanes: int, name: str, by_lane: bool = False) -> Dot:
    return Dot(frozenset(features.split()), 2, bf16, False, lanes, f"llvm.{name}", by_lane=by_lane)


DOTS: Sequence[Dot] = [
    _bytes("avx512vnni", True, 16, "x86.avx512.vpdpbusd.512"),
    _bytes("avxvnni", True, 8, "x86.avx512.vpdpbusd.256"),
    _neon("i8mm", True, "usdot"),
    _neon("dotprod", False, "sdot"),
    _words("avx512vnni", 16, "x86.avx512.vpdpwssd.512", adds=True),
    _words("avx512bw", 16, "x86.avx512.pmaddw.d.512"),
    _words("avxvnni", 8, "x86.avx512.vpdpwssd.256", adds=True),
    _words("avx2", 8, "x86.avx2.pmadd.wd"),
    _words("sse2", 4, "x86.sse2.pmadd.wd"),
    _neon("i8mm", False, "smmla", matrix=True),
    _neon("i8mm", True, "usmmla", matrix=True),
    _halves("avx512bf16", 16, "x86.avx512bf16.dpbf16ps.512"),
    _halves("neon bf16", 4, "aarch64.neon.bfdot.v4f32.v8bf16", by_lane=True),
]
"""All dot product instructions, the best of each target first, those of floats last. x86's instruction for bf16 adds
the product of the second elements of a pair, then the product of the first elements, each sum rounded once, and treats
subnormal numbers as zeros; Arm's rounds to odd."""

NIBBLES: Sequence[Dot] = [
    Dot(frozenset({"avx512bw"}), 2, i8, True, 32, "llvm.x86.avx512.pmaddubs.w.512", adds=False),
    Dot(frozenset({"avx2"}), 2, i8, True, 16, "llvm.x86.avx2.pmadd.ub.sw", adds=False),
]
"""Instructions that multiply pairs of bytes and sum in 16 bits, with saturation: exact if the unsigned factors have 4
bits."""

BY_LANE = Dot(frozenset({"neon"}), 1, i16, False, 4, "", by_lane=True)
"""A widening multiply-add of codes by one lane of a register: not a dot product; LLVM selects it for multiplications
and additions."""


def best_dot(features: frozenset[str], group: int | None = None) -> Dot | None:
    """The best dot product of codes for a target's micro-kernels, with `group` products per sum if that is given; None
    if there is none."""
    codes = (dot for dot in DOTS if isinstance(dot.element, IntegerType))
    return next((dot for dot in codes if dot.features <= features and group in (None, dot.group)), None)


def half_dot(features: frozenset[str]) -> Dot | None:
    """The instruction that adds products of bf16 pairs to a float32; None if there is none."""
    return next((dot for dot in DOTS if dot.element == bf16 and dot.features <= features), None)
