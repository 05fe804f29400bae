"""The pass that changes the numbers is found: on relay ops by the interpreter, below them by compiling the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

import relay
from relay.dialects.attributes import Array
from relay.dialects.source import words
from relay.dialects.tosa import ApplyScaleOp
from relay.errors import Unsupported
from relay.exploration.bisection import Lowered
from relay.frontend import from_tflite
from relay.interpreters import run as interpret
from relay.lowering import expand_apply_scale
from relay.lowering.linalg.emitter import Emitter
from relay.lowering.rescale import forms
from relay.lowering.rescale.find import Found
from relay.lowering.schedule import Schedule
from relay.module import IRModule
from relay.passes import Pass, PassContext, Pipeline, registry
from relay.runtime import Executable
from relay.transform import BisectLimit, FoldConstant, find_culprit
from relay.transforms.expansion import Expansion
from relay.transforms.legalize import Legalize
from relay.transforms.qnn_patterns import rescale
from tests.unit.pass_modules import DIGITS, image, small

TEXT = """func.func @main(%x: tensor<2x4xi8>) -> tensor<2x8xi32> {
  %w = relay.constant {label = "w"} dense<3> : tensor<8x4xi8>
  %b = relay.constant {label = "b"} dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>
  %0 = relay.nn.dense %x, %w : (tensor<2x4xi8>, tensor<8x4xi8>) -> tensor<2x8xi32>
  %1 = relay.nn.bias_add %0, %b : (tensor<2x8xi32>, tensor<8xi32>) -> tensor<2x8xi32>
  %2 = relay.negative %1 : (tensor<2x8xi32>) -> tensor<2x8xi32>
  func.return %2 : tensor<2x8xi32>
}
"""
X = np.array([[1, -2, 3, 4], [-5, 6, 7, -128]], np.int8)


@dataclass(frozen=True)
class Wrong(Pass):
    """Makes the last subtraction of integers an addition; needs `arith`."""

    name: ClassVar[str] = "wrong"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        last = [inner for inner in op.walk() if inner.name == "arith.subi"][-1]
        new = arith.AddiOp(last.operands[0], last.operands[1])
        block = last.parent
        assert block is not None
        block.insert_op_before(new, last)
        last.results[0].replace_all_uses_with(new.result)
        last.detach()
        last.erase()


@dataclass(frozen=True)
class Tighter(Pass):
    """Clips one step tighter than before."""

    name: ClassVar[str] = "tighter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if inner.name == "relay.clip":
                inner.properties["a_max"] = inner.properties["a_min"]


@dataclass(frozen=True)
class WrongSchedule(Schedule):
    """The schedule, with a fault."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        super().apply(ctx, op)
        Wrong().apply(ctx, op)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "MADE", {"wrong": Wrong, "tighter": Tighter})


def module() -> IRModule:
    return IRModule.parse(TEXT)


def test_on_relay_ops():
    mod = from_tflite(DIGITS)
    good = Pipeline.parse("legalize,fold-constant,simplify,cse,dce,fuse-ops")
    assert find_culprit(mod, good, [image()]).checked[-1] == "fuse-ops"
    finding = find_culprit(mod, good.copy().insert_after("simplify", Tighter()), [image()])
    assert finding.culprit == Tighter() and finding.position == 3
    assert "pass 4, tighter, changes the numbers" in str(finding)
    assert finding.before is not None and finding.before["main"]


