"""How far partitions may be off: the bound that follows from what compilers say of ops, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import relay
from relay.byoc import Artifact, BuildInfo, Compiler, differences, register
from relay.byoc.accuracy import FLOATS, declared, stated
from relay.byoc.library import rounds
from relay.byoc.partitioning.compile_external import CompileExternal
from relay.byoc.registry import COMPILERS
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, RelayError
from relay.interpreters import run
from relay.runtime.loaders import LOADERS, register_loader
from tests.numeric.test_external_regions import convolution

CODES = "tensor<1x2x2x3xi8>"


class Rounder(Compiler):
    """Takes every op; each that rounds may be one code off."""

    name = "rounder"
    exact = False
    difference = "it rounds"

    def supports(self, op: Operation) -> bool:
        return True

    def off_by(self, ops: Sequence[Operation]) -> int | None:
        return int(any(map(rounds, ops)))

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        return Artifact(b"")


class Unsure(Rounder):
    def off_by(self, ops: Sequence[Operation]) -> int | None:
        return None


def function(body: str, result: str = CODES) -> FuncOp:
    """A function of codes %x, %y and floats %f."""
    text = f"func.func @main(%x: {CODES}, %y: {CODES}, %f: tensor<1x2x2x3xf32>) -> {result} {{\n{body}\n}}"
    return relay.IRModule.parse(text)["main"]


def bound(body: str, result: str = CODES) -> int | None:
    return declared(Rounder(), function(body, result))[1][0]


def chain(*lines: str) -> str:
    """Ops that each take the result of the one before, %x first; all give codes."""
    text, last = "", "%x"
    for number, line in enumerate(lines):
        text += f"  %{number} = {line.replace('@', last)}\n"
        last = f"%{number}"
    return f"{text}  func.return {last} : {CODES}"


SIGMOID = f"""qnn.sigmoid @ {{input_scale = 0.125 : f32, input_zero_point = 0 : i32, output_scale = 0.00390625 : f32,
  output_zero_point = -128 : i32}} : ({CODES}) -> {CODES}"""
TANH = SIGMOID.replace("sigmoid", "tanh").replace("0.00390625", "0.0078125").replace("-128 : i32", "0 : i32")
POOL = f"relay.nn.max_pool2d @ {{pool_size = array<i64: 1, 1>}} : ({CODES}) -> {CODES}"
NEGATIVE = f"relay.negative @ : ({CODES}) -> {CODES}"


def requantize(scale: float = 1.0, clamp: str = "", type: str = CODES) -> str:
    """From this scale to 1."""
    return f"""qnn.requantize @ {{input_scale = {scale} : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32,
      multiplier = 1073741824 : i32, shift = 1 : i32, {clamp}out_dtype = i8}} : ({type}) -> {type}"""


def test_floats_of_a_compiler_that_is_not_exact_are_not_called_exact():
    body = "  %0 = relay.add %f, %f : (FF, FF) -> FF\n  func.return %0 : FF".replace("FF", "tensor<1x2x2x3xf32>")
    assert stated(Rounder(), function(body, "tensor<1x2x2x3xf32>")) == FLOATS
    assert stated(Rounder(), function(chain(POOL))) == "exact"


@pytest.mark.parametrize(
    ("ops", "wanted"),
    [
        ((POOL, POOL), 0),
        ((requantize(),), 1),
        ((requantize(), POOL), 1),
        ((requantize(), requantize()), 1 + 1 + 1),
        ((requantize(), requantize(3.5)), 3 + 1 + 1),
        ((requantize(), requantize(3.5, "min = 0 : i32, max = 3 : i32, ")), 3),
        ((requantize(), SIGMOID), 8 + 1 + 1),
        ((requantize(), TANH), 16 + 1 + 1),
        ((requantize(), NEGATIVE), 255),
    ],
)
def test_bounds_of_chains(ops: tuple[str, ...], wanted: int):
    """`floor(gain * off) + 1` where the formula rounds, and one of the op's own; never more than a clamp is wide."""
    assert bound(chain(*ops)) == wanted


def test_the_bound_of_a_convolution_is_that_of_its_weights():
    """Every output is moved by at most one code of each input times the magnitudes of its weights."""
    mod = relay.IRModule.parse(convolution("groups"))
    (conv,) = (op for op in mod["main"].body.block.ops if op.name == "qnn.conv2d")
    text = str(mod).replace("qnn.conv2d %x", "qnn.conv2d %s")
    first = text.index("%", text.index("{", text.index("@main")))
    type = str(conv.operands[0].type)
    twice = relay.IRModule.parse(f"{text[:first]}%s = {requantize(type=type).replace('@', '%x')}\n    {text[first:]}")
    found = declared(Rounder(), twice["main"])[1][0]
    assert found is not None and 10 < found < 125
    rng = np.random.default_rng(0)
    worst = 0
    for _ in range(20):
        feed = rng.integers(-126, 127, (1, 7, 6, 4)).astype(np.int8)
        steps = rng.integers(-1, 2, feed.shape).astype(np.int8)
        (a,), (b,) = run(mod, [feed]), run(mod, [feed + steps])
        worst = max(worst, int(np.abs(a.astype(int) - b.astype(int)).max()))
    assert 1 < worst <= found - 1


