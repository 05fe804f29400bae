"""A package of another author takes part as it is installed: its compiler, its loader, the tools, a saved file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import relay
from relay.byoc import registry
from relay.errors import Unsupported
from relay.runtime import load
from tests.abacus_plug_in import FOLDER, installed
from tests.installing import install
from tests.unit.pass_modules import DATA, DIGITS, ROOT

SUM = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
"""


def python(site: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run this Python with the checkout and the folder on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, input=text, env=environment, capture_output=True, text=True, cwd=site.parent)


@pytest.mark.ci
def test_relay_opt_knows_it(tmp_path: Path):
    site = install(FOLDER, tmp_path / "site")
    relay_opt = ("-m", "relay.tools.relay_opt", "-p")
    done = python(site, *relay_opt, "annotate-target{targets=abacus}", text=SUM)
    assert done.returncode == 0 and done.stdout.count("byoc.compiler_begin") == 2, done.stderr
    steps = "annotate-target{targets=abacus},merge-compiler-regions,partition-graph,compile-external"
    done = python(site, *relay_opt, steps, text=SUM)
    assert done.returncode == 0 and 'compiler = "abacus"' in done.stdout and "relay.tanh" in done.stdout, done.stderr
    assert 'byoc.requirement = "relay-abacus"' in done.stdout
    done = python(site, *relay_opt, "annotate-target{targets=abacuss}", text=SUM)
    assert done.returncode == 1 and done.stderr.splitlines()[0].endswith(
        "there is no compiler 'abacuss'; did you mean abacus, or install the package that has it"
    )


RUN = f"""
import sys
import numpy as np
from relay.runtime import load

executable = load(sys.argv[1])
data = np.load({str(DATA)!r})
for image, codes in zip(data["int8_images"][:3], data["int8_out"][:3]):
    assert (executable.run(image[None]) == codes).all()
assert not any(name.split(".")[0] in ("xdsl", "relay_abacus.compiler") for name in sys.modules)
print(*executable.externals)
"""


def test_a_saved_executable_runs_in_a_fresh_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site, path = installed(tmp_path, monkeypatch), tmp_path / "digits.relay"
    relay.build(DIGITS, external="abacus").save(path)
    done = python(site, "-c", RUN, str(path))
    assert done.returncode == 0 and done.stdout == "relay_abacus_main_0\n", done.stderr
    monkeypatch.undo()
    with pytest.raises(Unsupported) as caught:
        load(path)
    assert str(caught.value) == (
        "external function relay_abacus_main_0: was compiled by 'abacus', whose loader is not installed; "
        "pip install 'relay-abacus'"
    )


def test_nothing_of_ours_names_it():
    """Its own package is all there is of it."""
    found = [path for path in (ROOT / "relay").rglob("*.py") if "abacus" in path.read_text()]
    assert not found and "abacus" not in registry.names()


@pytest.mark.slow
def test_pip_installs_it(tmp_path: Path):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    source = shutil.copytree(FOLDER, tmp_path / "abacus")
    done = subprocess.run([*pip, str(tmp_path / "site"), str(source)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"pip cannot build here: {done.stderr.strip().splitlines()[-1]}")
    code = "import relay.byoc; print(relay.byoc.find('abacus').name, relay.byoc.registry.requirement('abacus'))"
    done = python(tmp_path / "site", "-c", code)
    assert done.stdout == "abacus relay-abacus\n", done.stderr
