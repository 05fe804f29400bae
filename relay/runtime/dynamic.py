"""`DynamicExecutable`: a model with open sizes, and an executable for each set of sizes that it has seen."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, cast
from weakref import WeakValueDictionary

import numpy as np

from relay.errors import InvalidArgument, Unsupported
from relay.runtime import archive, container, variants
from relay.runtime.artifact import certify
from relay.runtime.executable import EXECUTABLES, Executable, executable_of
from relay.runtime.interface import Interface, Key, positive
from relay.runtime.lengths import Lengths
from relay.runtime.library import Library
from relay.runtime.memory import Array
from relay.runtime.rows import Rows
from relay.runtime.team import check
from relay.sizes import Symbol

if TYPE_CHECKING:
    from pathlib import Path

    from relay.runtime.dlpack import Given
    from relay.runtime.profile import Profile
    from relay.runtime.session import HostSession, Session
    from relay.runtime.stream import Stream

MAX_VARIANTS = 8


Specialise = Callable[[Mapping[str, int], Mapping[str, Array]], Executable]
"""A function that builds the executable for given sizes, by the names of the symbols, and for given arrays of the
inputs on whose values shapes depend, by the names of the inputs."""


class DynamicExecutable(Executable):
    """A compiled model with open input sizes: an executable (variant) for each tuple of sizes.

    A variant is built when its sizes are first seen, or by `prepare`; the `max_variants` last used and all prepared
    ones are kept. Without the compiler (after `relay.runtime.load`) sizes that were not saved are an error. If the only
    size is the number of rows, and rows are independent (`interface.blocks`), any number of rows runs by the builds for
    a few rows, and nothing more is built.
    """

    def __init__(
        self,
        interface: Interface,
        specialise: Specialise | None,
        max_variants: int = MAX_VARIANTS,
        saved: Mapping[Key, Callable[[], Executable]] | None = None,
    ):
        """`saved` maps the sizes of each saved variant to a function that loads it."""
        self.interface, self._specialise = interface, specialise
        self.inputs, self.outputs = interface.inputs, interface.outputs
        self.library = Library(b"")
        self.max_variants = positive(max_variants, "max_variants")
        self._saved = dict(saved or {})
        self._prepared: dict[Key, Executable] = {}
        self._recent: OrderedDict[Key, Executable] = OrderedDict()
        self._blocks: WeakValueDictionary[bytes, Executable] = WeakValueDictionary()
        self._names = {spec.name: index for index, spec in enumerate(self.inputs)}
        self._threads = 1
        self._rows: Rows | None = None
        self._lengths: Lengths | None = None
        self._exact: dict[int, Executable] = {}  # by number of rows: those prepared or saved
        self.unlock()
        EXECUTABLES.add(self)
        self._given: dict[int, Array] = {}
        self._results: tuple[Array, ...] | None = None

    def unlock(self) -> None:
        """Replace all locks, in the child of a `fork`: threads that held one do not exist there."""
        self._lock = threading.Lock()
        self._building: dict[Key, threading.Lock] = {}

    # Variants

    @property
    def sizes(self) -> list[Symbol]:
        """The open sizes as symbols, with names and ranges."""
        return list(self.interface.symbols)

    @property
    def variants(self) -> list[dict[str, Any]]:
        """The sizes for which builds exist, one dictionary for each build. It holds the sizes that are not known at
        compile time, by their names, and the elements of inputs that determine shapes, by the inputs' names."""
        return [{**self.interface.sizes(key), **self.interface.values(key)} for key in self._all()]

    def variant(self, **sizes: int | Array) -> Executable:
        """The executable for these sizes, built if necessary."""
        return self._variant(self._keys({name: [value] for name, value in sizes.items()})[0])

    def prepare(self, **sizes: Iterable[int | Sequence[int] | Array]) -> DynamicExecutable:
        """Build for every combination of these sizes, by name, such as `prepare(batch=[1, 8], seq=[16, 128])`; for an
        input whose elements decide shapes, a list of arrays is given under the input's name. These variants are kept as
        long as the executable, and saved with it. Returns the executable itself."""
        for key in self._keys(sizes):
            self.keep(key, self._variant(key))
        return self

    def keep(self, key: Key, executable: Executable) -> None:
        """Keep the variant for these sizes as long as this object exists."""
        with self._lock:
            self._prepared[key] = executable
            self._recent.pop(key, None)
            if self.interface.blocks:
                self._exact[key.sizes[0]] = executable

    def _keys(self, sizes: Mapping[str, Iterable[object]]) -> list[Key]:
        deciding = {self.inputs[index].name: self.inputs[index] for index in self.interface.deciding}
        names = [*(symbol.name for symbol in self.interface.symbols), *deciding]
        wrong = [name for name in sizes if name not in names] or [name for name in names if name not in sizes]
        if wrong:
            what = "is not given" if wrong[0] in names else "is unknown"
            raise InvalidArgument(f"size {wrong[0]}", what, f"the sizes are {', '.join(names)}")
        rows: list[list[Any]] = []
        for name in names:
            each = sizes[name]
            row: list[object] = [each] if isinstance(each, int) else list(each)
            if name in deciding:
                spec = deciding[name]
                rows.append([spec.take(np.asarray(value, spec.dtype)).tobytes() for value in row])
            else:
                rows.append([positive(value, f"size {name}") for value in row])
        count = len(self.interface.symbols)
        return [self.interface.checked(Key(row[:count], row[count:])) for row in product(*rows)]

    def _variant(self, key: Key) -> Executable:
        """The executable for a key; if one thread is building it, other threads wait."""
        found = self._live(key)
        if found is not None:
            return found
        self.interface.checked(key)
        with self._lock:
            turn = self._building.setdefault(key, threading.Lock())
        with turn:
            found = self._live(key)
            if found is not None:
                return found
            try:
                found = self._made(key)
                with self._lock:
                    self._recent[key] = found
                    if self.interface.blocks and key in self._saved:
                        self._exact[key.sizes[0]] = found
                    while len(self._recent) > self.max_variants:
                        self._recent.popitem(last=False)
            finally:
                with self._lock:
                    self._building.pop(key, None)
        return found

    def _live(self, key: Key) -> Executable | None:
        with self._lock:
            if (found := self._prepared.get(key)) is not None:
                return found
            if (found := self._recent.get(key)) is not None:
                self._recent.move_to_end(key)
            return found

    def _made(self, key: Key) -> Executable:
        made = self._saved.get(key)
        if made is not None:
            executable = made()
        elif self._specialise is not None:
            executable = self._specialise(self.interface.sizes(key), self.interface.values(key))
        else:
            known = "; ".join(map(self.interface.shown, self._saved)) or "none"
            hint = f"prepared are {known}; others are built by relay.build, before save"
            raise InvalidArgument(f"sizes {self.interface.shown(key)}", "are not prepared", hint)
        executable.num_threads = self._threads
        with self._lock:
            other = self._blocks.setdefault(executable.constants_digest(), executable)
        if other is not executable:
            executable.share_constants(other)
        return executable

    # Running

    @property
    def num_threads(self) -> int:
        """The number of threads that a run may use (default: 1), for all sizes; see `Executable.num_threads`."""
        return self._threads

    @num_threads.setter
    def num_threads(self, value: int) -> None:
        self._threads = check(value)
        with self._lock:
            live = [*self._prepared.values(), *self._recent.values()]
            self._rows = None
        for executable in live:
            executable.num_threads = value

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...] | None:
        """Run the model for the sizes that the inputs have; see `Executable.run`.

        Also raises InvalidArgument where inputs with a common size disagree, and for a size outside its range.
        """
        if not inputs and not named and self.inputs:
            return self._run_bound()
        if self._lengths is not None and not named and len(self._prepared) + len(self._saved) == 1:
            if (results := self._lengths.run_plain(inputs)) is not None:
                return results
        if self.interface.caches is not None:
            raise Unsupported("run", "the model has caches that grow", "stream() keeps them: stream().run(...)")
        if self.interface.blocks and not named and (found := self._by_rows(inputs)) is not None:
            return found.run(*inputs)
        return self._for(self._by_number(inputs, named)).run(*inputs, **named)

    __call__ = run

    def profile(self, *inputs: Given, seconds: float = 1.0, **named: Given) -> Profile:
        """Measure the time of each kernel and source operator for these inputs; see `Executable.profile`."""
        found = self._for(self._by_number(inputs, named))
        if isinstance(found, Lengths):
            found = self._variant(self.interface.key(self._by_number(inputs, named)))
        return found.profile(*inputs, seconds=seconds, **named)

    def for_any_length(self) -> Lengths:
        """Make the runner for sequences of any length up to the maximum, from the build for the maximum length, keep
        it, and return it."""
        longest = self.interface.longest
        assert longest is not None
        self._lengths = Lengths(self.interface, self._variant(longest))
        return self._lengths

    def _for(self, given: Mapping[int, object]) -> Executable | Rows | Lengths:
        """The runner for these inputs, after checking them."""
        key = self.interface.key(given)
        found = self._live(key)
        if found is not None:
            return found
        if self.interface.blocks and key not in self._saved:
            self.interface.checked(key)
            return self._rows or self._in_blocks()
        if self.interface.fits(key) and (key not in self._saved or key == self.interface.longest):
            self.interface.checked(key)
            return self._lengths or self.for_any_length()
        for index, spec in enumerate(self.inputs):
            if index in given:
                spec.take(cast("Given", given[index]))
            elif spec.kind == "input":
                raise self.interface.missing(index)
        return self._variant(key)

    def _by_rows(self, inputs: tuple[Any, ...]) -> Executable | Rows | None:
        """The runner for input arrays that all have the same number of rows (size of the first axis): the executable
        for exactly this number, else the one that runs blocks of rows. It is found without computing the `Key` of the
        sizes, which takes longer; None if there is no such runner."""
        try:
            rows = inputs[0].shape[0]
            for each in inputs:
                if each.shape[0] != rows:
                    return None
        except (AttributeError, IndexError, TypeError):
            return None
        if len(inputs) != len(self.inputs):
            return None
        if (found := self._exact.get(rows)) is not None:
            return found
        maximum = self.interface.symbols[0].maximum
        return self._rows if rows > 0 and (maximum is None or rows <= maximum) else None

    def _in_blocks(self) -> Rows:
        """Make the runner of any number of rows, from the builds for blocks of a few rows."""
        threads = self._threads
        blocks = {size: self._variant(Key((size,))) for size in self.interface.blocks}
        rows = Rows(self.interface, blocks, threads)
        with self._lock:
            if threads == self._threads:
                self._rows = rows
        return rows

    def on(self, device: int = 0, stream: object = None) -> Session | HostSession:
        """A session for inputs of any size, whose runs are complete when they return, and return numpy arrays. Raises
        Unsupported for a device other than 0 or a stream: these need a session for one size, `variant(...).on()`."""
        from relay.runtime.session import HostSession

        if device or stream is not None:
            self._refuse_open("on")
        return HostSession(self.run)

    # Bound inputs

    def set_input(self, key: str | int, value: Given) -> None:
        """Bind a copy of the value to an input, by name or number, for `run()` without arguments."""
        index = self._index(key)
        array = self.inputs[index].take(value).copy()
        with self._lock:
            self._given[index] = array

    def _run_bound(self) -> None:
        with self._lock:
            given = dict(self._given)
        missing = [s.name for i, s in enumerate(self.inputs) if i not in given and s.kind == "input"]
        if missing:
            what = f"inputs {', '.join(missing)} are not bound"
            raise InvalidArgument("run", what, "give them to run() or set_input()")
        found = self._for(given).run(**{self.inputs[index].name: array for index, array in given.items()})
        assert found is not None
        with self._lock:
            self._results = found if isinstance(found, tuple) else (found,)

    def stream(self, states: Mapping[str, str] | None = None) -> Stream:
        """Open a stream of consecutive runs, if the model has caches that grow to a maximum (docs/streams.md). Other
        models have streams per size: `variant(...).stream(states)`."""
        from relay.runtime.growing import GrowingStream  # here: most models have no states

        caches = self.interface.caches
        if caches is None:
            self._refuse_open("stream()")
        if states:
            known = ", ".join(caches.states)
            raise InvalidArgument("stream: states", "are those that grow, and no others", f"they are {known}")

        def start(rows: int) -> Stream:
            return self._variant(Key((rows,) * len(self.interface.symbols))).stream()

        built = [key.sizes[0] for key in self._all() if key.sizes]
        return GrowingStream(self.interface, caches, start, built[0] if built else 1, self.max_variants)

    def _output(self, index: int) -> Array:
        if self._results is None:
            raise InvalidArgument("get_output", "nothing was run", "run() comes first")
        return self._results[index].copy()

    # What it is made of

    def to_json(self) -> dict[str, Any]:
        """The inputs and outputs, the named sizes that are only known at run time, and the values of these sizes for
        which there is a build (`variants`). `how` says for each size whether one build serves all its values, or each
        value has a build, and why."""
        interface = self.interface
        said = f"at run time, {interface.how}" if interface.blocks else f"a build for each: {interface.why}"
        how = {symbol.name: said.removesuffix(": ") for symbol in interface.symbols}
        if interface.length is not None:
            length = interface.length
            how = {s.name: f"1 with any {length.name}; a build for each other" for s in interface.symbols}
            how |= {length.name: f"at run time, up to {length.maximum}"}
            how |= {length.batch: "at run time, row by row"} if length.batch else {}
        if (caches := interface.caches) is not None:
            how[caches.size] = f"a state, up to {caches.maximum}; so are {', '.join(caches.states)}"
        variants = [interface.sizes(key) for key in self._all()]
        return {**interface.to_json(), "how": how, "variants": variants}

    def _head(self) -> str:
        names = ", ".join(symbol.name for symbol in self.interface.symbols)
        how = f", any number of which runs {self.interface.how}" if self.interface.blocks else ""
        if (length := self.interface.length) is not None:
            how = f", any {length.name} up to {length.maximum} runs by one"
        if (caches := self.interface.caches) is not None:
            how = f"; {len(caches.states)} caches grow to {caches.maximum} positions in a stream"
        return f"Executable for any sizes {names}; {len(self._all())} are built{how}"

    def __reduce__(self) -> tuple[Callable[..., Executable], tuple[bytes, int]]:
        """Pickle the executable as the bytes that `save` writes: only sizes that are built can run after unpickling."""
        return _unpickled, (self.to_bytes(), self._threads)

    def __iter__(self) -> Iterator[Any]:
        self._refuse_open("graph")

    @property
    def graph(self) -> dict[str, Any]:
        """The description of the executable in the JSON form of `to_json`: its inputs, outputs and unknown sizes, and
        the values of these sizes for which there are builds."""
        return self.to_json()

    def _all(self) -> list[Key]:
        with self._lock:
            return list(dict.fromkeys([*self._saved, *self._prepared, *self._recent]))

    @property
    def externals(self) -> NoReturn:
        """Raises Unsupported, since each variant, built for one tuple of input sizes, has its own; use
        `variant(...).externals`."""
        self._refuse_open("externals")

    @property
    def params(self) -> NoReturn:
        """Not available for a model whose tensor sizes are known only at run time; use `variant(...).params`, the
        constants of the executable for given sizes."""
        self._refuse_open("params")

    def get_source(self, kind: str = "ll") -> str:
        """Not available for open sizes; use `variant(...).get_source(kind)`."""
        self._refuse_open("get_source()")

    def export(self, folder: str | PathLike[str], name: str = "relay_model", kind: str = "o") -> list[Path]:
        """Raises Unsupported, since only a variant, built for one tuple of input sizes, can be exported; use
        `variant(...).export(folder)`."""
        self._refuse_open("export(folder)")

    def certify(self, bits: int = 64) -> Any:
        """Certify each variant that is built, as `Executable.certify`; parts of the report are named by sizes."""
        return certify(self.to_bytes(), bits)

    def parts(self) -> archive.Saved:
        """Not available for open sizes; use `variant(...).parts()`."""
        self._refuse_open("parts()")

    def _refuse_open(self, what: str) -> NoReturn:
        names = ", ".join(f"{symbol.name}=..." for symbol in self.interface.symbols)
        raise Unsupported(what, "each size has its own", f"variant({names}).{what}")

    def pieces(self) -> Sequence[bytes | memoryview]:
        """The contents of the file that `save` writes, in pieces: the variants (builds) that are prepared or were last
        used, which share one block of constants. Raises InvalidArgument if nothing is built."""
        keys = self._all()
        if not keys:
            hint = f"prepare({', '.join(f'{symbol.name}=[...]' for symbol in self.interface.symbols)}) comes first"
            raise InvalidArgument("save", "nothing is built yet", hint)
        return variants.pieces(self.interface, {key: self._variant(key).parts() for key in keys})


def loaded(parts: Mapping[str, memoryview], where: str) -> DynamicExecutable:
    """Make the executable from the parts of a file, without the compiler. Raises Malformed, InvalidArgument."""
    interface, saved = variants.unpack(parts, where)
    made = {key: partial(_executable_of, parts_of) for key, parts_of in saved.items()}
    return DynamicExecutable(interface, None, saved=made)


def _executable_of(parts_of: Callable[[], archive.Saved]) -> Executable:
    return executable_of(parts_of())


def _unpickled(data: bytes, num_threads: int) -> DynamicExecutable:
    """Make the executable from saved bytes."""
    executable = loaded(container.unpack(archive.aligned(data).data, "<pickle>"), "<pickle>")
    executable.num_threads = num_threads
    return executable
