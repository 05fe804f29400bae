"""Each sentence of "What is promised" in docs/support.md names a test that exists; those that no other file has are
here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_models import Case, Reference, T

ROOT = Path(__file__).parents[2]
PROMISES = (
    (ROOT / "docs" / "support.md").read_text().partition("## What is promised\n")[2].partition("\nNot promised")[0]
)
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def bullets() -> list[str]:
    return [" ".join(each.split()) for each in PROMISES.split("\n- ")[1:]]


def test_each_sentence_names_a_test() -> None:
    found = bullets()
    assert len(found) >= 9
    for bullet in found:
        *sentences, rest = re.split(r"\[(?=`tests/)[^\]]*\]\.", bullet)
        assert rest == "" and sentences, f"no test behind: {rest or bullet}"
        for sentence in sentences:
            told = re.sub(r"^\*\*[^*]+\*\*", "", sentence.strip()).strip()
            assert not re.search(r"[.!?] [A-Z]", told), f"a sentence without a test: {told}"


def test_the_tests_that_are_named_exist() -> None:
    for path, name in NAMED.findall(PROMISES):
        tree = ast.parse((ROOT / path).read_text())
        tests = {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")}
        assert tests and (not name or name in tests), f"{path}::{name}"


def both(case: Case, *inputs: Array) -> Array:
    """What the interpreter gives, which compiled code gives, too."""
    module = from_tflite(case.model())
    result = run(module, inputs)[0]
    np.testing.assert_array_equal(relay.build(module).run(*inputs), result)
    return result


@pytest.fixture(autouse=True)
def litert(request: pytest.FixtureRequest) -> None:
    if "sums" in request.node.name:
        pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")


def sum_of(dtype: str, zero: int, output_zero: int) -> Case:
    inputs = [T([4, 16], dtype, 0.05, zero), T(np.array([1], np.int32), "int32")]
    return Case("SUM", inputs, [T([4], dtype, 0.3, output_zero)], "ReducerOptions")


def test_sums_of_signed_codes_have_the_formula_of_unsigned_ones() -> None:
    """The same numbers, 128 lower: what LiteRT gives for uint8 is ours for int8."""
    codes = np.random.default_rng(0).integers(0, 256, (4, 16)).astype(np.uint8)
    wanted = Reference(sum_of("uint8", 131, 125).model()).run([codes])[0]
    shifted = (codes.astype(np.int16) - 128).astype(np.int8)
    np.testing.assert_array_equal(both(sum_of("int8", 3, -3), shifted), (wanted.astype(np.int16) - 128).astype(np.int8))


def test_sums_beyond_32_bits_saturate() -> None:
    data, weights = T([2, 8], "int8", 1.0), T(np.ones((3, 8), np.int8), "int8", 1.0)
    case = Case("FULLY_CONNECTED", [data, weights, None], [T([2, 3], "int8", 1e-9)], "FullyConnectedOptions", {}, 4)
    codes = np.array([[100] * 8, [-100] * 8], np.int8)
    np.testing.assert_array_equal(both(case, codes), [[127] * 3, [-128] * 3])
