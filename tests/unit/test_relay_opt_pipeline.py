"""relay-opt: showing, editing and watching the pipeline."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from relay.dialects import relay
from relay.errors import InvalidArgument
from relay.exploration.bisection import find_culprit
from relay.module import IRModule
from relay.passes import Pass, PassContext, Pipeline, registry
from relay.target import resolve
from relay.tools.relay_opt import main
from relay.transforms.legalization import patterns_of
from tests.unit.pass_modules import DIGITS, SMALL, Mark

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class Crash(Pass):
    """Reports every op, or fails."""

    name: ClassVar[str] = "crash"
    report: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.report:
            raise KeyError("lost")
        for inner in op.walk():
            if inner.name == "relay.add":
                PassContext.current().diagnostics.error(inner, "cannot add")


@dataclass(frozen=True)
class Spoil(Pass):
    """Leaves a function without a name."""

    name: ClassVar[str] = "spoil"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        IRModule(op)["main"].properties.pop("sym_name")


@dataclass(frozen=True)
class Flip(Pass):
    """Makes every absolute value its argument's negative."""

    name: ClassVar[str] = "flip"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [inner for inner in op.walk() if isinstance(inner, relay.AbsOp)]:
            Rewriter.replace_op(inner, relay.NegativeOp.make([inner.input]))


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "MADE", {"mark": Mark, "crash": Crash, "spoil": Spoil, "flip": Flip})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.mlir"
    path.write_text(SMALL)
    return path


def ok(capsys: Capture, *args: str | Path) -> tuple[str, str]:
    """Output and messages of a run that must succeed."""
    assert main([str(arg) for arg in args]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def fails(capsys: Capture, *args: str | Path) -> str:
    assert main([str(arg) for arg in args]) == 1
    return capsys.readouterr().err


def shown(text: str) -> list[str]:
    """The names of the passes that a shown pipeline runs."""
    return [line.split()[0] for line in text.splitlines()[1:-1] if not line.startswith("not ")]


def test_show_pipeline(capsys: Capture):
    out, _ = ok(capsys, "--show-pipeline", "--target", "llvm", "-O2")
    assert (
        out.startswith("target llvm, opt_level 2\nattach-target ")
        and "evaluates ops of constants at compile time" in out
    )
    text = out.splitlines()[-1].removeprefix("-p ").strip("'")
    assert [step.name for step in Pipeline.parse(text)] == shown(out)
    out, _ = ok(capsys, "--show-pipeline", "-O0")
    assert "simplify" not in shown(out) and out.startswith("target llvm, opt_level 0")


def test_the_pipeline_of_another_machine(capsys: Capture, file: Path):
    machine = "aarch64 -mattr=+dotprod"
    out, _ = ok(capsys, "--show-pipeline", "--attach-target", machine)
    assert out.startswith(f"target {machine}, opt_level")
    text = out.splitlines()[-1].removeprefix("-p '").rstrip("'")
    assert text.startswith('attach-target{target="aarch64 -mattr=+dotprod"},compile-external,legalize,')
    assert ok(capsys, file, "-p", text) == ok(capsys, file, "-O2", "--attach-target", machine)
    out, _ = ok(capsys, file, "--attach-target", machine, "-p", "legalize")
    assert 'features = "+dotprod,+neon"' in out and "tensor<" in out


def test_patterns_for_a_target(capsys: Capture):
    wide, _ = ok(capsys, "--list-patterns", "--attach-target", "x86_64 -mattr=+avx512f,+avx512vnni")
    plain, _ = ok(capsys, "--list-patterns", "--attach-target", "riscv64")
    rows = patterns_of(resolve("riscv64"))
    assert all(f"{row.dialect} {row.name} " in plain and row.summary in plain for row in rows)
    assert "=>" in rows[0].summary and {row.dialect for row in rows} == {"qnn", "relay"}
    assert "relay.nn.batch_matmul of codes, [n, m, k], becomes [n, k, m]" in plain
    assert "relay.nn.batch_matmul of codes, [n, m, k], stays" in wide


def test_an_old_option_is_told_on_standard_error(capsys: Capture, file: Path):
    _, err = ok(capsys, file, "-p", 'legalize{features="avx2"}')
    assert err.startswith('relay-opt: warning: legalize{features="..."} is deprecated: put attach-target')


def test_show_what_is_required_and_what_does_not_run(capsys: Capture):
    out, _ = ok(capsys, "--show-pipeline", "-p", "simplify,fuse-ops", "-O0")
    words = " ".join(out.split())
    assert "not simplify from opt_level 1" in words and "legalize required by fuse-ops, unless" in words


def test_edits(capsys: Capture):
    edits = ["--insert-before", "FuseOps=mark{letter=x},cse", "--insert-after", "legalize=mark", "--remove", "simplify"]
    out, _ = ok(capsys, "--show-pipeline", *edits)
    names = ["legalize", "mark", "alter-op-layout", "fold-constant", "fold-explicit-padding"]
    assert shown(out)[2:13] == [*names, "cse", "dce", "dead-pixels", "unsigned-codes", "mark", "cse"]
    out, _ = ok(capsys, DIGITS, "-p", "legalize,simplify", "--remove", "legalize")
    assert "qnn.conv2d" in out


def test_a_level_runs_the_default_pipeline(file: Path, capsys: Capture):
    out, _ = ok(capsys, file, "-O1")
    assert "relay.constants" in out and "memref" in out
    out, _ = ok(capsys, file)
    assert "relay.add" in out
    out, _ = ok(capsys, file, "-p", "fold-constant", "-O0")
    assert out.count("relay.add") == 2


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["--insert-before", "fuse-ops"], "--insert-before: 'fuse-ops' names no pass to insert; write --insert-before"),
        (["--insert-after", "fuse-opps=cse"], "pipeline: there is no pass 'fuse-opps'; did you mean fuse-ops"),
        (["--remove", "infer-types"], "pipeline: has no pass 'infer-types'; it has attach-target, compile-external"),
        (["-p", "cse,dce,cse", "--remove", "cse"], "pipeline: 'cse' matches the passes at positions 0, 2"),
        (["-O9"], "relay-opt: argument -O: invalid choice: 9 (choose from 0, 1, 2, 3, 4)"),
    ],
)
def test_bad_edits(args: list[str], line: str, file: Path, capsys: Capture):
    assert fails(capsys, file, *args).startswith(line)


