"""Every block of code in the README runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
SETUP = [code for language, code in BLOCKS if language == "sh" and "venv" in code]
SHELL = [code for language, code in BLOCKS if language == "sh" and "venv" not in code]
PYTHON = [code for language, code in BLOCKS if language == "python"]


def test_every_block_is_of_a_kind_that_is_run():
    assert len(SETUP) == 2 and len(SETUP) + len(SHELL) + len(PYTHON) == len(BLOCKS)
    assert TEXT.count("```") == 2 * len(BLOCKS)


def test_it_is_short_and_shows_what_was_measured():
    assert len(TEXT.splitlines()) < 120
    drawn = (ROOT / "docs" / "latency.svg").read_text()
    models = re.findall(r"^\| (\w\S+) +\| max 0, 0 of \d+ ", TEXT, re.MULTILINE)
    assert len(models) == 9 and all(f">{model}<" in drawn for model in models)


@pytest.mark.ci
@pytest.mark.parametrize("code", PYTHON)
def test_python(code: str, tmp_path: Path):
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "the digit is a" in done.stdout


@pytest.mark.parametrize(
    "line", [pytest.param(x, marks=() if " -p " in x else pytest.mark.ci) for code in SHELL for x in code.splitlines()]
)
def test_shell(line: str):
    command = line.replace("relay-opt", f"{sys.executable} -m relay.tools.relay_opt", 1)
    done = subprocess.run(["bash", "-ec", command], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.ci
def test_example_says_what_it_did():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "examples/digits/run.py"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy    448 of 450, 99.56%" in done.stdout
    assert "integers    4500, equal to those of TFLite's reference kernels" in done.stdout
    assert re.search(r"time        [\d.]+ us per image; built in [\d.]+ s", done.stdout)
    assert re.search(r"arena       [\d.]+ KiB, shared by \d+ buffers", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("command", SETUP)
def test_set_up_on_a_fresh_machine(command: str, clone: Path):
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", str(clone))}
    quick = command.replace("-m pytest", "-m pytest -q tests/unit/test_tflite_reader.py tests/unit/test_universe.py")
    done = subprocess.run(["bash", "-ec", quick], cwd=clone, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "accuracy    448 of 450" in done.stdout or " passed" in done.stdout
