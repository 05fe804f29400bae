"""`GrowingStream`: consecutive runs of a model whose caches grow to a maximum, each with any number of new
positions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, cast

import numpy as np

from relay.errors import InvalidArgument
from relay.runtime.interface import Caches, Interface
from relay.runtime.memory import Array
from relay.runtime.stream import Stream

if TYPE_CHECKING:
    from relay.runtime.dlpack import Given

Start = Callable[[int], Stream]
"""Opens a stream of the build that appends the given number of new positions to the caches."""


class GrowingStream(Stream):
    """Consecutive runs, each of which appends new positions to those of earlier runs.

    The model is built once for each number of new positions that a run appends, and each build has a stream; all
    streams use the same caches, which the runs write in place. An input over all positions (a mask) must have the
    length of the earlier and the new positions together.
    """

    def __init__(self, interface: Interface, caches: Caches, start: Start, first: int, most: int):
        """`start`: a function that takes a number of new positions, builds the model for runs that append this number
        if necessary, and returns a stream of that build. `first`: the number for which a stream is opened at once,
        preferably one with an existing build. `most`: the largest number of streams that are kept."""
        self._interface, self._caches, self._start, self._first, self._most = interface, caches, start, first, most
        slots = [slot for slot, spec in enumerate(interface.inputs) if spec.kind != "state"]
        self.inputs = [interface.inputs[slot] for slot in slots]
        self.outputs = [spec for spec in interface.outputs if spec.kind != "state"]
        self._names = {spec.name: number for number, spec in enumerate(self.inputs)}
        places = [(slots.index(slot), axis) for symbol in interface.symbols for slot, axis in symbol.places]
        self._place = places[0] if places else None
        self._lengths = [(slots.index(slot), axis) for slot, axis in caches.lengths]
        self._current, self._current_rows = start(first), first
        self._opened: OrderedDict[int, Stream] = OrderedDict({first: self._current})
        self._busy = threading.Lock()

    @property
    def position(self) -> int:
        """The number of positions that the runs so far have written to the caches."""
        return int(self.state(self._caches.size)[0])

    def state(self, name: str) -> Array:
        """The memory of a state; the next run may write it."""
        return self._current.state(name)

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...]:
        """Run the model on these inputs, in order or by name without the states; returns one array, or a tuple of all
        outputs that are not states. Raises InvalidArgument for wrong inputs, for more positions than the caches can
        hold, and if an input with an axis over all positions, such as a mask, has another length than the earlier and
        the new positions together."""
        given = inputs if not named and len(inputs) == len(self.inputs) else self._arrange(inputs, named)
        rows = self._rows(given)
        with self._alone():
            position, most = self.position, self._caches.maximum
            if position + rows > most:
                what = f"holds {position} of {most} positions, and {rows} more do not fit"
                raise InvalidArgument("stream", what, "reset() starts anew; relay.build(..., maximum=...) gives room")
            if rows != self._current_rows:
                self._turn_to(rows)
            return self._current.run(*(self._whole(given, position, rows) if self._lengths else given))

    __call__ = run

    def _rows(self, given: Sequence[Given]) -> int:
        """The number of positions that a run appends to the states, from the shape of one of its inputs; the shapes of
        all inputs are checked later."""
        if self._place is None:
            return 1
        number, axis = self._place
        spec, dims = self.inputs[number], np.shape(cast("Array", given[number]))
        if len(dims) != len(spec.shape):
            raise InvalidArgument(f"input '{spec.name}'", f"has shape {list(dims)}; {list(spec.shape)} is needed")
        return dims[axis]

    def _turn_to(self, rows: int) -> None:
        """Switch to the stream of the build for this number of new positions."""
        stream = self._opened.get(rows) or self._start(rows)
        stream.go_on(self._current)
        self._current, self._current_rows = stream, rows
        self._opened[rows] = stream
        self._opened.move_to_end(rows)
        while len(self._opened) > self._most:
            self._opened.popitem(last=False)

    def _whole(self, given: Sequence[Given], position: int, rows: int) -> list[Given]:
        """The inputs of a run that adds `rows` positions to `position` cached ones. Inputs with an axis over all these
        positions, such as masks, are padded with zeros to the caches' maximum. Raises InvalidArgument for other
        lengths of the axis."""
        found, total = list(given), position + rows
        for number, axis in self._lengths:
            spec = self.inputs[number]
            array = spec.take(given[number])
            if array.shape[axis] != total:
                what = f"is {array.shape[axis]} long (axis {axis}); behind {position} positions, {rows} more"
                raise InvalidArgument(f"input '{spec.name}'", what, f"give it {total}")
            dims = array.shape
            whole = np.zeros((*dims[:axis], self._caches.maximum, *dims[axis + 1 :]), array.dtype)
            whole[(*[slice(None)] * axis, slice(total))] = array
            found[number] = whole
        return found

    def reset(self) -> None:
        """Set all states to their initial values."""
        with self._alone():
            self._current.reset()

    @property
    def states(self) -> dict[str, Array]:
        """Copies of the states, by the names of their inputs."""
        with self._alone():
            return self._current.states

    def set_states(self, states: Mapping[str, Given]) -> None:
        """Overwrite states by name; others stay. Raises InvalidArgument for an unknown name, another shape or dtype,
        and for a position beyond the caches."""
        size, most = self._caches.size, self._caches.maximum
        for position in np.ravel(np.asarray(states[size])) if size in states else ():
            if not 0 <= position <= most:
                hint = f"the caches hold from 0 to {most} positions"
                raise InvalidArgument(f"state '{size}'", f"is {position}", hint)
        with self._alone():
            self._current.set_states(states)

    def load(self, file: str | PathLike[str]) -> None:
        """Continue with the states of a file; see `Stream.load`."""
        self.set_states(self._current.states_of(file))

    def clone(self) -> GrowingStream:
        """An independent stream that starts from the states of this one."""
        other = GrowingStream(self._interface, self._caches, self._start, self._first, self._most)
        other.set_states(self.states)
        return other

    def __repr__(self) -> str:
        return f"<GrowingStream at {self.position} of {self._caches.maximum} positions>"
