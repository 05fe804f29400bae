"""A compiled model: bind inputs, run, read outputs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf, prod
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
from numpy import ndarray

from relay.errors import InvalidArgument, Unsupported
from relay.runtime import archive
from relay.runtime.artifact import Artifact, reading_graph
from relay.runtime.library import Library
from relay.runtime.memory import Array, Frame, address
from relay.runtime.specification import random_array
from relay.runtime.team import Trial, check, team_for

if TYPE_CHECKING:
    from relay.runtime.benchmark import BenchmarkResult
    from relay.runtime.device import Devices
    from relay.runtime.dlpack import Given
    from relay.runtime.external import External, Externals
    from relay.runtime.profile import Profile
    from relay.runtime.session import HostSession, Session
    from relay.runtime.stream import Stream

STAGED_BYTES = 16 << 10
"""The largest size in bytes of inputs and outputs for which `run` copies data to and from arrays of its own: up to this
size that is faster than finding the address of the caller's array."""


EXECUTABLES: WeakSet[Executable] = WeakSet()
"""All executables of the process: their locks are replaced in the child of a `fork`."""


class Executable(Artifact):
    """A compiled model. Every method may be called from several threads. Calls of `run(x)` are executed concurrently;
    calls of `run()`, which use the inputs that `set_input` bound, are executed one after another."""

    def __init__(
        self,
        graph: str | Mapping[str, Any],
        library: Library,
        params: Mapping[str, Array],
        constants: Array | None = None,
        claims: bytes = b"",
    ):
        """`constants`: the bytes that native code reads, if `params` are views of them already. `claims`: the claims
        for `relay.validation`."""
        super().__init__(graph, library, params, constants, claims)
        with reading_graph():
            rows = self._graph["outputs"]
            self._counts = counts_of(rows) if any("count" in row for row in rows) else None
            self._initial = self._initial_states()
            entry_point = str(self._graph["entry"])
        self._names = {spec.name: index for index, spec in enumerate(self.inputs)}
        self._team_functions: str | None = self._graph.get("team")
        self._foreign = archive.foreign(self._graph, "graph")
        self._takes = [(spec.shape, spec.dtype) for spec in self.inputs]
        self._gives = [(spec.shape, spec.dtype) for spec in self.outputs]
        self._externals: Externals | None = None
        if self._graph.get("externals") and not self._foreign:
            self._externals = self._load_externals()
        self._devices: Devices | None = None
        if "device" in self._graph:
            from relay.runtime.device import Devices  # here: most executables are for a CPU

            call = None if self._externals is None else self._externals.call
            self._devices = Devices(library.code, self._graph, address(self._constants), call)
        self._session: Session | None = None
        self._notes: list[Array] = []
        self._native: Callable[[int], None] = (
            self._refuse if self._foreign else self._devices or library.function(entry_point)
        )
        if self._externals is not None:
            self._native = self._externals.bound(self._native, self._takes, self._gives)
        self._alone, self._num_threads = self._native, 1
        self._frames: list[Frame] = []
        self._open_frames: list[Frame] = []
        self.unlock()
        EXECUTABLES.add(self)
        self._bound: Frame | None = None
        self._missing = set(range(len(self.inputs))) - set(self._initial)
        self._pointer = 0  # the table of the bound frame, once every input is bound

    def unlock(self) -> None:
        """Replace the lock of the runs on inputs that `set_input` bound. It is called in the child process of a `fork`,
        in which a thread that may have held the lock does not exist."""
        self._lock = threading.RLock()
        self._acquire, self._release = self._lock.acquire, self._lock.release

    def _load_externals(self) -> Externals:
        from relay.runtime.external import Externals  # here: most executables have none

        with reading_graph("externals are"):
            return Externals(self._graph, self.library.artifacts, self._params)

    def _refuse(self, table: int) -> None:
        raise InvalidArgument("run", str(self._foreign), "save or export it for a machine that can run it")

    def _initial_states(self) -> dict[int, Array]:
        """The initial values of states by input index."""
        found: dict[int, Array] = {}
        for index, (entry, spec) in enumerate(zip(self._graph["inputs"], self.inputs, strict=True)):
            if entry.get("initial") is not None:
                found[index] = np.require(self._param(entry["initial"]), spec.dtype, ["C", "A"]).reshape(spec.shape)
        return found

    # Running

    @property
    def num_threads(self) -> int:
        """The number of threads that a run may use (default: 1); results never depend on it. It can be set between
        runs. In the first runs, and again about once a second, runs with all threads and runs on the calling thread
        alone are timed; the faster way is used until the next trial.

        The number is limited to that of the processors that the process may use. The threads are created when first
        needed, and common to all executables of the process that use the same number. One run at a time uses them;
        concurrent runs stay on their calling threads.
        """
        return self._num_threads

    @num_threads.setter
    def num_threads(self, value: int) -> None:
        count, native, team = check(value), self._alone, None
        if self._team_functions is not None and not self._foreign:
            team = team_for(self.library, self._team_functions, count)
        if team is not None:
            slot = len(self.inputs) + len(self.outputs) + bool(self._length) + 1 + len(self._more())
            native = team.bound(native, slot, None if self._length else Trial())
        self._num_threads, self._native = count, native

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...] | None:
        """Run the model. With arguments: inputs in order or by name, and one array, or a tuple of all outputs, is
        returned; states that are not given have their initial values. Without arguments: run on the inputs that
        `set_input` bound.

        Raises InvalidArgument for a wrong count, name, shape or dtype.
        """
        takes = self._takes
        if not inputs and not named and takes:
            try:  # `with` takes 0.4 us more; an interrupt may come as soon as the lock is held
                self._acquire()
                self._native(self._pointer or self._bound_table())
                self._release()
            except BaseException:
                with suppress(RuntimeError):  # this thread does not hold it
                    self._release()
                raise
            return None
        values = self.arrange(inputs, named) if named or len(inputs) != len(takes) else inputs
        if self._devices is not None and self._devices.have(values):
            return self._from_device(values)
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._frame(STAGED_BYTES)
        table, slot = frame.table, 0
        alive: list[Array] = []  # until native code has read them
        for shape, dtype in takes:
            value = values[slot]
            if type(value) is not ndarray or value.dtype != dtype or value.shape != shape:
                value = self.inputs[slot].take(value)
            if (stage := frame.inputs[slot]) is not None:
                stage[...] = value
            else:
                alive.append(array := value if value.flags.carray else self.inputs[slot].take(value))
                table[slot] = address(array)
            slot += 1
        outputs = frame.outputs
        if len(outputs) == 1:
            self._native(frame.pointer)
            result = outputs[0].copy()
            self._frames.append(frame)
            return result
        if outputs:
            self._native(frame.pointer)
            results = [array.copy() for array in outputs]
        else:
            results = self._room()
            for number, array in enumerate(results, slot):
                table[number] = address(array)
            self._native(frame.pointer)
        self._frames.append(frame)
        if self._counts is not None:
            results = cut(results, self._counts)
        return results[0] if len(results) == 1 else tuple(results)

    __call__ = run

    def run_for(self, length: int, tensors: Sequence[int]) -> None:
        """Run code that one build serves for any length of a sequence up to `graph["length"]`. `length`: the length in
        this run; `tensors`: the addresses of the inputs, then the outputs."""
        try:
            frame = self._open_frames.pop()
        except IndexError:
            frame = self._frame(-1)
        count = len(tensors)
        frame.table[:count], frame.table[count] = tensors, length
        self._native(frame.pointer)
        self._open_frames.append(frame)

    def stream(self, states: Mapping[str, str] | None = None) -> Stream:
        """Open a stream: consecutive runs whose states stay in native memory, or on the first device. Any number may be
        open.

        `states` maps outputs of the model to the inputs that they become in the next run; these inputs start as zeros.
        The states that the model declares are added to them, with their own initial values. Raises InvalidArgument if
        there are no states, or an output and its input differ in shape or dtype.
        """
        from relay.runtime.stream import Stream, pairs_of  # here: most models have no states

        if self._counts is not None:
            raise Unsupported("stream", "sizes of outputs follow from values", "run(...) cuts them")
        pairs = pairs_of(self.inputs, self.outputs, states)
        same = {input for input, output in self._graph.get("in_place", ()) if pairs.get(input) == output}
        if self._devices is not None:
            from relay.runtime.device_stream import DeviceStream

            return DeviceStream(*self._devices.model(), self.inputs, self.outputs, pairs, self._initial, same)
        frame = partial(self._frame, inf)
        return Stream(self.inputs, self.outputs, pairs, self._initial, frame, lambda: self._native, same)

    def on(self, device: int = 0, stream: object = None) -> Session | HostSession:
        """Open a session for runs on the device with this number, in a stream: the driver's handle, or another
        library's object that has one (`__cuda_stream__`, `cuda_stream`); by default a new stream.

        `session.run(...)` takes inputs on the host or on the device, returns before the run is complete, and its
        outputs stay on the device until `numpy()` is called. On a CPU a run is complete when it returns, and returns
        arrays. Raises Unsupported if there is no such device.
        """
        if self._devices is None:
            if device or stream is not None:
                raise InvalidArgument("on", "the model is built for a CPU, which has no devices and streams")
            from relay.runtime.session import HostSession

            return HostSession(self.run)
        return self._open(device, stream)

    def _open(self, device: int, stream: object) -> Session:
        from relay.runtime.session import Session  # here: only a GPU has them

        assert self._devices is not None
        driver, model = self._devices.model(device)
        return Session(driver, model, self.inputs, self.outputs, device, stream, self.arrange)

    def _from_device(self, values: Sequence[Given]) -> Array | tuple[Array, ...]:
        """Run with inputs of which some are on the first device."""
        self._session = self._session or self._open(0, None)
        results = [result.numpy() for result in self._session.begin(values)]
        if self._counts is not None:
            results = cut(results, self._counts)
        return results[0] if len(results) == 1 else tuple(results)

    def _frame(self, limit: float) -> Frame:
        try:
            return Frame(
                self._takes, self._gives, self._constants, self._arena_bytes, limit, self._more(), self._length
            )
        except MemoryError:
            raise Unsupported("run", f"there is no memory for an arena of {self._arena_bytes} bytes") from None

    def _room(self) -> list[Array]:
        try:
            return [np.empty(shape, dtype) for shape, dtype in self._gives]
        except MemoryError:
            size = sum(prod(shape) * dtype.itemsize for shape, dtype in self._gives)
            raise Unsupported("run", f"there is no memory for outputs of {size} bytes") from None

    def _more(self) -> list[Array | None]:
        """The last entries of the table of addresses that native code takes, after the arena's: the table of external
        functions, an empty entry for the memory of a team of threads, and the array in which counters record times;
        each only if the executable has it."""
        more: list[Array | None] = [] if self._externals is None else [self._externals.copied()]
        return [*more, *([] if self._team_functions is None else [None]), *self._notes]

    def _by_number(self, inputs: tuple[Given, ...], named: Mapping[str, Given]) -> dict[int, Given]:
        """The given inputs by index."""
        if len(inputs) > len(self.inputs):
            raise InvalidArgument("run", f"got {len(inputs)} inputs; the model has {len(self.inputs)}")
        values: dict[int, Given] = dict(enumerate(inputs))
        for name, value in named.items():
            index = self._index(name)
            if index in values:
                raise InvalidArgument(f"input '{name}'", "is given twice")
            values[index] = value
        return values

    def arrange(self, inputs: tuple[Given, ...], named: Mapping[str, Given]) -> list[Given]:
        """The inputs in order; states that are not given get their initial value."""
        values = {**self._initial, **self._by_number(inputs, named)}
        for index, spec in enumerate(self.inputs):
            if index not in values:
                raise InvalidArgument(
                    f"input '{spec.name}'", "is not given", f"the inputs are {', '.join(self._names)}"
                )
        return [values[index] for index in range(len(self.inputs))]

    def _index(self, key: object) -> int:
        index = key if isinstance(key, int) else self._names.get(key, -1) if isinstance(key, str) else -1
        if not 0 <= index < len(self.inputs):
            raise InvalidArgument(f"input {key!r}", "is unknown", f"the inputs are {', '.join(self._names)}")
        return index

    # Bound inputs

    def _bind(self) -> Frame:
        """The frame (arena and table of addresses) that `run()` without arguments uses for bound inputs. It is created
        on first use, with the initial values of states."""
        if self._bound is None:
            self._bound = self._frame(inf)
            for index, initial in self._initial.items():
                self._bound.write(index, initial)
        return self._bound

    def _bound_table(self) -> int:
        """The address of the table of bound inputs. Raises InvalidArgument if an input is not bound."""
        frame = self._bind()
        if self._missing:
            names = ", ".join(self.inputs[index].name for index in sorted(self._missing))
            raise InvalidArgument("run", f"inputs {names} are not bound", "give them to run() or set_input()")
        self._pointer = frame.pointer
        return self._pointer

    def set_input(self, key: str | int, value: Given) -> None:
        """Bind a copy of the value to an input, by name or number, for `run()` without arguments."""
        index = self._index(key)
        array = self.inputs[index].take(value)
        with self._lock:
            self._bind().write(index, array)
            self._missing.discard(index)

    def get_output(self, key: int | str = 0) -> Array:
        """A copy of an output of the last `run()` without arguments."""
        names = [spec.name for spec in self.outputs]
        index = names.index(key) if isinstance(key, str) and key in names else key
        if not isinstance(index, int) or not 0 <= index < len(names):
            raise InvalidArgument(f"output {key!r}", "is unknown", f"the outputs are {', '.join(names)}")
        with self._lock:
            return self._output(index)

    def _output(self, index: int) -> Array:
        """A copy of an output of the last bound run, cut to its valid length."""
        outputs = self._bind().outputs
        row = next((row for row in self._counts or () if row[0] == index), None)
        return outputs[index].copy() if row is None else cut(outputs, [row])[0].copy()

    def benchmark(
        self, *inputs: Given, warmup: int = 3, repeat: int | None = None, seconds: float = 1.0, **named: Given
    ) -> BenchmarkResult:
        """Time runs on these inputs, or on those that `set_input` bound: `repeat` runs, or as many as fit into
        `seconds`.

        Each time includes the call from Python. Raises InvalidArgument as `run` does.
        """
        from relay.runtime.benchmark import measure

        return measure(partial(self.run, *inputs, **named), warmup, repeat, seconds)

    def profile(self, *inputs: Given, seconds: float = 1.0, **named: Given) -> Profile:
        """Measure the time of each kernel and source operator in runs on these inputs (random ones if none are given),
        for `seconds` on one thread.

        Runs of this executable's code, which has no counters, alternate with runs of a second program, which has the
        same kernels and counters. Raises Unsupported for an executable that was loaded from a file or is for a GPU,
        InvalidArgument for one that is for another machine.
        """
        from relay.runtime.profile import profile

        if self._foreign:  # before code with counters is made for it
            raise InvalidArgument("profile", self._foreign, "build the model for this machine")
        if not inputs and not named:
            random = np.random.default_rng(0)
            given = [s for s in self.inputs if s.kind == "input"]
            named = {spec.name: random_array(spec.shape, spec.dtype, random) for spec in given}
        values = self.arrange(inputs, named)

        def twin(library: Library, notes: Array | None) -> Callable[[], object]:
            other = Executable(self._graph, library, self._params, self._constants)
            other._notes = [] if notes is None else [notes]
            for number, value in enumerate(values):
                other.set_input(number, value)
            frame = other._bind()
            for number, output in self._graph.get("in_place", ()):  # as a stream runs: in the state's memory
                if self.inputs[int(number)].kind == "state":
                    frame.outputs[output][...] = frame.inputs[number]
                    frame.table[number] = 0
            return other.run

        return profile(self.library, twin, seconds)

    # What it is made of

    def __getitem__(self, name: str) -> Callable[..., Executable]:
        """TVM's `lib["default"](device)`: returns a function that returns the executable itself."""
        if name != "default":
            raise InvalidArgument(f"executable[{name!r}]", 'is not there: one function is, "default"', "call run()")
        return lambda *device: self

    def __reduce__(self) -> tuple[Callable[..., Executable], tuple[bytes, int]]:
        """Pickle the executable as the bytes that `save` writes, without its source texts."""
        return _unpickled, (self.to_bytes(), self.num_threads)

    @property
    def externals(self) -> dict[str, External]:
        """The functions of external compilers by symbol; `.loaded` is the object that a loader returned."""
        return {} if self._externals is None else {each.symbol: each for each in self._externals.functions}


