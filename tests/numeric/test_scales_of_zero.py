"""Scales of 0, which converters write for channels of zeros and where nobody reads a scale."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from tests.numeric.litert_comparison import accepted, check
from tests.numeric.litert_models import Case, T

WEIGHTS = np.random.default_rng(0).integers(-127, 128, (3, 3, 3, 2))
WEIGHTS[1] = 0
DATA, RESULT = T([1, 4, 4, 2], "int8", 0.05, 3), T([1, 4, 4, 3], "int8", 0.3, -5)
KERNEL = T(WEIGHTS, "int8", [0.02, 0.0, 0.03])
BIAS = T(np.array([5, 0, 7]), "int32", [0.001, 0.0, 0.0015])
STRIDES = {"strideH": 1, "strideW": 1}
CASES = [
    Case("CONV_2D", [DATA, KERNEL, BIAS], [RESULT], "Conv2DOptions", STRIDES, 3),
    Case("ABS", [T([1, 4], "float32", 0.0)], [T([1, 4], "float32", 0.0)]),
    Case("ADD", [T([1, 4], "int32", 0.0), T([1, 4], "int32")], [T([1, 4], "int32")], "AddOptions"),
    Case("TRANSPOSE", [T([1, 4], "int8", 0.0), T(np.array([1, 0]), "int32")], [T([4, 1], "int8", 0.0)]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_equals_litert(case: Case) -> None:
    model = accepted(case, np.random.default_rng(0))
    assert model is not None
    check([model], built=True)
