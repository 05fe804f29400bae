"""Call the kernels of a saved executable one at a time.

Kernels are local functions with a calling convention of their own; only the entry point, which calls all of them, can
be called from outside. So for each kernel the checker loads a copy of the code in which every other call in the entry
point is replaced by a no-op: what runs is the file's own code, with the addresses that the entry point passes.
"""

from __future__ import annotations

import platform
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
from relay.validation.emulator import Process, SharedMemory, emulator_of, program

NO_CALLS = {
    "x86_64": {0xE8: b"\x0f\x1f\x44\x00\x00", 0xE9: b"\xc3\x90\x90\x90\x90"},
    "aarch64": {0x94000000: b"\x1f\x20\x03\xd5", 0x14000000: b"\xc0\x03\x5f\xd6"},
}
"""By machine and opcode, the bytes that replace a call: a no-op, or a return for a tail call."""
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
SYMBOLS, PROGRAM, FUNCTION = 2, 1, 2


memcmp = CDLL(None).memcmp
memcmp.argtypes = (c_void_p, c_void_p, c_size_t)


class Unknown(Exception):
    """Raised, with the reason, if this checker cannot call the kernels of a file."""


def functions_of(code: bytes) -> dict[str, tuple[int, int]]:
    """By name, the address and size of every function in the symbol table of a shared object."""
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
    """The address, file offset and size of every loaded segment."""
    (table,), (size, count) = struct.unpack_from("<Q", code, 32), struct.unpack_from("<HH", code, 54)
    rows = [struct.unpack_from("<IIQQQQ", code, table + number * size) for number in range(count)]
    return [(address, offset, length) for kind, _, offset, address, _, length in rows if kind == PROGRAM]


def target_of(machine: str, code: bytes, at: int, start: int) -> tuple[int, bytes] | None:
    """The address called by the instruction at this file offset and address, and the bytes that replace the call; None
    if the instruction is no call."""
    if machine == "x86_64":
        (distance,) = struct.unpack_from("<i", code, at + 1)
        return (start + 5 + distance, NO_CALLS[machine][code[at]]) if code[at] in NO_CALLS[machine] else None
    (word,) = struct.unpack_from("<I", code, at)
    kind, distance = word & 0xFC000000, ((word & 0x3FFFFFF) ^ 0x2000000) - 0x2000000
    known = start % 4 == 0 and kind in NO_CALLS[machine]
    return (start + 4 * distance, NO_CALLS[machine][kind]) if known else None


def calls_in(machine: str, code: bytes, names: Sequence[str], caller: str) -> list[tuple[int, str, bytes]]:
    """Find the calls of the functions `names` in the function `caller`: the file offset, the name, and the bytes that
    replace the call."""
    try:
        functions, loaded = functions_of(code), offsets(code)
    except (struct.error, ValueError, IndexError, UnicodeDecodeError):
        raise Unknown("the code has no symbol table that can be read") from None
    targets = {functions[name][0]: name for name in names if name in functions}
    start, length = functions.get(caller, (0, 0))
    shift = next((offset - base for base, offset, size in loaded if base <= start < base + size), 0)
    found: list[tuple[int, str, bytes]] = []
    for at in range(start, start + length - 3):
        called = target_of(machine, code, at + shift, at)
        if called is not None and called[0] in targets:
            found.append((at + shift, targets[called[0]], called[1]))
    return found


def same(first: Array, second: Array) -> bool:
    """Whether two contiguous arrays of the same size have the same bytes."""
    return not memcmp(address(first), address(second), first.nbytes)


