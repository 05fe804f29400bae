"""Has each call of the C library that a scenario makes fail in turn, or come after a signal, under `LD_PRELOAD` of
tests/faults.c: `python -m tests.faults_worker MOST [every-signal]`, at most so many of each kind; where not every
signal is asked for, they take turns.

Prints JSON: the number of faults by scenario and kind, and a line for each that did not end in a RelayError or the
right result (after SIGINT: in one KeyboardInterrupt), left a file half written or a process, or harmed the next call.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

import relay
from relay.compile.workers import LlvmPool
from relay.errors import RelayError
from relay.lowering.codegen import Job, emit, machine_of
from relay.target.resolve import resolve

KINDS = {
    "allocate": errno.ENOMEM,
    "open": errno.EMFILE,
    "read": errno.EIO,
    "write": errno.ENOSPC,
    "fsync": errno.EIO,
    "rename": errno.EACCES,
    "map": errno.ENOMEM,
    "memory file": errno.ENFILE,
    "dlopen": errno.ENOMEM,
    "fork": errno.EAGAIN,
    "make folder": errno.EROFS,
    "pipe": errno.EMFILE,
    "unlink": errno.EPERM,
    "thread": errno.EAGAIN,
}
"""What fails, in the order of tests/faults.c, and the error it fails with."""
TEXT = """
func.func @main(%x: tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  %0 = relay.constant dense<2.0> : tensor<4096xf32>
  %1 = relay.multiply %x, %0 : (tensor<64x4096xf32>, tensor<4096xf32>) -> tensor<64x4096xf32>
  return %1 : tensor<64x4096xf32>
}"""
X = np.arange(64 * 4096, dtype=np.float32).reshape(64, 4096)
MACHINE = machine_of(resolve("llvm"))
JOBS: list[Job] = [
    (f"define i32 @f{n}(i32 %x) {{\n  %y = mul i32 %x, {n}\n  ret i32 %y\n}}\n", MACHINE, 1) for n in (3, 5)
]
CODES = [emit(job) for job in JOBS]
WANTED = 2 * X
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
DEADLY = {
    "build": ("allocate",),  # LLVM ends the process where it gets no memory
    "export": ("allocate",),
    "build_in_processes": ("allocate", "map"),  # Python waits for ever for a thread of its own that gets none
}
"""What is not tried."""
MOST_SECONDS = 60
"""After which what hangs is ended."""
FAULTS = ctypes.CDLL(None)
Scenario = Callable[[Path], object]


def build(folder: Path) -> object:
    """A build into a cache, empty or not, and a run."""
    os.environ["RELAY_CACHE_DIR"] = str(folder / "cache")
    return relay.build(relay.IRModule.parse(TEXT)).run(X)


def build_in_processes(folder: Path) -> object:
    """Modules of LLVM's text are compiled by another process, as those of a large build are."""
    with LlvmPool(emit) as pool:
        pool.start_workers(2)
        for job in JOBS:
            pool.add(job)
        while any(helper.is_alive() for helper in pool.helpers) and None in pool.codes:
            time.sleep(0.001)
        return WANTED if pool.finish() == CODES else None


def load(folder: Path) -> object:
    """A saved file is loaded and run."""
    return relay.runtime.load(folder / "model.relay").run(X)


def save(folder: Path) -> object:
    """A loaded file is saved."""
    relay.runtime.load(folder / "model.relay").save(folder / "copy.relay")
    return relay.runtime.load(folder / "copy.relay").run(X)


def export(folder: Path) -> object:
    """An executable from the cache is exported."""
    os.environ["RELAY_CACHE_DIR"] = str(folder / "cache")
    relay.build(relay.IRModule.parse(TEXT)).export(folder / "exported")
    return WANTED


def run_on_threads(folder: Path) -> object:
    """A saved file is run by two threads."""
    made = relay.runtime.load(folder / "model.relay")
    made.num_threads = 2
    return made.run(X)


SCENARIOS: dict[str, tuple[Scenario, bool]] = {
    "cold build": (build, False),
    "build in processes": (build_in_processes, False),
    "warm build": (build, True),
    "load": (load, True),
    "run on threads": (run_on_threads, True),
    "save": (save, True),
    "export": (export, True),
}
"""What is tried, and whether in a folder where it was done before."""


