"""Every operator that an external compiler takes, on random small models, against the interpreter.

A compiler that says it is exact gives equal integers; the others are at most one code off.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from relay import signature
from relay.byoc import find
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.external_sessions import COMPILERS, Session, compare, installed, whole
from tests.numeric.litert_shape_cases import CASES

RECURRENT = {"SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
REFUSED = {
    "litert": {*RECURRENT, "GATHER", "GATHER_ND"},
    "xnnpack": {*RECURRENT, "GATHER", "GATHER_ND"},
    "onnxruntime": RECURRENT,
    "onednn": {
        *RECURRENT,
        "ARG_MAX",
        "ARG_MIN",
        "CAST",
        "FLOOR",
        "FLOOR_DIV",
        "GATHER",
        "GATHER_ND",
        "RESIZE_NEAREST_NEIGHBOR",
        "RSQRT",
    },
}
"""The kinds of which a compiler takes none of these models."""


def check(compiler: str, kind: str, wanted: int, seed: int) -> None:
    """Compare that many models that the compiler takes, of at most ten times as many."""
    codes = 0 if find(compiler).exact else 1
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
    taken = 0
    for _ in range(10 * wanted if kind not in REFUSED[compiler] else wanted):
        case = CASES[kind](rng, kind)
        module = from_tflite(case.model())
        if any(info.kind == "state" for info in signature.read(module["main"])[0]):
            continue
        function = whole(module, compiler)
        if function is None:
            continue
        session = Session(function, compiler)
        feeds = case.feeds(rng)
        for result, reference in zip(session(feeds), run(module, feeds), strict=True):
            compare(result, reference, codes, f"{compiler}: {case}")
        taken += 1
        if taken == wanted:
            break
    assert taken == (0 if kind in REFUSED[compiler] else wanted)


@pytest.mark.parametrize("kind", sorted(CASES))
@pytest.mark.parametrize("compiler", COMPILERS)
def test_operator_equals_interpreter(compiler: str, kind: str) -> None:
    installed(compiler)
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these models")
    check(compiler, kind, 2, 0)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", sorted(CASES))
@pytest.mark.parametrize("compiler", COMPILERS)
def test_many_operators_equal_interpreter(compiler: str, kind: str) -> None:
    installed(compiler)
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these models")
    check(compiler, kind, 60, 1)
