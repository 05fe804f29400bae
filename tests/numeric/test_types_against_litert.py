"""Every operator on data of every type: what LiteRT's reference kernels take is taken here too, and equal; or a row
below says why not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from relay import signature
from relay.errors import RelayError
from relay.frontend import from_tflite, supported_operators
from relay.interpreters import run
from tests.numeric.litert_comparison import compare
from tests.numeric.litert_models import Case, Reference
from tests.numeric.litert_types import APART, TYPES, feeds_of, typed

REFUSED = {
    ("ARG_MAX", "bool"): "booleans have no order here",
    ("ARG_MIN", "bool"): "booleans have no order here",
    ("BITCAST", "int64"): "types differ in width",
    ("LOG_SOFTMAX", "int8"): "logarithms in fixed point",
    ("LOG_SOFTMAX", "uint8"): "as the C library rounds expf and logf",
    ("NON_MAX_SUPPRESSION_V5", "float32"): "with a sigma scores decay by overlaps",
    ("PRELU", "int16"): "LiteRT reads slopes of 16 bits as of 8",
    ("REDUCE_PROD", "int8"): "each product is rescaled by a root of the scales",
    ("REDUCE_PROD", "int16"): "each product is rescaled by a root of the scales",
}
"""What LiteRT takes and we refuse."""
WRONG = {
    ("DIV", "int8"): "shifts by more than 31",
    ("DIV", "int16"): "shifts by more than 31",
    ("DIV", "uint8"): "shifts by more than 31",
    **dict.fromkeys(
        [("FAKE_QUANT", dtype) for dtype in ("bool", "int16", "int32", "int64", "int8", "uint8")],
        "reads all types as floats; refused here",
    ),
    ("MATRIX_DIAG", "bool"): "reads past the end",
    ("MATRIX_SET_DIAG", "bool"): "reads past the end",
    ("SUM", "int8"): "reads all codes as uint8",
    ("SUM", "int16"): "reads all codes as uint8",
}
"""What LiteRT's kernels get wrong or C++ leaves undefined."""
MORE = {
    (kind, dtype)
    for kind, types in {
        "ADD_N": "int64",
        "ARG_MAX": "int16",
        "ARG_MIN": "int16",
        "BITWISE_XOR": "int64",
        "DEPTH_TO_SPACE": "bool int16",
        "FLOOR_DIV": "int64",
        "ONE_HOT": "int16",
        "PACK": "bool",
        "RELU_0_TO_1": "int16",
        "RELU_N1_TO_1": "int16",
        "REVERSE_SEQUENCE": "bool int8",
        "RIGHT_SHIFT": "int64",
        "SCATTER_ND": "int16",
        "SPACE_TO_DEPTH": "bool int16",
        "SPLIT": "bool",
        "SPLIT_V": "bool",
        "SQUARED_DIFFERENCE": "int64",
        "UNPACK": "int64",
    }.items()
    for dtype in types.split()
}
"""What we take and LiteRT refuses: the formula of the other types."""


SUPPORT = (Path(__file__).parents[2] / "docs/support.md").read_text()


def outcome(case: Case) -> str:
    """`no model` for either, `taken` by both, and then equal, `refused` by us only, or `more` than LiteRT takes."""
    rng = np.random.default_rng(1)
    try:
        reference = Reference(case.model(), case.kernels)
        feeds = feeds_of(case, rng)
        wanted = reference.run(feeds)
    except (RuntimeError, ValueError):
        wanted, feeds = None, []
    try:
        module = from_tflite(case.model())
    except RelayError:
        return "no model" if wanted is None else "refused"
    if wanted is None:
        return "more"
    states = [info.initial for info in signature.read(module["main"])[0] if info.initial is not None]
    results = run(module, [*feeds, *states])
    for result, want in zip(results, wanted, strict=False):
        compare(result, want, f"{case.kind} {case}")
    return "taken"


def expected(kind: str, dtype: str) -> tuple[str, ...]:
    return ("refused",) if (kind, dtype) in REFUSED else ("more",) if (kind, dtype) in MORE else ("taken", "no model")


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(supported_operators()) - APART))
def test_what_litert_takes_is_taken(kind: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    wrong: list[tuple[str, str]] = []
    for dtype in TYPES:
        case = typed(kind, dtype)
        if case is not None and (kind, dtype) not in WRONG and (found := outcome(case)) not in expected(kind, dtype):
            wrong.append((dtype, found))
    assert wrong == []


@pytest.mark.parametrize(("kind", "dtype"), sorted(REFUSED.keys() | MORE))
def test_what_only_one_of_both_takes(kind: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    case = typed(kind, dtype)
    assert case is not None and (outcome(case),) == expected(kind, dtype)


@pytest.mark.parametrize(("kind", "dtype"), [("ABS", "int32"), ("NEG", "int16"), ("TILE", "bool")])
def test_what_both_take(kind: str, dtype: str) -> None:
    """Some of what the slow test compares."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    case = typed(kind, dtype)
    assert case is not None and outcome(case) == "taken"


@pytest.mark.parametrize("kind", ["RESHAPE", "STRIDED_SLICE", "TILE"])
def test_the_version_is_one_that_litert_knows(kind: str) -> None:
    """Not the highest that we know: of that LiteRT would have no kernel, and nothing would be compared."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    case = typed(kind, "int8")
    assert case is not None and outcome(case) == "taken" and case.version < supported_operators()[kind][1]


def test_the_page_says_so() -> None:
    rows = re.findall(r"^\| ([A-Z_0-9]+) \| (\w+) \| ([^|]+) \|$", SUPPORT, re.M)
    assert {(kind, dtype): why for kind, dtype, why in rows} == REFUSED | WRONG
    table = SUPPORT.partition("Types that LiteRT refuses and")[2].partition("Of operator options")[0]
    more = re.findall(r"^\| ([A-Z_0-9]+) \| ([\w, ]+) \|$", table, re.M)
    assert {(kind, dtype) for kind, types in more for dtype in types.split(", ")} == MORE
