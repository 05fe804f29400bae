"""`Stream`: consecutive runs of a model whose states stay in native memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import addressof
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import ndarray

from relay.errors import InvalidArgument
from relay.files import replace_file
from relay.runtime.archive import path_of
from relay.runtime.arrays import arrays_of, npz_of
from relay.runtime.memory import Array, Frame, address, bytes_of
from relay.runtime.specification import TensorSpec

if TYPE_CHECKING:
    from relay.runtime.dlpack import Given

COPIED_BYTES = 16 << 10
"""The largest size in bytes of an input, and of all outputs together, that a run copies to or from arrays that the
stream keeps. Larger ones are not copied: native code gets the addresses of the caller's arrays, or of new arrays for
the outputs."""


class State(NamedTuple):
    """An input that gets the value of an output of the previous run."""

    spec: TensorSpec
    input: int
    output: int
    initial: Array | int


class Stream:
    """Consecutive runs of one executable: each starts with the states that the previous one left.

    A state has two buffers; a run reads one and writes the other, so that nothing is copied and nothing allocated for
    it. A cache that the model only updates has one buffer, in which a run writes only new elements. Streams of one
    executable are independent, and may run in several threads at the same time; one stream runs once at a time.
    """

    def __init__(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        pairs: Mapping[int, int],
        initial: Mapping[int, Array],
        frame: Callable[[], Frame],
        entry: Callable[[], Callable[[int], None]],
        in_place: Collection[int] = (),
    ):
        """`pairs` maps the input of each state to the output that feeds it. `frame` makes the arrays of a run
        and the table of their addresses; `entry` returns the native function, which takes the address of such a table.
        `in_place`: states that native code updates in the output's memory, without an input."""
        self._describe(inputs, outputs, pairs, initial)
        self._entry, self._made = entry, (inputs, outputs, pairs, initial, frame, entry, in_place)
        self._frame = even = frame()
        odd = type(even.table)(*even.table)
        self._tables, self._pointers = (even.table, odd), (even.pointer, addressof(odd))
        self._buffers: list[tuple[Array, Array]] = []
        """For each state, the array that even runs read and odd ones write, and the other one; one array twice if it is
        updated in place."""
        for index, output in pairs.items():
            first, second = even.inputs[index], even.outputs[output]
            assert first is not None
            if index in in_place:
                even.table[index] = odd[index] = 0
                even.inputs[index], first = None, second
            else:
                odd[index], odd[len(inputs) + output] = address(second), address(first)
            self._buffers.append((first, second))
        self._takes = [
            (
                slot,
                spec.shape,
                spec.dtype,
                even.inputs[slot] if bytes_of((spec.shape, spec.dtype)) <= COPIED_BYTES else None,
            )
            for slot, spec in enumerate(inputs)
            if slot not in pairs
        ]
        self._gives = [
            (len(inputs) + slot, even.outputs[slot]) for slot in range(len(outputs)) if slot not in pairs.values()
        ]
        self._large = sum(array.nbytes for _, array in self._gives) > COPIED_BYTES
        self.reset()

    def _describe(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        pairs: Mapping[int, int],
        initial: Mapping[int, Array],
    ) -> None:
        """Set the attributes that describe the stream: the inputs and outputs that are no states, and the states, each
        with its input, its output (`pairs`) and its initial value (`initial`, else 0)."""
        self.inputs = [spec for index, spec in enumerate(inputs) if index not in pairs]
        self.outputs = [spec for index, spec in enumerate(outputs) if index not in pairs.values()]
        self._names = {spec.name: number for number, spec in enumerate(self.inputs)}
        self._states = [State(inputs[i], i, output, initial.get(i, 0)) for i, output in pairs.items()]
        self._numbers = {state.spec.name: number for number, state in enumerate(self._states)}
        self._turn, self._busy = 0, threading.Lock()

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...]:
        """Run the model on these inputs, in order or by name without the states; returns one array, or a tuple of all
        outputs that are not states. If it fails, states stay unchanged. Raises InvalidArgument as `Executable.run`
        does."""
        values = inputs if not named and len(inputs) == len(self._takes) else self._arrange(inputs, named)
        if not self._busy.acquire(False):
            raise in_use()
        try:
            turn = self._turn
            table = self._tables[turn]
            alive: list[Array] = []  # until native code has read them
            for number, (slot, shape, dtype, stage) in enumerate(self._takes):
                value = values[number]
                if type(value) is not ndarray or value.dtype != dtype or value.shape != shape:
                    value = self.inputs[number].take(value)
                if stage is not None:
                    stage[...] = value
                else:
                    alive.append(array := value if value.flags.carray else self.inputs[number].take(value))
                    table[slot] = address(array)
            if self._large:
                results = [np.empty(array.shape, array.dtype) for _, array in self._gives]
                for (slot, _), array in zip(self._gives, results, strict=True):
                    table[slot] = address(array)
                self._entry()(self._pointers[turn])
            else:
                self._entry()(self._pointers[turn])
                results = [array.copy() for _, array in self._gives]
            self._turn = 1 - turn
        finally:
            self._busy.release()
        return results[0] if len(results) == 1 else tuple(results)

    __call__ = run

    def state(self, name: str) -> Array:
        """A state by name: its memory, which the next run may write, or a copy if it is on a device."""
        return self._read(self._numbers[name])

    def _read(self, number: int) -> Array:
        """The state with this number."""
        return self._buffers[number][self._turn]

    def _write(self, number: int, value: Array | int) -> None:
        """Overwrite the state with this number."""
        self._buffers[number][self._turn][...] = value

    def _share(self, number: int, other: Stream) -> bool:
        """Use the other stream's memory for a state, if both update it in place; returns whether they do."""
        own, given = self._buffers[number], other._buffers[number]
        if own[0] is not own[1] or given[0] is not given[1]:
            return False
        output, self._buffers[number] = self._states[number].output, given
        for table in self._tables:
            table[len(self._made[0]) + output] = address(given[0])
        self._frame.outputs[output] = given[0]
        return True

    def go_on(self, other: Stream) -> None:
        """Continue from the states of the stream `other`. States that both update in place are not copied: this stream
        then uses the memory of `other`. After that only one of the two streams may run, until the other one calls
        `go_on` with it."""
        with self._alone():
            for number in range(len(self._states)):
                if not self._share(number, other):
                    self._write(number, other._read(number))

    def reset(self) -> None:
        """Set all states to their initial values."""
        with self._alone():
            for number, state in enumerate(self._states):
                self._write(number, state.initial)

    @property
    def states(self) -> dict[str, Array]:
        """Copies of the states, by the names of their inputs."""
        with self._alone():
            return {name: self._read(number).copy() for name, number in self._numbers.items()}

    def set_states(self, states: Mapping[str, Given]) -> None:
        """Overwrite these states, by name; others stay. Raises InvalidArgument for another name, shape or dtype."""
        known = {state.spec.name: state for state in self._states}
        if unknown := [name for name in states if name not in known]:
            raise InvalidArgument(f"state {unknown[0]!r}", "is unknown", f"the states are {', '.join(known)}")
        arrays = {name: known[name].spec.take(value) for name, value in states.items()}
        with self._alone():
            for name, array in arrays.items():
                self._write(self._numbers[name], array)

    def save(self, file: str | PathLike[str]) -> None:
        """Write the states to an .npz file that `load` reads."""
        arrays = {name: array.view(_plain(array.dtype)) for name, array in self.states.items()}
        replace_file(path_of(file), npz_of(arrays))

    def load(self, file: str | PathLike[str]) -> None:
        """Continue with the states of a file, read by `states_of`."""
        self.set_states(self.states_of(file))

    def states_of(self, file: str | PathLike[str]) -> dict[str, Array]:
        """Read the states in a file. Raises Malformed if it is not an .npz file, InvalidArgument for the states of
        another model and a file that cannot be read."""
        path, specs = str(path_of(file)), {state.spec.name: state.spec for state in self._states}
        try:
            found = arrays_of(path, "stream.save(file) writes one")
        except OSError as error:
            raise InvalidArgument(path, f"cannot be read: {error.strerror}") from None
        if missing := [name for name in specs if name not in found]:
            raise InvalidArgument(path, f"has no state {missing[0]!r}", "it was saved from another model")
        for name, spec in specs.items():
            if found[name].dtype == _plain(spec.dtype):
                found[name] = found[name].view(spec.dtype)
        return found

    def clone(self) -> Stream:
        """An independent stream that starts from the states of this one."""
        other = type(self)(*self._made)
        other.set_states(self.states)
        return other

    def __repr__(self) -> str:
        names = ", ".join(state.spec.name for state in self._states)
        return f"<Stream of states {names}>"

    @contextmanager
    def _alone(self) -> Generator[None]:
        if not self._busy.acquire(False):
            raise in_use()
        try:
            yield
        finally:
            self._busy.release()

    def _arrange(self, inputs: Sequence[Given], named: Mapping[str, Given]) -> list[Given]:
        """The inputs in order. Raises InvalidArgument for missing or unknown ones."""
        if len(inputs) > len(self.inputs):
            what = f"got {len(inputs)} inputs; the model has {len(self.inputs)} beside its states"
            raise InvalidArgument("stream", what, "set_states(...) writes those")
        values = dict(enumerate(inputs))
        for name, value in named.items():
            if name not in self._names:
                hint = f"the inputs are {', '.join(self._names)}; set_states(...) writes states"
                raise InvalidArgument(f"input {name!r}", "is unknown", hint)
            if self._names[name] in values:
                raise InvalidArgument(f"input {name!r}", "is given twice")
            values[self._names[name]] = value
        if missing := [spec.name for number, spec in enumerate(self.inputs) if number not in values]:
            raise InvalidArgument(f"input {missing[0]!r}", "is not given", f"the inputs are {', '.join(self._names)}")
        return [values[number] for number in range(len(self.inputs))]


