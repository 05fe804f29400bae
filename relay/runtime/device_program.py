"""A model on a device: its constants are uploaded once; a run is one graph of copies and launches, or several with work
of the host between them."""

from __future__ import annotations

import ctypes
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from relay.errors import RelayError

if TYPE_CHECKING:
    from relay.runtime.cuda_driver import CudaDriver
    from relay.runtime.opencl_driver import OpenClDriver

    Driver = CudaDriver | OpenClDriver
    """A driver opened for one device; its methods are called inside its `with`. Both have the same ones."""

Call = Callable[[int, int], None]
ALIGNMENT = 256
MAP_BYTES = 256
"""The distance in bytes between tensor maps in device memory; each must start at a multiple of 64."""
GRAPHS = 8
"""The largest number of sets of addresses for which a program keeps captured graphs."""


class Model:
    """The kernels and constants of a model on a device, used by all its programs there."""

    def __init__(
        self, driver: Driver, code: bytes, graph: Mapping[str, Any], constants: int, externals: Call | None = None
    ):
        """`constants` is the address of the constants on the host; `externals(number, address)` calls an external
        function, with the address of an array of its tensors' addresses."""
        self.driver, self.externals = driver, externals
        device = graph["device"]
        self.launches: list[Mapping[str, Any]] = [dict(row) for row in device["launches"]]
        self.steps: list[Mapping[str, Any]] = device.get("steps") or [{"launches": [0, len(self.launches)]}]
        self.straight = "steps" not in device
        self.arena_bytes = int(device["arena_bytes"])
        self.inputs = len(graph["inputs"])
        self.in_place: dict[int, int] = {input: self.inputs + output for input, output in graph.get("in_place", ())}
        self.sizes = [bytes_of(row) for row in (*graph["inputs"], *graph["outputs"])]
        self.offsets, self.total = offsets_of(self.sizes)
        self.given = self.offsets[self.inputs] if self.inputs < len(self.sizes) else self.total
        size = int(graph["constants_bytes"])
        with driver:
            self.module = driver.load(code)
            memory = list[int]()
            self.close = weakref.finalize(self, give_back, driver, memory, self.module)
            self.functions = {
                row["kernel"]: driver.function(self.module, row["kernel"], int(row["shared"])) for row in self.launches
            }
            self.constants = driver.allocate(size)
            memory.append(self.constants)
            stream = driver.stream()
            try:
                driver.upload(self.constants, constants, size, stream)
                driver.wait(stream)
            finally:
                driver.free_stream(stream)


def give_back(driver: Driver, memory: Sequence[int], module: int) -> None:
    """Free the memory of a model's code and constants."""
    with driver:
        for address in memory:
            driver.free(address)
        driver.unload(module)


