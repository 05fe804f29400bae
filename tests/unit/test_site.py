"""The pages of docs/ are a site without a broken link; its picture and generated parts are what the sources give."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.ci
def test_the_site_is_built_without_a_warning(tmp_path: Path):
    pytest.importorskip("mkdocs", reason="pip install -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    assert (tmp_path / "contributing" / "index.html").exists() and (tmp_path / "search").is_dir()


PARTS = [("picture.py", "picture", "stages.svg"), ("pages.py", "architecture_page", "architecture.md")]


@pytest.mark.parametrize(("file", "made", "page"), PARTS)
def test_generated_parts_are_up_to_date(file: str, made: str, page: str):
    names = runpy.run_path(str(ROOT / "docs" / file))
    assert names[made]() == (ROOT / "docs" / page).read_text(), "run python docs/generate.py"
