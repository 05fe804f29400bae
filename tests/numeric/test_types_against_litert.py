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
    ("BITCAST", "int64"): "types differ in width",
    ("PRELU", "int16"): "LiteRT reads slopes of 16 bits as of 8",
    ("REDUCE_PROD", "int8"): "each product is rescaled by a root of the scales",
    ("REDUCE_PROD", "int16"): "each product is rescaled by a root of the scales",
}
"""What LiteRT takes and we refuse."""
WRONG = {
    ("DIV", "int8"): "shifts by more than 31",
    ("DIV", "int16"): "shifts by more than 31",
    ("DIV", "uint8"): "shifts by more than 31",
    ("MATRIX_DIAG", "bool"): "reads past the end",
    ("MATRIX_SET_DIAG", "bool"): "reads past the end",
    ("SUM", "int8"): "reads all codes as uint8",
    ("SUM", "int16"): "reads all codes as uint8",
}
"""What LiteRT's kernels get wrong or C++ leaves undefined."""


SUPPORT = (Path(__file__).parents[2] / "docs/support.md").read_text()


def outcome(case: Case) -> str:
    """`no model` for LiteRT, else `refused` or `taken` by us; what is taken must be equal."""
    rng = np.random.default_rng(1)
    try:
        reference = Reference(case.model(), case.kernels)
        feeds = feeds_of(case, rng)
        wanted = reference.run(feeds)
    except (RuntimeError, ValueError):
        return "no model"
    try:
        module = from_tflite(case.model())
    except RelayError:
        return "refused"
    states = [info.initial for info in signature.read(module["main"])[0] if info.initial is not None]
    results = run(module, [*feeds, *states])
    for result, want in zip(results, wanted, strict=False):
        compare(result, want, f"{case.kind} {case}")
    return "taken"


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(supported_operators()) - APART))
def test_what_litert_takes_is_taken(kind: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    for dtype in TYPES:
        case = typed(kind, dtype)
        if case is not None and (kind, dtype) not in WRONG:
            assert outcome(case) == "refused" if (kind, dtype) in REFUSED else outcome(case) != "refused", (kind, dtype)


@pytest.mark.parametrize(("kind", "dtype"), sorted(REFUSED))
def test_what_is_refused_though_litert_takes_it(kind: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    case = typed(kind, dtype)
    assert case is not None and outcome(case) == "refused"


def test_the_page_says_so() -> None:
    rows = re.findall(r"^\| ([A-Z_0-9]+) \| (\w+) \| ([^|]+) \|$", SUPPORT, re.M)
    assert {(kind, dtype): why for kind, dtype, why in rows} == REFUSED | WRONG
