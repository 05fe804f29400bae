"""What `run()` and `run(x)` add to the native call, in microseconds: `python -m benchmarks.overhead MODEL.tflite`.

Each figure is a median, over many rounds, of the difference between a batch of calls and a batch of native calls
right beside it, so that a busy machine moves both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import perf_counter_ns

import numpy as np

import relay
from benchmarks.native import Memory
from relay.runtime import Executable

ROUNDS, BATCH = 400, 20


def native_call(executable: Executable) -> Callable[[], None]:
    """The entry point on memory of its own, as close to C as ctypes comes."""
    memory = Memory(executable)
    function = partial(executable.library.function(executable.graph["entry"]), memory.pointer)
    function.__dict__["memory"] = memory  # lives as long as the function
    return function


def nanoseconds(call: Callable[[], object]) -> float:
    """The time of one call of a batch."""
    start = perf_counter_ns()
    for _ in range(BATCH):
        call()
    return (perf_counter_ns() - start) / BATCH


def overhead(executable: Executable, rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Microseconds: the native call, what `run()` adds, what `run(x)` adds."""
    inputs = [np.zeros(spec.shape, spec.dtype) for spec in executable.inputs]
    for number, array in enumerate(inputs):
        executable.set_input(number, array)
    calls = (native_call(executable), partial(executable.run), partial(executable.run, *inputs))
    rows = [[nanoseconds(call) for call in calls] for _ in range(rounds)]
    return (
        median(native for native, _, _ in rows) / 1e3,
        median(bound - native for native, bound, _ in rows) / 1e3,
        median(given - native for native, _, given in rows) / 1e3,
    )


def main(arguments: Sequence[str]) -> None:
    """Print the figures of each model."""
    for path in arguments:
        native, bound, given = overhead(relay.build(path))
        print(f"{path}: native call {native:.2f} us; run() adds {bound:.2f} us; run(x) adds {given:.2f} us")


if __name__ == "__main__":
    main(sys.argv[1:])