def test_time_passes_is_a_tree(file: Path, capsys: Capture):
    _, err = ok(capsys, file, "-p", "fold-constant,cse", "--time-passes")
    assert re.fullmatch(r".*pass\n.*all passes\n.* 7 -> 6 +fold-constant\n.* 6 -> 6 +cse\n", err, re.DOTALL)


def test_stats(file: Path, capsys: Capture):
    _, err = ok(capsys, file, "-p", "fold-constant,cse", "--stats")
    assert err == "fold-constant: relay.add -1\ncse: no change\n"


def test_printing(file: Path, tmp_path: Path, capsys: Capture):
    _, err = ok(capsys, file, "-p", "fold-constant,cse", "--print-ir-after-all")
    assert re.findall("// IR .*", err) == ["// IR after fold-constant", "// IR after cse"]
    _, err = ok(capsys, file, "-p", "fold-constant,cse", "--print-ir-changed")
    assert "// fold-constant changed\n" in err and err.endswith("// cse changed nothing\n")
    ok(capsys, file, "-p", "fold-constant,cse", "--dump-ir", tmp_path / "d")
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == [
        "000_input.mlir", "001_fold-constant.mlir", "002_cse.mlir"]  # fmt: skip
    out, _ = ok(capsys, file, "-p", "cse,dce", "--print-between-passes")
    assert out.count("// IR after") == 2


def test_bisect_limit(file: Path, capsys: Capture):
    out, err = ok(capsys, file, "-p", "mark,fold-constant", "--opt-bisect-limit", "1")
    assert 'trace = "m"' in out and out.count("relay.add") == 2
    assert err == "BISECT: running pass (1) mark\nBISECT: NOT running pass (2) fold-constant\n"


def test_find_culprit(file: Path, tmp_path: Path, capsys: Capture):
    out, _ = ok(capsys, file, "--find-culprit", "-p", "fold-constant,cse", "--seed", "7")
    assert out == "the numbers stay equal after fold-constant, cse\n"
    inputs = tmp_path / "x.npz"
    np.savez(inputs, x=np.full(4, 3, np.float32))
    assert main([str(arg) for arg in (file, "--find-culprit", "-p", "cse,flip", "--inputs", inputs)]) == 1
    found = f"pass 2, flip, changes the numbers; first {file}:5:3, relay.abs: "
    differs = "differs in 4 of 4 elements, first [0]: -3.0 instead of 3.0; at most by 6"
    assert capsys.readouterr().out == f"{found}{differs}\n"


def test_find_culprit_says_what_was_not_checked(file: Path, capsys: Capture):
    passes = "fuse-ops,relay-to-linalg,bufferize,schedule-gpu,convert-parallel-loops-to-gpu"
    assert main([str(file), "--find-culprit", "-p", passes]) == 2
    out = capsys.readouterr().out
    assert out.startswith("the numbers stay equal after fuse-ops, ") and "; not checked: convert-parallel" in out


