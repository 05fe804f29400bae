"""Products by matrix units: ldmatrix and mma.sync of warps, wgmma of groups of four warps. Source: PTX ISA 8.7,
9.7.14.5 (mma, ldmatrix) and 9.7.15 (wgmma)."""

from __future__ import annotations

import re

import numpy as np

from tests.ptx.arithmetic import Values
from tests.ptx.control import GROUP, WARP
from tests.ptx.group_products import Product
from tests.ptx.machine import Machine, Row, Step
from tests.ptx.memory import Fault, Integers
from tests.ptx.movement import vector
from tests.ptx.parser import Instruction, Kernel, Operand
from tests.ptx.tables import ACCUMULATOR, MATRIX_ROWS, MMA, Descriptor, Fragment

WARPS = -16
"""In place of a reading thread: one of a warp's collective reads, by the number of the warp."""


def load_matrices(instruction: Instruction, kernel: Kernel) -> Step | None:
    """ldmatrix.sync.aligned.m8n8.{x1,x2,x4}.shared.b16: lanes have rows' addresses, get 2 elements of each matrix."""
    shape, number, *rest = instruction.parts[3:]
    if shape != "m8n8" or number not in ("x1", "x2", "x4") or rest not in (["shared", "b16"], ["shared::cta", "b16"]):
        return None
    count = int(number[1:])
    results, place = vector(instruction.operands[0], count), instruction.operands[1]

    def step(machine: Machine, threads: Integers) -> None:
        warps, shared = machine.whole(threads, WARP), machine.shared
        lanes = warps[:, : MATRIX_ROWS * count]
        addresses = machine.addresses(place, threads).reshape(warps.shape)[:, : lanes.shape[1]].reshape(-1)
        first = shared.places(lanes.reshape(-1), addresses, 16, 16)
        shared.reading(shared.granules(first, 16), lanes.reshape(-1), WARPS - lanes.reshape(-1) // WARP)
        words = shared.data[first[:, None] + np.arange(16)].view(np.uint32).reshape(*lanes.shape, 4)
        lane = np.arange(WARP)
        for number, result in enumerate(results):
            machine.write(result, words[:, MATRIX_ROWS * number + lane // 4, lane % 4].reshape(-1), threads)

    return step


def numbers(words: Values, type: str) -> Values:
    """The elements of registers, [..., registers] to [..., elements], as numbers that float64 holds exactly."""
    if type in ("s8", "u8"):
        return words.view(np.int8 if type == "s8" else np.uint8).astype(np.float64)
    if type == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if type == "bf16":
        return (words.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return words.view(np.float16).astype(np.float64)


def gathered(machine: Machine, operand: Operand, fragment: Fragment, type: str, threads: Integers) -> Values:
    """A matrix of each warp, from its threads' fragments."""
    bits = {"s8": 8, "u8": 8, "f16": 16, "bf16": 16}.get(type, 32)
    registers = vector(operand, fragment.elements * bits // 32)
    columns = [np.broadcast_to(machine.read(name, "b32", threads), threads.shape) for name in registers]
    words = np.ascontiguousarray(np.stack(columns, axis=1)).reshape(-1, WARP, len(registers))
    elements = (
        words.view(np.int32) if type == "s32" else words.view(np.float32) if type == "f32" else numbers(words, type)
    )
    rows, places = fragment.places()
    found = np.zeros((len(words), fragment.rows, fragment.columns), elements.dtype)
    found[:, rows, places] = elements
    return found


def multiply(instruction: Instruction, kernel: Kernel) -> Step | None:
    """mma.sync.aligned.SHAPE.row.col.D.A.B.C: integers wrap around, floats are summed in float32 in some order."""
    shape, row, column, *types = instruction.parts[3:]
    if (row, column) != ("row", "col") or len(types) != 4 or (shape, types[1]) not in MMA:
        return None
    if types[0] != types[3] or types[0] != ("s32" if types[1] in ("s8", "u8") else "f32"):
        return None
    (first, second), (result, a, b, c) = MMA[shape, types[1]], instruction.operands
    results = vector(result, ACCUMULATOR.elements)

    def step(machine: Machine, threads: Integers) -> None:
        machine.whole(threads, WARP)
        product = gathered(machine, a, first, types[1], threads) @ gathered(machine, b, second, types[2], threads)
        start = gathered(machine, c, ACCUMULATOR, types[3], threads)
        total = product.astype(np.int32) + start if types[0] == "s32" else (product + start).astype(np.float32)
        rows, places = ACCUMULATOR.places()
        for number, name in enumerate(results):
            machine.write(name, total[:, rows[:, number], places[:, number]].reshape(-1), threads)

    return step


def fence(instruction: Instruction, kernel: Kernel) -> Step:
    return lambda machine, threads: machine.products.fence(threads)


def commit(instruction: Instruction, kernel: Kernel) -> Step:
    def step(machine: Machine, threads: Integers) -> None:
        machine.products.committed[machine.whole(threads, GROUP)[:, 0] // GROUP] += 1

    return step


def wait(instruction: Instruction, kernel: Kernel) -> Step:
    left = int(str(instruction.operands[0]))
    return lambda machine, threads: machine.products.wait(threads, left)


def group_product(instruction: Instruction, kernel: Kernel) -> Step | None:
    """wgmma.mma_async.sync.aligned.m64nNk32.s32.A.B sums, descriptor, descriptor, whether to add to the sums."""
    match = re.fullmatch(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k32\.s32\.([su]8)\.([su]8)", instruction.opcode)
    if match is None:
        return None
    columns, types = int(match[1]), (match[2], match[3])
    registers = vector(instruction.operands[0], columns // 2)
    descriptors, keep = instruction.operands[1:3], instruction.operands[3]

    def step(machine: Machine, threads: Integers) -> None:
        for group in machine.whole(threads, GROUP):
            places = list[Integers]()
            for operand, rows in zip(descriptors, (64, columns), strict=True):
                bits = np.unique(machine.read(operand, "b64", group))
                if len(bits) != 1:
                    raise Fault("descriptors differ between threads")
                found = Descriptor.decoded(int(bits[0]))
                if found.wrong():
                    raise Fault(found.wrong())
                places.append(machine.asynchronous.first(int(group[0]), found.addresses(rows, 32)))
            keeps = np.unique(machine.read(keep, "pred", group))
            batch = int(machine.products.committed[group[0] // GROUP])
            machine.products.start(Product(group, places[0], places[1], types, registers, bool(keeps[0]), batch))

    return step


PRODUCTS: dict[str, Row] = {
    "ldmatrix.sync.aligned": load_matrices,
    "mma.sync.aligned": multiply,
    "wgmma.fence.sync.aligned": fence,
    "wgmma.commit_group.sync.aligned": commit,
    "wgmma.wait_group.sync.aligned": wait,
    "wgmma.mma_async": group_product,
}