class Machine:
    """The memory of a saved executable (inputs, outputs, constants, arena) and its kernels."""

    def __init__(self, saved: Saved, claims: Claims, seconds: int):
        self.saved, self.claims, self.seconds = saved, claims, seconds
        graph: Mapping[str, Any] = saved.graph
        if graph.get("externals"):
            raise Unknown("parts of it were made by external compilers")
        triple = str(graph["target"]["triple"])
        self.name = triple.split("-")[0]
        if self.name not in NO_CALLS:
            raise Unknown(f"calls of kernels are known on {' and '.join(NO_CALLS)} only")
        specs = [TensorSpec.from_json(entry) for entry in [*graph["inputs"], *graph["outputs"]]]
        self.specs, self.inputs = specs, len(graph["inputs"])
        sizes = [max(int(np.prod(s.shape)) * s.dtype.itemsize, 1) for s in specs]
        sizes += [int(graph["constants_bytes"]), max(int(graph["arena_bytes"]), 1)]
        self.emulator = None if self.name == platform.machine() else emulator_of(triple)
        self.shared = None if self.emulator is None else SharedMemory(sizes)
        self.process: Process | None = None
        memory = [aligned_bytes(size) for size in sizes] if self.shared is None else self.shared.arrays
        *self.arguments, self.constants, self.arena = memory
        self.restore()
        self.table = (c_uint64 * (len(memory) + 1))(*(address(each) for each in memory), 0)
        self.where = {row["name"]: row for row in graph["constants"]}
        self.entry = str(graph["entry"])
        names = [call.code for call in claims.calls]
        different = list(dict.fromkeys(names))
        # LLVM may inline `main`, with its calls, into the entry point
        found = [calls_in(self.name, saved.code, different, each) for each in (self.entry, "main")]
        self.sites = found[0] or found[1]
        if not claims.branches and [name for _, name, _ in self.sites] != names:
            raise Unknown("the calls in the code are not those that the claim lists")
        if self.shared is not None and self.image(saved.code, self.shared) is None:
            raise Unknown("its code calls functions of the C library, which the emulator does not have")
        self.flags = [self.at(place) for place in claims.flags]
        self.libraries: list[Library] = []

    def restore(self) -> None:
        """Reset the constants in memory, which tests change, to those of the saved executable."""
        assert self.saved.constants is not None  # files compiled for one input size have constants
        self.constants[:] = self.saved.constants[: self.constants.size]

    def at(self, place: Place) -> Array:
        """The bytes at a place. Raises Unknown if the place lies beyond the end of its argument or of the arena."""
        base = self.arena if place.argument == ARENA else self.arguments[place.argument]
        if place.offset + place.bytes > base.size:
            raise Unknown("a tensor lies outside of its memory")
        return base[place.offset : place.offset + place.bytes]

    def constant(self, name: str) -> Array:
        """A writable view of a constant where the code reads it."""
        row = self.where[name]
        dtype = np.dtype(row["dtype"])
        size = int(np.prod(row["shape"], dtype=np.int64)) * dtype.itemsize
        return self.constants[row["offset"] : row["offset"] + size].view(dtype)

    def function(self, number: int | None) -> Callable[[], None]:
        """A function that runs a copy of the entry point in which all calls of kernels but call number `number` are
        replaced by no-ops; if `number` is None, no call is replaced."""
        code, kept = bytearray(self.saved.code), None if number is None else self.site(number)
        for at, _, instead in self.sites:
            if kept is not None and at != kept:
                code[at : at + len(instead)] = instead
        if self.emulator is not None and self.shared is not None:
            return self.emulated(self.emulator, self.shared, bytes(code))
        library = Library(bytes(code))
        self.libraries.append(library)
        native, pointer = library.function(self.entry), addressof(self.table)

        def run() -> None:
            setitimer(ITIMER_REAL, self.seconds)  # the signal ends the process, whatever the code does
            native(pointer)
            setitimer(ITIMER_REAL, 0)

        return run

    def site(self, number: int) -> int:
        """The offset in the file of the instruction for call `number` of the certificate's list of kernel calls. Raises
        Unknown if the machine code calls the same kernel more or less often than the list."""
        names = [call.code for call in self.claims.calls]
        sites = [at for at, name, _ in self.sites if name == names[number]]
        if len(sites) != names.count(names[number]):
            raise Unknown("its calls in the code are not as many as the claim lists")
        return sites[names[:number].count(names[number])]

    def image(self, code: bytes, shared: SharedMemory) -> bytes | None:
        """The program that the emulator runs: the shared object `code`, with start code in a segment that replaces its
        GNU_STACK program header. None if it has no such header, or needs a dynamic loader."""
        return program(code, functions_of(code)[self.entry][0], shared)

    def emulated(self, emulator: str, shared: SharedMemory, code: bytes) -> Process:
        """Start a process that runs the entry point of `code` under an emulator; the process that was started before is
        ended."""
        image = self.image(code, shared)
        assert image is not None  # not None: this was checked for the unchanged code
        if self.process is not None:
            self.process.close()
        self.process = Process(emulator, image, shared, self.seconds)
        return self.process


class Kernel:
    """One call of a kernel, with its `operands` by argument number and its `results` in the memory that the code
    uses."""

    def __init__(self, machine: Machine, call: Call):
        self.machine, self.call = machine, call
        program = call.program
        self.operands = {n: program.arguments[n].view(machine.at(place)) for n, place in call.operands.items()}
        found = zip(program.results, call.results, strict=True)
        self.results = [program.forms[n].view(machine.at(place)) for n, place in found]
        self.scratch = [machine.at(place) for place in call.scratch]
        self.native = machine.function(call.number)
        self.runs = 0
        self.off = 0.0
        """The largest difference observed so far of a float, or of a quantized value that was computed with floats."""
        self.garbage = [result.reshape(-1).view(np.uint8) for result in self.results]

    def run(self) -> None:
        """Run the kernel. Its results are overwritten first, so that a missing write is noticed."""
        self.runs += 1
        for each in self.garbage:
            np.invert(each, out=each)
        for flag in self.machine.flags:
            flag[:] = 0
        self.native()
