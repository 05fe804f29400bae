"""Runs of any length up to a maximum by one build."""

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
    """Runs an executable for sequences of any length up to the maximum (`interface.length`) for which it was built.
    Several threads may call it at the same time."""

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
        self.batch = length.batch
        self.first = next(index for index, (_, axis, _) in enumerate(self.takes) if axis >= 0)

    def run_plain(self, inputs: Sequence[Any]) -> Array | tuple[Array, ...] | None:
        """Run on contiguous arrays of the right shapes and dtypes; returns None for anything else."""
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
        """Run the model; inputs and results are as for `Executable.run`."""
        given = self.executable.arrange(inputs, named)
        sizes = self.interface.sizes(self.interface.key(dict(enumerate(given))))
        length, rows = sizes[self.name], sizes.get(self.batch, 1)
        values = [
            spec._replace(shape=of_rows(at_length(spec.shape, axis, length), rows)).take(value)
            for spec, value, (_, axis, _) in zip(self.executable.inputs, given, self.takes, strict=True)
        ]
        return self._run(length, values, rows)

    def _run(self, length: int, values: Sequence[Array], rows: int = 1) -> Array | tuple[Array, ...]:
        try:
            shapes = [(of_rows(at_length(shape, axis, length), rows), dtype) for dtype, axis, shape in self.gives]
            results = [np.empty(shape, dtype) for shape, dtype in shapes]
        except MemoryError:
            each = f"outputs of {rows} rows of length {length}" if self.batch else f"outputs of length {length}"
            raise Unsupported("run", f"there is no memory for {each}") from None
        arrays = (*values, *results)
        places, steps = [address(array) for array in arrays], [array.nbytes // rows for array in arrays]
        for row in range(rows):
            self.executable.run_for(length, [at + row * step for at, step in zip(places, steps, strict=True)])
        return results[0] if len(results) == 1 else tuple(results)


def of_rows(shape: tuple[int, ...], rows: int) -> tuple[int, ...]:
    """The shape of a tensor for `rows` rows; `shape` is its shape for one row."""
    return shape if rows == 1 else (rows * shape[0], *shape[1:])


def at_length(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    """The shape with the length along an axis; unchanged if there is no axis."""
    return shape if axis < 0 else (*shape[:axis], length, *shape[axis + 1 :])
