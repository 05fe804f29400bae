"""What a pass of others leaves is verified, and so is what is lowered; `relay.check_numbers` compares numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

import relay
from relay.dialects import qnn
from relay.dialects import relay as dialect
from relay.errors import InvalidArgument, Malformed
from relay.frontend import from_tflite
from relay.interpreters import run as interpreted
from relay.module import IRModule
from relay.passes import PassContext
from relay.transform import ExpandApplyScale, FoldConstant, FuseOps, Legalize, RelayToLinalg, Sequential, module_pass
from tests.unit.pass_modules import DIGITS, SMALL, image, small

Fault = Callable[[IRModule], None]


def drop_strides(mod: IRModule) -> None:
    next(op for op in mod.op.walk() if isinstance(op, qnn.Conv2dOp)).properties.pop("strides")


def far_zero_point(mod: IRModule) -> None:
    op = next(op for op in mod.op.walk() if isinstance(op, qnn.RequantizeOp))
    op.output_zero_point = IntegerAttr(1000, i32)


def far_shift(mod: IRModule) -> None:
    op = next(op for op in mod.op.walk() if isinstance(op, qnn.SoftmaxOp))
    op.properties["shift"] = IntegerAttr(40, i32)


def used_early(mod: IRModule) -> None:
    op = next(op for op in mod.op.walk() if isinstance(op, qnn.RequantizeOp))
    before = op.input.owner
    assert isinstance(before, Operation) and (block := before.parent) is not None
    op.detach()
    block.insert_op_before(op, before)


FAULTS: dict[Fault, str] = {
    drop_strides: "property 'strides' expected in operation 'qnn.conv2d'",
    far_zero_point: "qnn.requantize: output_zero_point 1000 is outside -128..127",
    far_shift: "qnn.softmax: shift 40 is outside -31..31",
    used_early: r"operand #0 of qnn.requantize \(.*\) is used before it is defined",
}


def run_build(mod: IRModule, passes: list[relay.transform.Pass]) -> object:
    return relay.build(mod, pipeline=[*passes, Legalize()])


def run_sequential(mod: IRModule, passes: list[relay.transform.Pass]) -> object:
    return Sequential([*passes, Legalize()])(mod)


def run_directly(mod: IRModule, passes: list[relay.transform.Pass]) -> object:
    for step in passes:
        mod = step(mod)
    return mod


@pytest.mark.parametrize("run", [run_build, run_sequential, run_directly])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_pass_that_left_an_invalid_module_is_named(fault: Fault, run: Callable[..., object]) -> None:
    def spoil(mod: IRModule, ctx: PassContext) -> IRModule:
        fault(mod)
        return mod

    def idle(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod

    passes = [module_pass(spoil, opt_level=0, name="spoil"), module_pass(idle, opt_level=0, name="idle")]
    with pytest.raises(Malformed, match=f"^after pass spoil: the module is not valid: {FAULTS[fault]}"):
        run(from_tflite(DIGITS), passes)


@pytest.mark.parametrize("fault", FAULTS)
def test_build_verifies_the_module_it_is_given(fault: Fault) -> None:
    mod = from_tflite(DIGITS)
    fault(mod)
    with pytest.raises(Malformed, match=f"^build: the module is not valid: {FAULTS[fault]}"):
        relay.build(mod)


def test_what_is_lowered_is_verified() -> None:
    mod = relay.optimize(small())
    add = next(op for op in mod.op.walk() if isinstance(op, dialect.AddOp))
    add.operands = [add.result, add.operands[1]]
    with pytest.raises(Malformed, match="^before pass relay-to-linalg: .*operand #0 of relay.add"):
        RelayToLinalg()(mod)
    with PassContext(config={"relay.verify": False}):
        assert "linalg.generic" in str(RelayToLinalg()(mod))


def test_passes_that_change_nothing_are_not_verified() -> None:
    """So an invalid module is not blamed on them, and they cost little."""
    mod = from_tflite(DIGITS)
    far_zero_point(mod)

    def idle(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod

    assert str(module_pass(idle, opt_level=0, name="leaves-all")(mod)) == str(mod)


def test_verification_is_called_for_few_passes_of_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs under 5 % of a build: one verification of a model's ops, where nobody adds passes."""
    from relay.passes import checking

    calls: list[str] = []

    def counted(mod: IRModule, when: str) -> None:
        calls.append(when)

    monkeypatch.setattr(checking, "verify", counted)
    with PassContext():
        relay.build(DIGITS)
    assert calls == ["before pass relay-to-linalg"]


def other_multiplier(mod: IRModule, ctx: PassContext) -> IRModule:
    """Another multiplier, which is valid."""
    op = next(op for op in mod.op.walk() if isinstance(op, qnn.RequantizeOp))
    op.properties["multiplier"] = IntegerAttr(0, i32)
    return mod


def test_the_pass_that_changed_an_integer_is_named() -> None:
    passes = [FoldConstant(), module_pass(other_multiplier, opt_level=0), Legalize()]
    with (
        PassContext(config={"relay.check_numbers": [image()]}),
        pytest.raises(Malformed, match="^after pass other_multiplier: the numbers are others: result 0 differs in"),
    ):
        relay.build(from_tflite(DIGITS), pipeline=passes)


def test_passes_that_keep_the_numbers_run_to_the_end() -> None:
    with PassContext(config={"relay.check_numbers": [image()]}):
        checked = relay.build(DIGITS)
    np.testing.assert_array_equal(checked.run(image()), interpreted(from_tflite(DIGITS), [image()])[0])


def test_numbers_are_no_longer_compared_in_a_lowered_module() -> None:
    """Also where each pass gets a module of its own; inputs that never fit are an error."""
    with PassContext(config={"relay.check_numbers": [image()]}):
        mod = from_tflite(DIGITS)
        for step in (Legalize(), FuseOps(), RelayToLinalg(), ExpandApplyScale()):
            mod = step(mod)
    with PassContext(config={"relay.check_numbers": [image()[:, 1:]]}), pytest.raises(InvalidArgument):
        Legalize()(from_tflite(DIGITS))


@pytest.mark.parametrize(("part", "refused"), [(1e-6, False), (1e-3, True)])
def test_floats_may_be_off_by_the_tolerance(part: float, refused: bool) -> None:
    def scale(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule.parse(SMALL.replace("dense<1.0>", f"dense<{1.0 + part}>"))

    x = np.zeros(4, np.float32)
    with PassContext(config={"relay.check_numbers": [x]}):
        if refused:
            with pytest.raises(Malformed, match="^after pass scale: the numbers are others"):
                module_pass(scale, opt_level=0)(small())
        else:
            module_pass(scale, opt_level=0)(small())
