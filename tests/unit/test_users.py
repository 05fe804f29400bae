"""What five kinds of users do first: each script of tests/users in an environment of its own."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import venv
from pathlib import Path
from time import perf_counter

import pytest

USERS = sorted((Path(__file__).parents[1] / "users").glob("*.sh"))
ROOT = Path(__file__).parents[2]


def pip(folder: Path) -> list[str]:
    """The command of this environment's pip for another one, which needs none: its installation takes seconds."""
    return [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]


@pytest.mark.ci
@pytest.mark.parametrize("script", USERS, ids=lambda path: path.stem)
def test_a_user(script: Path, tmp_path: Path, clone: Path):
    (needed,) = re.findall(r"^# needs: \.(\S*)(.*)$", script.read_text(), re.MULTILINE)
    begun, used = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    venv.create(tmp_path / "venv")
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"PATH": f"{tmp_path}/venv/bin:{os.environ['PATH']}", "RELAY_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "examples").symlink_to(ROOT / "examples")
    install = [*pip(tmp_path / "venv"), "install", "-q", "--no-compile", f"{clone}{needed[0]}", *needed[1].split()]
    for command in (install, ["bash", "-euo", "pipefail", str(script)]):
        done = subprocess.run(command, cwd=tmp_path / "work", env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    print(f"{script.stem}: {perf_counter() - begun:.0f} s, {cpu:.0f} s of CPU")