@dataclass(frozen=True)
class Binding:
    """The device addresses of a run's inputs and outputs; an address of 0 stands for a tensor in the program's staging
    memory on the host."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Program:
    """Runs a model on its device, one run at a time. It owns the staging memory on the host, the tensors and the arena
    on the device, a stream (unless one is given), and a cache of captured graphs, one for each recent set of input and
    output addresses."""

    def __init__(self, model: Model, stream: int | None = None):
        self.model, self.driver = model, model.driver
        driver = self.driver
        self.graphs: OrderedDict[tuple[Binding, int], int] = OrderedDict()
        self.maps: dict[tuple[Binding, int], int] = {}
        room = max((sum(sizes_of(step)) for step in external_steps(model.steps)), default=0)
        self.memory = device = list[int]()
        host = list[int]()
        with driver:
            self.own = driver.stream()
            self.stream = self.own if stream is None else stream
            self.close = weakref.finalize(self, release, driver, self.graphs, device, host, self.own)
            for size in (model.total, room):
                host.append(driver.allocate_host(size))
            for size in (model.total, model.arena_bytes):
                device.append(driver.allocate(size))
        (self.staging, self.exchange), (self.tensors, self.arena) = host, device

    def __call__(self, table: int, binding: Binding | None = None) -> None:
        """Run once, and wait until it is complete. `table` holds the host addresses of inputs and outputs, except those
        for which the binding has device addresses."""
        model = self.model
        binding = binding or Binding((0,) * model.inputs, (0,) * (len(model.sizes) - model.inputs))
        addresses = (ctypes.c_uint64 * len(model.sizes)).from_address(table)
        for number, given in enumerate(binding.inputs):
            if not given:
                ctypes.memmove(self.staging + model.offsets[number], addresses[number], model.sizes[number])
        with self.driver:
            self.start(binding)
            self.driver.wait(self.stream)
        for number, given in enumerate(binding.outputs, model.inputs):
            if not given:
                ctypes.memmove(addresses[number], self.staging + model.offsets[number], model.sizes[number])

    def start(self, binding: Binding) -> None:
        """Start a run, which may not be complete on return. Must be called inside the driver's `with`."""
        places = self.places(binding)
        if self.model.straight:
            self.replay(binding, places, 0, len(self.model.launches), whole=True)
            return
        self.upload(binding, self.stream)
        self.steps(self.model.steps, binding, places, {})
        self.download(binding, self.stream)

    def places(self, binding: Binding) -> list[int]:
        """The device addresses of inputs, outputs, constants, and the arena."""
        model = self.model
        bound = zip((*binding.inputs, *binding.outputs), model.offsets, strict=True)
        return [*(given or self.tensors + offset for given, offset in bound), model.constants, self.arena]

    def upload(self, binding: Binding, stream: int) -> None:
        """Copy the inputs from staging memory on the host to the device. Inputs for which the binding has a device
        address are not copied; if there are none, all inputs are copied at once."""
        model = self.model
        if not any(binding.inputs):
            self.driver.upload(self.tensors, self.staging, model.given, stream)
            return
        for given, offset, size in zip(binding.inputs, model.offsets, model.sizes, strict=False):
            if not given:
                self.driver.upload(self.tensors + offset, self.staging + offset, size, stream)

    def download(self, binding: Binding, stream: int) -> None:
        """Copy the outputs to the staging memory on the host, except those that the caller placed in its own device
        memory. If the caller placed none there, all outputs are copied at once."""
        model, first = self.model, self.model.given
        if not any(binding.outputs):
            if model.total > first:
                self.driver.download(self.staging + first, self.tensors + first, model.total - first, stream)
            return
        rows = zip(binding.outputs, model.offsets[model.inputs :], model.sizes[model.inputs :], strict=True)
        for given, offset, size in rows:
            if not given:
                self.driver.download(self.staging + offset, self.tensors + offset, size, stream)

    def replay(self, binding: Binding, places: Sequence[int], first: int, last: int, whole: bool = False) -> None:
        """Run launches `first` to `last` as one graph, captured on first use; with `whole`, including the copies of
        inputs and outputs."""
        graph = self.graphs.pop((binding, first), 0)
        if not graph:
            while len(self.graphs) >= GRAPHS * len(self.model.steps):
                old, freed = self.graphs.popitem(last=False)
                self.driver.free_graph(freed)
                self.free(self.maps.pop(old))
            rows = [row for row in self.model.launches[first:last] if not self.in_place(row, places)]
            maps = start = self.encoded(rows, places)
            self.driver.begin(self.own)
            try:
                if whole:
                    self.upload(binding, self.own)
                for row in rows:
                    maps = self.launch(row, places, self.own, maps)
                if whole:
                    self.download(binding, self.own)
            except BaseException:
                with suppress(RelayError):  # what was written down so far is of no use
                    self.driver.free_graph(self.driver.end(self.own))
                with suppress(RelayError):
                    self.free(start)
                raise
            graph = self.driver.end(self.own)
            self.maps[binding, first] = start
        self.graphs[binding, first] = graph
        self.driver.replay(graph, self.stream)

    def in_place(self, row: Mapping[str, Any], places: Sequence[int]) -> bool:
        """Whether the launch `row` copies a cache to the address where the cache already is, so that it can be
        skipped."""
        moved, slots = self.model.in_place, [int(slot) for slot, _ in row["arguments"]]
        return any(slot in moved and places[slot] == places[moved[slot]] for slot in slots)

    def encoded(self, rows: Sequence[Mapping[str, Any]], places: Sequence[int]) -> int:
        """Encode the tensor maps of launches on the device, in order, and return their address; 0 if there are none."""
        found = bytearray()
        for row in rows:
            for map in row.get("maps", ()):
                slot, offset = (int(number) for number in row["arguments"][map["argument"]])
                found += self.driver.encode(places[slot] + offset, map).ljust(MAP_BYTES, b"\0")
        if not found:
            return 0
        address = self.driver.allocate(len(found))
        self.memory.append(address)
        whole = (ctypes.c_uint8 * len(found)).from_buffer(found)
        self.driver.upload(address, ctypes.addressof(whole), len(found), self.own)
        self.driver.wait(self.own)
        return address

    def free(self, address: int) -> None:
        """Wait until the stream's work is complete, and free the tensor maps at a device address that `encoded`
        returned; nothing is done for address 0."""
        if not address:
            return
        self.driver.wait(self.stream)
        self.memory.remove(address)
        self.driver.free(address)

    def launch(self, row: Mapping[str, Any], places: Sequence[int], stream: int, maps: int) -> int:
        """Launch a kernel whose tensor maps start at address `maps`; return the address after its maps."""
        buffers: list[int] = [places[slot] + offset for slot, offset in row["arguments"]]
        for map in row.get("maps", ()):
            buffers[map["argument"]], maps = maps, maps + MAP_BYTES
        function = self.model.functions[row["kernel"]]
        self.driver.launch(function, row["grid"], row["block"], int(row["shared"]), stream, buffers)
        return maps

    # What the host does between launches

    def steps(
        self, steps: Sequence[Mapping[str, Any]], binding: Binding, places: Sequence[int], bits: dict[int, bool]
    ) -> None:
        """Run launches, and the branches and calls between them; `bits` holds the computed conditions by number."""
        for step in steps:
            if "launches" in step:
                self.replay(binding, places, *step["launches"])
            elif "external" in step:
                self.call(step, places)
            elif "read" in step:
                slot, offset = map(int, step["read"])
                bits[step["to"]] = self.byte(places[slot] + offset)
            elif "set" in step:
                bits.update(zip(step["to"], [self.bit(each, bits) for each in step["set"]], strict=True))
            elif "if" in step:
                self.steps(step["then"] if bits[step["if"]] else step["else"], binding, places, bits)
            else:
                self.steps(step["before"], binding, places, bits)
                while bits[step["while"]]:
                    self.steps(step["do"], binding, places, bits)
                    self.steps(step["before"], binding, places, bits)

    @staticmethod
    def bit(value: bool | int, bits: Mapping[int, bool]) -> bool:
        """The value of a condition, given directly or by its number."""
        return value if isinstance(value, bool) else bits[value]

    def byte(self, address: int) -> bool:
        """Read a condition that kernels computed, after waiting for it."""
        found = ctypes.c_uint8()
        self.driver.download(ctypes.addressof(found), address, 1, self.stream)
        self.driver.wait(self.stream)
        return bool(found.value)

    def call(self, step: Mapping[str, Any], places: Sequence[int]) -> None:
        """Copy the inputs of an external function to the host, call the function, and copy its outputs to the
        device."""
        rows: list[tuple[int, int, int]] = [*step["inputs"], *step["outputs"]]
        addresses = [self.exchange + offset for offset in offsets_of([size for _, _, size in rows])[0]]
        here = list(zip(addresses, rows, strict=True))
        for address, (slot, offset, size) in here[: len(step["inputs"])]:
            self.driver.download(address, places[slot] + offset, size, self.stream)
        self.driver.wait(self.stream)
        tensors = (ctypes.c_uint64 * len(addresses))(*addresses)
        assert self.model.externals is not None
        self.model.externals(int(step["external"]), ctypes.addressof(tensors))
        for address, (slot, offset, size) in here[len(step["inputs"]) :]:
            self.driver.upload(places[slot] + offset, address, size, self.stream)


