"""Our dialects as IRDL: mlir-opt loads them, takes every op and model of ours, and refuses what is not of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from xdsl.parser import Parser

from relay.dialects.context import make_context
from relay.dialects.irdl import IrdlTarget, dialects, name_of, to_irdl
from relay.dialects.plug_in import DIALECTS
from relay.frontend import from_tflite
from relay.module import IRModule
from relay.tools.relay_opt import main
from relay.transforms.legalize import Legalize
from tests.numeric.mlir_runner import MLIR_OPT, needs_mlir
from tests.numeric.test_models_interpreted import ALL, LARGE, MODELS
from tests.ops.examples import FILES, valid
from tests.unit.third_dialect import PLUG_IN

SMALL = ("ad01_int8", "kws_fp32", "keras_lstm_mnist_ptq")
"""Models of codes, of floats and with states."""
UPSTREAM = sorted((Path(__file__).parents[1] / "filecheck" / "dialects").glob("*.mlir"))
EXAMPLES = [*map(valid, FILES), *(path.read_text() for path in UPSTREAM)]
CONVOLUTION = """
func.func @main(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32> {
  %r = relay.nn.conv2d %x, %k : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return %r : tensor<1x6x6x6xi32>
}"""

Load = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Has mlir-opt verify a text, or several with `// -----` between them."""
    file = tmp_path_factory.mktemp("irdl") / "relay.irdl"
    file.write_text(to_irdl(dialects()))
    command = [str(MLIR_OPT), f"--irdl-file={file}", "--split-input-file", "-o", "/dev/null"]
    return lambda text: subprocess.run(command, input=text, capture_output=True, text=True)


def text_of(mod: IRModule) -> str:
    out = StringIO()
    IrdlTarget().emit(make_context(), mod.op, out)
    return out.getvalue()


PLUGGED = """
func.func @main(%x: tensor<2x3x!third.fixed<4 : i32>>) -> tensor<2x3xi16> {
  %0 = third.double %x : (tensor<2x3x!third.fixed<4 : i32>>) -> tensor<2x3x!third.fixed<4 : i32>>
  %1 = relay.reinterpret %0 {dtype = i16} : (tensor<2x3x!third.fixed<4 : i32>>) -> tensor<2x3xi16>
  func.return %1 : tensor<2x3xi16>
}"""


@needs_mlir
def test_a_dialect_of_a_plug_in_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(DIALECTS.registered, "third", PLUG_IN)
    file, mod = tmp_path / "third.irdl", IRModule.parse(PLUGGED)
    assert main(["--emit-irdl=third", "-o", str(file)]) == 0
    command = [str(MLIR_OPT), f"--irdl-file={file}"]
    done = subprocess.run(command, input=text_of(mod), capture_output=True, text=True)
    assert done.returncode == 0 and "third.fixed<4 : i32>" in done.stdout, done.stderr
    wrong = text_of(mod).replace("fixed<4 : i32>", "fixed<4 : i32, 5 : i32>")
    done = subprocess.run(command, input=wrong, capture_output=True, text=True)
    assert done.returncode != 0 and "expected 1 type arguments, but had 2" in done.stderr, done.stderr
    assert main(["--emit-irdl=thurd"]) == 1
    assert "dialect thurd: is of no package that is installed; did you mean third?" in capsys.readouterr().err


PYTHON = """
import sys
from torch_mlir import ir
from torch_mlir.dialects import irdl

names = open(sys.argv[1]).read().replace("dense_int_or_fp_elements", "dense_typed_elements")
with ir.Context():
    irdl.load_dialects(ir.Module.parse(names))
    module = ir.Module.parse(open(sys.argv[2]).read())
    print([op.name for op in module.body.operations[0].regions[0].blocks[0].operations])
    try:
        ir.Module.parse(str(module).replace("relay.nn_conv2d", "relay.nn_conv9d"))
    except ir.MLIRError as error:
        assert "unregistered operation 'relay.nn_conv9d'" in str(error)
"""


def test_the_python_bindings_take_it(tmp_path: Path) -> None:
    """As docs/upstream.md says; torch-mlir's package has upstream's bindings, `mlir.dialects.irdl` among them."""
    pytest.importorskip("torch_mlir", reason="no Python bindings of MLIR with IRDL are installed")
    (tmp_path / "relay.irdl").write_text(to_irdl(dialects()))
    (tmp_path / "model.mlir").write_text(text_of(IRModule.parse(CONVOLUTION)))
    command = [sys.executable, "-c", PYTHON, str(tmp_path / "relay.irdl"), str(tmp_path / "model.mlir")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    assert done.stdout.strip() == "['relay.nn_conv2d', 'func.return']"


def test_every_op_has_a_name_of_its_own() -> None:
    ops = [op for dialect in dialects() for op in dialect.operations]
    assert len({name_of(op) for op in ops}) == len(ops)
    lines = to_irdl(dialects()).splitlines()
    assert {f"  irdl.operation @{name_of(op)[1]} {{" for op in ops} <= set(lines)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--emit-irdl"]) == 0
    assert capsys.readouterr().out == to_irdl(dialects())


@needs_mlir
def test_every_op_is_taken(load: Load) -> None:
    mods = [IRModule(Parser(make_context(), text).parse_module()) for text in EXAMPLES]
    assert len(mods) >= 10
    done = load("// -----\n".join(text_of(mod) for mod in mods))
    assert done.returncode == 0, done.stderr[:3000]


def module(name: str) -> IRModule:
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    return from_tflite(path)


@needs_mlir
@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=() if name in SMALL else pytest.mark.ci) for name in ALL),
        *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE),
    ],
)
def test_a_model_is_taken(name: str, load: Load) -> None:
    done = load(text_of(module(name)))
    assert done.returncode == 0, done.stderr[:3000]


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("name", [*ALL, *LARGE])
def test_a_legalized_model_is_taken(name: str, load: Load) -> None:
    done = load(text_of(Legalize()(module(name))))
    assert done.returncode == 0, done.stderr[:3000]


@needs_mlir
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(%x, %k) {", "(%x, %k, %k) {", "expects exactly 2 operands, but got 3"),
        ("groups = 1 : i64, ", "", 'attribute "groups" is expected but not provided'),
        ("groups = 1 : i64", 'groups = "one"', "expected base attribute 'builtin.integer' but got"),
    ],
)
def test_what_is_not_of_the_dialect_is_refused(old: str, new: str, message: str, load: Load) -> None:
    text = text_of(IRModule.parse(CONVOLUTION))
    assert load(text).returncode == 0 and text.count(old) == 1
    text = text.replace(old, new)
    if "%k, %k" in text:
        types = "(tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>"
        text = text.replace(f": {types})", f": {types}, tensor<6x3x3x4xi8>)")
    done = load(text)
    assert done.returncode != 0 and message in done.stderr, done.stderr
