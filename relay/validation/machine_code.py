"""Kernels of an artifact, called one at a time.

Kernels are local functions with a calling convention of their own; only the entry point, which calls all of them, can
be called from outside. So for each kernel the checker loads a copy of the code in which every other call of the entry
point is a no-op: what runs is the file's own code, with the addresses that the entry point gives it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from ctypes import CDLL, addressof, c_size_t, c_uint64, c_void_p
from signal import ITIMER_REAL, setitimer
from typing import Any

import numpy as np

from relay.runtime.archive import Saved
from relay.runtime.library import Library
from relay.runtime.memory import Array, address, aligned_bytes
from relay.runtime.specification import TensorSpec
from relay.validation.claims import ARENA, Call, Claims, Place

CALL, JUMP = 0xE8, 0xE9
NO_CALL, RETURN = b"\x0f\x1f\x44\x00\x00", b"\xc3\x90\x90\x90\x90"
"""What takes the place of a call, and of a call that is the last thing its function does."""
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
SYMBOLS, PROGRAM, FUNCTION = 2, 1, 2


memcmp = CDLL(None).memcmp
memcmp.argtypes = (c_void_p, c_void_p, c_size_t)


class Unknown(Exception):
    """Code whose kernels this checker cannot call by themselves, and why."""


def functions_of(code: bytes) -> dict[str, tuple[int, int]]:
    """Address and size of every function that the symbol table of a shared object names."""
    (table,), (size, count) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<HH", code, 58)
    sections: list[tuple[int, ...]] = [SECTION.unpack_from(code, table + number * size) for number in range(count)]
    found: dict[str, tuple[int, int]] = {}
    for section in sections:
        if section[1] != SYMBOLS:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], SYMBOL.size):
            name, info, _, _, value, length = SYMBOL.unpack_from(code, at)
            if info & 15 == FUNCTION:
                start = names + name
                found[code[start : code.index(b"\0", start)].decode()] = (value, length)
    return found


def offsets(code: bytes) -> list[tuple[int, int, int]]:
    """Address, offset in the file and size of what is loaded."""
    (table,), (size, count) = struct.unpack_from("<Q", code, 32), struct.unpack_from("<HH", code, 54)
    rows = [struct.unpack_from("<IIQQQQ", code, table + number * size) for number in range(count)]
    return [(address, offset, length) for kind, _, offset, address, _, length in rows if kind == PROGRAM]


def calls_in(code: bytes, names: Sequence[str], callers: Sequence[str]) -> list[tuple[int, str]]:
    """Where the callers call functions of these names: offset in the file, name."""
    try:
        functions, loaded = functions_of(code), offsets(code)
    except (struct.error, ValueError, IndexError, UnicodeDecodeError):
        raise Unknown("the code has no symbol table that can be read") from None
    targets = {functions[name][0]: name for name in names if name in functions}
    found: list[tuple[int, str]] = []
    for caller in callers:
        if caller not in functions:
            continue
        start, length = functions[caller]
        shift = next((offset - base for base, offset, size in loaded if base <= start < base + size), None)
        if shift is None:
            continue
        for at in range(start, start + length - 4):
            if code[at + shift] in (CALL, JUMP):
                (distance,) = struct.unpack_from("<i", code, at + shift + 1)
                if at + 5 + distance in targets:
                    found.append((at + shift, targets[at + 5 + distance]))
    return found


def same(first: Array, second: Array) -> bool:
    """Whether two arrays of one size, which have no gaps, have the same bytes."""
    return not memcmp(address(first), address(second), first.nbytes)


class Machine:
    """The memory of an artifact (inputs, outputs, constants, arena), and its kernels."""

    def __init__(self, saved: Saved, claims: Claims, seconds: int):
        self.saved, self.claims, self.seconds = saved, claims, seconds
        graph: Mapping[str, Any] = saved.graph
        if graph.get("externals"):
            raise Unknown("parts of it were made by external compilers")
        if not str(graph["target"]["triple"]).startswith("x86_64"):
            raise Unknown("calls of kernels are known on x86-64 only")
        specs = [TensorSpec.from_json(entry) for entry in [*graph["inputs"], *graph["outputs"]]]
        self.specs, self.inputs = specs, len(graph["inputs"])
        self.arguments = [aligned_bytes(max(int(np.prod(s.shape)) * s.dtype.itemsize, 1)) for s in specs]
        self.constants = aligned_bytes(int(graph["constants_bytes"]))
        self.arena = aligned_bytes(max(int(graph["arena_bytes"]), 1))
        self.restore()
        memory = [*self.arguments, self.constants, self.arena]
        self.table = (c_uint64 * (len(memory) + 1))(*(address(each) for each in memory), 0)
        self.where = {row["name"]: row for row in graph["constants"]}
        self.entry = str(graph["entry"])
        names = [call.kernel for call in claims.calls]
        self.calls = calls_in(saved.code, list(dict.fromkeys(names)), ("main", self.entry))
        if [name for _, name in self.calls] != names:
            raise Unknown("the calls in the code are not those that the claim lists")
        self.libraries: list[Library] = []

    def restore(self) -> None:
        """The constants as the file has them."""
        assert self.saved.constants is not None  # files of one size have them
        self.constants[:] = self.saved.constants[: self.constants.size]

    def at(self, place: Place) -> Array:
        """The bytes of a place."""
        base = self.arena if place.argument == ARENA else self.arguments[place.argument]
        if place.offset + place.bytes > base.size:
            raise Unknown("a tensor lies outside of its memory")
        return base[place.offset : place.offset + place.bytes]

    def constant(self, name: str) -> Array:
        """A constant, where the code reads it; it may be written."""
        row = self.where[name]
        dtype = np.dtype(row["dtype"])
        size = int(np.prod(row["shape"], dtype=np.int64)) * dtype.itemsize
        return self.constants[row["offset"] : row["offset"] + size].view(dtype)

    def function(self, number: int | None) -> Callable[[], None]:
        """The entry point in which only the call of this number is left; whole, if it is None."""
        code = bytearray(self.saved.code)
        for each, (at, _) in enumerate(self.calls):
            if number is not None and each != number:
                code[at : at + 5] = NO_CALL if code[at] == CALL else RETURN
        library = Library(bytes(code))
        self.libraries.append(library)
        native, pointer = library.function(self.entry), addressof(self.table)

        def run() -> None:
            setitimer(ITIMER_REAL, self.seconds)  # its signal ends the process, whatever the code does
            native(pointer)
            setitimer(ITIMER_REAL, 0)

        return run


class Kernel:
    """One call of a kernel: `operands` by the number of the argument and `results`, where the code reads and writes."""

    def __init__(self, machine: Machine, call: Call):
        self.machine, self.call = machine, call
        program = call.program
        self.operands = {
            number: machine.at(place).view(program.arguments[number].dtype).reshape(program.arguments[number].shape)
            for number, place in call.operands.items()
        }
        self.forms = [program.forms[number] for number in program.results]
        self.results = [
            machine.at(place).view(form.dtype).reshape(form.shape)
            for form, place in zip(self.forms, call.results, strict=True)
        ]
        self.scratch = [machine.at(place) for place in call.scratch]
        self.native = machine.function(call.number)
        self.runs = 0
        self.off = 0.0
        """By how much floats, and codes that were computed with floats, were off at most."""
        self.garbage = [result.reshape(-1).view(np.uint8) for result in self.results]

    def run(self) -> None:
        """Run the code; its results held other bytes before."""
        self.runs += 1
        for each in self.garbage:
            np.invert(each, out=each)
        self.native()