def tried(scenario: Scenario, folder: Path) -> str:
    """What is wrong with how a scenario ends; nothing if it ends well, or in one of our errors."""
    try:
        result = scenario(folder)
        time.sleep(0)  # an interrupt whose signal another thread got comes here at the latest
    except RelayError:
        return ""
    except BaseException as error:
        return repr(error)
    FAULTS.faults_hold()
    return "" if np.array_equal(np.asarray(result), WANTED) else "another result"


def remains(folder: Path) -> list[str]:
    """Names of files that are being written, an export of nothing, and processes."""
    exported = folder / "exported"
    empty = exported.is_dir() and not any(exported.iterdir())
    return [path.name for path in folder.rglob(".*")] + ["exported"] * empty + ["a process"] * has_children()


def has_children() -> bool:
    """Whether a process that was started is there still, after a moment."""
    end = time.monotonic() + MOST_SECONDS / 4
    with suppress(ChildProcessError):
        while time.monotonic() < end:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.005)
        return True
    return False


def fault(scenario: Scenario, folder: Path, kind: int, number: int, error: int) -> tuple[str, list[int]]:
    """What is wrong after one fault, and how many calls of each kind there were."""
    FAULTS.faults_arm(kind, number, error)
    wrong = tried(scenario, folder)
    counts = [FAULTS.faults_count(each) for each in range(len(KINDS))]
    FAULTS.faults_hold()
    if error == -signal.SIGINT and counts[kind] >= number:
        wrong = "" if wrong == "KeyboardInterrupt()" else wrong or "no KeyboardInterrupt"
    left = remains(folder) if error < 0 or list(KINDS)[kind] != "unlink" else []
    return wrong or (f"left {left}" if left else "") or tried(scenario, folder), counts


def in_child(scenario: Scenario, before: Path | None, kind: int, number: int, error: int) -> tuple[str, list[int]]:
    """`fault` in a process of its own, in a folder like `before`, and what is wrong with how that process ends or, if
    it was killed, with the next call in this one; then there are no counts."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "folder")
        folder.mkdir() if before is None else shutil.copytree(before, folder)
        ends, said = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(MOST_SECONDS)
            try:
                os.write(said, json.dumps(fault(scenario, folder, kind, number, error)).encode())
                os._exit(0)
            finally:
                os._exit(3)
        os.close(said)
        with open(ends) as answer:
            text = answer.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            wrong, counts = json.loads(text)
            return wrong, counts
        killed = code == error and code in (-signal.SIGKILL, -signal.SIGTERM)
        return tried(scenario, folder) if killed else f"the process ends with {code}", []


def faults(scenario: Scenario, before: Path | None, most: int, every: bool) -> Iterator[tuple[str, str]]:
    """Each fault of a scenario by its kind, and what is wrong after it."""
    wrong, totals = in_child(scenario, before, -1, 0, 0)
    yield "none", wrong
    for kind, (name, number_of_error) in enumerate(KINDS.items()):
        if name in DEADLY.get(scenario.__name__, ()):
            continue
        for number in range(1, min(totals[kind], most) + 1):
            signals = SIGNALS if every else [SIGNALS[(kind + number) % len(SIGNALS)]]
            for title, error in {name: number_of_error, **{each.name: -each for each in signals}}.items():
                wrong, counts = in_child(scenario, before, kind, number, error)
                if counts and counts[kind] < number:
                    continue  # it is not called as often each time
                yield title, wrong and f"{title} at {name} {number} of {totals[kind]}: {wrong}"


def main(most: int, every: bool) -> None:
    """Try all scenarios once without faults, so that all is imported, then with them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    counts: dict[str, dict[str, int]] = {}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        before = Path(scratch, "before")
        before.mkdir()
        build(before)
        relay.build(relay.IRModule.parse(TEXT)).save(before / "model.relay")
        for title, (scenario, _) in SCENARIOS.items():
            assert (ends := tried(scenario, before)) == "", f"{title}: {ends}"
        shutil.rmtree(before / "exported")
        (before / "copy.relay").unlink()
        for title, (scenario, seen) in SCENARIOS.items():
            row = counts.setdefault(title, {})
            for name, line in faults(scenario, before if seen else None, most, every):
                row[name] = row.get(name, 0) + 1
                wrong += [f"{title}: {line}"] if line else []
    print(json.dumps({"counts": counts, "wrong": wrong}))


if __name__ == "__main__":
    main(int(sys.argv[1]), every="every-signal" in sys.argv)
