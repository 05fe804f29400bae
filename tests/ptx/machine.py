"""Runs kernels of PTX, vectorised over the threads of some blocks. Threads at the lowest instruction go first, so those
that parted meet again; what is asynchronous happens as late as it may. What a kernel must not do is a Fault that names
its line. Source: PTX ISA 8.7."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.ptx.arithmetic import TYPES, Values
from tests.ptx.control import DONE, GROUP, MET, READY, WARP, ranks
from tests.ptx.copies import Asynchronous
from tests.ptx.group_products import Products
from tests.ptx.memory import SHARED_BASE, Fault, GlobalMemory, Integers, SharedMemory
from tests.ptx.parser import Address, Instruction, Kernel, Module, Operand, PtxError
from tests.ptx.tables import Im2colMap, TensorMap

Step = Callable[["Machine", Integers], None]
"""An instruction for some threads, which are at it."""


REGISTERS = 1 << 16
"""Of a block at most. CUDA C++ Programming Guide, Technical Specifications per Compute Capability."""


class Machine:
    """Some blocks of a launch."""

    def __init__(
        self,
        module: Module,
        kernel: Kernel,
        blocks: Sequence[int],
        grid: int,
        shared: int,
        arguments: Mapping[str, int],
        memory: GlobalMemory,
        maps: Mapping[int, TensorMap | Im2colMap],
        first: int,
    ):
        self.module, self.kernel, self.memory, self.maps = module, kernel, memory, maps
        self.block, self.count = kernel.threads, kernel.threads * len(blocks)
        self.first = first
        self.arguments = {name: np.array([address], np.uint64) for name, address in arguments.items()}
        self.threads = np.arange(self.count)
        self.specials = {
            "%tid.x": (self.threads % self.block).astype(np.uint32),
            "%ctaid.x": np.repeat(np.asarray(blocks, np.uint32), self.block),
            "%ntid.x": np.full(self.count, self.block, np.uint32),
            "%nctaid.x": np.full(self.count, grid, np.uint32),
            "%laneid": (self.threads % WARP).astype(np.uint32),
        }
        self.shared = SharedMemory(len(blocks), shared, self.block, granule(kernel))
        self.registers: dict[str, Values] = {}
        self.at = np.zeros(self.count, np.int64)
        self.state = np.full(self.count, READY, np.int8)
        self.ranks = np.array([*ranks(kernel), len(kernel.code) ** 2 + 1])
        self.jump: int | None = None
        self.stay = np.zeros(0, np.int64)
        self.executed = 0
        self.limits = np.full(-(-self.count // GROUP), REGISTERS // self.block // 8 * 8)
        self.asynchronous, self.products = Asynchronous(self), Products(self)

    # Operands

    def read(self, operand: Operand, type: str, threads: Integers) -> Values:
        """The values of an operand, one for each thread or one for all."""
        dtype = np.dtype(TYPES[type])
        if not isinstance(operand, str):
            raise PtxError(f"{operand} is no single value")
        if operand in self.registers:
            self.products.used(operand, threads)
            found = self.registers[operand][threads]
        elif operand in self.specials:
            found = self.specials[operand][threads]
        elif operand == self.module.shared:
            return np.asarray(SHARED_BASE, dtype)
        elif operand.startswith("%") or "." in operand:
            raise Fault(f"{operand} is read before it is written")
        else:
            return np.asarray(number(operand, dtype))
        if found.dtype == dtype or found.dtype.itemsize == dtype.itemsize:
            return found.view(dtype)
        if found.dtype.itemsize < dtype.itemsize:
            raise PtxError(f"{operand} is too narrow for .{type}")
        return found.astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)

    def write(self, register: Operand, values: Values, threads: Integers) -> None:
        """Give a register values; narrower ones are extended by their own sign."""
        if register == "_":
            return
        if not isinstance(register, str):
            raise PtxError(f"{register} is no register")
        self.products.assigned(register, threads)
        self.place(register, values, threads)

    def place(self, register: str, values: Values, threads: Integers) -> None:
        """Give a register values that come when they come."""
        declared = np.dtype(TYPES[self.kernel.type_of(register)])
        if values.dtype != declared:
            if values.dtype.itemsize < declared.itemsize:
                values = values.astype(np.dtype(f"{values.dtype.kind}{declared.itemsize}"))
            if values.dtype.itemsize != declared.itemsize:
                raise PtxError(f"{register} of .{declared} gets values of .{values.dtype}")
            values = values.view(declared)
        if len(threads) == self.count:
            self.registers[register] = np.broadcast_to(values, self.count).copy()
            return
        if register not in self.registers:
            self.registers[register] = np.zeros(self.count, declared)
        self.registers[register][threads] = values

    def addresses(self, operand: Operand, threads: Integers) -> Values:
        """The addresses of `[register + offset]`, one for each thread."""
        if not isinstance(operand, Address):
            raise PtxError(f"{operand} is no address")
        base = self.read(operand.base, "u64", threads)
        return np.broadcast_to(base + np.asarray(operand.offset).astype(np.int64).view(np.uint64), threads.shape)

    def whole(self, threads: Integers, size: int) -> Integers:
        """These threads as rows of warps or groups of warps. Raises Fault unless they are whole ones."""
        if len(threads) % size or self.block % size:
            raise Fault("is executed by some threads of a warp only (.aligned)")
        rows = threads.reshape(-1, size)
        if (rows[:, 0] % size).any() or (rows[:, -1] - rows[:, 0] != size - 1).any():
            raise Fault("is executed by some threads of a warp only (.aligned)")
        return rows

    # Running

    def run(self, steps: Sequence[Step]) -> None:
        """All threads to their ends. Raises Fault."""
        while True:
            ready = self.state == READY
            if not ready.any():
                if (self.state == DONE).all():
                    break
                self.wake()
                continue
            places = np.where(ready, self.ranks[self.at], self.ranks[-1])
            low = places.min()
            active = places == low
            later = places[~active & ready]
            until = later.min() if later.size else self.ranks[-1]
            threads = self.threads if active.all() else np.flatnonzero(active)
            self.straight(steps, threads, int(self.at[threads[0]]), int(until))
        self.asynchronous.over()
        self.products.over()
        if (
            self.block % GROUP == 0
            and (self.limits.reshape(len(self.shared.times), -1).sum(1) * GROUP > REGISTERS).any()
        ):
            raise Fault(f"{self.kernel.name}: takes more registers (setmaxnreg) than its block can have")

    def straight(self, steps: Sequence[Step], threads: Integers, at: int, until: int) -> None:
        """Instructions of these threads until one that jumps or waits, or until others go first."""
        self.jump = None
        while self.ranks[at] < until:
            instruction = self.kernel.code[at]
            some = threads
            if instruction.guard is not None:
                name, negated = instruction.guard
                some = threads[np.broadcast_to(self.read(name, "pred", threads) != negated, threads.shape)]
            self.executed += len(some)
            at += 1
            if len(some):
                try:
                    steps[at - 1](self, some)
                except Fault as fault:
                    raise Fault(f"{self.kernel.name}: {instruction}: {fault}") from None
            if self.jump is not None:
                self.at[threads] = at
                self.at[some] = self.jump
                return
            if (self.state[some] != READY).any():
                break
        self.at[threads] = at
        self.at[self.stay] = at - 1
        self.stay = self.stay[:0]

    def wake(self) -> None:
        """Nobody runs: let those go on that wait for each other, or for copies."""
        met = (self.state == MET).reshape(-1, self.block)
        blocks = np.flatnonzero(met.all(axis=1))
        if len(blocks):
            at = self.at.reshape(-1, self.block)[blocks]
            if (at != at[:, :1]).any():
                raise Fault(f"{self.kernel.name}: threads wait for each other at different barriers")
            self.shared.barrier(blocks)
            self.asynchronous.met(blocks)
            self.state.reshape(-1, self.block)[blocks] = READY
        elif not self.asynchronous.progress():
            raise Fault(f"{self.kernel.name}: {self.asynchronous.complaint()}")


def granule(kernel: Kernel) -> int:
    """The bytes of the narrowest access to shared memory, 4 at most."""
    narrow = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2}
    words = [i.parts[-1] for i in kernel.code if i.opcode.startswith(("ld.shared", "st.shared"))]
    return min((narrow.get(word, 4) for word in words), default=4)


def number(text: str, dtype: Any) -> Any:
    """A constant: an integer, or the bits of a float. Chapter 4.5."""
    if text[:2] in ("0f", "0F"):
        return np.asarray(struct.unpack(">f", bytes.fromhex(text[2:]))[0], np.float32).view(dtype)
    if text[:2] in ("0d", "0D"):
        return np.asarray(struct.unpack(">d", bytes.fromhex(text[2:]))[0], np.float64).view(dtype)
    try:
        value = int(text.rstrip("U"), 0)
    except ValueError:
        raise PtxError(f"{text!r} is no number") from None
    if dtype == np.bool_:
        return np.bool_(value)
    bits = dtype.itemsize * 8
    return np.asarray(value & (1 << bits) - 1, f"u{dtype.itemsize}").view(dtype)


Row = Callable[[Instruction, Kernel], Step | None]
"""Makes a step of an instruction; None for a form of it that is not in the subset."""
