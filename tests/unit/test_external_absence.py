"""Libraries that are not installed, print, or cannot have what they are given: each is one clear sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from pytest import MonkeyPatch

import relay
from relay.byoc import BuildInfo
from relay.byoc.onednn import library
from relay.byoc.onednn.program import Program
from relay.byoc.registry import find
from relay.errors import Unsupported
from relay.runtime import loaders
from tests.numeric.external_sessions import COMPILERS, installed

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
EXTRAS = {"litert": "litert", "xnnpack": "litert", "onnxruntime": "onnxruntime", "onednn": "onednn"}
PACKAGES = {"litert": "xnnpack", "xnnpack": "xnnpack", "onnxruntime": "onnxruntime"}
"""Where the compilers of Python packages look for these."""
EXP = """
func.func @main(%x: tensor<TYPE>) -> tensor<TYPE> {
  %r = relay.exp %x : (tensor<TYPE>) -> tensor<TYPE>
  func.return %r : tensor<TYPE>
}
"""


def missing(name: str) -> str | None:
    """What a compiler says that it misses."""
    try:
        find(name)
    except Unsupported as error:
        return str(error)
    return None


@pytest.fixture
def absent(monkeypatch: MonkeyPatch) -> Generator[None]:
    """None of the libraries is installed."""

    def nothing(name: str, package: str | None = None) -> ModuleSpec | None:
        return None

    def no_names() -> Sequence[str]:
        return ()

    for folder in set(PACKAGES.values()):
        monkeypatch.setattr(f"relay.byoc.{folder}.compiler.find_spec", nothing)
        monkeypatch.delitem(sys.modules, f"relay.byoc.{folder}.loader", raising=False)
    for package in ("onnxruntime", "ai_edge_litert.interpreter", "ai_edge_litert"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(library, "candidates", no_names)
    library.open_library.cache_clear()
    yield
    library.open_library.cache_clear()


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_building_without_the_library_names_the_extra(compiler: str):
    hint = rf"pip install 'relay-mlir\[{EXTRAS[compiler]}\]'"
    with pytest.raises(Unsupported, match=f"compiler {compiler}: .*installed.*{hint}"):
        relay.build(DIGITS, external=compiler)


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_loading_without_the_library_names_the_extra(compiler: str):
    extra = f"relay-mlir[{EXTRAS[compiler]}]"
    with pytest.raises(Unsupported, match=rf"pip install 'relay-mlir\[{EXTRAS[compiler]}\]'"):
        loaders.load(compiler, "1", "f", Program([], {}, [], [], []).pack(), {}, [], [], extra)


@pytest.mark.ci
def test_nothing_is_printed():
    """By building, loading and running, in a process that has not used the libraries before."""
    names = [name for name in COMPILERS if missing(name) is None]
    if not names:
        pytest.skip("none of the libraries is installed")
    program = f"""
import numpy, relay
for name in {names}:
    executable = relay.build(relay.IRModule.parse({EXP.replace("TYPE", "2x3xf32")!r}), external=name)
    assert len(executable.externals) == 1
    executable.run(numpy.zeros((2, 3), numpy.float32))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_else_is_written_meanwhile_is_not_lost(capfd: pytest.CaptureFixture[str]):
    pytest.importorskip("ai_edge_litert")
    from relay.byoc.xnnpack.loader import without_information

    with without_information():
        os.write(2, b"INFO: Created a delegate\nERROR: something\n")
        os.write(2, b"the rest")
    os.write(2, b" and more\n")
    assert capfd.readouterr().err == "ERROR: something\nthe rest and more\n"


@pytest.mark.parametrize("compiler", [*COMPILERS, "c", "systolic"])
@pytest.mark.parametrize(
    ("type", "reason"), [("?x3xf32", "a size of it is not known"), ("0x3xf32", "no elements|of 0 elements|no instr")]
)
def test_sizes_that_are_refused(compiler: str, type: str, reason: str):
    installed(compiler)
    parted = relay.build_external_compiler(relay.IRModule.parse(EXP.replace("TYPE", type)), compiler)
    (row,) = parted.partition_report().rows
    assert row.compiler == "" and re.search(reason, row.refused[compiler])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_functions_that_no_pass_makes(compiler: str):
    """Given to the compiler nevertheless."""
    installed(compiler)
    dynamic = relay.IRModule.parse(EXP.replace("TYPE", "?x3xf32"))
    with pytest.raises(Unsupported, match="argument 0 of main: a size is known only at run time; give the model's"):
        find(compiler).compile(dynamic["main"], BuildInfo())
    nothing = relay.IRModule.parse("func.func @main(%x: tensor<3xf32>) {\n  func.return\n}")
    with pytest.raises(Unsupported, match="function main: has no results"):
        find(compiler).compile(nothing["main"], BuildInfo())


@pytest.mark.parametrize("name", COMPILERS)
def test_numbers_that_a_library_does_not_have_stay_with_the_host(name: str):
    """What a compiler refuses is no error, and the report says why."""
    if missing(name) is not None:
        pytest.skip(f"{name} is not installed")
    parted = relay.build_external_compiler(relay.IRModule.parse(EXP.replace("TYPE", "4xf128")), name)
    assert list(parted.functions) == ["main"]
    assert "element type f128 has no numpy dtype" in str(parted.partition_report())
