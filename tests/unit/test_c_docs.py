"""The blocks of docs/c_compiler.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from relay.byoc.c.toolchain import find
from relay.tools.relay_opt import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "c_compiler.md").read_text()


@pytest.mark.ci
def test_the_examples_run_in_order(tmp_path: Path):
    if find() is None:
        pytest.skip("no C compiler is installed")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    program = "\n".join(blocks).replace('"build/digits"', repr(str(tmp_path)))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "digits.c") in done.stdout
    assert "int32_t relay_c_main_0(void *given, void **tensors)" in done.stdout


def test_the_command_of_the_page_prints_one_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    (arguments,) = re.findall(r"^relay-opt (.*)$", PAGE, re.MULTILINE)
    main(arguments.split())
    text = capsys.readouterr().out
    assert "int model_run(const int8_t *input_0, int8_t *output_0)" in text
    assert '#include "model.h"' not in text
