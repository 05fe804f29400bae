"""What tests of exported objects share: models with outputs, and the programs that link and run code for a machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.lowering.c_interface import TYPES
from relay.runtime import Executable
from tests.numeric.test_models_interpreted import MODELS
from tests.unit.test_build import DATA, DIGITS


@dataclass(frozen=True)
class Machine:
    """A target, and the programs that link and run code for it."""

    target: str
    linker: Sequence[str]
    emulator: Sequence[str]
    packages: str

    def skip(self) -> None:
        for program in (self.linker[0], self.emulator[0]):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed (Debian: {self.packages})")
        if "v=true" in " ".join(self.emulator):
            version = subprocess.run([self.emulator[0], "--version"], capture_output=True, text=True).stdout
            if int(version.split("version ")[1].split(".")[0]) < 8:
                pytest.skip("QEMU 7 ends in an assertion of its own at vector instructions of RISC-V")


CORTEX_M = Machine(
    "thumbv7em-none-eabi", ["arm-none-eabi-gcc"], ["qemu-system-arm"], "gcc-arm-none-eabi, qemu-system-arm"
)


def golden(name: str, count: int) -> tuple[Path, Array, Array]:
    """A model with some of its inputs, and the outputs they have."""
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    stored = np.load(MODELS / "golden" / f"{name}.npz")
    tags = sorted({key.split("_in")[0] for key in stored.files if "_in" in key})[:count]
    return path, np.stack([stored[f"{tag}_in0"] for tag in tags]), np.stack([stored[f"{tag}_out0"] for tag in tags])


def digits(count: int) -> tuple[Path, Array, Array]:
    return DIGITS, DATA["int8_images"][:count, None], DATA["int8_out"][:count].reshape(count, 1, 10)


def types(executable: Executable) -> list[str]:
    names = (("INPUT", executable.inputs[0]), ("OUTPUT", executable.outputs[0]))
    return [f"-D{name}={TYPES[spec.dtype.name]}" for name, spec in names]


def run(command: Sequence[str], folder: Path, data: bytes = b"") -> bytes:
    done = subprocess.run(command, cwd=folder, input=data, capture_output=True, timeout=500)
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
    return done.stdout


def needed(folder: Path) -> set[str]:
    """Functions of libraries that an exported object calls, as its README has them."""
    return {*re.findall("`(\\w+)`", (folder / "relay_model.md").read_text().split("The code calls ")[1].split("\n")[0])}
