"""Exported models on a Cortex-M, run by QEMU: the stored outputs of LiteRT's reference kernels, integer by integer.

Of a C library they need memcpy at most.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from relay import signature
from relay.byoc.c import export_c
from relay.byoc.c.ctype import TYPES
from relay.byoc.c.source import numbers
from relay.byoc.c.toolchain import STANDARD, STRICT
from relay.dialects.attributes import Array
from relay.frontend import from_tflite
from tests.numeric.c_sources import split
from tests.numeric.test_models_interpreted import MODELS

BOARD = Path(__file__).parent / "cortex_m"
TOOLS = {"arm-none-eabi-gcc": "gcc-arm-none-eabi, libnewlib-arm-none-eabi", "qemu-system-arm": "qemu-system-arm"}
BOARDS = {"mps2-an385": "cortex-m3", "mps2-an500": "cortex-m7"}

PARTS_OF_GCC = re.compile("__aeabi_(?!mem)")
"""Arithmetic that the processor lacks."""

MAIN = """#include "model.h"
void print(const char *text);
%(inputs)s
%(outputs)s
static void show(const void *data, int32_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (const uint8_t *byte = data; size > 0; --size, ++byte) {
        const char text[] = {digits[*byte >> 4], digits[*byte & 15], 0};
        print(text);
    }
}

int main(void)
{
    const int status = model_run(%(names)s);
%(shown)s    return status;
}
"""


def constant(name: str, array: Array) -> str:
    """An array as C."""
    type = TYPES[array.dtype]
    return f"static const {type.name} {name}[] = {{\n{numbers(np.ascontiguousarray(array).reshape(-1), type)}}};\n"


def output(command: Sequence[str], folder: Path) -> str:
    """What a command that must succeed writes."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_on(board: str, path: Path, inputs: Sequence[Array], folder: Path) -> list[Array]:
    """The outputs of a model on a board."""
    mod = from_tflite(path)
    export_c(mod, folder)
    _, infos = signature.read(mod["main"])
    given = "".join(constant(f"input_{i}", array) for i, array in enumerate(inputs))
    outputs = [f"output_{i}" for i in range(len(infos))]
    parts = {
        "inputs": given,
        "outputs": "".join(
            f"static {TYPES[info.dtype].name} {name}[{int(np.prod(info.shape))}];\n"
            for name, info in zip(outputs, infos, strict=True)
        ),
        "names": ", ".join([*(f"input_{i}" for i in range(len(inputs))), *outputs]),
        "shown": "".join(f"    show({name}, sizeof {name});\n" for name in outputs),
    }
    (folder / "main.c").write_text(MAIN % parts)
    machine = ["-mthumb", f"-mcpu={BOARDS[board]}", "-O2", "-ffreestanding"]
    strict = [flag for flag in STRICT if flag != "-pedantic"]
    command = ["arm-none-eabi-gcc", *STANDARD, *machine, *strict]
    output([*command, "-c", "model.c"], folder)
    needed = output(["arm-none-eabi-nm", "-u", "-j", "model.o"], folder).split()
    assert [name for name in needed if not PARTS_OF_GCC.match(name)] in ([], ["memcpy"])
    files = ["model.o", "main.c", str(BOARD / "start.c"), "-T", str(BOARD / "mps2.ld")]
    link = ["-fno-tree-loop-distribute-patterns", "-nostartfiles", "-specs=nosys.specs", "-o", "model.elf"]
    output([*command, *files, *link], folder)
    qemu = ["qemu-system-arm", "-M", board, "-nographic", "-semihosting-config", "enable=on,target=native"]
    ran = subprocess.run([*qemu, "-kernel", "model.elf"], cwd=folder, capture_output=True, timeout=300, check=False)
    assert ran.returncode == 0, (ran.stdout + ran.stderr).decode()
    return split(bytes.fromhex((ran.stdout or ran.stderr).decode().strip()), infos)


def check(name: str, board: str, folder: Path) -> None:
    for tool, packages in TOOLS.items():
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (Debian: {packages})")
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    (result,) = run_on(board, path, [golden["rand0_in0"]], folder)
    assert np.array_equal(result, golden["rand0_out0"])


def test_keyword_spotting_on_a_cortex_m3_equals_litert(tmp_path: Path):
    check("kws_int8", "mps2-an385", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", ["ad01_int8", "kws_int8", "resnet8_int8", "vww_96_int8"])
def test_models_on_a_cortex_m_equal_litert(name: str, board: str, tmp_path: Path):
    check(name, board, tmp_path)