@pytest.mark.parametrize("given", ["-1", "nan", "inf", "x"])
def test_find_culprit_takes_tolerances_of_at_least_0(given: str, file: Path, capsys: Capture):
    assert "argument --tolerance: " in fails(capsys, file, "--find-culprit", "--tolerance", given)
    if given != "x":
        with pytest.raises(InvalidArgument, match="^tolerance: is .*; give a number of at least 0"):
            find_culprit(IRModule.parse(SMALL), "cse", [np.zeros(4, np.float32)], tolerance=float(given))


def test_find_culprit_says_what_is_wrong_with_inputs(file: Path, tmp_path: Path, capsys: Capture):
    inputs = tmp_path / "x.npz"
    np.savez(inputs)
    assert "has no input x; it has nothing else" in fails(capsys, file, "--find-culprit", "--inputs", inputs)
    np.savez(inputs, x=np.zeros(4, np.float32), y=np.zeros(1))
    assert "names no input with y" in fails(capsys, file, "--find-culprit", "--inputs", inputs)
    assert "is no .npz file; numpy.savez" in fails(capsys, file, "--find-culprit", "--inputs", file)
    assert "No such file" in fails(capsys, file, "--find-culprit", "--inputs", tmp_path / "none")


@pytest.mark.parametrize(
    "options, words",
    [
        ("--seed 1", "--seed is an option of --find-culprit, which is not given"),
        ("--inputs x.npz", "--inputs is an option of --find-culprit"),
        ("--tolerance 0", "--tolerance is an option of --find-culprit"),
        ("--find-culprit --seed -1", "argument --seed: '-1' is not a whole number of at least 0"),
        ("--find-culprit --show-pipeline", "--show-pipeline only prints"),
        ("--find-culprit -t llvm-ir", "no module as -t llvm-ir does"),
        ("--find-culprit -p ''", "has no pass to search"),
        ("--attach-target ''", "--attach-target names no target"),
    ],
)
def test_options_that_would_be_ignored_are_told(options: str, words: str, file: Path, capsys: Capture):
    error = fails(capsys, file, *shlex.split(options))
    assert words in error and error.count("\n") == 1 and "see relay-opt --help" in error


SUM = """func.func @main(%x: tensor<64xi32>) -> tensor<i32> {
  %0 = relay.sum %x {axis = array<i64: 0>} : (tensor<64xi32>) -> tensor<i32>
  func.return %0 : tensor<i32>
}"""


def test_find_culprit_needs_sizes(file: Path, capsys: Capture):
    file.write_text(SUM.replace("<64x", "<?x"))
    assert "input x: is of unknown size ?: there are no random" in fails(capsys, file, "--find-culprit", "-p", "cse")


def test_find_culprit_survives_code_that_this_machine_cannot_run(file: Path, capsys: Capture):
    """LLVM ends the process that compiles an instruction that the machine lacks."""
    file.write_text(SUM)
    passes = "attach-target{target=cuda},fuse-ops,relay-to-linalg,bufferize,schedule-gpu"
    assert main([str(file), "--find-culprit", "-p", passes]) == 2
    out = capsys.readouterr().out
    assert "not checked: schedule-gpu (llvm: has no instruction of " in out and "nvvm.shfl" in out


def test_verify_each(file: Path, capsys: Capture):
    line = fails(capsys, file, "-p", "cse,spoil,dce", "--verify-each")
    assert line.startswith(f"{file}:2:1: func.func: ") and line.endswith("; found after pass spoil\n")


def test_a_crash_is_reproduced(file: Path, tmp_path: Path, capsys: Capture):
    path = tmp_path / "crash.mlir"
    first = fails(capsys, file, "-p", "fold-constant,crash,cse", "--crash-reproducer", path)
    assert first.startswith(f"{file}: pass crash: unexpected KeyError")
    assert fails(capsys, path).startswith(f"{path}: pass crash: unexpected KeyError")
    out, _ = ok(capsys, path, "-p", "cse")
    assert out.count("relay.add") == 1, "the constant was folded before the crash"


def test_collected_errors_have_carets(file: Path, capsys: Capture):
    assert fails(capsys, file, "-p", "crash{report=true}").splitlines() == [
        "pass crash: 2 errors",
        f"{file}:4:3: error: cannot add",
        "    %d = relay.add %c, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "    ^",
        f"{file}:6:3: error: cannot add",
        "    %r = relay.add %y, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "    ^",
    ]
