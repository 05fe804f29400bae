"""From a partitioned function to a program: where every tensor lies, then op by op."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from relay.byoc.compiler import Refusal
from relay.byoc.systolic import vectors
from relay.byoc.systolic.artifact import pack
from relay.byoc.systolic.assembler import Assembler
from relay.byoc.systolic.isa import TENSORS, WORKSPACE, Instruction, address
from relay.byoc.systolic.products import Product, parts, product_of, write
from relay.dialects import byoc, qnn, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import shape
from relay.errors import Unsupported
from relay.transforms.location import place

ALIGNMENT = 64


@dataclass(frozen=True)
class Program:
    """What a function became."""

    code: list[Instruction]
    constants: bytes
    workspace: int

    def pack(self) -> bytes:
        """The artifact's bytes."""
        return pack(self.code, self.constants, self.workspace)


def product_in(op: Operation) -> Product | Refusal:
    """The product that a composite of ours holds."""
    if not isinstance(op, byoc.CompositeOp):
        return Refusal(f"{op.name} is no composite")
    found = parts(list(op.body.block.ops))
    return found if isinstance(found, Refusal) else product_of(*found)


def generate(function: FuncOp) -> Program:
    """The program of a function. Raises Unsupported, naming the op, for one that the accelerator does not run."""
    program, block = Assembler(), function.body.block
    end = block.last_op
    assert isinstance(end, ReturnOp)
    for number, argument in enumerate(block.args):
        program.addresses[argument] = address(TENSORS + number)
    targets: dict[SSAValue, int] = {}
    for number, value in enumerate(end.arguments, len(block.args)):
        targets.setdefault(root(value), address(TENSORS + number))
    workspace = Workspace(list(block.ops), targets)
    for op in block.ops:
        if isinstance(op, relay.ConstantOp):
            program.addresses[op.result] = program.constant(to_numpy(op.value))
        elif isinstance(op, relay.ReshapeOp):
            program.addresses[op.result] = program.addresses[op.operands[0]]
        elif op is not end:
            target = workspace.place(op)
            program.addresses[op.results[0]] = target
            write_op(program, op, target)
    for number, value in enumerate(end.arguments, len(block.args)):
        if program.addresses[value] != address(TENSORS + number):
            vectors.copy(program, program.addresses[value], address(TENSORS + number), prod(shape(value)))
    return Program(program.code, bytes(program.constants), workspace.size)


def write_op(program: Assembler, op: Operation, target: int) -> None:
    """One op's instructions."""
    match op:
        case byoc.CompositeOp():
            product = product_in(op)
            if isinstance(product, Refusal):
                raise Unsupported(place(op), f"systolic cannot run it: {product.reason}")
            write(program, product, program.addresses[op.inputs[0]], target)
        case qnn.AddOp():
            vectors.write_add(program, op, target)
        case relay.AvgPool2dOp():
            vectors.write_average(program, op, target)
        case qnn.SoftmaxOp():
            vectors.write_softmax(program, op, target)
        case _:
            raise Unsupported(place(op), f"systolic has no instructions for {op.name}")


def root(value: SSAValue) -> SSAValue:
    """The tensor of which this is a reshape."""
    while isinstance(op := value.owner, relay.ReshapeOp):
        value = op.operands[0]
    return value


class Workspace:
    """Gives tensors their places: results in `targets` there, the others in the workspace, the first gap that fits
    while they are alive."""

    def __init__(self, ops: list[Operation], targets: dict[SSAValue, int]):
        self.targets = targets
        self.size = 0
        self.order = {op: number for number, op in enumerate(ops)}
        self.last: dict[SSAValue, int] = {}
        for op, number in self.order.items():
            for value in op.operands:
                self.last[root(value)] = number
        self.alive: list[tuple[int, int, int]] = []
        """Start, end, last use."""

    def place(self, op: Operation) -> int:
        """The address of the op's result."""
        value = op.results[0]
        if value in self.targets:
            return self.targets[value]
        now, size = self.order[op], -(-prod(shape(value)) // ALIGNMENT) * ALIGNMENT
        self.alive = sorted(entry for entry in self.alive if entry[2] >= now)
        start = 0
        for first, end, _ in self.alive:
            if start + size <= first:
                break
            start = max(start, end)
        self.alive.append((start, start + size, self.last.get(value, now)))
        self.size = max(self.size, start + size)
        return address(WORKSPACE, start)
