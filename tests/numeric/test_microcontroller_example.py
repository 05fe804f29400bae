"""examples/microcontroller: a model with an accelerator, exported, on this machine and on a Cortex-M55 under QEMU."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

import pytest

from relay.byoc import registry

EXAMPLE = Path(__file__).parents[2] / "examples/microcontroller/build.py"
ARM = ("arm-none-eabi-gcc", "qemu-system-arm")


@pytest.mark.parametrize(
    ("option", "tools"),
    [
        ("--host", ("cc",)),
        pytest.param("", ARM, marks=pytest.mark.slow),
        pytest.param("--object", ARM, marks=pytest.mark.slow),
    ],
)
def test_its_codes_are_those_of_litert(
    option: str,
    tools: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    monkeypatch.setattr(registry.COMPILERS, "registered", dict(registry.COMPILERS.registered))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path), *[option] * bool(option)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert ended.value.code == 0
    said = "20 of 20 images have the codes of LiteRT; multiplications of the accelerator: 646400\n"
    assert capsys.readouterr().out == said
