"""Quantised operators against LiteRT's reference kernels: equal integers, of the interpreter and compiled.

A model that the reference takes and we refuse is a failure. What was tried, refused and equal is printed per kind.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tests.numeric import test_operators_against_litert as interpreted
from tests.numeric import test_operators_compiled as compiled
from tests.numeric.litert_product_cases import QUANTISED

KINDS = [pytest.param(kind, dtype, id=f"{kind}-{dtype}") for kind, dtype in sorted(QUANTISED)]


def compare_many(kind: str, dtype: str, wanted: int, seed: int, build: bool) -> None:
    """`wanted` models that the reference takes."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{kind} {dtype}".encode())])
    check = compiled.check if build else interpreted.check
    accepted = tried = 0
    while accepted < wanted and tried < 4 * wanted:
        accepted += check(QUANTISED[kind, dtype](rng, kind, dtype), rng)
        tried += 1
    print(f"{kind} {dtype}: {tried} tried, {tried - accepted} refused by LiteRT, {accepted} equal")
    assert accepted == wanted


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_quantised_operator_equals_litert(kind: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    compare_many(kind, dtype, 4, 0, build=False)
    if dtype == min(other for each, other in QUANTISED if each == kind):  # builds take time; with -m fuzz all are built
        compare_many(kind, dtype, 1, 1, build=True)


@pytest.mark.fuzz
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_many_quantised_operators_equal_litert(kind: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    compare_many(kind, dtype, 200, 2, build=True)
