"""A process that imports, builds and runs damaged models; another one watches it. Run as `python -m`.

Each line of standard input is the path of a file; each line of output is an `Outcome` in JSON.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import sys
import time
import tracemalloc
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from relay import signature
from relay.compile.entry import build
from relay.errors import RelayError
from relay.frontend import from_tflite
from relay.module import IRModule

SPACE = 256 << 20
"""Bytes of address space that importing may take: where this ends there is a MemoryError, and no harm to others."""
LARGEST = 1 << 22
"""Elements of all values of a module that is built and run."""
WEIGHTS = re.compile(r"dense_resource<[^>]*>")


class Outcome(NamedTuple):
    """How a file ended, the seconds of processor time of its import, and the most bytes that it held at a time, beyond
    the file. Time is taken while each allocation is traced: without, it is a third or so."""

    end: str
    seconds: float
    memory: int


def imported(file: bytes) -> IRModule:
    """The module, within bounded memory."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + SPACE, hard))
    try:
        module = from_tflite(file)
        module.verify()
        return module
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def elements(module: IRModule) -> int:
    """Of all values together."""
    shapes = [getattr(value.type, "get_shape", tuple)() for op in module.op.walk() for value in op.results]
    return sum(math.prod(shape) for shape in shapes)


def run(module: IRModule) -> None:
    """Build it and run it once."""
    executable = build(module, opt_level=0)
    inputs = [info for info in signature.read(module["main"])[0] if info.kind == "input"]
    executable.run(*(np.ones(info.shape, info.dtype) for info in inputs))


built: set[bytes] = set()
"""Hashes of the modules that were built, without their weights."""


def fate(module: IRModule) -> str:
    """Build and run what is like no module before, but for its weights."""
    if elements(module) > LARGEST:
        return "large"
    key = sha256(WEIGHTS.sub("", module.to_text()).encode()).digest()
    if key in built:
        return "like one before"
    built.add(key)
    try:
        run(module)
    except RelayError as error:
        return f"not built: {type(error).__name__}"
    except Exception as error:
        return f"building: {error!r}"[:2000]
    return "ran"


def measured(file: bytes) -> tuple[IRModule | None, Outcome]:
    """Import a file; where there is no module, the outcome says why."""
    module, end = None, "imported"
    tracemalloc.start()
    start = time.process_time()
    try:
        module = imported(file)
    except RelayError as error:
        end = type(error).__name__
    except Exception as error:
        end = f"importing: {error!r}"[:2000]
    seconds = time.process_time() - start
    _, memory = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return module, Outcome(end, seconds, memory)


def main() -> None:
    os.environ["RELAY_CACHE_DIR"] = "off"
    for line in sys.stdin:
        module, outcome = measured(Path(line.rstrip("\n")).read_bytes())
        if module is not None:
            outcome = outcome._replace(end=fate(module))
        print(json.dumps(outcome._asdict()), flush=True)


if __name__ == "__main__":
    main()
