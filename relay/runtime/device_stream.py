"""`DeviceStream`: consecutive runs of a model whose states stay on a device."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from ctypes import addressof, c_uint64
from typing import TYPE_CHECKING
from weakref import finalize

import numpy as np

from relay.runtime.device_program import Binding, Model, Program
from relay.runtime.memory import Array, address, bytes_of
from relay.runtime.specification import TensorSpec
from relay.runtime.stream import Stream

if TYPE_CHECKING:
    from relay.runtime.device_program import Driver
    from relay.runtime.dlpack import Given


class Buffer:
    """Memory on the device."""

    def __init__(self, driver: Driver, size: int):
        with driver:
            self.address = driver.allocate(max(size, 1))
        finalize(self, give_back, driver, self.address)


def give_back(driver: Driver, address: int) -> None:
    """Free the device memory of a `Buffer` that no stream uses any more; the runs that used it must be complete."""
    with driver:
        driver.free(address)


class DeviceStream(Stream):
    """Consecutive runs of one executable on the first device, with states kept in its memory.

    A state has two buffers, as on the host: runs that read the first one use one captured graph, runs that read the
    second another. Only a cache that is updated in place has one buffer, for reading and writing; the launch that would
    copy the cache is skipped.
    """

    def __init__(
        self,
        driver: Driver,
        model: Model,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        pairs: Mapping[int, int],
        initial: Mapping[int, Array],
        in_place: Collection[int] = (),
    ):
        """Open a stream; the arguments are those of `Stream`."""
        super()._describe(inputs, outputs, pairs, initial)
        self._made = (driver, model, inputs, outputs, pairs, initial, in_place)
        self._driver, self._program = driver, Program(model)
        self._memory: list[tuple[Buffer, Buffer]] = []
        for state in self._states:
            first, second = (Buffer(driver, bytes_of((state.spec.shape, state.spec.dtype))) for _ in range(2))
            self._memory.append((second, second) if state.input in in_place else (first, second))
        results = set(range(len(outputs))).difference(pairs.values())
        self._slots = [slot for slot in range(len(inputs)) if slot not in pairs]
        self._slots += [len(inputs) + slot for slot in sorted(results)]
        self._table = (c_uint64 * (len(inputs) + len(outputs)))()
        self.reset()

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...]:
        values = inputs if not named and len(inputs) == len(self.inputs) else self._arrange(inputs, named)
        arrays = [spec.take(value) for spec, value in zip(self.inputs, values, strict=True)]
        results = [np.empty(spec.shape, spec.dtype) for spec in self.outputs]
        with self._alone():
            for slot, array in zip(self._slots, (*arrays, *results), strict=True):
                self._table[slot] = address(array)
            self._program(addressof(self._table), self._binding())
            self._turn = 1 - self._turn
        return results[0] if len(results) == 1 else tuple(results)

    __call__ = run

    def _binding(self) -> Binding:
        """The addresses at which this run reads and writes states."""
        model = self._program.model
        read, written = [0] * model.inputs, [0] * (len(model.sizes) - model.inputs)
        for state, buffers in zip(self._states, self._memory, strict=True):
            read[state.input], written[state.output] = (buffers[turn].address for turn in (self._turn, 1 - self._turn))
        return Binding(tuple(read), tuple(written))

    def _read(self, number: int) -> Array:
        spec, buffers = self._states[number].spec, self._memory[number]
        found = np.empty(spec.shape, spec.dtype)
        with self._driver:
            if found.size:
                stream = self._program.stream
                self._driver.download(address(found), buffers[self._turn].address, found.nbytes, stream)
                self._driver.wait(stream)
        return found

    def _write(self, number: int, value: Array | int) -> None:
        spec, buffers = self._states[number].spec, self._memory[number]
        array = np.empty(spec.shape, spec.dtype)
        array[...] = value
        with self._driver:
            if array.size:
                stream = self._program.stream
                self._driver.upload(buffers[self._turn].address, address(array), array.nbytes, stream)
                self._driver.wait(stream)

    def _share(self, number: int, other: Stream) -> bool:
        assert isinstance(other, DeviceStream)
        own, given = self._memory[number], other._memory[number]
        if own[0] is not own[1] or given[0] is not given[1]:
            return False
        self._memory[number] = given
        return True