def counts_of(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, int, int]]:
    """For each output that callers get: its index, the axis along which it is cut, and the index of the output that
    holds the length (-1: it is not cut)."""
    names = [str(row["name"]) for row in rows]
    return [
        (number, int(row.get("axis", 0)), names.index(str(row["count"])) if "count" in row else -1)
        for number, row in enumerate(rows)
        if row["kind"] != "count"
    ]


def cut(results: Sequence[Array], counts: Sequence[tuple[int, int, int]]) -> list[Array]:
    """The outputs for callers, by the triples `counts` (output, axis, count), one for each of them. `output` and
    `count` are indices in `results`: the result `count` holds the number of valid indices along `axis`, and the result
    `output` is copied up to that number. If `count` is negative, the result is returned whole."""
    return [
        results[number] if by < 0 else results[number][(slice(None),) * axis + (slice(int(results[by])),)].copy()
        for number, axis, by in counts
    ]


def create(graph: str | Mapping[str, Any], lib: Library, params: Mapping[str, Array]) -> Executable:
    """Make an executable from its three parts, into which `graph, lib, params = executable` unpacks it."""
    return Executable(graph, lib, params)


def executable_of(saved: archive.Saved) -> Executable:
    """Make an executable from the parts of a saved one: graph, code, constants and artifacts of external compilers."""
    if "device" in saved.graph:
        from relay.runtime.device import DeviceLibrary

        library: Library = DeviceLibrary(saved.code, saved.graph, artifacts=saved.artifacts)
    else:
        library = Library(saved.code, artifacts=saved.artifacts)
    return Executable(saved.graph, library, saved.params, saved.constants, saved.claims)


def _unpickled(data: bytes, num_threads: int) -> Executable:
    """Make the executable from saved bytes; code for another machine raises an error when it runs."""
    executable = executable_of(archive.unpack(archive.aligned(data), "<pickle>", here=False))
    executable.num_threads = num_threads
    return executable


def _unlock_all() -> None:
    for executable in [*EXECUTABLES]:
        executable.unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)
