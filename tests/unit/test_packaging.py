"""What is shipped: the metadata, the links at the root, and, slowly, an sdist and a wheel that install and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import pytest

import relay
from relay.plug_ins import installation
from tests.unit.test_users import pip

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINKS = ("dialects", "transforms", "lowering", "tools")


def test_links_at_the_root():
    found = [name for name in LINKS if (ROOT / name).exists()]
    if not found:
        pytest.skip("this checkout has no links")
    assert [os.readlink(ROOT / name) for name in LINKS] == [f"relay/{name}" for name in LINKS]


def test_every_folder_of_the_package_is_a_package():
    folders = {path.parent for path in (ROOT / "relay").rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_no_module_is_named_for_nothing():
    assert not [path for path in (ROOT / "relay").rglob("*.py") if path.stem in ("utils", "helpers", "common", "build")]


def test_no_check_of_types_is_switched_off():
    marks = ("type: " + "ignore", "pyright: " + "ignore", "pyright: " + "basic")
    files = [*(ROOT / "relay").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), ROOT / "examples" / "digits" / "run.py"]
    assert [str(path) for path in files if any(mark in path.read_text() for mark in marks)] == []


def test_version_is_written_once():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"] == {"path": "relay/__init__.py"}
    assert relay.__version__.count(".") == 2


def test_two_checkouts_do_not_mix(tmp_path: Path):
    """A checkout runs its own code, also when another relay is found first on the path of imports."""
    other = tmp_path / "relay"
    other.mkdir()
    (other / "__init__.py").write_text("raise RuntimeError('the wrong one')")
    command = [sys.executable, "-m", "relay.tools.relay_opt", "--version"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def readme_programs() -> list[str]:
    """The Python blocks of the README."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that must succeed, run without this environment's paths."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.ci
def test_sdist_and_wheel_install(tmp_path: Path, clone: Path):
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(*pip(tmp_path / "venv"), "install", "-q", "build", cwd=tmp_path)
    run(python, "-m", "build", "--outdir", tmp_path / "dist", clone, cwd=tmp_path)
    (sdist,), (wheel,) = (tmp_path / "dist").glob("*.tar.gz"), (tmp_path / "dist").glob("*.whl")
    with tarfile.open(sdist) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "relay/py.typed", "tests/filecheck/lit.cfg.py"} <= shipped
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    data = {name for name in names if name.startswith("relay/") and not name.endswith(".py")}
    files = {path.relative_to(clone).as_posix() for path in (clone / "relay").rglob("*.*") if path.is_file()}
    assert data == {name for name in files if not name.endswith(".py")} and "relay/py.typed" in data
    assert tops == {"relay", f"relay_mlir-{relay.__version__}.dist-info"}
    run(*pip(tmp_path / "venv"), "install", "-q", "--no-compile", wheel, cwd=tmp_path)
    where = run(python, "-c", "import relay; print(relay.__file__, relay.__version__)", cwd=tmp_path)
    assert str(tmp_path / "venv") in where and where.split()[-1] == relay.__version__
    version = run(tmp_path / "venv" / "bin" / "relay-opt", "--version", cwd=tmp_path)
    assert version.startswith(f"relay-opt {relay.__version__} ")
    help_text = run(tmp_path / "venv" / "bin" / "xdsl-opt", "--help", cwd=tmp_path)
    assert "infer-types" in "".join(help_text.split())
    (tmp_path / "examples").symlink_to(clone / "examples")
    example = next(block for block in readme_programs() if "exe.save" in block)
    assert "the digit is a" in run(python, "-I", "-c", example, cwd=tmp_path)
    runtime = tmp_path / "runtime"
    venv.create(runtime)
    run(python, "-m", "build", "--outdir", tmp_path / "runtimes", clone / "packaging" / "runtime", cwd=tmp_path)
    (wheel,) = (tmp_path / "runtimes").glob("relay_mlir_runtime-*.whl")  # made of the sdist, as pip would
    run(*pip(runtime), "install", "-q", "--no-compile", wheel, cwd=tmp_path)
    listed = run(*pip(runtime), "list", "--format=freeze", cwd=tmp_path)
    assert {line.partition("==")[0] for line in listed.split()} == {"numpy", "relay-mlir-runtime"}
    program = "import relay_mlir_runtime as r; print(r.load('digits.relay').outputs[0].shape)"
    assert run(runtime / "bin" / "python", "-I", "-c", program, cwd=tmp_path) == "(1, 10)\n"


def test_what_is_printed_to_install_an_extra(monkeypatch: pytest.MonkeyPatch):
    """An installed relay keeps itself; a checkout on the path of imports is named by its folder."""
    extras = PROJECT["project"]["optional-dependencies"]

    def absent(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", absent)
    assert all(installation(extra) == f"pip install -e '{ROOT}[{extra}]'" for extra in extras)
    assert installation("") == ""
    monkeypatch.setattr("importlib.metadata.distribution", str)
    assert [installation(extra) for extra in extras] == [f"pip install 'relay-mlir[{extra}]'" for extra in extras]


def test_printed_extras_exist():
    """Every extra that a message or a page names is one of the project's, and no page needs a published package."""
    extras = set(PROJECT["project"]["optional-dependencies"])
    code = "".join(path.read_text() for path in (ROOT / "relay").rglob("*.py"))
    pages = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    assert set(re.findall(r"installation\(['\"](\w+)['\"]\)", code)) <= extras
    assert set(re.findall(r"pip install (?:-e )?'?(?:relay-mlir|\.)\[(\w+)\]", code + pages)) <= extras
    assert "pip install relay-mlir" not in code + pages
