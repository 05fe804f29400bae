"""Programs compiled in units, by this process and by helpers."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.compile import native, workers
from relay.compile.workers import Compilation, LlvmPool
from relay.errors import Unsupported
from relay.lowering import program
from relay.lowering.codegen import compile_text, emit, machine_of
from relay.target import host

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
ADD = "define i32 @relay_add(i32 %a) {{\n  %b = add i32 %a, {}\n  ret i32 %b\n}}\n"


def jobs(count: int) -> list[workers.Job]:
    return [(ADD.format(number), machine_of(host()), 1) for number in range(count)]


def answers() -> list[bytes]:
    executable = relay.build(DIGITS / "digits_int8.tflite")
    images = np.load(DIGITS / "digits_test.npz")["int8_images"][:20]
    return [np.asarray(executable.run(image[None])).tobytes() for image in images]


def test_units_are_linked_to_what_the_whole_is(monkeypatch: pytest.MonkeyPatch):
    whole = answers()
    found: list[int] = []
    add = Compilation.add

    def counted(self: Compilation, unit: str) -> None:
        found.append(len(unit))
        add(self, unit)

    monkeypatch.setattr(Compilation, "add", counted)
    monkeypatch.setattr(program, "UNIT_SIZE", 500)
    monkeypatch.setattr(native, "KERNELS_PER_WORKER", 1)
    monkeypatch.setattr(workers, "processors", lambda: 3)
    assert answers() == whole
    assert len(found) > 4


def compiled(given: Sequence[workers.Job], compile: workers.Compile = emit, progress: workers.Progress | None = None):
    with LlvmPool(compile) as pool:
        pool.start_workers(3)
        for job in given:
            pool.add(job)
        return pool.finish(progress)


def test_helpers_start_without_the_compiler():
    code = "import sys, relay.compile.workers; print(sorted({'numpy', 'xdsl', 'relay.target'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_helpers_do_some(monkeypatch: pytest.MonkeyPatch):
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
    assert compiled(given, slowly) == [emit(job) for job in given]
    assert len(here) == 1


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "printf '\\200'"])
def test_what_a_broken_helper_does_not_do_is_done_here(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken = tmp_path / "python-broken"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(broken))
    monkeypatch.setattr(workers, "processors", lambda: 3)
    given = jobs(5)
    assert compiled(given) == [emit(job) for job in given]


def test_a_process_compiles_while_others_are_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "processors", lambda: 2)
    with LlvmPool(emit) as pool:
        pool.start_workers(2)
        pool.add(jobs(1)[0])
        deadline = time.monotonic() + 60
        while pool.codes[0] is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert pool.codes == [emit(jobs(1)[0])]


def test_a_crew_that_is_given_up_leaves_no_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "processors", lambda: 3)
    with pytest.raises(KeyError), LlvmPool(emit) as pool:
        pool.start_workers(3)
        pool.add(jobs(1)[0])
        raise KeyError
    for helper in pool.helpers:
        assert not helper.is_alive()
        assert helper.process is None or helper.process.returncode is not None


def test_what_llvm_refuses_is_told_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "processors", lambda: 2)
    with pytest.raises(Unsupported, match="llvm: refused the generated code"):
        compiled(
            [*jobs(2), ("define nonsense", machine_of(host()), 1), ("define more nonsense", machine_of(host()), 1)]
        )


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
