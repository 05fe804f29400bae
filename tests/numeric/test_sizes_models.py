"""Real models at sizes that are not known when they are built: equal to a build for them, and close to ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay.compile.entry import build
from relay.runtime import DynamicExecutable

MODEL = Path(__file__).parents[2] / "../shared/models/onnx/magika_v3_3.onnx"


@pytest.mark.slow
@pytest.mark.skipif(not MODEL.exists(), reason="the models lie beside the checkout")
def test_a_model_at_several_sizes():
    pytest.importorskip("onnx", reason="reads ONNX")
    runtime = pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")
    exe = build(MODEL, opt_level=1, shapes={"bytes": ("n", 2048)})
    assert isinstance(exe, DynamicExecutable)
    session = runtime.InferenceSession(str(MODEL))
    for n in (1, 2, 3, 5, 8):
        x = np.random.default_rng(n).integers(0, 257, (n, 2048)).astype(np.int32)
        found, static = exe.run(x), build(MODEL, opt_level=1, shapes={"bytes": (n, 2048)}).run(x)
        assert isinstance(found, np.ndarray) and isinstance(static, np.ndarray)
        assert found.tobytes() == static.tobytes()
        (wanted,) = session.run(None, {"bytes": x})
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
