"""Parameters and shapes beyond the usual: the numbers of LiteRT's reference kernels, or a row of docs/support.md."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_models import Array, Case, Reference, T

EVERY = {
    "int8": np.arange(-128, 128).astype(np.int8),
    "uint8": np.arange(256).astype(np.uint8),
    "int16": np.arange(-(1 << 15), 1 << 15).astype(np.int16),
}


def equal(case: Case, feeds: list[Array], *, built: bool = True) -> None:
    """The integers of the interpreter and of compiled code are the reference's."""
    wanted = Reference(case.model()).run(feeds)
    module = from_tflite(case.model())
    np.testing.assert_array_equal(run(module, feeds)[0], wanted[0])
    if built:
        np.testing.assert_array_equal(relay.build(module).run(*feeds), wanted[0])


@pytest.fixture(autouse=True)
def litert() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("scales", [(0.0021, 1.0), (0.0019, 1.0), (1e-4, 1.0), (1e-6, 3.0), (2e-9, 1e-8), (1e-7, 1e-3)])
def test_hard_swish_with_wide_shifts(dtype: str, scales: tuple[float, float]) -> None:
    """gemmlowp's shift of 16 bits by 16 and more: its mask has only 16."""
    for zero in (0, 5, 100):
        tensors = [T([256], dtype, scale, zero) for scale in scales]
        equal(Case("HARD_SWISH", tensors[:1], tensors[1:], "HardSwishOptions"), [EVERY[dtype]], built=zero == 5)


@pytest.mark.parametrize("dims", [[4, 7], [2, 14], [8, 7], [56, 1], [28, 2]])
def test_fully_connected_flattens_matrices(dims: list[int]) -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (5, 28)).astype(np.int8)
    x = rng.integers(-128, 128, dims).astype(np.int8)
    data, kernel = T(dims, "int8", 0.1, 3), T(weights, "int8", 0.02)
    out = T([x.size // 28, 5], "int8", 0.7, -4)
    equal(Case("FULLY_CONNECTED", [data, kernel, None], [out], "FullyConnectedOptions", {}, 4), [x])
