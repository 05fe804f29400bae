"""The blocks of docs/embedding.md run in order, in one process and one folder; those that need LLVM 22, where it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "embedding.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
HAS_MLIR = (
    shutil.which("mlir-opt-22") is not None and Path("/usr/lib/llvm-22/lib/libmlir_runner_utils.so.22.1").exists()
)


def script(blocks: list[tuple[str, str]], folder: Path) -> str:
    """Python that does what the blocks say: a file is written that a block of MLIR names, a shell's lines are run."""
    lines = ["import subprocess"]
    for language, code in blocks:
        if language == "python":
            lines.append(code)
        elif language == "mlir":
            (folder / code.split()[1]).write_text(code)
        else:
            command = f'relay-opt() {{ "{sys.executable}" -m relay.tools.relay_opt "$@"; }}\n{code}'
            lines.append(f"subprocess.run(['bash', '-euo', 'pipefail', '-c', {command!r}], check=True)")
    return "\n".join(lines)


def run(blocks: list[tuple[str, str]], folder: Path) -> str:
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", script(blocks, folder)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_block_is_of_a_kind_that_is_run() -> None:
    assert TEXT.count("```") == 2 * len(BLOCKS)
    assert {language for language, _ in BLOCKS} == {"python", "mlir", "sh"} and len(BLOCKS) == 10


def test_the_conversion_is_small() -> None:
    (conversion,) = [code for _, code in BLOCKS if "class TosaToRelay" in code]
    assert len([line for line in conversion.splitlines() if line.strip()]) < 60


@pytest.mark.ci
def test_without_mlir(tmp_path: Path) -> None:
    """A foreign context takes our dialects and passes; a layer from elsewhere is built and run."""
    first = next(number for number, (_, code) in enumerate(BLOCKS) if "mlir-opt" in code)
    assert "relay.nn.dense" not in (out := run(BLOCKS[:first], tmp_path)) and "relay.fixed_point_multiply" in out


@pytest.mark.slow
@pytest.mark.skipif(not HAS_MLIR, reason="mlir-opt-22 and mlir-runner-22 are not installed (package mlir-22-tools)")
def test_the_whole_page(tmp_path: Path) -> None:
    assert "relay.nn_dense" not in run(BLOCKS, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_MLIR, reason="mlir-opt-22 is not installed (package mlir-22-tools)")
def test_the_shell_of_the_page_on_upstream(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "upstream.md").read_text()
    blocks = [("sh", code) for code in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    assert len(blocks) == 3 and "linalg.conv_2d_nhwc_fhwc_q" in run(blocks, tmp_path)
    assert "define void @main(ptr" in (tmp_path / "level2.ll").read_text()
