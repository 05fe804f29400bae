"""A process that imports, builds and runs damaged models; another one watches it. Run as `python -m`.

Each line of standard input is the path of a file; each line of output says in JSON how it ended: `end`, the seconds of
processor time that the importer took, and the most memory that it held beyond what it had.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np

from relay import signature
from relay.driver import build
from relay.errors import RelayError
from relay.frontend import from_tflite
from relay.module import IRModule

SPARE = 192 << 20
"""Bytes of address space that importing may take beyond `PER_BYTE` for each of the file's."""
PER_BYTE = 64
LARGEST = 1 << 22
"""Elements of all values of a module that is built and run."""


def imported(file: bytes) -> IRModule | None:
    """The module, within bounded memory."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + SPARE + PER_BYTE * len(file), hard))
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
"""Hashes of the modules that were built."""


def end_of(file: bytes) -> tuple[str, float]:
    """How the file ends, and the seconds of the importer."""
    start, taken = time.process_time(), 0.0
    try:
        module = imported(file)
        taken = time.process_time() - start
        assert module is not None
        if elements(module) > LARGEST:
            return "large", taken
        key = sha256(module.to_text(weights=True).encode()).digest()
        if key in built:
            return "like one before", taken
        built.add(key)
        run(module)
        return "ran", taken
    except RelayError as error:
        return type(error).__name__ if not taken else f"not built: {type(error).__name__}", taken
    except Exception as error:
        return f"{'building' if taken else 'importing'}: {error!r}"[:2000], taken


def main() -> None:
    os.environ["RELAY_CACHE_DIR"] = "off"
    for line in sys.stdin:
        end, seconds = end_of(Path(line.rstrip("\n")).read_bytes())
        print(json.dumps({"end": end, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
