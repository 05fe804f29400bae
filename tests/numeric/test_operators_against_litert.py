"""Every operator of the TFLite table against LiteRT's reference kernels, on random small models: equal integers."""

from __future__ import annotations

import pytest

from relay.frontend import supported_operators
from tests.conftest import Cases
from tests.numeric.litert_comparison import compare_many
from tests.numeric.litert_product_cases import QUANTISED
from tests.numeric.litert_shape_cases import CASES
from tests.numeric.litert_types import APART


@pytest.mark.parametrize("kind", sorted(CASES))
def test_operator_equals_litert(kind: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    compare_many(kind, lambda rng: CASES[kind](rng, kind), range(10), 0, built=False)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", sorted(CASES))
def test_many_operators_equal_litert(kind: str, cases: Cases) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    compare_many(kind, lambda rng: CASES[kind](rng, kind), cases(200), 1, built=False)


def test_every_operator_of_the_table_has_cases() -> None:
    """Those of QUANTISED on codes are more types of kinds that have other cases."""
    plain = {kind for kind, dtype in QUANTISED if dtype == "float32"} | {*CASES}
    assert set(supported_operators()) == plain | APART
    assert {kind for kind, _ in QUANTISED} <= plain
