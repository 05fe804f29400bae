"""Quantised operators against LiteRT's reference kernels: equal integers, of the interpreter and compiled.

A model that the reference takes and we refuse is a failure. What was tried, refused and equal is printed per kind.
"""

from __future__ import annotations

import pytest

from tests.conftest import Cases
from tests.numeric.litert_comparison import compare_many
from tests.numeric.litert_product_cases import QUANTISED

KINDS = [pytest.param(kind, dtype, id=f"{kind}-{dtype}") for kind, dtype in sorted(QUANTISED)]


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_quantised_operator_equals_litert(kind: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    make, name = QUANTISED[kind, dtype], f"{kind} {dtype}"
    compare_many(name, lambda rng: make(rng, kind, dtype), range(4), 0, built=False)
    if dtype == min(other for each, other in QUANTISED if each == kind):  # builds take time; with -m fuzz all are built
        compare_many(name, lambda rng: make(rng, kind, dtype), range(1), 1, built=True)


@pytest.mark.fuzz
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_many_quantised_operators_equal_litert(kind: str, dtype: str, cases: Cases) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    make = QUANTISED[kind, dtype]
    compare_many(f"{kind} {dtype}", lambda rng: make(rng, kind, dtype), cases(200), 2, built=True)
