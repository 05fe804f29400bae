"""Compiled models in memory between pages that nobody may touch (tests.guarded; `--guarded` has every test run so), and
that this memory shows what it is for."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay.runtime import Executable
from relay.runtime.memory import Array, address
from relay.runtime.specification import random_array
from tests import guarded
from tests.numeric.test_models_compiled import DIGITS
from tests.numeric.test_models_interpreted import ALL, LARGE, MODELS

ROOT = Path(__file__).parents[2]
SLOW = [pytest.param(MODELS / f"{name}.tflite", id=name, marks=pytest.mark.slow) for name in (*ALL, *LARGE)]
UNWRITTEN = "reads what was not written"
EXAMPLES = [DIGITS / "digits_int8.tflite", DIGITS / "digits_float.tflite"]


def name_of(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", [*EXAMPLES, *SLOW], ids=name_of)
def test_models_between_pages(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"the model {path.stem} is not here")
    made = relay.build(path)
    random = np.random.default_rng(0)
    inputs = {s.name: random_array(s.shape, s.dtype, random) for s in made.inputs if s.kind == "input"}
    for made.num_threads in (1, 2):
        wanted, found = made.run(**inputs), guarded.run(made, **inputs)
        assert guarded.bytes_of_all(found) == guarded.bytes_of_all(wanted)


@pytest.mark.slow
def test_compiled_operators_between_pages() -> None:
    """Those of every default test whose name has `compiled` in it."""
    command = [sys.executable, "-m", "pytest", "-q", "--guarded", "-p", "no:cacheprovider", "-k", "compiled"]
    done = subprocess.run([*command, "tests/ops", "tests/numeric"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def end_of(graph: dict[str, Any], made: Executable, image: Array) -> str:
    """How a run between pages ends with that graph, in a process of its own."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        _, library, params = made
        try:
            guarded.run(Executable(graph, library, params), image)
        except AssertionError as error:
            os._exit(1 if "depend on memory" in str(error) else 2)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "well", 1: UNWRITTEN}.get(code, str(code))


def test_what_the_memory_shows() -> None:
    made = relay.build(EXAMPLES[0])
    image = np.load(DIGITS / "digits_test.npz")["int8_images"][:1]

    def changed(**changes: Any) -> str:
        return end_of({**made.graph, **changes}, made, image)

    output, constants = dict(made.graph["outputs"][0]), made.graph["constants"]
    assert changed() == "well"
    assert changed(arena_bytes=64) == str(-signal.SIGSEGV)
    assert changed(constants_bytes=64, constants=[]) == str(-signal.SIGSEGV)
    assert changed(constants=constants[:-1]) == UNWRITTEN
    assert changed(outputs=[{**output, "shape": [1, 11]}]) == UNWRITTEN
    assert changed(outputs=[{**output, "shape": [1, 9]}]) == str(-signal.SIGSEGV)


def test_writes_beside_a_piece_are_found() -> None:
    room = guarded.Guarded(0, at_end=True)
    piece = room.place(10, 1)
    assert room.touched() == []
    ctypes.memset(address(piece) - 3, 1, 3)
    assert room.touched() == ["piece 0 at [-3, -2, -1]"]
