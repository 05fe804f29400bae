"""A whole model on the interpreter: memory as the executable's graph says, and all launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from relay.dialects.attributes import Array
from relay.runtime import Executable
from tests.ptx.arithmetic import TYPES, computation
from tests.ptx.asynchronous import ASYNCHRONOUS
from tests.ptx.machine import Machine, Step
from tests.ptx.memory import GlobalMemory, Integers
from tests.ptx.movement import MOVEMENT
from tests.ptx.parser import Instruction, Kernel, Module, PtxError, parse
from tests.ptx.products import PRODUCTS
from tests.ptx.tables import Im2colMap, TensorMap

TABLE = MOVEMENT | ASYNCHRONOUS | PRODUCTS
"""What an instruction that is not arithmetic does, by the start of its opcode."""
THREADS = 8192
"""How many threads run at once: blocks know nothing of each other."""
MAP = 128
"""The bytes of a tensor map, whose contents only the device knows."""


def arithmetic(instruction: Instruction) -> Step | None:
    """An instruction on registers only."""
    if not instruction.operands:
        return None
    result, *operands = instruction.operands
    found = computation(instruction.opcode, len(operands))
    if found is None or len(found.operands) != len(operands):
        return None

    def step(machine: Machine, threads: Integers) -> None:
        values = [machine.read(o, type, threads) for o, type in zip(operands, found.operands, strict=True)]
        machine.write(result, np.asarray(found.function(*values)).view(TYPES[found.result]), threads)

    return step


def prepare(kernel: Kernel) -> list[Step]:
    """A function for each instruction. Raises PtxError with all that are not in the subset."""
    steps, unknown = list[Step](), set[str]()
    for instruction in kernel.code:
        row = next((TABLE[name] for name in prefixes(instruction.opcode) if name in TABLE), None)
        step = (row and row(instruction, kernel)) or arithmetic(instruction)
        if step is None:
            unknown.add(instruction.opcode)
        else:
            steps.append(step)
    if unknown:
        raise PtxError(f"{kernel.name}: not in the subset: {', '.join(sorted(unknown))}")
    return steps


def prefixes(opcode: str) -> list[str]:
    """An opcode, and what it starts with, the longest first."""
    words = opcode.split(".")
    return [".".join(words[:count]) for count in range(len(words), 0, -1)]


@dataclass
class Interpreter:
    """The kernels of a text. `executed` counts instructions of threads."""

    module: Module
    steps: dict[str, list[Step]]
    executed: int = 0

    @classmethod
    def of(cls, text: str) -> Interpreter:
        module = parse(text)
        return cls(module, {name: prepare(kernel) for name, kernel in module.kernels.items()})

    def launch(
        self,
        name: str,
        grid: int,
        block: int,
        shared: int,
        arguments: Sequence[int],
        memory: GlobalMemory,
        maps: dict[int, TensorMap | Im2colMap] | None = None,
    ) -> None:
        """Run a kernel with the addresses of its arguments; `maps`: by address. Raises Fault."""
        kernel = self.module.kernels[name]
        assert block == kernel.threads and len(arguments) == len(kernel.parameters)
        memory.begin()
        given = dict(zip(kernel.parameters, arguments, strict=True))
        some = max(THREADS // block, 1)
        for first in range(0, grid, some):
            blocks = range(first, min(first + some, grid))
            machine = Machine(self.module, kernel, blocks, grid, shared, given, memory, maps or {}, first * block)
            with np.errstate(all="ignore"):
                machine.run(self.steps[name])
            self.executed += machine.executed


def tensor_map(address: int, row: Mapping[str, Any]) -> TensorMap | Im2colMap:
    """The map that a launch's row tells of, of what lies at an address."""
    sizes, box = tuple(row["dims"]), (row["box"][0], row["box"][1])
    if "corners" not in row:
        return TensorMap(address, (sizes[0], sizes[1]), row["strides"][0], box, row["swizzle"])
    lower, upper, stride = row["corners"]
    return Im2colMap(address, sizes, tuple(row["strides"]), (lower, upper), stride, box, row["swizzle"])


def run(executable: Executable, inputs: Sequence[Array], text: str | None = None) -> tuple[list[Array], Interpreter]:
    """A model's outputs, from its PTX or from another text in its place. Raises Fault."""
    graph, interpreter = executable.graph, Interpreter.of(text or executable.get_source("ptx"))
    states = [executable.params[row["initial"]] for row in graph["inputs"][len(inputs) :]]
    outputs = [np.zeros(prod(row["shape"]), row["dtype"]) for row in graph["outputs"]]
    constants = np.zeros(int(graph["constants_bytes"]), np.uint8)
    for row in graph["constants"]:
        flat = np.ascontiguousarray(executable.params[row["name"]]).reshape(-1).view(np.uint8)
        constants[row["offset"] : row["offset"] + flat.size] = flat
    launches = graph["device"]["launches"]
    rows = [(number, map) for number, launch in enumerate(launches) for map in launch.get("maps", ())]
    arena = np.full(int(graph["device"]["arena_bytes"]), 0xA5, np.uint8)
    slots = [*inputs, *states, *outputs, constants, arena]
    memory = GlobalMemory([*slots, *(np.zeros(MAP, np.uint8) for _ in rows)])
    for number, launch in enumerate(launches):
        arguments = [memory.address(slot, offset) for slot, offset in launch["arguments"]]
        maps: dict[int, TensorMap | Im2colMap] = {}
        for place, (owner, map) in enumerate(rows):
            if owner == number:
                argument = int(map["argument"])
                found = tensor_map(arguments[argument], map)
                arguments[argument] = memory.address(len(slots) + place)
                maps[arguments[argument]] = found
        name, grid, block = launch["kernel"], launch["grid"], launch["block"]
        interpreter.launch(name, grid[0], block[0], launch["shared"], arguments, memory, maps)
    first = len(inputs) + len(states)
    results = [
        memory.bytes(first + number, output.nbytes).view(output.dtype).reshape(row["shape"]).copy()
        for number, (output, row) in enumerate(zip(outputs, graph["outputs"], strict=True))
        if row["kind"] == "output"
    ]
    return results, interpreter
