"""QUANTIZE of what is no number: the lowest code, as LiteRT's reference gives, from every target's code."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_models import Case, Reference, T

TARGETS = {
    "sse2": "x86_64-unknown-linux-gnu",
    "avx2": "x86_64-unknown-linux-gnu -mcpu=haswell",
    "this machine": "llvm",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("dtype", "zero_point"), [("int8", 3), ("uint8", 130), ("int16", 0)])
def test_nan_is_the_lowest_code(dtype: str, zero_point: int, target: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    x = np.array([np.nan, -np.nan, 3e8, -np.inf, 1.25, -1.25, np.nan] * 11, np.float32)
    case = Case("QUANTIZE", [T([77], "float32")], [T([77], dtype, 0.5, zero_point)], "QuantizeOptions")
    (wanted,) = Reference(case.model()).run([x])
    module = from_tflite(case.model())
    np.testing.assert_array_equal(run(module, [x])[0], wanted)
    np.testing.assert_array_equal(relay.build(module, TARGETS[target]).run(x), wanted)
