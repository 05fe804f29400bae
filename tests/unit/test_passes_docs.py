"""docs/passes.md is what the passes say; the blocks of docs/writing_a_pass.md run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from relay.passes import registry
from relay.passes.config import options
from relay.passes.documentation import explanations, summary

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^```(\w+)\n(.*?)^```$", (ROOT / "docs" / "writing_a_pass.md").read_text(), re.MULTILINE | re.DOTALL
)


def python(*args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *args], cwd=ROOT, env=environment, capture_output=True, text=True)


def test_the_page_is_up_to_date():
    code = "import runpy; g = runpy.run_path('docs/pages.py'); print(g['page'](), end='')"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (ROOT / "docs" / "passes.md").read_text(), "run python docs/generate.py"


@pytest.mark.ci
def test_the_examples_run_in_order():
    assert {language for language, _ in BLOCKS} == {"python"} and len(BLOCKS) == 6
    done = python("-W", "error::DeprecationWarning", "-c", "\n".join(code for _, code in BLOCKS))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"main \d+", lines[0]) and any(
        re.fullmatch(r"drop-negations runs at \d+", line) for line in lines
    )
    assert any(line.startswith("legalize: qnn.add -1") for line in lines)


def test_summaries_are_short_sentences():
    said = {cls.name: summary(cls) for cls in registry.ours() if cls.__module__.startswith("relay.")}
    assert len(said) > 50
    assert not {name: text for name, text in said.items() if len(text) >= 90 or not text.endswith(".")}


def test_every_option_is_explained():
    ours = [cls for cls in registry.ours() if cls.__module__.startswith("relay.") and cls.name != "quantize"]
    explained = {cls.name: " ".join((summary(cls), *explanations(cls))) for cls in ours}  # quantize refers to its parts
    missing = [
        f"{cls.name} {name}"
        for cls in ours
        for name, key in options(cls).items()
        if not key.deprecated and not re.search(rf"`{name}\b", explained[cls.name])
    ]
    assert not missing
