"""Programs compiled in units, by this process and by helpers."""

from __future__ import annotations

import stat
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.errors import Unsupported
from relay.lowering import program, workers
from relay.lowering.codegen import compile_text, emit
from relay.lowering.targets import host
from relay.lowering.workers import compile_all

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
ADD = "define i32 @relay_add(i32 %a) {{\n  %b = add i32 %a, {}\n  ret i32 %b\n}}\n"


def jobs(count: int) -> list[workers.Job]:
    return [(ADD.format(number), host(), 1) for number in range(count)]


def answers() -> list[bytes]:
    executable = relay.build(DIGITS / "digits_int8.tflite")
    images = np.load(DIGITS / "digits_test.npz")["int8_images"][:20]
    return [np.asarray(executable.run(image[None])).tobytes() for image in images]


def test_units_are_linked_to_what_the_whole_is(monkeypatch: pytest.MonkeyPatch):
    whole = answers()
    found: list[int] = []
    split = program.Program.units

    def small(self: program.Program, size: int = 0) -> list[str]:
        units = split(self, 500)
        found.append(len(units))
        return units

    monkeypatch.setattr(program.Program, "units", small)
    monkeypatch.setattr(workers, "WORTH", 1)
    monkeypatch.setattr(workers, "processors", lambda: 3)
    assert answers() == whole
    assert found[0] > 4


def test_helpers_do_some(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "WORTH", 1)
    monkeypatch.setattr(workers, "processors", lambda: 2)
    here: list[workers.Job] = []

    def slowly(job: workers.Job) -> bytes:
        here.append(job)
        code = emit(job)
        if len(here) == 1:
            for thread in threading.enumerate():
                if isinstance(thread, workers.Helper):
                    thread.join()  # it has done all the others when it ends
        return code

    given = jobs(4)
    assert compile_all(given, slowly) == [emit(job) for job in given]
    assert len(here) == 1


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "printf '\\200'"])
def test_what_a_broken_helper_does_not_do_is_done_here(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken = tmp_path / "python-broken"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(broken))
    monkeypatch.setattr(workers, "WORTH", 1)
    monkeypatch.setattr(workers, "processors", lambda: 3)
    given = jobs(5)
    assert compile_all(given, emit) == [emit(job) for job in given]


def test_what_llvm_refuses_is_told_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "WORTH", 1)
    monkeypatch.setattr(workers, "processors", lambda: 2)
    with pytest.raises(Unsupported, match="llvm: refused the generated code"):
        compile_all([*jobs(2), ("define nonsense", host(), 1), ("define more nonsense", host(), 1)], emit)


def test_a_program_that_is_no_python_is_not_started(monkeypatch: pytest.MonkeyPatch):
    for executable in ("", "/opt/application"):
        monkeypatch.setattr(sys, "executable", executable)
        assert workers.processors() == 1


def test_units_are_found_again_by_their_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    first = compile_text(ADD.format(1), host())
    (kept,) = tmp_path.iterdir()
    monkeypatch.setattr("relay.lowering.codegen.emit", None)
    assert compile_text(ADD.format(1), host()) == first and kept.exists()
