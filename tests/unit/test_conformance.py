"""`relay-byoc test`: every compiler that comes with relay passes a bounded part; what does something wrong does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc import Artifact, BuildInfo, Compiler, Refusal, find, registry
from relay.dialects import relay as ops
from relay.dialects.attributes import Array
from relay.errors import Malformed, Unsupported
from relay.exploration.conformance import conformance
from relay.module import IRModule
from relay.runtime import loaders
from relay.runtime.memory import Form
from relay.tools.relay_byoc import main

BOUNDED = 16


@pytest.mark.parametrize("name", list(registry.OURS))
def test_compilers_that_ship_conform(name: str):
    installed(name)
    found = conformance(name, cases=BOUNDED)
    assert found.passed, str(found)


@pytest.mark.parametrize("name", list(registry.OURS))
@pytest.mark.parametrize("axis", [1, 2])
def test_only_rows_along_the_last_axis_are_taken(name: str, axis: int):
    installed(name)
    type = "tensor<2x3x4xf32>"
    module = IRModule.parse(f"""
        func.func @main(%x: {type}) -> {type} {{
          %y = relay.nn.softmax %x {{beta = 1.0 : f32, axis = {axis} : i64}} : ({type}) -> {type}
          func.return %y : {type}
        }}""")
    softmax = next(op for op in module["main"].walk() if isinstance(op, ops.SoftmaxOp))
    found = find(name).supports(softmax)
    assert (found is True) == (axis == 2 and name != "systolic")  # which takes no softmax at all
    assert found is True or (isinstance(found, Refusal) and str(found))


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


WRONG = ("numbers", "runs", "threads", "same bytes", "asked", "damaged artifacts")


@pytest.mark.parametrize("wrong", ["", *WRONG])
def test_what_a_compiler_does_wrong_is_seen(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(registry.COMPILERS.registered, "careless", Careless)
    monkeypatch.setitem(loaders.LOADERS.registered, "careless", load)
    status = main(["test", "careless", "--cases", "8", "--option", f"wrong={wrong}"])
    said = capsys.readouterr().out
    assert status == bool(wrong), said
    assert "device faults 1" in said or wrong in ("asked", "runs")
    assert not wrong or f"FAILED {wrong}: " in said
