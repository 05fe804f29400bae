"""Instructions that copy later, wait for it, or make things visible: rows of the interpreter's table. Source: PTX ISA
8.7, 9.7.9.25 (asynchronous copies), 9.7.13.15 (mbarrier), 9.7.13.4 (fences)."""

from __future__ import annotations

import numpy as np

from tests.ptx.control import GROUP, WAITING
from tests.ptx.machine import Machine, Row, Step
from tests.ptx.memory import Fault, Integers
from tests.ptx.parser import Address, Instruction, Kernel


def copies(instruction: Instruction, kernel: Kernel) -> Step | None:
    """cp.async.{ca,cg}.shared.global [to], [from], size {, size of what is read}."""
    if instruction.parts[2:] not in (["ca", "shared", "global"], ["cg", "shared", "global"]):
        return None
    to, source, size, *rest = instruction.operands
    if size not in ("4", "8", "16") or (instruction.parts[2] == "cg" and size != "16"):
        return None

    def step(machine: Machine, threads: Integers) -> None:
        read = np.broadcast_to(machine.read(rest[0] if rest else size, "s32", threads), threads.shape)
        if ((read != 0) & (read != int(str(size)))).any():
            raise Fault("copies that are zeros in part are not in the subset")
        places = machine.addresses(to, threads), machine.addresses(source, threads)
        machine.asynchronous.copy(threads, *places, int(str(size)), read == 0)

    return step


def commit(instruction: Instruction, kernel: Kernel) -> Step:
    def step(machine: Machine, threads: Integers) -> None:
        machine.asynchronous.committed[threads] += 1

    return step


def wait(instruction: Instruction, kernel: Kernel) -> Step:
    left = int(str(instruction.operands[0]))
    return lambda machine, threads: machine.asynchronous.wait(threads, left)


def wait_all(instruction: Instruction, kernel: Kernel) -> Step:
    def step(machine: Machine, threads: Integers) -> None:
        machine.asynchronous.committed[threads] += 1
        machine.asynchronous.wait(threads, 0)

    return step


def values(machine: Machine, threads: Integers, place: object, *operands: object) -> list[list[int]]:
    """For each thread its number, an address, and these numbers of 32 bits."""
    assert isinstance(place, Address)
    columns = [machine.addresses(place, threads).astype(np.int64)]
    for operand in operands:
        columns.append(machine.read(str(operand), "s32", threads).astype(np.int64))
    return np.stack([threads, *(np.broadcast_to(column, threads.shape) for column in columns)], axis=1).tolist()


def start(instruction: Instruction, kernel: Kernel) -> Step | None:
    place, count = instruction.operands

    def step(machine: Machine, threads: Integers) -> None:
        for thread, address, expected in values(machine, threads, place, count):
            machine.asynchronous.start(thread, address, expected)

    return step


def arrive(instruction: Instruction, kernel: Kernel) -> Step | None:
    state, place, *bytes = instruction.operands
    if state != "_" or len(bytes) != ("expect_tx" in instruction.parts):
        return None

    def step(machine: Machine, threads: Integers) -> None:
        for thread, address, count in values(machine, threads, place, *bytes or "0"):
            machine.asynchronous.arrive(thread, address, count)

    return step


def try_wait(instruction: Instruction, kernel: Kernel) -> Step | None:
    """May give false once where it would have to wait, as its time limit allows; then it waits."""
    if instruction.parts[2] != "parity":
        return None
    done, place, parity = instruction.operands

    def step(machine: Machine, threads: Integers) -> None:
        under_way = machine.asynchronous
        found = np.array([under_way.test(*row) for row in values(machine, threads, place, parity)])
        blocked = threads[~found & under_way.tried[threads]]
        under_way.tried[threads] = ~found
        machine.state[blocked], machine.stay = WAITING, blocked
        machine.write(done, found, threads)

    return step


def tiles(instruction: Instruction, kernel: Kernel) -> Step | None:
    """cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [to], [map, {x, y}], [barrier];
    .4d.shared::cluster.global.im2col...: [map, {c, x, y, n}], and behind the barrier {offset of x, of y}."""
    windows = instruction.parts[4:] == ["4d", *SPACES, "im2col", COUNTED]
    if not windows and instruction.parts[4:] != ["2d", *SPACES, COUNTED]:
        return None
    to, source, barrier, *taps = instruction.operands

    def step(machine: Machine, threads: Integers) -> None:
        assert isinstance(source, Address) and len(source.coordinates) == (4 if windows else 2)
        offsets = taps[0] if windows else ()
        assert isinstance(offsets, tuple)
        targets = machine.addresses(to, threads).astype(np.int64)
        barriers = machine.addresses(barrier, threads).astype(np.int64)
        rows = values(machine, threads, Address(source.base, source.offset), *source.coordinates)
        shifts = [np.broadcast_to(machine.read(word, "u16", threads), threads.shape) for word in offsets]
        for number, (thread, map, *place) in enumerate(rows):
            tap = [int(shift[number]) for shift in shifts] if windows else None
            machine.asynchronous.tile(thread, int(targets[number]), map, place, int(barriers[number]), tap)

    return step


def fence(instruction: Instruction, kernel: Kernel) -> Step | None:
    if instruction.parts[3:] not in ([], ["shared::cta"]):
        return None
    return lambda machine, threads: machine.shared.fence(threads)


def fence_map(instruction: Instruction, kernel: Kernel) -> Step | None:
    """fence.proxy.tensormap::generic.acquire.sys [map], 128: 9.7.13.4."""
    if instruction.operands[1] != "128":
        return None
    place = instruction.operands[0]

    def step(machine: Machine, threads: Integers) -> None:
        mapped = machine.asynchronous.mapped
        for thread, address in values(machine, threads, place):
            mapped.setdefault(address, np.zeros(machine.count, np.bool_))[thread] = True

    return step


def registers(instruction: Instruction, kernel: Kernel) -> Step | None:
    """setmaxnreg.{inc,dec}.sync.aligned.u32 count: by all threads of a group of warps. 9.7.19.5."""
    count = int(str(instruction.operands[0]))
    if count % 8 or not 24 <= count <= 256:
        return None

    def step(machine: Machine, threads: Integers) -> None:
        machine.limits[machine.whole(threads, GROUP)[:, 0] // GROUP] = count

    return step


SPACES = ("shared::cluster", "global")
COUNTED = "mbarrier::complete_tx::bytes"
ASYNCHRONOUS: dict[str, Row] = {
    "cp.async": copies,
    "cp.async.commit_group": commit,
    "cp.async.wait_group": wait,
    "cp.async.wait_all": wait_all,
    "cp.async.bulk.tensor": tiles,
    "mbarrier.init": start,
    "mbarrier.arrive": arrive,
    "mbarrier.arrive.expect_tx": arrive,
    "setmaxnreg": registers,
    "mbarrier.try_wait": try_wait,
    "fence.proxy.async": fence,
    "fence.proxy.tensormap::generic.acquire": fence_map,
}