def test_what_is_not_known_is_not_said():
    body = """
  %0 = relay.exp %f : (tensor<1x2x2x3xf32>) -> tensor<1x2x2x3xf32>
  func.return %0 : tensor<1x2x2x3xf32>"""
    assert bound(body, "tensor<1x2x2x3xf32>") is None
    assert declared(Unsure(), function(chain(POOL))) == (None, [255])
    assert stated(Unsure(), function(chain(POOL))) == "it rounds"


def test_words():
    assert stated(Rounder(), function(chain(POOL))) == "exact"
    told = "an op is off by at most 1 code; with all of them result 0 at most 3 codes"
    assert stated(Rounder(), function(chain(requantize(), requantize()))) == told


@pytest.fixture
def rounder(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """The compiler is known; what it computes is that many codes off."""
    monkeypatch.setattr(COMPILERS, "registered", dict(COMPILERS.registered))
    monkeypatch.setattr(LOADERS, "registered", dict(LOADERS.registered))
    register(Rounder)

    def install(codes: int) -> None:
        def load(artifact: bytes, symbol: str, *rest: object) -> Callable[[Sequence[Array], Sequence[Array]], None]:
            def compute(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
                outputs[0][...] = np.clip(inputs[0].astype(np.int16) + codes, -128, 127)

            return compute

        register_loader("rounder", load)

    return install


def test_a_compiler_that_keeps_its_word(rounder: Callable[[int], None]):
    """Measured on what the interpreter gives at the edges; the report says it before and after compiling."""
    rounder(1)
    mod = relay.IRModule.parse(f"func.func @main(%x: {CODES}) -> {CODES} {{\n{chain(requantize())}\n}}")
    parted = relay.build_external_compiler(mod, "rounder")
    (row,) = differences(parted, [np.arange(-6, 6, dtype=np.int8).reshape(1, 2, 2, 3)])
    assert (row.function, row.compiler, row.result, row.each, row.declared) == (
        "relay_rounder_main_0",
        "rounder",
        0,
        1,
        1,
    )
    assert (row.largest, row.mean, row.elements, row.holds) == (1.0, 1.0, 12, True)
    told = "relay_rounder_main_0: an op is off by at most 1 code; with all of them result 0 at most 1 code"
    seen = parted.partition_report([np.arange(-6, 6, dtype=np.int8).reshape(1, 2, 2, 3)])
    assert f"{told}; result 0: 1 at most, 1.0000 on average, measured" in str(seen).splitlines()
    compiled = CompileExternal()(parted)
    for module in (parted, compiled):
        report = module.partition_report()
        assert told in str(report).splitlines()
        assert report.accuracy == {"relay_rounder_main_0": told.partition(": ")[2]}


def test_a_device_that_fails_while_it_is_measured(rounder: Callable[[int], None]):
    """One error that names the function, as in a run of the executable."""

    def load(artifact: bytes, *rest: object) -> Callable[[Sequence[Array], Sequence[Array]], None]:
        return lambda inputs, outputs: cast(None, outputs)

    rounder(0)
    LOADERS.registered["rounder"] = load
    mod = relay.IRModule.parse(f"func.func @main(%x: {CODES}) -> {CODES} {{\n{chain(requantize())}\n}}")
    parted = relay.build_external_compiler(mod, "rounder")
    with pytest.raises(RelayError, match="external function relay_rounder_main_0, compiled by 'rounder': returned tup"):
        differences(parted, [np.zeros((1, 2, 2, 3), np.int8)])


def test_a_compiler_that_breaks_its_word(rounder: Callable[[int], None]):
    rounder(2)
    mod = relay.IRModule.parse(f"func.func @main(%x: {CODES}) -> {CODES} {{\n{chain(requantize())}\n}}")
    (row,) = differences(relay.build_external_compiler(mod, "rounder"), [np.zeros((1, 2, 2, 3), np.int8)])
    assert (row.largest, row.declared, row.holds) == (2.0, 1, False)
    assert str(row) == "relay_rounder_main_0 result 0: off by 2, 2.0000 on average; said: 1"
    assert replace(row, declared=None).holds


def test_a_module_without_partitions():
    mod = relay.IRModule.parse(f"func.func @main(%x: {CODES}) -> {CODES} {{\n{chain(POOL)}\n}}")
    with pytest.raises(InvalidArgument, match="differences: the module has no partitioned functions"):
        differences(mod, [np.zeros((1, 2, 2, 3), np.int8)])
