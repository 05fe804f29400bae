"""An executable for any number of rows against builds for each number: `python -m benchmarks.rows MODEL...`.

The two take turns. Of each number of rows: the best and the median time of a run of either, the ratio of the medians,
how much longer the first run on a number takes than later ones, and whether results have the same bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from relay.compile.entry import build
from relay.runtime import DynamicExecutable, Executable
from relay.runtime.memory import Array
from relay.runtime.specification import random_array


def timed(executable: Executable, inputs: Sequence[Array]) -> tuple[float, tuple[Array, ...]]:
    """The seconds of a run, and its results."""
    start = perf_counter()
    found = executable.run(*inputs)
    seconds = perf_counter() - start
    assert found is not None
    return seconds, found if isinstance(found, tuple) else (found,)


def compared(exe: DynamicExecutable, fixed: Executable, rounds: int) -> dict[str, Any]:
    """Times in microseconds, and whether all bytes are the same."""
    random = np.random.default_rng(0)
    inputs = [random_array(spec.shape, spec.dtype, random) for spec in fixed.inputs]
    first, ours = timed(exe, inputs)
    _, wanted = timed(fixed, inputs)
    same = all(a.tobytes() == b.tobytes() for a, b in zip(ours, wanted, strict=True))
    pairs = [(timed(fixed, inputs)[0], timed(exe, inputs)[0]) for _ in range(rounds)]
    each, any_number = ([1e6 * seconds for seconds in column] for column in zip(*pairs, strict=True))
    return {
        "fixed": (min(each), median(each)),
        "any": (min(any_number), median(any_number)),
        "ratio": median(any_number) / median(each),
        "first": 1e6 * first - median(any_number),
        "same": same,
    }


def main(arguments: list[str] | None = None) -> int:
    """1 where results differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rows", default="1,8,32", help="numbers of rows (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args(arguments)
    wrong = 0
    for model in given.models:
        exe = build(model, batch="rows", num_threads=given.threads)
        assert isinstance(exe, DynamicExecutable)
        print(f"{model}: {exe.to_json()['how']['rows']}")
        if not exe.interface.blocks:
            continue
        numbers = [int(text) for text in given.rows.split(",")]
        total = sum(exe.interface.blocks)
        exe.run(*(np.zeros((total, *spec.shape[1:]), spec.dtype) for spec in exe.inputs))  # each block once
        print("  rows   fixed: best, median us     any number: best, median us   ratio   first run +us   same")
        for rows in numbers:
            row = compared(exe, build(model, batch=rows, num_threads=given.threads), given.rounds)
            wrong += not row["same"]
            times = "".join(f"{best:14.1f}{middle:14.1f}" for best, middle in (row["fixed"], row["any"]))
            print(f"{rows:6}{times}{row['ratio']:11.3f}{row['first']:14.0f}   {row['same']}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
