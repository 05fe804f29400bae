"""`GrowingStream`: runs of a model whose caches grow to a maximum, of any number of new positions each."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from relay.errors import InvalidArgument
from relay.runtime.interface import Caches, Interface, Key
from relay.runtime.memory import Array
from relay.runtime.stream import Stream, in_use

if TYPE_CHECKING:
    from relay.runtime.dlpack import Given

Start = Callable[[Key], Stream]
"""Opens a stream of the build for these sizes."""


class GrowingStream(Stream):
    """Runs in sequence, each with some new positions, behind those of the runs before it.

    For each number of new positions there is a stream of the build for it; all work in the same caches, which the runs
    write in place. An input that is as long as all positions (a mask) has as many as there are with the new ones.
    """

    def __init__(self, interface: Interface, caches: Caches, start: Start, first: Key, most: int):
        """`most`: streams that are kept."""
        self._interface, self._caches, self._start, self._most = interface, caches, start, most
        slots = enumerate(interface.inputs)
        self._slots = [slot for slot, spec in slots if spec.kind != "state"]
        self.inputs = [interface.inputs[slot] for slot in self._slots]
        self.outputs = [spec for spec in interface.outputs if spec.kind != "state"]
        self._names = {spec.name: number for number, spec in enumerate(self.inputs)}
        self._current = start(first)
        self._opened: OrderedDict[Key, Stream] = OrderedDict({first: self._current})
        self._first, self._busy = first, threading.Lock()

    @property
    def position(self) -> int:
        """How many positions the caches hold."""
        return int(self.state(self._caches.size)[0])

    def state(self, name: str) -> Array:
        """The memory of a state; the next run may write it."""
        return self._current.state(name)

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...]:
        """Run the model on these inputs, in order or by name without the states; one array, or a tuple of all outputs
        that are no states. Raises InvalidArgument too for more positions than the caches have room for, and for
        inputs of another length than all positions."""
        values = dict(zip(self._slots, self._arrange(inputs, named), strict=True))
        key = self._interface.checked(self._interface.key(values))
        caches, rows = self._caches, self._caches.rows(self._interface.sizes(key))
        with self._alone():
            position = self.position
            total = position + rows
            if total > caches.maximum:
                what = f"holds {position} of {caches.maximum} positions, and {rows} more do not fit"
                raise InvalidArgument("stream", what, "reset() starts anew; relay.build(..., maximum=...) gives room")
            for slot, axis in caches.lengths:
                given = self._interface.inputs[slot].take(values[slot])
                if given.shape[axis] != total:
                    what = f"is {given.shape[axis]} long (axis {axis}); behind {position} positions, {rows} more"
                    raise InvalidArgument(f"input '{self._interface.inputs[slot].name}'", what, f"give it {total}")
                room = [(0, caches.maximum - total if each == axis else 0) for each in range(given.ndim)]
                values[slot] = np.pad(given, room)
            stream = self._opened.get(key) or self._start(key)
            if stream is not self._current:
                stream.go_on(self._current)
                self._current = self._opened[key] = stream
                self._opened.move_to_end(key)
                while len(self._opened) > self._most:
                    self._opened.popitem(last=False)
            return stream.run(*(values[slot] for slot in self._slots))

    __call__ = run

    def reset(self) -> None:
        """States are as at the start."""
        with self._alone():
            self._current.reset()

    @property
    def states(self) -> dict[str, Array]:
        """Copies of the states, by the names of the inputs that they are."""
        with self._alone():
            return self._current.states

    def set_states(self, states: Mapping[str, Given]) -> None:
        """Overwrite these states, by name; others stay. Raises InvalidArgument for another name, shape or dtype."""
        with self._alone():
            self._current.set_states(states)

    def load(self, file: str | PathLike[str]) -> None:
        """Go on with the states of a file; see `Stream.load`."""
        with self._alone():
            self._current.load(file)

    def clone(self) -> GrowingStream:
        """A stream of its own that goes on from the states of this one."""
        other = GrowingStream(self._interface, self._caches, self._start, self._first, self._most)
        other.set_states(self.states)
        return other

    def __repr__(self) -> str:
        return f"<GrowingStream at {self.position} of {self._caches.maximum} positions>"

    @contextmanager
    def _alone(self) -> Generator[None]:
        if not self._busy.acquire(False):
            raise in_use()
        try:
            yield
        finally:
            self._busy.release()
