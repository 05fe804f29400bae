"""The worker process that runs one model in one runtime.

`python -m relay.tools.peers.worker PEER MODEL THREADS INPUTS OUTPUTS` prints JSON lines: first the time that loading
took and the memory it needed; then, for each line with a number of seconds on its input, the median and the minimum
time of the calls that fit into these seconds, and the median processor time of a call (all threads). `INPUTS` is a
`.npz` file; the first call's outputs are written to `OUTPUTS`, also a `.npz`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from relay.tools.peers import Skipped, adapter

MINIMUM = 3
"""The minimum number of calls in a measurement, even if they take longer than its planned duration."""


def measure(call: Callable[[], object], seconds: float) -> dict[str, float]:
    """Call the function repeatedly for this many seconds. Returns the median and minimum time, the median processor
    time, all in seconds, and the number of calls."""
    times, processor = list[float](), list[float]()
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < MINIMUM:
        before, start = process_time(), perf_counter()
        call()
        times.append(perf_counter() - start)
        processor.append(process_time() - before)
    medians = {"median": float(np.median(times)), "processor": float(np.median(processor))}
    return {**medians, "minimum": min(times), "calls": len(times)}


def peak_memory() -> float:
    """The peak memory of this process in MiB. (`getrusage` would include the parent's memory before the start.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def main(peer: str, model: str, threads: str, inputs: str, outputs: str) -> None:
    """Load the model, then serve measurement requests from standard input until it is closed."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # keep what the runtime prints out of the JSON lines
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    with np.load(inputs) as arrays:
        given = [arrays[f"arr_{n}"] for n in range(len(arrays.files))]
    start, before = perf_counter(), peak_memory()
    try:
        session = adapter(peer).load(Path(model), int(threads), given)
        loaded = perf_counter() - start
        session.call()
        np.savez(outputs, *session.outputs())
    except Skipped as why:
        print(json.dumps({"skipped": str(why)}), file=answers)
        return
    except Exception as error:
        print(json.dumps({"failed": f"{type(error).__name__}: {error}".splitlines()[0]}), file=answers)
        return
    print(json.dumps({"build_s": loaded, "memory_mib": peak_memory(), "before_mib": before}), file=answers)
    for line in sys.stdin:
        print(json.dumps(measure(session.call, float(line))), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
