"""Dot products of integers that processors have as one instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i8, i16
from xdsl.ir import Attribute


@dataclass(frozen=True)
class Dot:
    """An instruction: the features it needs, products per sum and the type of their factors, whether data is unsigned,
    how many sums it makes, its LLVM intrinsic, and whether that adds to an accumulator."""

    features: frozenset[str]
    group: int
    element: Attribute
    unsigned: bool
    lanes: int
    intrinsic: str
    adds: bool = True


def _bytes(features: str, unsigned: bool, lanes: int, name: str) -> Dot:
    return Dot(frozenset(features.split()), 4, i8, unsigned, lanes, f"llvm.{name}")


def _words(features: str, lanes: int, name: str, adds: bool = False) -> Dot:
    return Dot(frozenset(features.split()), 2, i16, False, lanes, f"llvm.{name}", adds)


DOTS: Sequence[Dot] = [
    _bytes("avx512vnni", True, 16, "x86.avx512.vpdpbusd.512"),
    _bytes("avxvnni", True, 8, "x86.avx512.vpdpbusd.256"),
    _bytes("i8mm", True, 4, "aarch64.neon.usdot.v4i32.v16i8"),
    _bytes("dotprod", False, 4, "aarch64.neon.sdot.v4i32.v16i8"),
    _words("avx512vnni", 16, "x86.avx512.vpdpwssd.512", adds=True),
    _words("avx512bw", 16, "x86.avx512.pmaddw.d.512"),
    _words("avxvnni", 8, "x86.avx512.vpdpwssd.256", adds=True),
    _words("avx2", 8, "x86.avx2.pmadd.wd"),
    _words("sse2", 4, "x86.sse2.pmadd.wd"),
]
"""Dot products that processors have, the best of a target first."""


def best_dot(features: frozenset[str], group: int | None = None) -> Dot | None:
    """The dot product that a target's micro-kernels should be made of; of `group` products, if that is given."""
    return next((dot for dot in DOTS if dot.features <= features and group in (None, dot.group)), None)