@pytest.mark.parametrize("digits", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_right_pipeline_is_checked_to_its_end(digits: bool):
    mod, given = (from_tflite(DIGITS), image()) if digits else (module(), X)
    finding = find_culprit(mod, relay.default_pipeline(), [given])
    assert finding.culprit is None and finding.unchecked == () and finding.checked[-1] == "plan-memory"


@pytest.mark.parametrize(
    "after",
    [
        "bufferize",
        *(
            pytest.param(after, marks=pytest.mark.ci)
            for after in ("relay-to-linalg", "expand-apply-scale", "schedule", "plan-memory")
        ),
    ],
)
def test_below_relay_ops(after: str):
    pipeline = relay.default_pipeline().insert_after(after, Wrong())
    finding = find_culprit(module(), pipeline, [X])
    assert finding.culprit == Wrong() and finding.checked[-1] == after
    assert (
        finding.position == pipeline.index("wrong") and len(finding.unchecked) == len(pipeline) - finding.position - 1
    )


def test_a_fault_of_a_pass_that_lowers_is_told_from_those_before_and_after():
    pipeline = relay.default_pipeline().replace("schedule", WrongSchedule())
    finding = find_culprit(module(), pipeline, [X])
    assert isinstance(finding.culprit, WrongSchedule) and finding.checked[-1] == "share-layers"
    assert finding.before is not None and "linalg.generic" in str(finding.before)


def test_a_pipeline_may_end_anywhere():
    finding = find_culprit(module(), Pipeline.parse("legalize,relay-to-linalg,wrong"), [X])
    assert finding.culprit == Wrong() and finding.position == 2
    assert find_culprit(module(), Pipeline.parse("legalize,relay-to-linalg"), [X]).unchecked == ()


def test_what_cannot_be_lowered_is_not_checked():
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"

    @relay.transform.module_pass(opt_level=0, name="strange")
    def strange(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule.parse(
            'func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n%y = "test.pureop"(%x) : (tensor<4xf32>) -> '
            "tensor<4xf32>\nfunc.return %y : tensor<4xf32> }"
        )

    finding = find_culprit(IRModule.parse(text), Pipeline([FoldConstant(), strange]), [np.ones(4, np.float32)])
    assert finding.culprit is None and finding.unchecked == ("strange",) and "test.pureop" in finding.reason
    assert str(finding).startswith("the numbers stay equal after fold-constant; not checked: strange (")


def test_a_fault_of_the_plain_way_down_is_said(monkeypatch: pytest.MonkeyPatch):
    def zeros(self: Lowered, number: int) -> list[Array]:
        return [np.zeros((2, 8), np.int32)]

    monkeypatch.setattr(Lowered, "results", zeros)
    finding = find_culprit(module(), Pipeline.parse("legalize,relay-to-linalg"), [X])
    assert finding.unchecked == ("relay-to-linalg",) and "gives other numbers: result 0 differs" in finding.reason


def test_what_the_model_itself_cannot_do_is_an_error():
    def no(mod: IRModule, inputs: object) -> list[Array]:
        raise Unsupported("op x", "cannot be run")

    with pytest.raises(Unsupported, match="op x: cannot be run"):
        find_culprit(module(), Pipeline([FoldConstant()]), [X], run=no)


def scaled(found: Found) -> Found:
    """The same with every multiplier two hundredths too large."""
    larger = [replace(form, scale=form.scale * form.scale.dtype.type(1.02)) for form in found.forms]
    return replace(found, forms=larger)


@pytest.fixture
def wrong_multipliers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every proved multiplier is wrong."""

    def rewrite(op: ApplyScaleOp, found: Found, constants: Emitter, calls: Any, toward_zero: str | None) -> None:
        forms.rewrite(op, scaled(found), constants, calls, toward_zero)

    monkeypatch.setattr(expand_apply_scale, "rewrite", rewrite)


@pytest.mark.ci
def test_a_fault_that_a_softmax_hides_is_found_with_its_operator(wrong_multipliers: None):
    mod, pipeline = from_tflite(DIGITS), relay.default_pipeline()
    wrong = relay.build(mod, pipeline=pipeline).run(image())
    assert np.array_equal(np.asarray(wrong), interpret(mod, [image()])[0])
    finding = find_culprit(mod, pipeline, [image()])
    assert finding.culprit == pipeline["expand-apply-scale"] and not finding.equal
    assert len(finding.operators) == 1 and finding.operators[0].startswith("operator 0 CONV_2D 'functional")
    assert finding.kernel == "@conv2d_0" and re.search(r"first \[0, 0, 0, 0\]: .*; at most by [1-9]$", finding.mismatch)
    start = f"pass {finding.position + 1}, expand-apply-scale, changes the numbers; first operator 0 CONV_2D"
    assert str(finding).startswith(start) and "features" not in str(finding)


def test_a_fault_of_a_legalization_names_its_operator(monkeypatch: pytest.MonkeyPatch):
    right = rescale.finish

    def finish(
        new: Expansion, x: SSAValue, zero_point: int, low: IntegerAttr | None, high: IntegerAttr | None, type: Attribute
    ) -> SSAValue:
        return right(new, x, zero_point + ("operator 2 " in words(new.source.location)), low, high, type)

    monkeypatch.setattr(rescale, "finish", finish)
    finding = find_culprit(from_tflite(DIGITS), Pipeline([FoldConstant(), Legalize()]), [image()])
    assert isinstance(finding.culprit, Legalize) and finding.kernel == "qnn.requantize"
    assert finding.operators[0].startswith("operator 2 CONV_2D") and finding.mismatch.endswith("at most by 1")


def test_a_fault_of_a_kernel_names_every_operator_in_it():
    finding = find_culprit(module(), relay.default_pipeline().replace("schedule", WrongSchedule()), [X])
    assert finding.kernel == "@dense_0" and finding.operators == ("<text>:4:3", "<text>:5:3", "<text>:6:3")
    assert re.fullmatch(r"differs in \d+ of 16 elements, first .*; at most by \d+", finding.mismatch)


SCALES = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = relay.constant dense<1.0> : tensor<f32>
  %two = relay.constant dense<2.0> : tensor<f32>
  %a = relay.multiply %x, %two : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = relay.add %a, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c = relay.sign %b : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}"""


def rewritten(old: str, new: str) -> ModulePass:
    """A pass that makes `SCALES` with another line of it."""

    @relay.transform.module_pass(opt_level=0, name="rewritten")
    def apply(mod: IRModule, ctx: PassContext) -> IRModule:
        assert old in SCALES
        return IRModule.parse(SCALES.replace(old, new))

    return apply


def test_a_value_that_another_op_hides_is_told_from_one_of_another_meaning():
    """`sign` hides that `%b` is wrong; where `2 x + 1` becomes `2 (x + 0.5)`, `%a` is another value, rightly."""
    inputs = [np.array([1, 2, 3, 4], np.float32)]
    hidden = find_culprit(IRModule.parse(SCALES), [rewritten("dense<1.0>", "dense<3.0>")], inputs)
    assert hidden.culprit is not None and hidden.kernel == "relay.add"
    moved = [("dense<1.0>", "dense<0.5>"), ("multiply %x, %two", "add %x, %one"), ("add %a, %one", "multiply %a, %two")]
    text = reduce(lambda text, row: text.replace(*row), moved, SCALES)
    assert find_culprit(IRModule.parse(SCALES), [rewritten(SCALES, text)], inputs).equal


def test_floats_may_differ_within_a_tolerance():
    x = np.array([1, 2, 3, 4], np.float32)
    assert find_culprit(small(), Pipeline([FoldConstant()]), [x], tolerance=1e-6).culprit is None
    assert find_culprit(small(), relay.default_pipeline(), [x], tolerance=1e-6).unchecked == ()


@pytest.mark.parametrize("after", ["relay-to-linalg", pytest.param("schedule", marks=pytest.mark.ci)])
def test_a_limit_finds_a_fault_below_relay_ops(after: str):
    """As `relay-opt --opt-bisect-limit` does: the first limit with which the numbers are wrong names the pass."""
    pipeline = relay.default_pipeline().insert_after(after, Wrong())

    def run(limit: int) -> tuple[Executable, BisectLimit]:
        bisect = BisectLimit(limit)
        with PassContext(instruments=[bisect]):
            return relay.build(module(), pipeline=pipeline), bisect

    wanted = -(X.astype(np.int32) @ np.full((4, 8), 3, np.int32) + np.arange(1, 9, dtype=np.int32))
    right = [np.array_equal(np.asarray(run(limit)[0].run(X)), wanted) for limit in range(-1, 12)]
    first = right[1:].index(False)
    assert not right[0] and all(right[1 : first + 1]) and not any(right[first + 1 :])
    assert run(first)[1].log[first - 1] == f"BISECT: running pass ({first}) wrong"
