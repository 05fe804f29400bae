"""TFLite_Detection_PostProcess against LiteRT: boxes, classes, scores and their number, equal; zeros behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import relay
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_models import Array, Case, Reference, T, flexbuffer

pytest.importorskip("ai_edge_litert", reason="LiteRT is the oracle: pip install ai-edge-litert")
SCALES = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}


def model(rng: np.random.Generator, regular: bool, codes: bool) -> tuple[bytes, list[Array], int]:
    """A model of the operator alone, its inputs, and how many rows of its outputs a detection has."""
    n, classes, most = (int(rng.integers(1, high)) for high in (60, 5, 12))
    columns, width = classes + int(rng.integers(2)), 4 + 2 * int(rng.integers(2))
    each = 1 if regular else int(rng.integers(1, classes + 1))
    numbers: dict[str, float] = {
        "max_detections": most,
        "max_classes_per_detection": each,
        "num_classes": classes,
        "nms_score_threshold": float(rng.choice([0.0, 0.3, 0.5])),
        "nms_iou_threshold": float(rng.choice([0.3, 0.6])),
        "use_regular_nms": regular,
        **SCALES,
    }
    if rng.integers(2):
        numbers["detections_per_class"] = int(rng.integers(1, 8))
    anchors = rng.uniform((0, 0, 0.1, 0.1), (1, 1, 0.5, 0.5), (n, 4)).astype(np.float32)
    shapes = [[1, n, width], [1, n, columns]]
    if codes:
        steps = np.rint(anchors / 0.005).astype(np.uint8)
        given = [T(shapes[0], "uint8", 0.07, 120), T(shapes[1], "uint8", 1 / 256), T(steps, "uint8", 0.005)]
        scores = rng.permutation(np.arange(n * columns) % 256).astype(np.uint8).reshape(shapes[1])
        feeds: list[Array] = [rng.integers(80, 160, shapes[0]).astype(np.uint8), scores]
    else:
        given = [T(shapes[0], "float32"), T(shapes[1], "float32"), T(anchors, "float32")]
        feeds = [rng.normal(0, 2, shapes[0]).astype(np.float32), rng.uniform(0, 1, shapes[1]).astype(np.float32)]
    rows = most * each
    out = [T(shape, "float32") for shape in ([1, rows, 4], [1, rows], [1, rows], [1])]
    code = "TFLite_Detection_PostProcess"
    return Case("CUSTOM", given, out, custom_code=code, custom_options=flexbuffer(**numbers)).model(), feeds, each


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.ci if seed in (1, 2, 4, 5) else ()) for seed in range(24)]
)
def test_detections_are_those_of_litert(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, feeds, each = model(rng, regular=seed % 2 == 0, codes=seed % 4 > 1)
    wanted = Reference(data).run(feeds)
    module = from_tflite(data)
    count = each * int(wanted[3][0])
    found: list[Sequence[Array]] = [run(module, feeds)]
    if seed < 6:
        outputs = relay.build(module).run(*feeds)
        assert isinstance(outputs, tuple)
        found.append(outputs)
    for results in found:
        assert results[3].tolist() == wanted[3].tolist()
        for result, expected in zip(results[:3], wanted[:3], strict=True):
            assert np.array_equal(result[:, :count], expected[:, :count])
            assert not result[:, count:].any()
