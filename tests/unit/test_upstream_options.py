"""relay-opt takes what mlir-opt's users write: nested pipelines, passes as options, expected errors, pieces."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.errors import InvalidArgument
from relay.passes import Pipeline, registry
from relay.tools.relay_opt import main

TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  %r = relay.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""
WRONG = TEXT.replace("%a, %b : (tensor<4xf32>, ", "%a, %b : (tensor<5xf32>, ")
PLAIN = """
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Rename(ModulePass):
    name = "rename-main"
    to: str = "other"

    def apply(self, ctx, op):
        op.body.block.first_op.properties["sym_name"] = type(op.body.block.first_op.sym_name)(self.to)
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "MADE", {})


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "text.mlir"
    path.write_text(TEXT)
    return str(path)


def printed(capsys: Capture, *args: str) -> str:
    assert main([*args]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "args",
    [
        ["--pass-pipeline=builtin.module(func.func(cse))"],
        ["-p", "builtin.module(cse,func.func(canonicalize, dce),builtin.module())"],
        ["-pass-pipeline=builtin.module(cse)", "-verify-diagnostics", "-mlir-timing"],
        ["-pass-pipeline", "builtin.module(cse)", "-split-input-file"],
        ["--cse"],
        ["-cse", "--dce"],
        ["--cse", "--print-choices=header=a"],
    ],
)
def test_passes_as_upstream_names_them(args: list[str], file: str, capsys: Capture):
    assert printed(capsys, file, *args).count("relay.negative") == 1


def test_nested_text_is_the_flat_pipeline():
    text = 'builtin.module(func.func(cse, fold-constant{max_bytes=8}),any(print-choices{header="a (b, c)"}))'
    assert str(Pipeline.parse(text)) == 'cse,fold-constant{max_bytes=8},print-choices{header="a (b, c)"}'
    with pytest.raises(
        InvalidArgument, match="'gpu.module' is no anchor of a nested pipeline here; anchors are builtin"
    ):
        Pipeline.parse("builtin.module(gpu.module(cse))")
    for wrong in ("builtin.module(cse", "cse)", "func.func(cse{a=1)", "builtin.module(cse))"):
        with pytest.raises(InvalidArgument, match="parentheses or braces that do not match"):
            Pipeline.parse(wrong if "(" in wrong else f"any(){wrong}")


def test_passes_in_two_ways_are_refused(file: str, capsys: Capture):
    assert main([file, "--cse", "-p", "dce"]) == 1
    assert capsys.readouterr().err == "relay-opt: has -p and --cse; name all passes in one of the two ways\n"


def test_upstreams_names_of_options(file: str, capsys: Capture):
    main([file, "--cse", "--dce", "--mlir-print-ir-after-all", "--mlir-timing", "--mlir-pass-statistics"])
    err = capsys.readouterr().err
    assert "IR after cse" in err and "IR after dce" in err and "cse: relay.negative -1" in err and "ms" in err
    main([file, "--cse", "--dce", "--print-ir-before=dce", "--print-ir-after=cse"])
    assert [line for line in capsys.readouterr().err.splitlines() if "// IR" in line] == [
        "// IR after cse",
        "// IR before dce",
    ]
    assert '"relay.negative"' in printed(capsys, file, "--mlir-print-op-generic")


def test_a_plain_pass_of_a_file(file: str, tmp_path: Path, capsys: Capture):
    (tmp_path / "mine.py").write_text(PLAIN)
    out = printed(capsys, file, "--load", str(tmp_path / "mine.py"), "-p", "cse,rename-main{to=mine}")
    assert "@mine" in out and out.count("relay.negative") == 1


def test_expected_errors(tmp_path: Path, capsys: Capture):
    path = tmp_path / "wrong.mlir"
    said = "  // expected-error@+1 {{relay.add: operand}}\n  %r"
    path.write_text(f"{WRONG.replace('  %r', said)}// -----\n{TEXT}")
    assert main([str(path)]) == 1
    message = capsys.readouterr().err.partition(": ")[2]
    words = message.split("\n")[0][:20]
    path.write_text(path.read_text().replace("relay.add: operand", words))
    assert main([str(path), "--verify-diagnostics", "--split-input-file"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "" and shown.out.startswith("// -----\nbuiltin.module")
    path.write_text(path.read_text().replace(words, "something else"))
    assert main([str(path), "--verify-diagnostics", "--split-input-file"]) == 1
    err = capsys.readouterr().err.splitlines()
    assert "unexpected error: " in err[0] and err[1] == f"{path}:5: the expected error 'something else' did not come"
    path.write_text(TEXT + "// expected-error@-1 {{nothing}}\n")
    assert main([str(path), "--verify-diagnostics"]) == 1


def test_a_piece_may_hold_comments_only(tmp_path: Path, capsys: Capture):
    path = tmp_path / "pieces.mlir"
    path.write_text(f"// RUN: relay-opt\n\n// -----\n{TEXT}// -----\n")
    empty, main, last = printed(capsys, str(path), "--split-input-file").split("// -----\n")
    assert empty == last == "builtin.module {\n}\n\n" and "@main" in main


@pytest.mark.parametrize(
    ("comment", "code"),
    [
        ("expected-error @+1 {{expected tensor}}", 0),
        ("expected-error @+1 {{another}}", 1),
        ("expected-error-re @below {{result {{[0-9]}} is tensor<5xf32>; {{.*}}}}", 0),
        ("expected-error-re@+1 {{result {{[a-z]}} is}}", 1),
    ],
)
def test_comments_as_in_tests_of_mlir(comment: str, code: int, tmp_path: Path, capsys: Capture):
    path = tmp_path / "wrong.mlir"
    line = "%a = relay.negative %x : (tensor<4xf32>) -> tensor<5xf32>"
    path.write_text(f"func.func @main(%x: tensor<4xf32>) {{\n  // {comment}\n  {line}\n  func.return\n}}\n")
    assert main([str(path), "--verify-diagnostics"]) == code


def test_a_wrong_piece_does_not_end_the_others(tmp_path: Path, capsys: Capture):
    path, output = tmp_path / "three.mlir", tmp_path / "out.mlir"
    path.write_text(f"{TEXT}// -----\n{WRONG}// -----\n{TEXT}")
    assert main([str(path), "--split-input-file"]) == 1
    shown = capsys.readouterr()
    assert shown.out.count("// -----") == 2 and shown.out.count("@main") == 2 and shown.err.count("\n") == 1
    assert main([str(path), "--split-input-file", "-o", str(output)]) == 1 and not output.exists()
