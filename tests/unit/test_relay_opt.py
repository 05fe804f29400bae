"""relay-opt: what it reads, what it prints, and the one line that it says of an error."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay import __version__
from relay.frontend.onnx.import_graph import NUMERICS
from relay.frontend.tflite.profiles import PROFILES
from relay.module import IRModule
from relay.tools import plug_ins
from relay.tools.relay_opt import RelayOptMain, main

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
GOOD = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""
INVALID = re.sub(r"(?<=-> )tensor<4xf32>|(?<=return %r : )tensor<4xf32>", "tensor<5xf32>", GOOD)
PRINTED = "builtin.module {\n" + "".join(f"  {line}\n" for line in GOOD.splitlines()) + "}\n\n"


class Feed:
    """Standard input that holds these bytes."""

    def __init__(self, data: bytes):
        self.buffer = io.BytesIO(data)


def fails(capsys: pytest.CaptureFixture[str], *args: str | Path) -> str:
    """The line about the error of a run that must fail."""
    assert main([str(arg) for arg in args]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.endswith("\n") and "Traceback" not in error
    return error.rstrip("\n")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.mlir"
    path.write_text(GOOD)
    return path


def test_prints_the_module(good: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(good)]) == 0
    assert capsys.readouterr().out == PRINTED


def test_the_output_file_minus_is_standard_output(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert main([str(good), "-o", "-"]) == 0
    assert capsys.readouterr().out == PRINTED and not Path("-").exists()


def test_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", Feed(GOOD.encode()))
    assert main([]) == 0
    assert capsys.readouterr().out == PRINTED


def test_format_is_told_by_content_not_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = tmp_path / "model.tflite"
    text.write_text(GOOD)
    assert main([str(text)]) == 0
    assert capsys.readouterr().out == PRINTED


@pytest.mark.parametrize("by_pipe", [False, True])
def test_reads_tflite(
    by_pipe: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    misnamed = tmp_path / "digits.mlir"
    misnamed.write_bytes(DIGITS.read_bytes())
    monkeypatch.setattr(sys, "stdin", Feed(DIGITS.read_bytes()))
    assert main([] if by_pipe else [str(misnamed)]) == 0
    output = capsys.readouterr().out
    assert output.count("qnn.conv2d") == 5 and "tensor<1x8x8x1xi8>" in output


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x00\x07\x12\x07pytorch\x1a\x052.1.0:", "is binary and not a format known here; the formats known are MLIR"),
        (b"ML\xefR\x0d\x0bStableHLO_v1.0.0", "is a StableHLO artifact and not a format known here; the formats known"),
        (b"ML\xefR\x0d", "is MLIR bytecode, which is not a format known here; turn it into text with mlir-opt"),
        (b"PK\x03\x04rest", "is a zip archive, which is not a format known here; unpack it"),
        (b"// caf\xe9\n", "byte 6 is not UTF-8; MLIR text is UTF-8"),
        (b"TFL3\x00\x00\x00\x00", "is binary"),
    ],
)
def test_other_formats(data: bytes, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "model"
    path.write_bytes(data)
    assert fails(capsys, path).startswith(f"{path}: {what}")


def test_onnx_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("onnx", reason="reads what it can of the model")
    for name in ("model.onnx", "model"):
        (tmp_path / name).write_bytes(b"\x08\x07\x12\x07pytorch\x1a\x052.1.0:")
        assert fails(capsys, tmp_path / name).startswith(
            f"{name}: is not an ONNX model: the number at byte 19 does not"
        )


def test_broken_tflite(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "cut.tflite"
    path.write_bytes(DIGITS.read_bytes()[:200])
    assert "cut.tflite: byte " in fails(capsys, path)


def test_parse_error_has_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "bad.mlir"
    path.write_text(GOOD.replace("relay.negative", "relay.negtive"))
    assert fails(capsys, path) == (
        f"{path}:2:8: Operation relay.negtive is not registered; did you mean relay.negative?"
    )


def test_verifier_error_has_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "bad.mlir"
    path.write_text(INVALID)
    assert fails(capsys, path).startswith(f"{path}:2:3: relay.negative: result 0 is tensor<5xf32>")


def test_every_invalid_op_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "bad.mlir"
    path.write_text(INVALID.replace("(%x: tensor<4xf32>) -> tensor<5xf32>", "(%x: tensor<4xf32>) -> tensor<6xf32>"))
    assert main([str(path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{path}: 2 errors",
        f"{path}:2:3: error: relay.negative: result 0 is tensor<5xf32>; expected tensor<4xf32>",
        "    %r = relay.negative %x : (tensor<4xf32>) -> tensor<5xf32>",
        "    ^",
        f"{path}:3:3: error: func.return: Expected arguments to have the same types as the function output types: "
        "expected [tensor<6xf32>], got [tensor<5xf32>]",
        "    func.return %r : tensor<5xf32>",
        "    ^",
    ]


def test_line_in_a_later_piece_counts_from_the_start_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "two.mlir"
    path.write_text(f"{GOOD}// -----\n{INVALID}")
    assert fails(capsys, path, "--split-input-file").startswith(f"{path}:7:3: ")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["-p", "legalise"], "relay-opt -p: there is no pass 'legalise'; did you mean legalize"),
        (["-p", "zzyzx"], "relay-opt -p: there is no pass 'zzyzx'; see relay-opt --list-passes"),
        (["-p", "dce{depth=1}"], "pass dce: has no option 'depth'; it has none"),
        (["-p", "dce{"], "relay-opt -p: 'dce{': Expected argument name here; write for example 'cse,dce'"),
        (["-t", "nowhere"], "relay-opt: argument -t/--target: invalid choice: 'nowhere'"),
        (["--no-such-option"], "relay-opt: unrecognized arguments: --no-such-option; see relay-opt --help"),
        (["/nowhere/model.mlir"], "/nowhere/model.mlir: No such file or directory"),
        (["/"], "/: Is a directory"),
        (["\0"], "file '\\x00': "),
        (["-f", "mlir", str(DIGITS)], f"{DIGITS}: byte 40 is not UTF-8; MLIR text is UTF-8"),
        (["/dev/null"], "/dev/null:1:1: the text holds no operation"),
        ([str(ROOT / "README.md")], f"{ROOT / 'README.md'}:1:1: Expected suffix identifier after #"),
    ],
)
def test_bad_arguments(args: list[str], line: str, capsys: pytest.CaptureFixture[str]):
    assert fails(capsys, *args).startswith(line)


def test_help_names_every_runtime_of_numerics(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    help = " ".join(shown.partition("--numerics NAME")[2].partition("--outputs")[0].split())
    assert not {*PROFILES, *NUMERICS} - {*re.findall(r"[\w.-]+", help)}


def test_names_beyond_ascii(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "größe ☃.mlir"
    path.write_text("\ufeff" + GOOD.replace("%x: tensor<4xf32>", '%x: tensor<4xf32> {name = "größe ☃"}'))
    assert main([str(path)]) == 0
    printed = capsys.readouterr().out
    for options in ((), ("--print-debuginfo",)):
        assert main([str(path), *options]) == 0
        path.write_text(capsys.readouterr().out)
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == printed and printed.isascii()
    path.write_text(INVALID)
    assert fails(capsys, path).startswith(f"{path}:2:3: relay.negative: ")


def test_the_target_llvm_is_llvm_ir(good: Path, capsys: pytest.CaptureFixture[str]):
    for target in ("llvm", "llvm-ir"):
        assert main([str(good), "-p", "plan-memory", "-t", target]) == 0
        assert "define void @" in capsys.readouterr().out


def test_every_alias_names_a_pass(good: Path, capsys: pytest.CaptureFixture[str]):
    assert (
        main(
            [
                str(good),
                "-p",
                'qnn.Legalize,AttachTarget{target="x86_64 -mattr=+sse4.1"},ConstFolding,EliminateCommonSubexpr',
            ]
        )
        == 0
    )
    capsys.readouterr()
    assert fails(capsys, good, "-p", "qnn.Legalise").startswith("pipeline: there is no pass 'qnn.Legalise'; did you")


def test_weights_that_cannot_be_written(good: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("safetensors")
    assert "/nowhere/w: cannot be written: " in fails(capsys, good, "--save-weights", "/nowhere/w")


@pytest.mark.usefixtures("bad_passes")
def test_a_reproducer_that_cannot_be_written_is_said(good: Path, capsys: pytest.CaptureFixture[str]):
    line = fails(capsys, good, "-p", "crash", "--crash-reproducer", "/nowhere/x.mlir")
    assert "unexpected KeyError" in line and line.endswith("'/nowhere/x.mlir'") and "instrument CrashReproducer" in line


def test_a_very_long_name_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "long.mlir"
    path.write_text(f'"{"a" * 100000}"() : () -> ()')
    assert len(fails(capsys, path)) < 2100


def test_deep_nesting(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "deep.mlir"
    path.write_text("builtin.module {" * 3000 + "}" * 3000)
    assert fails(capsys, path) == f"{path}: is nested too deeply"


class Crash(ModulePass):
    """Fails as no pass should."""

    name = "crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("lost\nitem")


class Spoil(ModulePass):
    """Leaves an op that does not verify."""

    name = "spoil"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        function = IRModule(op)["main"]
        function.body.block.args[0].name_hint = "spoilt"
        function.properties.pop("sym_name")


@pytest.fixture
def bad_passes(monkeypatch: pytest.MonkeyPatch):
    passes = {"crash": lambda: Crash, "spoil": lambda: Spoil}
    original = RelayOptMain.register_all_passes

    def register(tool: RelayOptMain) -> None:
        original(tool)
        tool.available_passes.update(passes)

    monkeypatch.setattr(RelayOptMain, "register_all_passes", register)


@pytest.mark.usefixtures("bad_passes")
def test_a_crash_inside_a_pass_names_the_pass(
    good: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    line = fails(capsys, good, "-p", "cse,crash")
    assert line.startswith(f"{good}: pass crash: unexpected KeyError: 'lost\\nitem'; set RELAY_TRACEBACK=1")
    monkeypatch.setenv("RELAY_TRACEBACK", "1")
    assert main([str(good), "-p", "crash"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.usefixtures("bad_passes")
def test_an_invalid_module_names_the_pass_that_left_it(good: Path, capsys: pytest.CaptureFixture[str]):
    line = fails(capsys, good, "-p", "cse,spoil,dce")
    assert line.startswith(f"{good}:1:1: func.func: ") and line.endswith("; found after pass spoil")


@pytest.mark.usefixtures("bad_passes")
def test_output_file_stays_when_a_pass_fails(good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    output = tmp_path / "out.mlir"
    assert main([str(good), "-o", str(output)]) == 0
    assert output.read_text() == PRINTED
    fails(capsys, good, "-p", "crash", "-o", output)
    assert output.read_text() == PRINTED


def test_ops_know_their_place(good: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(good), "--print-debuginfo"]) == 0
    assert f'-> tensor<4xf32> loc("{good}":2:3)' in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_list_passes(capsys: pytest.CaptureFixture[str]):
    assert main(["--list-passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Convert data and weights to the layouts that the target's kernels read." in " ".join(
        " ".join(lines).split()
    )
    titles = [line for line in lines if not line.startswith(" ")]
    assert titles == ["models:", "quantization:", "external compilers:", "lowering:", "GPUs:", "xDSL:"]
    lines = [line[2:] for line in lines if re.match(r"  \S", line)]
    names = [line.split()[0] for line in lines]
    assert {"legalize", "canonicalize", "infer-types"} <= set(names) and names[-1] == "x86-set-arch"
    assert all(re.match(r"\S+  +\S", line) for line in lines if line.split()[0] in plug_ins.UNIVERSE.all_passes)


def test_weights_by_side_car(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("safetensors")
    array = np.arange(4096, dtype=np.int16).reshape(64, 64)
    text = array.tobytes().hex().upper()
    full, brief, car = tmp_path / "full.mlir", tmp_path / "brief.mlir", tmp_path / "w.safetensors"
    full.write_text(f'%w = relay.constant {{label = "big"}} dense<"0x{text}"> : tensor<64x64xi16>\n')
    weights = IRModule.parse(full.read_text())
    assert main([str(full), "--print-weights"]) == 0
    assert text in capsys.readouterr().out
    handle = "w_big_0"
    brief.write_text(f'%w = relay.constant {{label = "big"}} dense_resource<{handle}> : tensor<64x64xi16>\n')
    from safetensors.numpy import save_file

    save_file({handle: weights.weights["big"]}, car)
    assert main([str(brief), "--weights", str(car), "--print-weights"]) == 0
    assert text in capsys.readouterr().out
    assert main([str(brief), "--weights", str(car), "--save-weights", str(tmp_path / "again.safetensors")]) == 0
    output = capsys.readouterr().out
    assert text not in output and "dense_resource<w_big_" in output
    again = tmp_path / "again.mlir"
    again.write_text(output)
    assert main([str(again), "--weights", str(tmp_path / "again.safetensors"), "--print-weights"]) == 0
    assert text in capsys.readouterr().out
    save_file({"other": array}, car)
    assert fails(capsys, brief, "--weights", car) == f"weight {handle}: is not in the side-car file"
    car.write_bytes(b"nonsense")
    assert fails(capsys, brief, "--weights", car).startswith(f"{car}: ")
    assert fails(capsys, brief, "--weights", "/nowhere.safetensors").startswith("/nowhere.safetensors: ")


def test_tosa_is_the_extended_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", Feed(b'%x, %s = "test.op"() : () -> (i32, i8)\n'
        b"%r = tosa.apply_scale %x, %x, %s {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32\n"))  # fmt: skip
    assert main([]) == 0
    assert "tosa.apply_scale" in capsys.readouterr().out


def run(*args: str, input: str = "", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """The tool as a process of its own, from this checkout."""
    command = [sys.executable, "-m", "relay.tools.relay_opt", *args]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, input=input, capture_output=True, text=True, cwd=cwd, env=environment)


def test_as_a_process_from_a_checkout(tmp_path: Path):
    assert run(input=GOOD, cwd=tmp_path).stdout == PRINTED
    bad = run(input=INVALID)
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (1, "", 1)


def test_version_and_help(capsys: pytest.CaptureFixture[str]):
    for option in ("--version", "--help"):
        with pytest.raises(SystemExit) as end:
            main([option])
        assert not end.value.code
    version, _, text = capsys.readouterr().out.partition("\n")
    assert version.startswith(f"relay-opt {__version__} on xDSL 0.74.")
    assert text.startswith("usage: relay-opt") and len(text.splitlines()) < 140
    for said in ("\npipeline:\n", "\noutput:\n", "  lowering: bufferize, ", "  xDSL: canonicalize, cse, dce ..."):
        assert said in text
    assert "snitch" not in text


@pytest.mark.ci
def test_closed_pipe_is_quiet():
    command = f"{sys.executable} -m relay.tools.relay_opt --list-passes | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stderr == ""


def test_irdl_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["--emit-irdl", "-o", str(tmp_path / "relay.irdl")]) == 0
    assert capsys.readouterr().out == ""
    assert "irdl.dialect @relay" in (tmp_path / "relay.irdl").read_text()


def test_relay_opt_starts_without_what_most_runs_do_not_need():
    """The interpreter, targets and lowering are loaded by the passes and options that use them."""
    code = "import sys, relay.tools.relay_opt; print(*(name for name in sys.modules if name.startswith('relay.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded}
    assert rooms.isdisjoint({"interpreters", "target", "lowering", "compile", "runtime", "byoc"})


@pytest.mark.ci
def test_relay_opt_starts_with_few_calls():
    """As cProfile counts them, which no load of the machine changes: about 720,000 with Python 3.11, most of them to
    define the ops of all dialects."""
    code = """
