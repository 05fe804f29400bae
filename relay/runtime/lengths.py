"""Runs of any length by code that was built for a maximum: nothing is built for a length that was not seen before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relay.errors import Unsupported
from relay.runtime.memory import Array, address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relay.runtime.dlpack import Given
    from relay.runtime.executable import Executable
    from relay.runtime.interface import Interface


class Lengths:
    """Runs of an executable whose graph has a `length`, its maximum; threads may call at the same time."""

    def __init__(self, interface: Interface, executable: Executable):
        length = interface.length
        assert length is not None
        self.interface, self.executable = interface, executable
        self.name, self.maximum = length.name, length.maximum
        symbol = next(symbol for symbol in interface.symbols if symbol.name == length.name)
        self.minimum, self.multiple = symbol.minimum, symbol.multiple
        axes = dict(symbol.places)
        self.takes = [(spec.dtype, axes.get(index, -1), spec.shape) for index, spec in enumerate(executable.inputs)]
        self.gives = [
            (spec.dtype, axis, spec.shape) for spec, axis in zip(executable.outputs, length.outputs, strict=True)
        ]
        self.first = next(index for index, (_, axis, _) in enumerate(self.takes) if axis >= 0)

    def run_plain(self, inputs: Sequence[Any]) -> Array | tuple[Array, ...] | None:
        """The results for contiguous arrays of the right shapes and dtypes; None for anything else."""
        if len(inputs) != len(self.takes):
            return None
        value, length = inputs[self.first], 0
        _, at, full = self.takes[self.first]
        if type(value) is np.ndarray and value.ndim == len(full):
            length = value.shape[at]
        if not self.minimum <= length <= self.maximum or length % self.multiple:
            return None
        for value, (dtype, axis, shape) in zip(inputs, self.takes, strict=True):
            if type(value) is not np.ndarray or value.dtype != dtype or not value.flags.carray:
                return None
            if value.shape != shape and value.shape != at_length(shape, axis, length):
                return None
            if axis >= 0 and value.shape[axis] != length:
                return None
        return self._run(length, inputs)

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...]:
        """Run the model, as `Executable.run` takes inputs and gives results."""
        given = self.executable.arrange(inputs, named)
        length = self.interface.sizes(self.interface.key(dict(enumerate(given))))[self.name]
        values = [
            spec._replace(shape=at_length(spec.shape, axis, length)).take(value)
            for spec, value, (_, axis, _) in zip(self.executable.inputs, given, self.takes, strict=True)
        ]
        return self._run(length, values)

    def _run(self, length: int, values: Sequence[Array]) -> Array | tuple[Array, ...]:
        try:
            results = [np.empty(at_length(shape, axis, length), dtype) for dtype, axis, shape in self.gives]
        except MemoryError:
            raise Unsupported("run", f"there is no memory for outputs of length {length}") from None
        self.executable.run_for(length, [address(array) for array in (*values, *results)])
        return results[0] if len(results) == 1 else tuple(results)


def at_length(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    """The shape with the length along an axis; as it is for no axis."""
    return shape if axis < 0 else (*shape[:axis], length, *shape[axis + 1 :])
