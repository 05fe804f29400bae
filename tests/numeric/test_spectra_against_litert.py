"""Real parts of spectra against LiteRT's RFFT2D, whose transform is in double precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from relay.errors import Unsupported
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_models import Reference, T
from tests.numeric.test_control_flow_against_litert import Graph, Op, model


@pytest.fixture(autouse=True)
def schema() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")


def spectrum(shape: Sequence[int], count: int, high: int = 1, last: str = "CAST", kind: str = "float32") -> bytes:
    """RFFT2D, EXPAND_DIMS, CAST."""
    out = [*shape[:-1], count // 2 + 1]
    tensors = [T(shape, "float32"), T(np.array([high, count]), "int32"), T(out, "complex64"), T(np.array(0), "int32")]
    tensors += [T([1, *out], "complex64"), T([1, *out], kind)]
    options = {"CAST": "CastOptions", "COMPLEX_ABS": ""}[last]
    ops = [Op("RFFT2D", [0, 1], [2]), Op("EXPAND_DIMS", [2, 3], [4], "ExpandDimsOptions"), Op(last, [4], [5], options)]
    return model([Graph(tensors, [0], [5], ops)])


@pytest.mark.parametrize(
    ("shape", "count"), [((3, 1, 8), 8), ((2, 1, 10), 16), ((1, 9), 4), ((5, 1, 3), 2), ((2, 2, 1, 512), 512)]
)
def test_real_parts_equal_litert(shape: tuple[int, ...], count: int) -> None:
    file = spectrum(shape, count)
    given = np.random.default_rng(count).standard_normal(shape).astype(np.float32)
    (found,), (wanted,) = run(from_tflite(file), [given]), Reference(file).run([given])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * count)


REFUSED = {
    "a transform of (2, 8) of shape (1, 2, 8)": lambda: spectrum((1, 2, 8), 8, high=2),
    "a transform of 8192 samples": lambda: spectrum((1, 1, 8192), 8192),
    "RFFT2D 't2': takes no FLOAT32, INT32": lambda: model(
        [
            Graph(
                [T([1, 8], "float32"), T(np.array([1, 8]), "int32"), T([1, 5], "int32")],
                [0],
                [2],
                [Op("RFFT2D", [0, 1], [2])],
            )
        ]
    ),
    "the type is COMPLEX64": lambda: spectrum((1, 1, 8), 8, last="COMPLEX_ABS"),
    "is COMPLEX64": lambda: spectrum((1, 1, 8), 8, kind="int32"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words: str) -> None:
    with pytest.raises(Unsupported) as raised:
        from_tflite(REFUSED[words]())
    assert words in str(raised.value)
