"""Dot products, of integers and of bf16, that processors have as one instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, IntegerType, bf16, i8, i16

REGISTER = 16
"""Bytes of a register of AArch64."""


@dataclass(frozen=True)
class Dot:
    """An instruction: the features it needs, products per sum and the type of their factors, whether data is unsigned,
    how many sums it makes, its LLVM intrinsic, and whether that adds to an accumulator. `by_lane`: one lane of a
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
        """Rows of data that it multiplies."""
        return 2 if self.matrix else 1

    @property
    def steps(self) -> int:
        """Steps for which one register of a row's codes is loaded."""
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
"""Dot products that processors have, the best of a target first, those of floats last. x86's adds the product of
the second numbers of a pair, then that of the first, rounded once each, and takes subnormal numbers for zeros; Arm's
rounds to odd."""

NIBBLES: Sequence[Dot] = [
    Dot(frozenset({"avx512bw"}), 2, i8, True, 32, "llvm.x86.avx512.pmaddubs.w.512", adds=False),
    Dot(frozenset({"avx2"}), 2, i8, True, 16, "llvm.x86.avx2.pmadd.ub.sw", adds=False),
]
"""Products of pairs of bytes whose sums have 16 bits, with saturation: exact where the unsigned ones have 4 bits."""

BY_LANE = Dot(frozenset({"neon"}), 1, i16, False, 4, "", by_lane=True)
"""One product of codes that were widened, by a lane: no dot product; LLVM finds it in multiplications and additions."""


def best_dot(features: frozenset[str], group: int | None = None) -> Dot | None:
    """The dot product of codes that a target's micro-kernels should be made of; of `group` products, if that is
    given."""
    codes = (dot for dot in DOTS if isinstance(dot.element, IntegerType))
    return next((dot for dot in codes if dot.features <= features and group in (None, dot.group)), None)


def half_dot(features: frozenset[str]) -> Dot | None:
    """What adds the products of pairs of bf16 to a float32; None if there is no such instruction."""
    return next((dot for dot in DOTS if dot.element == bf16 and dot.features <= features), None)
