"""Loads, stores, jumps, barriers, and exchanges between lanes. Source: PTX ISA 8.7, 9.7.9, 9.7.12 and 9.7.13."""

from __future__ import annotations

import numpy as np

from tests.ptx.arithmetic import TYPES
from tests.ptx.control import DONE, MET, WARP
from tests.ptx.machine import Machine, Row, Step
from tests.ptx.memory import Integers
from tests.ptx.parser import Address, Instruction, Kernel, Operand, PtxError

COUNTS = {"v2": 2, "v4": 4}


def vector(operand: Operand, count: int) -> tuple[str, ...]:
    """The registers of an operand that is one or a vector."""
    found = (operand,) if isinstance(operand, str) else operand
    if not isinstance(found, tuple) or len(found) != count:
        raise PtxError(f"{operand} is no vector of {count}")
    return found


def load(instruction: Instruction, kernel: Kernel) -> Step | None:
    """ld from parameters, global and shared memory."""
    _, space, *words = instruction.parts
    type, count = words[-1], next((COUNTS[word] for word in words if word in COUNTS), 1)
    if type not in TYPES or set(words[:-1]) - {*COUNTS, "nc"}:
        return None
    results, place = vector(instruction.operands[0], count), instruction.operands[1]
    width = np.dtype(TYPES[type]).itemsize * count
    if space == "param":
        if not isinstance(place, Address) or place.base not in kernel.parameters or place.offset:
            return None
        name = place.base
        return lambda machine, threads: machine.write(results[0], machine.arguments[name], threads)
    if space not in ("global", "shared"):
        return None

    def step(machine: Machine, threads: Integers) -> None:
        addresses = machine.addresses(place, threads)
        if space == "global":
            found = machine.memory.load(threads + machine.first, addresses, width, "nc" in words)
        else:
            found = machine.shared.load(threads, addresses, width)
        values = np.ascontiguousarray(found).view(TYPES[type])
        for number, result in enumerate(results):
            machine.write(result, values[:, number], threads)

    return step


def store(instruction: Instruction, kernel: Kernel) -> Step | None:
    """st to global and shared memory."""
    _, space, *words = instruction.parts
    type, count = words[-1], next((COUNTS[word] for word in words if word in COUNTS), 1)
    if space not in ("global", "shared") or type not in TYPES or set(words[:-1]) - {*COUNTS}:
        return None
    place, sources = instruction.operands[0], vector(instruction.operands[1], count)

    def step(machine: Machine, threads: Integers) -> None:
        columns = [np.broadcast_to(machine.read(source, type, threads), threads.shape) for source in sources]
        values = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint8)
        addresses = machine.addresses(place, threads)
        if space == "global":
            machine.memory.store(threads + machine.first, addresses, values)
        else:
            machine.shared.store(threads, addresses, values)

    return step


def move(instruction: Instruction, kernel: Kernel) -> Step | None:
    """mov between a register and its parts, the lowest first. 9.7.9.8."""
    result, source = instruction.operands
    whole = TYPES[instruction.parts[1]]
    if isinstance(source, tuple):
        type = f"b{8 * np.dtype(whole).itemsize // len(source)}"

        def join(machine: Machine, threads: Integers) -> None:
            columns = [np.broadcast_to(machine.read(part, type, threads), threads.shape) for part in source]
            machine.write(result, np.stack(columns, axis=1).view(whole)[:, 0], threads)

        return join
    if isinstance(result, tuple):

        def part(machine: Machine, threads: Integers) -> None:
            found = np.broadcast_to(machine.read(source, instruction.parts[1], threads), threads.shape)
            parts = np.ascontiguousarray(found).view(f"u{np.dtype(whole).itemsize // len(result)}")
            for number, name in enumerate(result):
                machine.write(name, parts.reshape(-1, len(result))[:, number], threads)

        return part
    return None


def branch(instruction: Instruction, kernel: Kernel) -> Step | None:
    """bra, with .uni or without."""
    (label,) = instruction.operands
    if not isinstance(label, str):
        return None

    def step(machine: Machine, threads: Integers) -> None:
        machine.jump = kernel.labels[label]

    return step


def leave(instruction: Instruction, kernel: Kernel) -> Step:
    def step(machine: Machine, threads: Integers) -> None:
        machine.state[threads] = DONE

    return step


def meet(instruction: Instruction, kernel: Kernel) -> Step | None:
    """bar.sync 0: all threads of the block, by whole warps."""
    if instruction.operands != ("0",):
        return None

    def step(machine: Machine, threads: Integers) -> None:
        machine.whole(threads, WARP)
        machine.state[threads] = MET

    return step


def shuffle(instruction: Instruction, kernel: Kernel) -> Step | None:
    """shfl.sync of whole warps: lanes get the value of lane `l xor b` (bfly), or of lane `b` (idx). 9.7.9.6."""
    mode, result, (source, other, clamp, mask) = instruction.parts[2], instruction.operands[0], instruction.operands[1:]
    if mode not in ("bfly", "idx") or instruction.parts[3] != "b32" or mask not in ("-1", "0xffffffff", "0xFFFFFFFF"):
        return None
    register = result.partition("|")[0] if isinstance(result, str) else result

    def step(machine: Machine, threads: Integers) -> None:
        warps = machine.whole(threads, WARP)
        values = np.broadcast_to(machine.read(source, "b32", threads), threads.shape).reshape(warps.shape)
        by = np.broadcast_to(machine.read(other, "u32", threads), threads.shape).reshape(warps.shape) & 31
        bounds = np.broadcast_to(machine.read(clamp, "u32", threads), threads.shape).reshape(warps.shape)
        lane = np.arange(WARP)
        segment = (bounds >> 8) & 31
        most = (lane & segment) | (bounds & 31 & ~segment)
        wanted = lane ^ by if mode == "bfly" else (lane & segment) | (by & ~segment)
        chosen = np.where(wanted <= most, wanted, lane).astype(np.int64)
        machine.write(register, np.take_along_axis(values, chosen, axis=1).reshape(-1), threads)

    return step


MOVEMENT: dict[str, Row] = {
    "mov": move,
    "ld": load,
    "st": store,
    "bra": branch,
    "ret": leave,
    "exit": leave,
    "bar.sync": meet,
    "barrier.sync.aligned": meet,
    "shfl.sync": shuffle,
}
