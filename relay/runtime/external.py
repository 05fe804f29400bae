"""External functions: what other compilers made, called by native code through a table of addresses.

The table has two words for each, the C function and its context; native code finds it as the last entry of the table
that the entry point takes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import CFUNCTYPE, c_char, c_uint64, c_void_p, cast, memmove
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay.errors import InvalidArgument, Malformed, RelayError
from relay.runtime import loaders
from relay.runtime.loaders import Native, Run
from relay.runtime.memory import Array, Form, address, aligned_bytes, bytes_of

SIGNATURE = CFUNCTYPE(None, c_void_p, c_void_p)
VIEWS = 32
"""How many sets of addresses a function in Python keeps its arrays for."""


class Failures:
    """Exceptions of functions in Python, by thread, until the run that they belong to is over."""

    def __init__(self) -> None:
        self.of: dict[int, BaseException] = {}

    def guarded(self, native: Callable[[int], None]) -> Callable[[int], None]:
        """The entry point, raising what was raised inside it."""

        def call(table: int) -> None:
            if self.of:  # of a run that was interrupted
                self.of.pop(threading.get_ident(), None)
            native(table)
            if self.of and (error := self.of.pop(threading.get_ident(), None)) is not None:
                raise error

        return call


class Wrapper:
    """A function in Python as a C function."""

    def __init__(self, external: External, run: Run, failures: Failures):
        self.where = f"external function {external.symbol}, compiled by '{external.compiler}'"
        self.run = run
        self.forms = [*external.inputs, *external.outputs]
        self.count = len(external.inputs)
        self.failures = failures
        self.views: dict[tuple[int, ...], tuple[list[Array], list[Array]]] = {}
        self.words = c_uint64 * len(self.forms)
        self.function = SIGNATURE(self)

    def __call__(self, context: int | None, tensors: int) -> None:
        """Never raises: what the function raises, or that it gives something, is kept; its outputs are then zeros, and
        so are those of the calls that follow in this run."""
        addresses = tuple(self.words.from_address(tensors))
        inputs, outputs = self.views.get(addresses) or self.view(addresses)
        if not self.failures.of or threading.get_ident() not in self.failures.of:
            try:
                given: object = self.run(inputs, outputs)
                if given is None:
                    return
                hint = "it fills the arrays of its outputs, and returns None"
                error: BaseException = RelayError(self.where, f"returned {type(given).__name__}", hint)
            except BaseException as raised:
                error = self.named(raised)
            self.failures.of[threading.get_ident()] = error
        for array in outputs:
            array.fill(0)

    def named(self, error: BaseException) -> BaseException:
        """The error with the function's name: one of ours and what is no `Exception` as a note, else as its cause."""
        if isinstance(error, RelayError) or not isinstance(error, Exception):
            error.add_note(f"in {self.where}")
            return error
        found = RelayError(self.where, f"raised {type(error).__name__}: {error}")
        found.__cause__ = error
        return found

    def view(self, addresses: tuple[int, ...]) -> tuple[list[Array], list[Array]]:
        """The tensors at these addresses as arrays."""
        arrays = [at(where, form) for where, form in zip(addresses, self.forms, strict=True)]
        for array in arrays[: self.count]:
            array.flags.writeable = False
        if len(self.views) >= VIEWS:
            self.views.clear()
        self.views[addresses] = found = (arrays[: self.count], arrays[self.count :])
        return found


def at(where: int, form: Form) -> Array:
    """The array of this form at an address."""
    shape, dtype = form
    return np.ndarray(shape, dtype, memoryview((c_char * bytes_of(form)).from_address(where)))


