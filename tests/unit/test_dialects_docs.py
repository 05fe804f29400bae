"""The blocks of docs/dialects.md and docs/entry_points.md run; what `relay-dialect new` writes works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from relay.byoc.registry import COMPILERS
from relay.dialects.plug_in import DIALECTS, DialectPlugIn
from relay.runtime.loaders import LOADERS
from relay.tools.relay_dialect import main
from relay.tools.scaffolding import DIALECT
from relay.transforms.legalization import ENTRY_POINTS
from tests.installing import install

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dialects.md").read_text()
REFERENCE = (ROOT / "docs" / "entry_points.md").read_text()
COMMAND = 'relay-{0}() {{ "' + sys.executable + '" -m relay.tools.relay_{0} "$@"; }}\n'


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def files_of(page: str) -> dict[str, str]:
    """The blocks that are a whole file, by its name."""
    found = re.findall(r"^`(relay_dsp/\S+)`:\n\n```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return dict(found)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the page."""
    folder = tmp_path_factory.mktemp("new") / "relay-dsp"
    assert main(["new", "dsp", "--into", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def site(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is installed."""
    return install(package, tmp_path_factory.mktemp("installed") / "site")


def run(*command: str, site: Path, cwd: Path) -> str:
    """What a command prints that succeeds, where the package is installed."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_shows_the_files_that_the_tool_writes(package: Path) -> None:
    found = files_of(PAGE)
    assert {*found} == {name.format(name="dsp") for name in DIALECT.files if re.match(r"relay_.*[.]py$", name)}
    for name, text in found.items():
        assert (package / name).read_text() == text, name
    first, refused = blocks(PAGE, "mlir")
    examples = (package / "relay_dsp" / "examples.mlir").read_text()
    assert examples.startswith(first) and refused in examples
    (toml,) = blocks(PAGE, "toml")
    assert toml in (package / "pyproject.toml").read_text()
    groups = tomllib.loads((package / "pyproject.toml").read_text())["project"]["entry-points"]
    assert groups == {DIALECTS.group: {"dsp": "relay_dsp:DSP"}}


@pytest.mark.ci
def test_the_package_passes_its_own_tests(package: Path, site: Path) -> None:
    """Among them is all that `relay-dialect test` looks at."""
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(package))
    assert "3 passed" in run(sys.executable, "-m", "pytest", *options, str(package / "tests"), site=site, cwd=package)


@pytest.mark.ci
def test_what_follows_runs(site: Path, tmp_path: Path) -> None:
    """In a process, its children, and a shell."""
    types, first, second = [block for block in blocks(PAGE, "python") if block not in files_of(PAGE).values()]
    (tmp_path / "page.py").write_text(types + first + second)
    run(sys.executable, "page.py", site=site, cwd=tmp_path)
    text = re.findall(r'parse\("""\n(.*?)"""', first, re.DOTALL)[0]
    (tmp_path / "model.mlir").write_text(text)
    shell = COMMAND.format("opt") + blocks(PAGE, "sh")[1]
    out = run("bash", "-euo", "pipefail", "-c", shell, site=site, cwd=tmp_path)
    assert "relay.clip" in out and "dsp Expand" in out
    shell = COMMAND.format("dialect") + "relay-dialect list; relay-dialect docs dsp"
    out = run("bash", "-euo", "pipefail", "-c", shell, site=site, cwd=tmp_path)
    assert "dialect dsp of relay-dsp 0.1: 3 ops" in out and "## `dsp.running_max`" in out and "`DspAdd`" in out


IMPORTED = """
import onnx, numpy as np, relay
from tests.numeric.litert_models import Case, T

x, y = np.array([[100, -100, 0], [-3, 5, 120]], np.int32), np.array([100, -100, 7], np.int32)
case = Case("CUSTOM", [T([2, 3], "int32"), T([3], "int32")], [T([2, 3], "int32")], custom_code="DspAdd")
case.custom_options = bytes([8])
assert (relay.build(case.model()).run(x, y) == [[127, -128, 7], [97, -95, 127]]).all()
make, node = onnx.helper, onnx.helper.make_node("RunningMax", ["x"], ["y"], domain="org.dsp")
ends = [make.make_tensor_value_info(name, 6, [2, 3]) for name in "xy"]
graph = make.make_graph([node], "g", ends[:1], ends[1:])
model = make.make_model(graph, opset_imports=[make.make_opsetid("org.dsp", 1)], ir_version=8)
assert (relay.build(model.SerializeToString()).run(x) == [[100, 100, 100], [-3, 5, 120]]).all()
"""


@pytest.mark.ci
def test_models_with_its_operators_are_built(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds a file")
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    run(sys.executable, "-c", IMPORTED, site=site, cwd=tmp_path)


def test_the_reference_names_every_group_and_field() -> None:
    groups, fields = REFERENCE.split("## The fields of")
    assert re.findall(r"^\| `(\S+)`", groups, re.MULTILINE) == [
        DIALECTS.group, COMPILERS.group, LOADERS.group, "xdsl.universe", ENTRY_POINTS
    ]  # fmt: skip
    assert re.findall(r"^\| `(\S+)`", fields, re.MULTILINE) == [*DialectPlugIn.__dataclass_fields__]
    first, second = blocks(REFERENCE, "python")
    done = subprocess.run([sys.executable, "-c", first + second], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["", "Dsp", "d sp", "../dsp", "class"])
def test_a_bad_name_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name, "--into", str(tmp_path / "new")]) == 1
    assert "is no name for a dialect" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["qnn", "tosa", "func"])
def test_a_name_in_use_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name, "--into", str(tmp_path / "new")]) == 1
    assert "is there already" in capsys.readouterr().err


def test_an_unknown_dialect_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("test", "docs"):
        assert main([action, "absent"]) == 1
        assert "dialect absent: is of no package that is installed" in capsys.readouterr().err
