"""The measures by which several builds of one model are compared: latency, unless the user gives another function."""

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
"""A function that measures an executable and returns a number, of which a smaller one is better, or a tuple of such
numbers."""
Inputs = Sequence[Array] | Mapping[str, Array]

BATCH_SECONDS = 5e-3
"""The duration of one latency measurement, in seconds, during which the model is run again and again."""


@dataclass(frozen=True)
class Latency:
    """Measures the seconds of one run: the mean of at most 1000 runs, which together take about `BATCH_SECONDS`."""

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
    """Inputs by name, in the executable's order; if none are given, random ones, which are the same every time. States
    are not included: they keep their initial values. Raises InvalidArgument for a sequence of another length."""
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
    """Run once, and return all results, including states."""
    results = executable.run(**inputs_of(executable, inputs))
    if results is None:
        return [executable.get_output(number) for number in range(len(executable.outputs))]
    return [*results] if isinstance(results, tuple) else [results]


def value_of(measure: Measure, executable: Executable) -> Value:
    """Measure once. Raises InvalidArgument if `measure` returns neither a number nor a tuple of numbers."""
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
