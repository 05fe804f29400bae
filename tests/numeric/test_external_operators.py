"""Every operator that an external compiler takes, on random small models, against the interpreter.

A compiler that says it is exact gives equal integers; the others are at most one code off.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import pytest

from relay import signature
from relay.byoc import find
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.conftest import Cases
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
"""The kinds of `TAKEN` of which a compiler takes none of these models."""
TAKEN = set(
    """
    ABS ADD ARG_MAX ARG_MIN AVERAGE_POOL_2D CAST CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEQUANTIZE DIV EXP
    EXPAND_DIMS FLOOR FLOOR_DIV FULLY_CONNECTED GATHER GATHER_ND LOG LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL
    NEG PACK PAD PADV2 QUANTIZE REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR
    RESIZE_NEAREST_NEIGHBOR RSQRT SLICE SOFTMAX SQRT SQUEEZE STRIDED_SLICE SUB SUM SVDF TANH TRANSPOSE
    UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK
    """.split()
)
"""The kinds whose ops external compilers have rows for. Of the others they may take some models, and need not."""


def check(compiler: str, kind: str, numbers: Iterable[int], seed: int) -> None:
    """Compare a model for each of the numbers; of the kinds that must be taken, one of fifty tries is."""
    codes = 0 if find(compiler).exact else 1
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
    required = kind in TAKEN - REFUSED[compiler]
    for _ in numbers:
        for _ in range(50 if required else 1):
            case = CASES[kind](rng, kind)
            module = from_tflite(case.model())
            if any(info.kind == "state" for info in signature.read(module["main"])[0]):
                continue
            function = whole(module, compiler)
            if function is None:
                continue
            assert kind not in REFUSED[compiler]
            session = Session(function, compiler)
            feeds = case.feeds(rng)
            for result, reference in zip(session(feeds), run(module, feeds), strict=True):
                compare(result, reference, codes, f"{compiler}: {case}")
            break
        else:
            assert not required, f"{compiler} takes no {kind}"


USUAL = {"ADD", "AVERAGE_POOL_2D", "CAST", "CONCATENATION", "CONV_2D", "FULLY_CONNECTED", "LOGISTIC", "MEAN", "SOFTMAX"}
"""One of each form of row that a compiler has for its ops."""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in USUAL else pytest.mark.ci) for kind in sorted(CASES)]
)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_operator_equals_interpreter(compiler: str, kind: str) -> None:
    installed(compiler)
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these models")
    check(compiler, kind, range(2), 0)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", sorted(CASES))
@pytest.mark.parametrize("compiler", COMPILERS)
def test_many_operators_equal_interpreter(compiler: str, kind: str, cases: Cases) -> None:
    installed(compiler)
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these models")
    check(compiler, kind, cases(60), 1)
