"""The blocks of docs/deployment.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from relay.store import FOLDER, LIMIT
from relay.target.resolve import CROSS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deployment.md").read_text()


def test_the_examples_run_in_order(tmp_path: Path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    program = (
        "\n".join(blocks).replace("build/digits", str(tmp_path)).replace('"digits.relay"', repr(str(tmp_path / "d")))
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/relay_model.o" in done.stdout
    assert "int32_t relay_model_run(void *arena, const int8_t *input_0, int8_t *output_0);" in done.stdout


def test_names_are_those_of_the_code():
    assert set(re.findall(r"`(RELAY_\w+)`", PAGE)) == {FOLDER, LIMIT}
    for triple in re.findall(r"`(\w+-\w+-\w+)`", PAGE):
        assert triple.partition("-")[0] in CROSS
