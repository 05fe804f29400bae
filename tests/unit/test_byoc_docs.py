"""The blocks of docs/bring_your_own_codegen.md run; what `relay-byoc new` writes works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from xdsl.dialects.func import FuncOp

from relay.byoc import Artifact, BuildInfo, Compiler
from relay.byoc.registry import COMPILERS
from relay.errors import InvalidArgument
from relay.tools.relay_byoc import main
from relay.tools.scaffolding import COMPILER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "bring_your_own_codegen.md").read_text()


def python(*args: str, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Python at the root of the checkout, which also imports from `path`."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}"}
    return subprocess.run([sys.executable, *args], cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.ci
def test_the_examples_run_in_order() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 11
    done = python("-c", "\n".join(blocks))
    assert done.returncode == 0, done.stderr
    assert "systolic: " in done.stdout and "adder" in done.stdout and "multiply" in done.stdout


@pytest.mark.ci
def test_the_command_of_the_page_runs() -> None:
    (arguments,) = re.findall(r"^relay-opt (.*)$", PAGE, re.MULTILINE)
    done = python("-c", f"import shlex, sys; from relay.tools.relay_opt import main; main(shlex.split({arguments!r}))")
    assert done.returncode == 0, done.stderr
    assert 'byoc.composite "systolic.conv2d"' in done.stdout


@pytest.mark.ci
def test_a_new_package_works_as_it_stands(tmp_path: Path) -> None:
    """Its entry points as an installation writes them, its own tests in a fresh process."""
    package = tmp_path / "relay-dsp"
    assert main(["new", "dsp", "--into", str(package)]) == 0
    found = sorted(str(path.relative_to(package)) for path in package.rglob("*") if path.is_file())
    assert found == sorted(name.format(name="dsp") for name in COMPILER.files)
    groups = tomllib.loads((package / "pyproject.toml").read_text())["project"]["entry-points"]
    assert list(groups) == ["relay.byoc", "relay.byoc.runtime"]
    information = package / "relay_dsp-0.1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: relay-dsp\nVersion: 0.1\n")
    lines = [f"[{name}]\ndsp = {points['dsp']}\n" for name, points in groups.items()]
    (information / "entry_points.txt").write_text("".join(lines))
    done = python(
        "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(package), str(package / "tests"), path=package
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("name", ["", "Dsp", "d sp", "1dsp", "../dsp", "class"])
def test_a_bad_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="is no name for a compiler"):
        COMPILER.write(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_name_in_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="is there already"):
        COMPILER.write("systolic", tmp_path / "new")


def test_a_folder_in_use_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("x")
    assert main(["new", "dsp", "--into", str(tmp_path)]) == 1
    assert "exists and is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_list_names_our_compilers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "ready; exact" in lines["systolic"]
    assert {"c", "onnxruntime", "xnnpack"} <= set(lines)


def test_the_list_survives_what_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a compiler: no loader, an exception in `missing`, a package that ends the process when imported."""

    class Silent(Compiler):
        name = "silent"

        def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
            return Artifact(b"")

    class Broken(Silent):
        name = "broken"

        def missing(self) -> str | None:
            raise KeyError("licence")

    monkeypatch.setattr(COMPILERS, "registered", {"silent": Silent, "broken": Broken})
    monkeypatch.setitem(COMPILERS.ours, "leaving", "leaving_package:Compiler")
    monkeypatch.setitem(sys.modules, "leaving_package", Leaving("leaving_package"))
    assert main(["list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "compiler silent: was compiled by 'silent', whose loader is not installed" in lines["silent"]
    assert "compiler broken: missing failed: KeyError: 'licence'" in lines["broken"]
    assert "compiler leaving: cannot be loaded: no licence" in lines["leaving"]


class Leaving(ModuleType):
    def __getattr__(self, name: str) -> object:
        raise SystemExit("no licence")


def test_models_may_follow_options(capsys: pytest.CaptureFixture[str]) -> None:
    """As in the page's command."""
    assert main(["test", "systolic", "--cases", "1", "none.tflite"]) == 1
    assert "none.tflite" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["test", "systolic", "--case", "1", "--optoin", "none.tflite"])
    assert "unrecognized arguments: --optoin none.tflite" in capsys.readouterr().err
