"""`relay-dialect test` says what is wrong with a dialect, each of its checks by an example."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.dialects.plug_in import DIALECTS
from relay.tools.dialect_checks import CHECKS, Subject
from tests.unit.third_dialect import PLUG_IN, DoubleOp, Halve, LooseOp, Third, TurnOp, double_scalar, turn_meaning

EXAMPLES = """func.func @double(%x: tensor<2x?xi32>) -> tensor<2x?xi32> {
  %0 = third.double %x : (tensor<2x?xi32>) -> tensor<2x?xi32>
  func.return %0 : tensor<2x?xi32>
}
func.func @turn(%x: tensor<2x3xi8>) -> tensor<3x2xi8> {
  %0 = third.turn %x : (tensor<2x3xi8>) -> tensor<3x2xi8>
  func.return %0 : tensor<3x2xi8>
}
func.func @loose(%x: tensor<2xi8>) -> tensor<2xi8> {
  %0 = third.loose %x : (tensor<2xi8>) -> tensor<2xi8>
  func.return %0 : tensor<2xi8>
}
// -----
// error: third.turn: takes a matrix
func.func @turn(%x: tensor<3xi8>) -> tensor<3xi8> {
  %0 = third.turn %x : (tensor<3xi8>) -> tensor<3xi8>
  func.return %0 : tensor<3xi8>
}
"""
WHOLE = EXAMPLES[: EXAMPLES.index("func.func @loose")] + EXAMPLES[EXAMPLES.index("// -----") :]
NUMBERS = count()


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[str]]:
    """What a check says of the dialect with these examples and changes."""

    def find(check: str, examples: str = WHOLE, **changes: Any) -> list[str]:
        package = f"third_examples_{next(NUMBERS)}"
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "examples.mlir").write_text(examples)
        given = replace(PLUG_IN, examples=f"{package}:examples.mlir", **changes)
        monkeypatch.setattr(DIALECTS, "registered", {"third": given})
        return [*CHECKS[check](Subject("third"))]

    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return find


Faults = Callable[..., list[str]]


def test_a_whole_dialect_has_no_faults_but_those_of_its_loose_op(faults: Faults) -> None:
    for check in CHECKS:
        said = [line.partition(":")[0] for line in faults(check)]
        assert said == (["third.loose has no example"] if check == "completeness" else []), check
    assert faults("completeness", EXAMPLES) == ["third.loose has no meaning"]
    meanings = {DoubleOp: thrice, TurnOp: turn_meaning, LooseOp: thrice}
    (said,) = faults("completeness", EXAMPLES, meanings=meanings)
    assert said.startswith("third.loose becomes no linalg: ") and "no legalization pattern takes it" in said


def test_a_type_of_its_own_and_scalar_code(faults: Faults) -> None:
    fixed = WHOLE.replace("2x?xi32", "2x3x!third.fixed<4 : i32>")
    for check in CHECKS:
        said = faults(check, fixed, expansions={}, scalars={DoubleOp: double_scalar})
        assert [line for line in said if not line.startswith("third.loose has no example")] == [], check
    said = faults("completeness", scalars={TurnOp: double_scalar})
    assert "third.turn has scalar code, which is used of ops that are ELEMENTWISE only" in said


def test_documentation(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TurnOp, "__doc__", None)
    assert faults("documentation") == ["third.turn has no docstring: write its formula there"]


def test_text(faults: Faults) -> None:
    (said,) = faults("text", WHOLE.replace("third.double %x :", "third.double  %x :"))
    assert said.startswith("'%0 = third.double  %x : ") and " is printed '%0 = third.double %x : " in said


def test_messages(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    (said,) = faults("messages", WHOLE.replace("takes a matrix", "takes matrices"))
    assert said == "'third.turn: takes a matrix' is said where 'third.turn: takes matrices' should be"
    (said,) = faults("messages", f"{WHOLE}// -----\n// error: too small\n{WHOLE[: WHOLE.index('// -----')]}")
    assert said == "nothing is said where 'too small' should be"
    monkeypatch.setattr(DoubleOp, "verify_", accepting)
    assert faults("messages") == ["third.double takes any shape for result 0"]


def accepting(op: DoubleOp) -> None:
    pass


def wide(op: DoubleOp, x: Array) -> Array:
    return x.astype(np.int64) + x


def thrice(op: object, x: Array) -> Array:
    return 3 * x


def counted(op: DoubleOp, x: Array) -> Array:
    return x + np.int32(next(NUMBERS))


@pytest.mark.parametrize(
    ("check", "meaning", "says"),
    [
        ("types", wide, " means int64 of shape [2, 2], and its type is tensor<2x2xi32>"),
        ("folding", counted, ", folded, differs in 4 of 4 elements, first [0, 0]: "),
        (
            "compiled code",
            thrice,
            ", compiled at level 0, differs in 4 of 4 elements, first [0, 0]: ",
        ),
    ],
)
def test_meanings(faults: Faults, check: str, meaning: Callable[..., Array], says: str) -> None:
    said = faults(check, meanings={DoubleOp: meaning, TurnOp: turn_meaning})
    assert said and said[0].startswith(f"@double, third.double{says}")


def summed(op: DoubleOp, x: Array) -> Array:
    return x + x.sum(axis=1, keepdims=True, dtype=np.int32)


def test_facts(faults: Faults) -> None:
    (said,) = faults("facts", meanings={DoubleOp: summed, TurnOp: turn_meaning})
    assert said == "third.double says that indices along axis 1 are independent, and they are not"


def test_passes(faults: Faults) -> None:
    assert faults("passes", passes={"third-half": Halve}) == ["third-half calls itself third-halve"]
    assert faults("passes", passes={"third": Third}) == ["third is no pass"]
