"""Every operator of the TFLite table against LiteRT's reference kernels, on random small models: equal integers."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from relay import signature
from relay.frontend import from_tflite, supported_operators
from relay.interpreters import run
from tests.numeric.litert_models import Array, Case, Reference
from tests.numeric.litert_product_cases import QUANTISED
from tests.numeric.litert_shape_cases import CASES

RUNS = 3


def check(case: Case, rng: np.random.Generator) -> bool:
    """Compare a few runs, states carried on; False where LiteRT itself does not take the model."""
    model = case.model()
    try:
        reference = Reference(model, case.kernels)
    except (RuntimeError, ValueError):
        return False
    module = from_tflite(model)
    module.verify()
    inputs, outputs = signature.read(module["main"])
    states = [np.array(info.initial) for info in inputs if info.kind == "state"]
    count = sum(info.kind == "output" for info in outputs)
    for _ in range(RUNS):
        feeds = case.feeds(rng)
        expected = reference.run(feeds)
        results = run(module, [*feeds, *states])
        states = list(results[count:])
        for result, wanted in zip(results[:count], expected, strict=True):
            compare(result, wanted, f"{case.kind} {case}")
    return True


def compare(result: Array, wanted: Array, what: str) -> None:
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape), what
    if wanted.dtype.kind == "f":
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-6)
        assert np.allclose(result, wanted, rtol=1e-5, atol=1e-5 * float(largest)), what
    else:
        assert np.array_equal(result, wanted), what


def compare_many(kind: str, wanted: int, seed: int) -> None:
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
    accepted = 0
    for _ in range(4 * wanted):
        accepted += check(CASES[kind](rng, kind), rng)
        if accepted == wanted:
            return
    raise AssertionError(f"LiteRT took only {accepted} of {4 * wanted} models of {kind}")


@pytest.mark.parametrize("kind", sorted(CASES))
def test_operator_equals_litert(kind: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    compare_many(kind, 10, 0)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", sorted(CASES))
def test_many_operators_equal_litert(kind: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    compare_many(kind, 200, 1)


def test_every_operator_of_the_table_has_cases() -> None:
    assert set(supported_operators()) == set(CASES) | {kind for kind, _ in QUANTISED} | {"IF", "WHILE"}
