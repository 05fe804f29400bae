"""`relay-byoc test`: every compiler that comes with relay passes a bounded part; what does something wrong does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc import Artifact, BuildInfo, Compiler, find, registry
from relay.dialects import qnn
from relay.dialects import relay as ops
from relay.dialects.attributes import Array
from relay.errors import Malformed, Unsupported
from relay.exploration.conformance import conformance
from relay.module import IRModule
from relay.runtime import loaders
from relay.runtime.memory import Form
from relay.tools.relay_byoc import main

BOUNDED = 16


@pytest.mark.ci
@pytest.mark.parametrize("name", list(registry.OURS))
def test_compilers_that_ship_conform(name: str):
    installed(name)
    found = conformance(name, cases=BOUNDED)
    assert found.passed, str(found)


REFUSED = {
    "rows along another axis": (
        ops.SoftmaxOp,
        "relay.nn.softmax %x {beta = 1.0 : f32, axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
        {*registry.OURS} - {"c"},
    ),
    "rows along the last axis": (
        ops.SoftmaxOp,
        "relay.nn.softmax %x {beta = 1.0 : f32, axis = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
        {"systolic"},
    ),
    "16-bit codes": (
        qnn.SoftmaxOp,
        "qnn.softmax %x {beta = 1.0 : f32, input_scale = 1.0 : f32, multiplier = 1073741824 : i32, shift = 13 : i32} : "
        "(tensor<2x4xi16>) -> tensor<2x4xi16>",
        {*registry.OURS} - {"c"},
    ),
    "a number without axes": (
        ops.TransposeOp,
        "relay.transpose %x {axes = array<i64>} : (tensor<i32>) -> tensor<i32>",
        {"xnnpack", "litert"},
    ),
}
"""What was once taken and computed wrongly, or wrote beside its memory: the op, its text, and who refuses it."""


@pytest.mark.parametrize("name", list(registry.OURS))
@pytest.mark.parametrize("case", REFUSED)
def test_what_a_library_cannot_do_is_refused(name: str, case: str):
    installed(name)
    kind, text, refusing = REFUSED[case]
    type = text.rpartition(" -> ")[2]
    module = IRModule.parse(f"func.func @main(%x: {type}) -> {type} {{ %y = {text} func.return %y : {type} }}")
    found = find(name).supports(next(op for op in module["main"].walk() if isinstance(op, kind)))
    if name in refusing:
        assert found is not True
    elif case == "rows along the last axis":
        assert found is True


@pytest.mark.slow
@pytest.mark.parametrize("name", list(registry.OURS))
def test_compilers_that_ship_conform_in_more_cases(name: str):
    installed(name)
    found = conformance(name, cases=300, seed=1)
    assert found.passed, str(found)


def installed(name: str) -> None:
    try:
        find(name)
    except Unsupported as error:
        pytest.skip(str(error))


@dataclass(frozen=True)
class Careless(Compiler):
    """Negates, and does one thing wrong."""

    name: ClassVar[str] = "careless"
    faults: ClassVar[Sequence[Mapping[str, object]]] = ({"wrong": "device"},)

    wrong: str = ""

    def supports(self, op: Operation) -> bool:
        if self.wrong == "asked":
            raise KeyError("hm")
        return isinstance(op, ops.NegativeOp)

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        count = sum(isinstance(op, ops.NegativeOp) for op in function.body.block.ops)
        made.append(count)
        noise = len(made) if self.wrong == "same bytes" else 0
        return Artifact(f"{count}|{noise}|{self.wrong}|{' ' * 60}.".encode())


made: list[int] = []


def load(
    artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Form], outputs: Sequence[Form]
) -> loaders.Run:
    count, _, wrong, _ = artifact.decode("latin-1").split("|")
    damaged = artifact[-1:] != b"."
    if damaged and wrong != "damaged artifacts":
        raise Malformed(symbol, "is damaged")
    calls: list[int] = []

    def run(given: Sequence[Array], results: Sequence[Array]) -> None:
        if wrong == "device":
            raise OSError("the bus is gone")
        if wrong == "runs":
            raise ValueError("no such tensor")
        calls.append(1)
        results[0][...] = -given[0] if int(count) % 2 else given[0]
        if damaged or wrong == "numbers" or (wrong == "threads" and len(calls) > 4):
            results[0].reshape(-1)[0] += 1

    return run


KINDS = {kind.name: kind for kind in (ops.NegativeOp, ops.AddOp, ops.SoftmaxOp, qnn.AddOp)}
"""What is offered, with a seed of its own: what was drawn is kept by seed."""
WRONG = ("numbers", "runs", "threads", "same bytes", "asked", "damaged artifacts")


@pytest.mark.parametrize("wrong", ["", *WRONG])
def test_what_a_compiler_does_wrong_is_seen(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(registry.COMPILERS.registered, "careless", Careless)
    monkeypatch.setitem(loaders.LOADERS.registered, "careless", load)
    monkeypatch.setattr("relay.exploration.conformance.kinds", lambda: KINDS)  # all take seconds, and it takes one
    status = main(["test", "careless", "--cases", "8", "--seed", "9", "--option", f"wrong={wrong}"])
    said = capsys.readouterr().out
    assert status == bool(wrong), said
    assert "device faults 1" in said or wrong in ("asked", "runs")
    assert not wrong or f"FAILED {wrong}: " in said