def external_steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The calls of external functions, also inside branches and loops."""
    for step in steps:
        if "external" in step:
            yield step
        for part in ("then", "else", "before", "do"):
            yield from external_steps(step.get(part, ()))


def sizes_of(step: Mapping[str, Any]) -> list[int]:
    """The aligned sizes in bytes of a call's tensors."""
    return [-(-max(size, 1) // ALIGNMENT) * ALIGNMENT for _, _, size in (*step["inputs"], *step["outputs"])]


def bytes_of(row: Mapping[str, Any]) -> int:
    """The size of an input or output in bytes."""
    return prod(row["shape"]) * np.dtype(row["dtype"]).itemsize


def offsets_of(sizes: Sequence[int]) -> tuple[list[int], int]:
    """The offsets of tensors placed one after another, and the total size."""
    found: list[int] = []
    end = 0
    for size in sizes:
        found.append(end)
        end += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
    return found, end


def release(
    driver: Driver, graphs: Mapping[tuple[Binding, int], int], device: Sequence[int], host: Sequence[int], stream: int
) -> None:
    """Free the graphs, memory and stream of a program. A stream that the caller gave the program may be destroyed
    already, so it is not waited for: freeing memory waits for the work that uses the memory."""
    with driver:
        driver.wait(stream)
        for graph in graphs.values():
            driver.free_graph(graph)
        for address in device:
            driver.free(address)
        for address in host:
            driver.free_host(address)
        driver.free_stream(stream)
