"""Object code of many modules at once: by this process, and by others that it starts for the time of it.

LLVM works for one thread of a process at a time, and what it does is much of a build's time. `python -m
relay.lowering.workers` reads pickled jobs and answers each with object code, or with None where it failed: the process
that asked compiles that one itself, and has the error.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, cast

from relay.lowering.targets import CpuTarget

Job = tuple[str, CpuTarget, int]
"""Text of a module, target, level of optimization."""
Compile = Callable[[Job], bytes]
Progress = Callable[[int, int], object]
"""Told how many of all jobs are done."""

WORTH = 400_000
"""Characters of LLVM IR for which another process is worth its start: about as long as LLVM takes half a second."""
MOST = 8
"""Processes: no build is so large that more are of use."""


def compile_all(jobs: Sequence[Job], compile: Compile, progress: Progress | None = None) -> list[bytes]:
    """Object code of the jobs, in their order, the longest first; `progress` is told how many are done. Raises what
    `compile` raises."""
    codes: list[bytes | None] = [None] * len(jobs)
    waiting = sorted(range(len(jobs)), key=lambda number: len(jobs[number][0]))
    size = sum(len(text) for text, _, _ in jobs)
    helpers = [Helper(jobs, waiting, codes) for _ in range(min(processors(), MOST, size // WORTH, len(jobs)) - 1)]
    try:
        while (number := _next(waiting)) is not None:
            codes[number] = compile(jobs[number])
            if progress is not None:
                progress(sum(code is not None for code in codes), len(jobs))
    finally:
        waiting.clear()
        for helper in helpers:
            helper.end()
    return [compile(job) if code is None else code for job, code in zip(jobs, codes, strict=True)]


def processors() -> int:
    """How many processors this process may use; 1 where no other process can be started as Python."""
    name = Path(sys.executable or "").name
    if not name.startswith(("python", "pypy")) or not hasattr(os, "sched_getaffinity"):
        return 1
    return len(os.sched_getaffinity(0))


def _next(waiting: list[int]) -> int | None:
    try:
        return waiting.pop()
    except IndexError:
        return None


class Helper(threading.Thread):
    """A process, and the thread that gives it jobs until there are none."""

    def __init__(self, jobs: Sequence[Job], waiting: list[int], codes: list[bytes | None]):
        super().__init__(daemon=True)
        self.jobs, self.waiting, self.codes = jobs, waiting, codes
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def run(self) -> None:
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        command = [sys.executable, "-m", "relay.lowering.workers"]
        number: int | None = None
        try:
            with subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
            ) as self.process:
                tasks, answers = self.process.stdin, self.process.stdout
                assert tasks is not None and answers is not None
                while (number := _next(self.waiting)) is not None:
                    pickle.dump(self.jobs[number], tasks, pickle.HIGHEST_PROTOCOL)
                    tasks.flush()
                    answer: object = pickle.load(answers)
                    self.codes[number] = answer if isinstance(answer, bytes) else None
        except Exception:  # it did not start, died, or is something else: what it did not do is done here
            return

    def end(self) -> None:
        """Wait for the job at hand, unless the process whose jobs they are fails."""
        if sys.exc_info()[0] is not None and self.process is not None:
            self.process.kill()
        self.join()


def main(tasks: IO[bytes], answers: IO[bytes]) -> None:
    """Do jobs until there are no more."""
    from relay.lowering.codegen import emit

    while True:
        try:
            job = cast(Job, pickle.load(tasks))
        except EOFError:
            return
        try:
            code = emit(job)
        except Exception:
            code = None
        pickle.dump(code, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
