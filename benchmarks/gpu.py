"""Models on a GPU: values against the CPU's, then times. `python -m benchmarks.gpu [--target cuda] MODEL.tflite ...`

A run is what a user's is: inputs copied to the device, all launches, outputs copied back, by one graph. The table is
markdown; nothing is printed of a model whose values differ but that they do.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np

import relay
from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.runtime import Executable

WARM, RUNS = 5, 100
CLOSE = 1e-5
"""The largest difference of floats from the CPU's, by the largest of them."""


def inputs_of(executable: Executable, seed: int = 0) -> list[Array]:
    """Numbers of any value for codes, and of a normal distribution for floats; states as they start."""
    rng, found = np.random.default_rng(seed), list[Array]()
    for spec, row in zip(executable.inputs, executable.graph["inputs"], strict=True):
        if row.get("initial") is not None:
            found.append(executable.params[row["initial"]])
        elif spec.dtype.kind in "iu":
            limits = np.iinfo(spec.dtype)
            found.append(rng.integers(limits.min, limits.max, spec.shape, spec.dtype, endpoint=True))
        else:
            found.append(rng.standard_normal(spec.shape).astype(spec.dtype))
    return found


def outputs_of(executable: Executable, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a run."""
    found = executable.run(*inputs)
    assert found is not None
    return [*found] if isinstance(found, tuple) else [found]


def differ(found: Sequence[Array], wanted: Sequence[Array]) -> str:
    """How the outputs differ; nothing if they do not."""
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a.dtype.kind in "iub":
            if wrong := int((a != b).sum()):
                return f"output {number}: {wrong} of {b.size} integers differ"
        elif b.size and not np.abs(a - b).max() <= CLOSE * np.abs(b).max():
            return f"output {number}: off by {np.abs(a - b).max() / np.abs(b).max():.1e} of the largest"
    return ""


def milliseconds(executable: Executable, inputs: Sequence[Array]) -> tuple[float, float]:
    """The median and the least time of a run."""
    for _ in range(WARM):
        executable.run(*inputs)
    times: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        executable.run(*inputs)
        times.append(1e3 * (time.perf_counter() - start))
    return median(times), min(times)


def rows(models: Sequence[Path], target: str) -> Iterator[str]:
    """A row for each model."""
    yield "| model | launches | build, s | median, ms | least, ms | CPU, ms | values |"
    yield "|---|---|---|---|---|---|---|"
    for path in models:
        start = time.perf_counter()
        executable = relay.build(path, target=target)
        build = time.perf_counter() - start
        cpu = relay.build(path)
        inputs = inputs_of(cpu)
        wrong = differ(outputs_of(executable, inputs), outputs_of(cpu, inputs))
        if wrong:
            yield f"| {path.stem} | | {build:.1f} | | | | {wrong} |"
            continue
        middle, least = milliseconds(executable, inputs)
        launches = len(executable.graph["device"]["launches"])
        numbers = f"{build:.1f} | {middle:.3f} | {least:.3f} | {milliseconds(cpu, inputs)[0]:.3f}"
        yield f"| {path.stem} | {launches} | {numbers} | equal |"


def device_of(target: str) -> str:
    """The device's name, and the target for it. Raises RelayError where there is none."""
    if target.startswith("opencl"):
        from relay.runtime.opencl_driver import NAME, OpenClDriver

        driver = OpenClDriver()
        return driver.info(driver.device, NAME).decode(errors="replace").rstrip("\0")
    from relay.runtime.cuda_driver import CudaDriver

    cuda = CudaDriver()
    major, minor = cuda.capability
    return f"{cuda.name} (sm_{major}{minor})"


def main() -> None:
    """Print the table, with the device and the date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda", help='"cuda", "cuda -arch=sm_90a", "opencl"')
    parser.add_argument("models", nargs="+", type=Path)
    arguments = parser.parse_args()
    try:
        print(f"{device_of(arguments.target)}, {arguments.target}, {date.today()}\n")
        for row in rows(arguments.models, arguments.target):
            print(row, flush=True)
    except RelayError as error:
        sys.exit(f"benchmarks.gpu: {error}")


if __name__ == "__main__":
    main()
