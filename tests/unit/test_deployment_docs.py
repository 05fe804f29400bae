"""The blocks of docs/deployment.md run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.store import FOLDER, LIMIT
from relay.target.resolve import CROSS
from tests.unit.test_runtime_package import writer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deployment.md").read_text()
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
TEXT, PI = PAGE.split("## Raspberry Pi in ten lines")
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PI, re.MULTILINE | re.DOTALL))


@pytest.mark.ci
def test_the_examples_run_in_order(tmp_path: Path):
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
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
    for triple in re.findall(r"`((?!relay)\w+-\w+-\w+)`", TEXT):
        assert triple.partition("-")[0] in CROSS


ALONE = """
import sys
sys.path.insert(0, ".")
sys.modules.update(dict.fromkeys(("relay", "xdsl", "llvmlite", "ml_dtypes")))  # none of them can be imported
"""


@pytest.mark.ci
def test_the_python_for_a_board(tmp_path: Path):
    """It runs, where there is nothing but numpy, and gives what the executable gave before it was saved."""
    writer().write(tmp_path)
    executable = relay.build(DIGITS)
    executable.save(tmp_path / "digits.relay")
    program = f"{ALONE}{BLOCKS['python']}\nprint(exe.run(image).tolist())"
    done = subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "Executable for" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == str(np.asarray(executable.run(np.zeros((1, 8, 8, 1), np.int8))).tolist())


@pytest.mark.slow
def test_the_c_for_a_board(tmp_path: Path):
    """For a Raspberry Pi and under an emulator where there are a compiler and an emulator; else for this machine."""
    main = pytest.importorskip("relay.__main__").main
    if shutil.which("cmake") is None or shutil.which("gcc") is None:
        pytest.skip("cmake or gcc is not installed")
    cross = shutil.which("aarch64-linux-gnu-gcc")
    emulator = next(filter(None, map(shutil.which, ("qemu-aarch64", "qemu-aarch64-static"))), None)
    board = bool(cross and emulator)
    (line,) = (line for line in BLOCKS["sh"].splitlines() if "digits.o" in line)
    words = shlex.split(line.replace("examples/", f"{ROOT}/examples/").replace("digits.o", f"{tmp_path}/digits.o"))
    assert main([word if board or word != "rpi4" else "llvm" for word in words[1:]]) == 0
    (tmp_path / "main.c").write_text(BLOCKS["c"])
    (tmp_path / "CMakeLists.txt").write_text(BLOCKS["cmake"])
    options = ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_C_COMPILER={cross}"] if board else []
    for command in (["cmake", "-B", "build", *options], ["cmake", "--build", "build"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    image = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    run = [str(emulator), "-cpu", "cortex-a72", "-L", "/usr/aarch64-linux-gnu"] if board else ["env"]
    done = subprocess.run([*run, "build/program"], cwd=tmp_path, input=image.tobytes(), capture_output=True)
    assert [*map(int, done.stdout.split())] == np.asarray(relay.build(DIGITS).run(image)).reshape(-1).tolist()
