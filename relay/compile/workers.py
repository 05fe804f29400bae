"""Compiles many modules in parallel: in this process, and in worker processes that live as long as the build.

LLVM compiles for only one thread of a process at a time, and takes much of a build's time. `python -m
relay.compile.workers` reads pickled jobs and answers each with object code, or with None if it failed: the parent
process then compiles the module itself, which raises the error.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import threading
from bisect import insort
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from relay.errors import Unsupported
from relay.lowering.codegen import Job, NativeCode, emit, key_of_job, machine_of
from relay.store import store

if TYPE_CHECKING:
    from relay.target import Target

Compile = Callable[[Job], bytes]
Progress = Callable[[int, int], object]
"""Called with the number of finished jobs, and the number of all jobs."""

MOST = 8
"""The largest number of worker processes; no build is large enough for more."""
MACHINE_CODE = re.compile(r"@llvm\.(?:aarch64|amdgcn|arm|nvvm|riscv|spv|wasm|x86)\.|\basm\b")
"""Matches text in LLVM IR that can only be compiled for particular machines."""


_APART: ContextVar[dict[str, bytes] | None] = ContextVar("codes of kernels that are compiled apart", default=None)


@contextmanager
def kernels_apart() -> Generator[None]:
    """In this context, builds compile each kernel as its own module, and kernels with equal text once."""
    token = _APART.set({})
    try:
        yield
    finally:
        _APART.reset(token)


class Compilation:
    """A context that compiles a program's modules: each is looked up in the cache by its text, or compiled by a pool.
    `codes`: the object code of modules that are compiled already, by key."""

    def __init__(self, target: Target, level: int = 3, compile: Compile = emit, codes: dict[str, bytes] | None = None):
        self.target, self.level = target, level
        self.machine = machine_of(target)
        self.pool = LlvmPool(compile)
        self.keys: list[str] = []
        self.missing: list[str] = []
        kept = _APART.get()
        self.apart = kept is not None
        self.codes = codes if codes is not None else {} if kept is None else kept

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, failed: type[BaseException] | None, error: object, trace: object) -> None:
        self.pool.__exit__(failed, error, trace)

    def add(self, unit: str) -> None:
        """Add a module, given as LLVM IR text."""
        job = (unit, self.machine, self.level)
        key = key_of_job(job)
        self.keys.append(key)
        if key in self.codes or key in self.missing:
            return
        kept = store()
        if kept is not None and (code := kept.get(key)) is not None:
            self.codes[key] = code
        else:
            self.missing.append(key)
            self.pool.add(job)

    def finish(self, whole: Callable[[], str], progress: Progress | None = None) -> NativeCode:
        """Wait for the object code of all modules. `whole` returns the LLVM IR of the whole program; it is called only
        if this text is requested. `progress` is called with the number of finished modules, and the number of all."""
        kept = store()
        for key, code in zip(self.missing, self.pool.finish(progress), strict=True):
            self.codes[key] = code
            if kept is not None:
                kept.put(key, code)
        return NativeCode(tuple(self.codes[key] for key in self.keys), whole, self.target, self.level)


class LlvmPool:
    """Compiles LLVM modules: in worker processes as soon as a module is added, and in this process during `finish`.

    It is a context manager: at the end of its `with` block, modules that are still waiting are dropped.
    """

    def __init__(self, compile: Compile):
        self.compile = compile
        self.jobs: list[Job] = []
        self.codes: list[bytes | None] = []
        self.helpers: list[Helper] = []
        self._waiting: list[int] = []
        self._open = True
        self._changed = threading.Condition()

    def __enter__(self) -> LlvmPool:
        return self

    def __exit__(self, failed: type[BaseException] | None, error: object, trace: object) -> None:
        with self._changed:
            self._waiting.clear()
        self._close()
        for helper in self.helpers:
            if failed is not None and helper.process is not None:
                helper.process.kill()
            helper.join()

    def start_workers(self, wanted: int) -> None:
        """Start worker processes up to `wanted` processes including this one, and at most one for each processor."""
        with suppress(RuntimeError):  # the system has no more threads
            while len(self.helpers) + 1 < min(wanted, processors(), MOST):
                self.helpers.append(Helper(self))

    def add(self, job: Job) -> None:
        """Add a module to compile."""
        with self._changed:
            self.jobs.append(job)
            self.codes.append(None)
            insort(self._waiting, len(self.jobs) - 1, key=lambda number: len(self.jobs[number][0]))
            self._changed.notify()

    def finish(self, progress: Progress | None = None) -> list[bytes]:
        """Wait for the object code of all modules, in order. `progress` is called with the number of finished ones.
        Raises the errors of `compile`."""
        self._close()
        while (number := self.next()) is not None:
            self.done(number, self.compile(self.jobs[number]))
            if progress is not None:
                progress(sum(code is not None for code in self.codes), len(self.jobs))
        for helper in self.helpers:
            helper.join()
        return [self.compile(job) if code is None else code for job, code in zip(self.jobs, self.codes, strict=True)]

    def next(self) -> int | None:
        """Take the waiting module with the longest text and return its number, blocking until there is one; None if no
        more will come."""
        with self._changed:
            while self._open and not self._waiting:
                self._changed.wait()
            return self._waiting.pop() if self._waiting else None

    def done(self, number: int, code: bytes | None) -> None:
        """Record the code of a module, or None if its worker failed. The text of a compiled module is dropped."""
        self.codes[number] = code
        if code is not None:
            _, machine, level = self.jobs[number]
            self.jobs[number] = ("", machine, level)

    def _close(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()


def processors() -> int:
    """The number of processors that this process may use; 1 if the interpreter cannot be started as another process."""
    name = Path(sys.executable or "").name
    if not name.startswith(("python", "pypy")) or not hasattr(os, "sched_getaffinity"):
        return 1
    return len(os.sched_getaffinity(0))


class Helper(threading.Thread):
    """A worker process, with the thread that sends jobs to it."""

    def __init__(self, pool: LlvmPool):
        super().__init__(daemon=True)
        self.pool = pool
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def run(self) -> None:
        try:
            with started(subprocess.DEVNULL) as self.process:
                tasks, answers = self.process.stdin, self.process.stdout
                assert tasks is not None and answers is not None
                while (number := self.pool.next()) is not None:
                    pickle.dump(self.pool.jobs[number], tasks, pickle.HIGHEST_PROTOCOL)
                    tasks.flush()
                    answer: object = pickle.load(answers)
                    self.pool.done(number, answer if isinstance(answer, bytes) else None)
                self.process.kill()  # it may be starting still, and has nothing to do
        except Exception:  # it did not start, died, or is something else: what it did not do is done here
            return


def started(errors: int) -> subprocess.Popen[bytes]:
    """Start a worker process; `errors` is the file that receives LLVM's messages."""
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "relay.compile.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
    )


def emit_apart(job: Job) -> bytes:
    """Run `emit`, in another process if the text has instructions of a particular machine: LLVM ends the process if the
    job's target lacks them. Raises Unsupported."""
    if MACHINE_CODE.search(job[0]) is None:
        return emit(job)
    with started(subprocess.PIPE) as process:
        answer, said = process.communicate(pickle.dumps(job, pickle.HIGHEST_PROTOCOL))
    if process.returncode < 0:
        lines = said.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise Unsupported("llvm", f"has no instruction of {job[1].triple} for the generated code: {lines[-1]}")
    code: object = pickle.loads(answer) if answer else None
    return code if isinstance(code, bytes) else emit(job)


def main(tasks: IO[bytes], answers: IO[bytes]) -> None:
    """The main function of a worker: do jobs until the input ends."""
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
