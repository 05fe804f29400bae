"""The blocks of docs/gpu.md run, with a GPU or without; its table of passes is the pipeline's."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import relay
from relay.lowering.gpu.formats import FLOATS
from relay.lowering.gpu.strategies import STRATEGIES
from relay.lowering.gpu.strategies.plain import SingleSchedule
from relay.lowering.scheduling.record import OpSchedule

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gpu.md").read_text()


@pytest.mark.slow
def test_the_examples_run_in_order():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    first, session, emulator = blocks
    on_emulator = ["with emulated_cuda(executable):", *(f"    {line}" for line in session.splitlines())]
    imports = "from tests.unit.gpu_driver import emulated_cuda"
    program = "\n".join([first, imports, *on_emulator, emulator, "print(outputs[0].shape)"])
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ".visible .entry" in done.stdout and done.stdout.splitlines()[-1] == "(1, 10)"
    assert re.search(r"^\[\[-?\d+( +-?\d+){9}\]\]$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", FLOATS)
def test_bounds_are_those_of_the_formats(name: str):
    (row,) = [line.split("|") for line in PAGE.splitlines() if line.startswith(f"| {name} |")]
    depths = [int(number) for number in re.findall(r"n = (\d+) \|", PAGE)]
    assert [float(cell) for cell in row[3:6]] == pytest.approx([FLOATS[name].bound(n) for n in depths], rel=1e-2)


def test_strategies_are_those_of_the_registry():
    table = PAGE.partition("## Schedules")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    said = {name: set(re.findall(r"`(\w+)`", row[2])) for row in rows for name in re.findall(r"`([\w-]+)`", row[0])}
    records = [kind.record for kind in STRATEGIES]
    general = {field.name for field in fields(OpSchedule)}
    assert said.keys() == {record.strategy for record in records}
    for record in records:
        known = {field.name for field in fields(record)} - general
        assert said[record.strategy] in (known, set()) and bool(known) == (record is not SingleSchedule)


def test_passes_are_those_of_the_pipelines():
    named = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", PAGE.partition("## Without a GPU")[0])
    names = {step.name for target in ("cuda", "opencl") for step in relay.default_pipeline(target)}
    assert set(named) - {"mlir-opt", "intel-opencl-rt"} <= names
    assert {name for name in names if "gpu" in name} <= set(named)
