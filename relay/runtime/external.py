"""External functions: artifacts of other compilers, called by native code through a table of addresses.

The table has two 8-byte words for each function, the C function's address and its context, and then one word that
records a failure: 0, or the number of the failed function, from 1, in its upper half and the returned status in its
lower half. The argument table with which a run calls the native code has the address of this table after that of the
arena.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import CFUNCTYPE, c_char, c_int32, c_uint64, c_void_p, cast, memmove
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay.errors import InvalidArgument, Malformed, RelayError
from relay.runtime import loaders
from relay.runtime.loaders import Native, Run
from relay.runtime.memory import Array, Form, address, aligned_bytes, bytes_of

SIGNATURE = CFUNCTYPE(c_int32, c_void_p, c_void_p)
"""The type of external C functions: `int32_t f(void *context, void **tensors)`."""
VIEWS = 32
"""The largest number of sets of addresses for which a Python function's arrays are cached."""


class Wrapper:
    """Makes a Python function callable through a C function pointer."""

    def __init__(self, external: External, run: Run):
        self.where = external.where
        self.run = run
        self.forms = [*external.inputs, *external.outputs]
        self.count = len(external.inputs)
        self.failures: dict[int, BaseException] = {}
        self.views: dict[tuple[int, ...], tuple[tuple[Array, ...], tuple[Array, ...]]] = {}
        self.words = c_uint64 * len(self.forms)
        self.function = SIGNATURE(self)

    def __call__(self, context: int | None, tensors: int) -> int:
        """Call the Python function on the tensors at these addresses; never raises. An exception, or a result other
        than None, is stored until the calling thread retrieves it."""
        addresses = tuple(self.words.from_address(tensors))
        inputs, outputs = self.views.get(addresses) or self.view(addresses)
        try:
            given: object = self.run(inputs, outputs)
            if given is None:
                return 0
            hint = "it fills the arrays of its outputs, and returns None"
            error: BaseException = RelayError(self.where, f"returned {type(given).__name__}", hint)
        except BaseException as raised:
            error = self.named(raised)
        self.failures[threading.get_ident()] = error
        return 1

    def named(self, error: BaseException) -> BaseException:
        """The error with the function's name: added as a note to a RelayError or a non-`Exception`, otherwise as a
        RelayError with the original as its cause."""
        if isinstance(error, RelayError) or not isinstance(error, Exception):
            error.add_note(f"in {self.where}")
            return error
        found = RelayError(self.where, f"raised {type(error).__name__}: {error}")
        found.__cause__ = error
        return found

    def view(self, addresses: tuple[int, ...]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """The input and output arrays for the tensors at these addresses; cached."""
        arrays = tuple(at(where, form) for where, form in zip(addresses, self.forms, strict=True))
        for array in arrays[: self.count]:
            array.flags.writeable = False
        if len(self.views) >= VIEWS:
            self.views.clear()
        self.views[addresses] = found = (arrays[: self.count], arrays[self.count :])
        return found


def at(where: int, form: Form) -> Array:
    """A NumPy array of the given shape and dtype that views the memory at address `where`."""
    shape, dtype = form
    return np.ndarray(shape, dtype, memoryview((c_char * bytes_of(form)).from_address(where)))


class Aligned:
    """A wrapper of a native entry point, which takes a table of tensors' addresses. A tensor that does not start at a
    multiple of the alignment that the entry point requires is replaced by an aligned copy during the call; `slots`:
    (index in the table, alignment, size in bytes, whether the entry point writes it)."""

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
    """An external function of an executable; `loaded` is the object that its loader returned."""

    symbol: str
    compiler: str
    version: str
    inputs: list[Form]
    outputs: list[Form]
    loaded: Native | Run

    @property
    def where(self) -> str:
        """The location that error messages name."""
        return f"external function {self.symbol}, compiled by '{self.compiler}'"

    def failed(self, status: int) -> RelayError:
        """The error for this status of a C function."""
        message = self.loaded.message if isinstance(self.loaded, Native) else None
        text = message(status) if message else ""
        return RelayError(self.where, f"failed with status {status}" + (f": {text}" if text else ""))


def load(row: Mapping[str, Any], artifacts: Mapping[str, bytes], params: Mapping[str, Array]) -> External:
    """Load the artifact of a row of the graph's `externals`. Raises RelayError."""
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
    """A shape and dtype from JSON."""
    return tuple(int(d) for d in shape), np.dtype(dtype)


class Externals:
    """The external functions of an executable, and the table in which native code finds them."""

    def __init__(self, graph: Mapping[str, Any], artifacts: Mapping[str, bytes], params: Mapping[str, Array]):
        rows: list[Mapping[str, Any]] = list(graph.get("externals", ()))
        self.functions = [load(row, artifacts, params) for row in rows]
        self.table = aligned_bytes(16 * len(rows) + 8).view(np.uint64)
        self.wrappers: dict[int, Wrapper] = {}
        self.alignments: dict[int, int] = {}
        for number, (function, row) in enumerate(zip(self.functions, rows, strict=True)):
            native = function.loaded
            if isinstance(native, Native):
                self.table[2 * number : 2 * number + 2] = native.address, native.context
                for slot in map(int, row["arguments"]):
                    self.alignments[slot] = max(native.alignment, self.alignments.get(slot, 1))
            else:
                self.wrappers[number] = Wrapper(function, native)
                self.table[2 * number] = cast(self.wrappers[number].function, c_void_p).value or 0

    def copied(self) -> Array:
        """A copy of the table of addresses and contexts in which native code finds the external functions, for use by
        one run at a time."""
        found = aligned_bytes(self.table.nbytes).view(np.uint64)
        found[:] = self.table
        return found

    def call(self, number: int, tensors: int) -> None:
        """Call the function with this number; `tensors` is the address of an array of its tensors' addresses. Raises
        the function's error, or RelayError."""
        status = SIGNATURE(int(self.table[2 * number]))(int(self.table[2 * number + 1]), tensors)
        if status:
            raise self.failure(number, status)

    def failure(self, number: int, status: int) -> BaseException:
        """The error of the last call of function `number` in this thread, which failed with `status`."""
        if number in self.wrappers:
            return self.wrappers[number].failures.pop(threading.get_ident())
        return self.functions[number].failed(status)

    def bound(
        self, native: Callable[[int], None], inputs: Sequence[Form], outputs: Sequence[Form]
    ) -> Callable[[int], None]:
        """Wrap the entry point so that it aligns tensors as external functions require, and raises their errors."""
        count = len(inputs) + len(outputs)
        slots = [
            (slot, alignment, bytes_of(form), slot >= len(inputs))
            for slot, form in enumerate((*inputs, *outputs))
            if (alignment := self.alignments.get(slot, 1)) > 1
        ]
        aligned = Aligned(native, slots, count) if slots else native
        place = 8 * (count + 2)  # behind the constants and the arena
        last = 16 * len(self.functions)

        def call(table: int) -> None:
            state = c_uint64.from_address(c_uint64.from_address(table + place).value + last)
            state.value = 0
            aligned(table)
            if failed := int(state.value):
                raise self.failure((failed >> 32) - 1, c_int32(failed & 0xFFFFFFFF).value)

        return call