from cProfile import Profile
from pstats import Stats
profile = Profile()
profile.enable()
from relay.tools.relay_opt import main
main(["-"])
profile.disable()
print(Stats(profile).total_calls)"""
    module = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
    done = subprocess.run([sys.executable, "-c", code], input=module, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < 755_000, done.stdout


def test_weights_of_linalg_by_side_car(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("safetensors")
    weights = np.arange(2048, dtype=np.float32).tobytes().hex().upper()
    model, brief, car = tmp_path / "m.mlir", tmp_path / "brief.mlir", tmp_path / "w.safetensors"
    model.write_text(f"""func.func @main(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {{
      %w = relay.constant {{label = "big"}} dense<"0x{weights}"> : tensor<32x64xf32>
      %r = relay.nn.dense %x, %w {{out_dtype = f32}} : (tensor<4x64xf32>, tensor<32x64xf32>) -> tensor<4x32xf32>
      func.return %r : tensor<4x32xf32>
    }}""")
    down = "legalize,fuse-ops,relay-to-linalg,bufferize"
    assert main([str(model), "-p", down, "--save-weights", str(car)]) == 0
    brief.write_text(capsys.readouterr().out)
    assert "arith.constant dense_resource<w_big_" in brief.read_text()
    assert main([str(brief), "--weights", str(car), "-p", "schedule"]) == 0
    read_back = capsys.readouterr().out
    assert main([str(model), "-p", f"{down},schedule"]) == 0
    assert read_back == capsys.readouterr().out
