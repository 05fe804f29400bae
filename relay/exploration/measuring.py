"""What an alternative is judged by: its latency unless the user measures something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import SupportsFloat, cast

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.exploration.trials import Value
from relay.runtime import Executable
from relay.runtime.specification import random_array

Measure = Callable[[Executable], Value]
"""The less, the better; of a tuple, each number for itself."""
Inputs = Sequence[Array] | Mapping[str, Array]

BATCH_SECONDS = 5e-3
"""How long one measurement of latency repeats the run."""


@dataclass(frozen=True)
class Latency:
    """Seconds per run, the mean of a batch of runs that takes some milliseconds."""

    inputs: Inputs | None = None

    def __call__(self, executable: Executable) -> float:
        arguments = inputs_of(executable, self.inputs)
        start = perf_counter()
        executable.run(**arguments)
        count = max(1, min(1000, math.ceil(BATCH_SECONDS / max(perf_counter() - start, 1e-9))))
        if len(arguments) == len(executable.inputs):
            run = partial(executable.run, *(arguments[spec.name] for spec in executable.inputs))
        else:
            run = partial(executable.run, **arguments)
        start = perf_counter()
        for _ in range(count):
            run()
        return (perf_counter() - start) / count


def inputs_of(executable: Executable, inputs: Inputs | None) -> dict[str, Array]:
    """The inputs by name, in the executable's order; random ones, always the same, if none are given. States start
    with their initial values."""
    specs = [spec for spec in executable.inputs if spec.kind == "input"]
    if inputs is None:
        random = np.random.default_rng(0)
        return {spec.name: random_array(spec.shape, spec.dtype, random) for spec in specs}
    if isinstance(inputs, Mapping):
        return dict(inputs)
    if len(inputs) != len(specs):
        raise InvalidArgument("inputs", f"are {len(inputs)}; the model has {len(specs)}")
    return {spec.name: array for spec, array in zip(specs, inputs, strict=True)}


def results_of(executable: Executable, inputs: Inputs | None) -> list[Array]:
    """All results of one run, states included."""
    results = executable.run(**inputs_of(executable, inputs))
    if results is None:
        return [executable.get_output(number) for number in range(len(executable.outputs))]
    return [*results] if isinstance(results, tuple) else [results]


def value_of(measure: Measure, executable: Executable) -> Value:
    """One measurement. Raises InvalidArgument if it is neither a number nor a tuple of numbers."""
    found: object = measure(executable)
    if isinstance(found, tuple) and found:
        return tuple(_number(each, found) for each in cast(tuple[object, ...], found))
    return _number(found, found)


def _number(value: object, whole: object) -> float:
    if isinstance(value, SupportsFloat) and not isinstance(value, str) and not math.isnan(number := float(value)):
        return number
    raise InvalidArgument(
        "measure", f"returned {whole!r}", "return a number, or a tuple of them; the smallest is the best"
    )
