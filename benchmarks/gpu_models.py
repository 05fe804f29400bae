"""Models and products on a GPU: values against the CPU's first, then times, whole and by kernel."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import relay
from benchmarks import macs
from benchmarks.cases import Case, module_of
from benchmarks.gpu_device import Clock
from relay.dialects.attributes import Array
from relay.frontend import from_tflite
from relay.module import IRModule
from relay.runtime import Executable
from relay.runtime.cuda_driver import CudaDriver
from relay.runtime.device_program import Binding, Program
from relay.runtime.session import Session
from relay.runtime.specification import TensorSpec

CLOSE = 1e-5
"""The largest difference of floats from the CPU's, by the largest of them."""
CHECKED = 8
"""How many images of a batch are compared."""
RUNS = 30


def numbers(spec: TensorSpec, seed: int = 0) -> Array:
    """Codes of any value, or floats of a normal distribution."""
    rng = np.random.default_rng(seed)
    if spec.dtype.kind == "f":
        return rng.standard_normal(spec.shape).astype(spec.dtype)
    limits = np.iinfo(spec.dtype)
    return rng.integers(limits.min, limits.max, spec.shape, spec.dtype, endpoint=True)


def inputs_of(executable: Executable, seed: int = 0) -> list[Array]:
    """Numbers for each input; states as they start."""
    rows = zip(executable.inputs, executable.graph["inputs"], strict=True)
    initial = ((spec, row.get("initial")) for spec, row in rows)
    return [numbers(spec, seed) if name is None else executable.params[name] for spec, name in initial]


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


@dataclass(frozen=True)
class Kernel:
    """A function of a model: how often it is called does not matter, `us` is all of its launches in a run."""

    name: str
    what: str
    us: float
    macs: int


@dataclass(frozen=True)
class Timed:
    """A model at a batch. `device`: milliseconds where inputs and outputs lie on the device; `run`: of a user's run,
    from and to the host's arrays. `wrong`: how values differ from the CPU's; nothing is timed then."""

    name: str
    batch: int
    build: float
    wrong: str
    launches: int = 0
    macs: int = 0
    device: float = 0.0
    run: float = 0.0
    kernels: tuple[Kernel, ...] = ()

    @property
    def tops(self) -> float:
        """Operations a second, by 10^12."""
        return 2 * self.macs / (1e9 * self.device) if self.device else 0.0

    @property
    def images(self) -> float:
        """Images a second."""
        return 1e3 * self.batch / self.device if self.device else 0.0


def seconds_of(executable: Executable, inputs: Sequence[Array], runs: int) -> float:
    """The median time of a run."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        executable.run(*inputs)
        times.append(time.perf_counter() - start)
    return median(times)


def resident(program: Program) -> Binding:
    """Inputs and outputs on the device."""
    model = program.model
    places = [program.tensors + offset for offset in model.offsets]
    return Binding(tuple(places[: model.inputs]), tuple(places[model.inputs :]))


def timed(
    name: str, driver: CudaDriver, executable: Executable, work: dict[str, macs.Work], batch: int, build: float
) -> Timed:
    """The times of a model whose values are right."""
    inputs = inputs_of(executable)
    session = executable.on(0)
    assert isinstance(session, Session)
    program = session.program
    with driver:
        clock = Clock(driver)
        program.stream = clock.stream
        binding = resident(program)
        device = clock.microseconds(lambda: program.start(binding)) / 1e3
        places = program.places(binding)
        times: dict[str, float] = {}
        for row in program.model.launches:
            function = re.sub(r"_kernel(_\d+)?$", "", row["kernel"])
            maps = program.encoded([row], places)

            def launch(row: Mapping[str, Any] = row, maps: int = maps) -> None:
                program.launch(row, places, clock.stream, maps)

            times[function] = times.get(function, 0.0) + clock.graph_of(launch)
            program.free(maps)
        clock.close()
        program.stream = program.own
    calls: list[str] = executable.graph["kernels"]
    found = [
        Kernel(each, work[each].what, us, calls.count(each) * work[each].macs)
        for each, us in times.items()
        if each in work
    ]
    whole = sum(work[call].macs for call in calls if call in work)
    run = 1e3 * seconds_of(executable, inputs, RUNS)
    launches = len(program.model.launches)
    return Timed(name, batch, build, "", launches, whole, device, run, tuple(found))


def model_at(path: Path, batch: int, driver: CudaDriver, target: str) -> Timed:
    """A model at a batch: each image's values are those of the CPU at batch 1."""
    start = time.perf_counter()
    executable = relay.build(path, target=target, frontend={"batch": batch})
    build = time.perf_counter() - start
    inputs, one = inputs_of(executable), relay.build(path, frontend={"batch": 1})
    found = outputs_of(executable, inputs)
    for image in range(min(batch, CHECKED)):
        given = [cut(array, image, batch) for array in inputs]
        if wrong := differ([cut(array, image, batch) for array in found], outputs_of(one, given)):
            return Timed(path.stem, batch, build, f"image {image}: {wrong}")
    work = macs.kernels_of(relay.optimize(from_tflite(path, batch=batch), target=target))
    return timed(path.stem, driver, executable, work, batch, build)


def cut(array: Array, image: int, batch: int) -> Array:
    """An image's part of a batch."""
    rows = array.shape[0] // batch
    return array[image * rows : (image + 1) * rows]


def product(rows: int, columns: int, depth: int) -> IRModule:
    """A product of codes [rows, depth] with weights, rescaled to codes: an image's channels are the depth."""
    width = 64 if rows % 64 == 0 else 1
    return module_of(Case("int8", (rows // width, width, depth), (columns, 1, 1, depth), codes=True))


def products(sizes: Sequence[int], driver: CudaDriver, targets: Sequence[str]) -> Iterator[Timed]:
    """Square products for each target: the first rows' values against the CPU's."""
    for size in sizes:
        module = product(size, size, size)
        few = relay.build(product(min(size, 64), size, size))
        spec, work = few.inputs[0], macs.kernels_of(relay.optimize(module, target=targets[0]))
        wanted: Array | None = None
        for target in targets:
            start = time.perf_counter()
            executable = relay.build(module, target=target)
            build = time.perf_counter() - start
            (data,) = inputs_of(executable)
            if wanted is None:
                wanted = outputs_of(few, [data.reshape(-1)[: prod(spec.shape)].reshape(spec.shape)])[0]
            found = outputs_of(executable, [data])[0].reshape(-1)[: wanted.size].reshape(wanted.shape)
            name = f"int8 product {size}, {'wgmma' if 'wgmma' in executable.get_source('ptx') else 'mma.sync'}"
            if wrong := differ([found], [wanted]):
                yield Timed(name, 1, build, wrong)
            else:
                yield timed(name, driver, executable, work, 1, build)
