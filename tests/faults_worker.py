"""Has each call of the C library that a scenario makes fail in turn, or end the process, under `LD_PRELOAD` of
tests/faults.c: `python -m tests.faults_worker MOST`, at most so many of each kind.

Prints JSON: the number of faults by scenario and kind, and a line for each that did not end in a RelayError or the
right result, left a file half written, or harmed the next call.
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
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import relay
from relay.errors import RelayError

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
}
"""What fails, in the order of tests/faults.c, and the error it fails with."""
TEXT = """
func.func @main(%x: tensor<8x4096xf32>) -> tensor<8x4096xf32> {
  %0 = relay.constant dense<2.0> : tensor<4096xf32>
  %1 = relay.multiply %x, %0 : (tensor<8x4096xf32>, tensor<4096xf32>) -> tensor<8x4096xf32>
  return %1 : tensor<8x4096xf32>
}"""
X = np.arange(8 * 4096, dtype=np.float32).reshape(8, 4096)
FAULTS = ctypes.CDLL(None)
Scenario = Callable[[Path], object]


def build(folder: Path) -> object:
    """A build into a cache, empty or not, and a run."""
    os.environ["RELAY_CACHE_DIR"] = str(folder / "cache")
    return relay.build(relay.IRModule.parse(TEXT)).run(X)


def load(folder: Path) -> object:
    """A saved file is loaded and run."""
    return relay.runtime.load(folder / "model.relay").run(X)


def save(folder: Path) -> object:
    """A loaded file is saved."""
    relay.runtime.load(folder / "model.relay").save(folder / "copy.relay")
    return relay.runtime.load((folder / "copy.relay").read_bytes()).run(X)


def export(folder: Path) -> object:
    """An executable from the cache is exported."""
    os.environ["RELAY_CACHE_DIR"] = str(folder / "cache")
    relay.build(relay.IRModule.parse(TEXT)).export(folder / "exported")
    return 2 * X


SCENARIOS: dict[str, tuple[Scenario, bool]] = {
    "cold build": (build, False),
    "warm build": (build, True),
    "load": (load, True),
    "save": (save, True),
    "export": (export, True),
}
"""What is tried, and whether in a folder where it was done before."""


def tried(scenario: Scenario, folder: Path) -> str:
    """What is wrong with how a scenario ends; nothing if it ends well, or in one of our errors."""
    try:
        result = scenario(folder)
    except RelayError:
        return ""
    except BaseException as error:
        return repr(error)
    return "" if np.array_equal(np.asarray(result), 2 * X) else "another result"


def killed(scenario: Scenario, folder: Path, kind: int, number: int) -> None:
    """Have a process of its own end by SIGKILL in the middle of a scenario."""
    child = os.fork()
    if child == 0:
        FAULTS.faults_arm(kind, number, -signal.SIGKILL)
        tried(scenario, folder)
        os._exit(0)
    os.waitpid(child, 0)


def remains(folder: Path) -> list[str]:
    """Names of files that are being written, and of an export of nothing."""
    exported = folder / "exported"
    empty = exported.is_dir() and not any(exported.iterdir())
    return [path.name for path in folder.rglob(".*")] + ["exported"] * empty


def faults(scenario: Scenario, seen: bool, before: Path, most: int) -> Iterator[tuple[str, str]]:
    """Each fault of a scenario by its kind, and what is wrong after it."""
    for kind, (name, error) in enumerate(KINDS.items()):
        if name == "allocate" and "build" in scenario.__name__:
            continue  # LLVM ends the process where it gets no memory
        number, total = 1, 1
        while number <= min(total, most):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch, "folder")
                shutil.copytree(before, folder) if seen else folder.mkdir()
                FAULTS.faults_arm(kind, number, error)
                wrong = tried(scenario, folder)
                total = FAULTS.faults_count(kind)
                FAULTS.faults_arm(-1, 0, 0)
                if total < number:
                    break
                left = remains(folder) if name != "unlink" else []
                wrong = wrong or (f"left {left}" if left else "") or tried(scenario, folder)
                yield name, wrong and f"{name} {number} of {total}: {wrong}"
                killed(scenario, folder, kind, number)
                wrong = tried(scenario, folder)
                yield "kill", wrong and f"killed at {name} {number} of {total}: {wrong}"
            number += 1


def main(most: int) -> None:
    """Try all scenarios once without faults, so that all is imported, then with them."""
    counts: dict[str, dict[str, int]] = {}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        before = Path(scratch, "before")
        before.mkdir()
        build(before)
        relay.build(relay.IRModule.parse(TEXT)).save(before / "model.relay")
        for scenario, _ in SCENARIOS.values():
            assert tried(scenario, before) == ""
        shutil.rmtree(before / "exported")
        (before / "copy.relay").unlink()
        for title, (scenario, seen) in SCENARIOS.items():
            for name, line in faults(scenario, seen, before, most):
                row = counts.setdefault(title, {})
                row[name] = row.get(name, 0) + 1
                wrong += [f"{title}: {line}"] if line else []
    print(json.dumps({"counts": counts, "wrong": wrong}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
