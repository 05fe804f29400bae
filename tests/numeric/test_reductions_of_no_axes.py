"""Reductions over no axes at all, which leave every element by itself."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from tests.numeric.litert_comparison import accepted, check
from tests.numeric.litert_models import Case, T

KINDS = [("SUM", "float32"), ("MEAN", "float32"), ("MEAN", "int32"), ("MEAN", "int8")]


@pytest.mark.parametrize("shape", [[3, 4], []], ids=["matrix", "scalar"])
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_equals_litert(kind: str, dtype: str, shape: list[int]) -> None:
    data, out = (T(shape, dtype, scale if dtype == "int8" else None) for scale in (0.1, 0.13))
    model = accepted(
        Case(kind, [data, T(np.zeros(0, np.int32), "int32")], [out], "ReducerOptions"), np.random.default_rng(0)
    )
    assert model is not None
    check([model], built=False)