class Aligned:
    """An entry point whose tensors in the slots given start at multiples of an alignment: others are copied."""

    def __init__(self, native: Callable[[int], None], slots: Sequence[tuple[int, int, int, bool]], count: int):
        self.native = native
        self.slots = slots
        self.words = c_uint64 * count

    def __call__(self, table: int) -> None:
        words = self.words.from_address(table)
        moved: list[tuple[int, int, int, Array]] = []
        for slot, alignment, size, written in self.slots:
            where = words[slot]
            if where % alignment:
                spare = aligned_bytes(size, alignment)
                words[slot] = address(spare)
                if written:
                    moved.append((slot, where, size, spare))
                else:
                    memmove(words[slot], where, size)
                    moved.append((slot, where, 0, spare))
        try:
            self.native(table)
        finally:
            for slot, where, size, spare in moved:
                words[slot] = where
                memmove(where, address(spare), size)


@dataclass(frozen=True)
class External:
    """An external function of an executable; `loaded` is what its loader gave."""

    symbol: str
    compiler: str
    version: str
    inputs: list[Form]
    outputs: list[Form]
    loaded: Native | Run


def load(row: Mapping[str, Any], artifacts: Mapping[str, bytes], params: Mapping[str, Array]) -> External:
    """Load what a row of the graph's `externals` tells of. Raises RelayError."""
    symbol, compiler, version = (str(row[key]) for key in ("symbol", "compiler", "version"))
    inputs, outputs = ([form_of(*form) for form in row[key]] for key in ("inputs", "outputs"))
    if symbol not in artifacts:
        raise Malformed(f"external function {symbol}", "has no artifact", "build the model again")
    given: dict[str, Array] = {}
    for name, (key, shape, dtype) in dict(row["params"]).items():
        if key not in params:
            raise InvalidArgument(f"params['{key}']", "is missing")
        array = given[name] = np.require(params[key], requirements=["C"])
        if (array.shape, array.dtype) != form_of(shape, dtype):
            wrong = f"is {array.dtype}{list(array.shape)}; {dtype}{list(shape)} is needed"
            raise InvalidArgument(f"params['{key}']", wrong)
    requirement = str(row.get("requirement", ""))
    loaded = loaders.load(compiler, version, symbol, artifacts[symbol], given, inputs, outputs, requirement)
    return External(symbol, compiler, version, inputs, outputs, loaded)


def form_of(shape: Sequence[Any], dtype: Any) -> Form:
    """Shape and dtype, from JSON."""
    return tuple(int(d) for d in shape), np.dtype(dtype)


class Externals:
    """The external functions of an executable, and the table that native code finds them in."""

    def __init__(self, graph: Mapping[str, Any], artifacts: Mapping[str, bytes], params: Mapping[str, Array]):
        rows: list[Mapping[str, Any]] = list(graph.get("externals", ()))
        self.functions = [load(row, artifacts, params) for row in rows]
        self.failures = Failures()
        self.table = aligned_bytes(16 * len(rows)).view(np.uint64)
        self.wrappers: list[Wrapper] = []
        self.alignments: dict[int, int] = {}
        for number, (function, row) in enumerate(zip(self.functions, rows, strict=True)):
            native = function.loaded
            if isinstance(native, Native):
                self.table[2 * number : 2 * number + 2] = native.address, native.context
                for slot in map(int, row["arguments"]):
                    self.alignments[slot] = max(native.alignment, self.alignments.get(slot, 1))
            else:
                self.wrappers.append(Wrapper(function, native, self.failures))
                self.table[2 * number] = cast(self.wrappers[-1].function, c_void_p).value or 0

    def bound(
        self, native: Callable[[int], None], inputs: Sequence[Form], outputs: Sequence[Form]
    ) -> Callable[[int], None]:
        """The entry point as one that aligns what an external function wants aligned, and raises what one raised."""
        slots = [
            (slot, alignment, bytes_of(form), slot >= len(inputs))
            for slot, form in enumerate((*inputs, *outputs))
            if (alignment := self.alignments.get(slot, 1)) > 1
        ]
        call = Aligned(native, slots, len(inputs) + len(outputs)) if slots else native
        return self.failures.guarded(call) if self.wrappers else call