def in_use() -> InvalidArgument:
    """The error for two threads that use a stream at the same time."""
    return InvalidArgument("stream", "runs in another thread", "open one for each thread: executable.stream()")


def _plain(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The dtype as .npz files know it: types of `ml_dtypes` as unsigned integers of the same size."""
    return dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")


def pairs_of(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], states: Mapping[str, str] | None
) -> dict[int, int]:
    """A mapping from the input of each state to the output that feeds it: states that the model declares, and the
    outputs and inputs that `states` names. Raises InvalidArgument if there are none, or an output and its input
    differ."""
    by_input = {spec.name: index for index, spec in enumerate(inputs)}
    by_output = {spec.name: index for index, spec in enumerate(outputs)}
    asked = {spec.name: spec.name for spec in outputs if spec.kind == "state"} | dict(states or {})
    if not asked:
        hint = "name outputs with the inputs that they become: stream(states={'output': 'input'})"
        raise InvalidArgument("stream", "the model has no states", hint)
    pairs: dict[int, int] = {}
    for output, input in asked.items():
        for name, known, what in ((output, by_output, "output"), (input, by_input, "input")):
            if name not in known:
                raise InvalidArgument(f"states: {what} {name!r}", "is unknown", f"known are {', '.join(known)}")
        gives, takes = outputs[by_output[output]], inputs[by_input[input]]
        if (gives.shape, gives.dtype) != (takes.shape, takes.dtype):
            what = f"is {gives.dtype}{list(gives.shape)}; input {input!r} is {takes.dtype}{list(takes.shape)}"
            raise InvalidArgument(f"states: output {output!r}", what)
        if by_input[input] in pairs:
            raise InvalidArgument(f"states: input {input!r}", "is fed by two outputs")
        pairs[by_input[input]] = by_output[output]
    return pairs
