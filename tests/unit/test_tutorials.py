"""The tutorials run, block by block, in a folder of their own; the other pages name what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from relay.target import host

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOOLS = f"""
relay() {{ "{sys.executable}" -m relay "$@"; }}
relay-opt() {{ "{sys.executable}" -m relay.tools.relay_opt "$@"; }}
python() {{ "{sys.executable}" "$@"; }}
"""


def blocks(page: str) -> list[tuple[str, str]]:
    text = (DOCS / page).read_text()
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert text.count("```") == 2 * len(found)
    return found


def run(page: str, folder: Path, warnings: str = "error::DeprecationWarning") -> str:
    """What the page prints: Python in one process, the shell's blocks between, but those that install packages, and
    record with them for hours what is committed."""
    lines = ["import subprocess"]
    for language, code in blocks(page):
        if language == "python":
            lines.append(code)
        elif language == "sh" and not code.startswith("pip install"):
            lines.append(f"subprocess.run(['bash', '-euc', {TOOLS + code!r}], check=True)")
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-W", warnings, "-c", "\n".join(lines)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_models(tmp_path: Path) -> None:
    assert {language for language, _ in blocks("tutorial_models.md")} == {"python", "sh", "text"}
    out = run("tutorial_models.md", tmp_path)
    assert re.search(r"the digit is a (\d) and should be a \1", out) and "relay_model.h" in out


@pytest.mark.slow
def test_onnx(tmp_path: Path) -> None:
    """Each block of text after the first is what was printed."""
    pytest.importorskip("onnxruntime")
    if host().saturates_in_libraries:
        pytest.skip("ONNX Runtime's sums of products by int8 saturate on this processor")
    out = run("tutorial_onnx.md", tmp_path)
    for printed in [text for language, text in blocks("tutorial_onnx.md") if language == "text"][1:]:
        assert printed in out, out


@pytest.mark.keras
def test_keras(tmp_path: Path) -> None:
    pytest.importorskip("keras")
    out = run("tutorial_keras.md", tmp_path, warnings="default")  # Keras itself warns
    differs = re.search(r"int8 differs by ([\d.]+)%", out)
    assert differs and 0 < float(differs[1]) < 10 and (tmp_path / "digits.relay").exists()


@pytest.mark.keras
def test_keras_page(tmp_path: Path) -> None:
    pytest.importorskip("keras")
    run("keras.md", tmp_path, warnings="default")


@pytest.mark.torch
def test_pytorch_page(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run("pytorch.md", tmp_path, warnings="default")


@pytest.mark.torch
def test_pytorch(tmp_path: Path) -> None:
    for name in ("torch", "torchao", "executorch"):
        pytest.importorskip(name)
    out = run("tutorial_pytorch.md", tmp_path, warnings="default")  # PyTorch itself warns
    differs = re.search(r"int8 differs by ([\d.]+)%", out)
    assert differs and 0 < float(differs[1]) < 10 and (tmp_path / "digits.relay").exists()
    assert "products of integers: 100%" in out


@pytest.mark.ci
def test_accelerators(tmp_path: Path) -> None:
    out = run("tutorial_accelerators.md", tmp_path)
    assert "systolic" in out and "matrix" in out
    (compiler,) = [code for _, code in blocks("tutorial_accelerators.md") if "class Matrix" in code]
    assert len([line for line in compiler.splitlines() if line.strip()]) <= 50


@pytest.mark.ci
def test_the_page_of_what_is_supported_is_up_to_date() -> None:
    code = "import runpy; g = runpy.run_path('docs/pages.py'); print(g['support_page'](), end='')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (DOCS / "support.md").read_text(), "run python docs/generate.py"


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", re.sub(r"`[^`\n]*`", "", page.read_text())):
        assert link.startswith("http") or (page.parent / link).exists(), link


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= set(re.findall(r"\]\((\w+\.md)\)", index))


def test_what_is_named_is_there() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`((?:relay|tests|docs)/[\w./]+)`", contributing):
        assert (ROOT / path).exists(), path
    assert "run: .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
