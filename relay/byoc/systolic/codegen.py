"""Generates a program from a partitioned function: assigns memory to tensors, then generates code op by op."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from relay.byoc.arena import Buffer, place
from relay.byoc.compiler import Refusal
from relay.byoc.regions import Kernel, Region
from relay.byoc.systolic import vectors
from relay.byoc.systolic.assembler import Assembler
from relay.byoc.systolic.isa import KIND, TENSORS, WORKSPACE, Instruction, address
from relay.byoc.systolic.products import product_of, write
from relay.dialects import qnn, relay
from relay.dialects.op import shape
from relay.errors import Unsupported
from relay.runtime.programs import pack

ALIGNMENT = 64


@dataclass(frozen=True)
class Program:
    """The accelerator program that computes a partitioned function: its instructions in order, and the bytes of its
    constants."""

    code: list[Instruction]
    constants: bytes
    workspace: int
    """The size of the scratch memory that the function needs, in bytes."""

    def pack(self) -> bytes:
        """The bytes of the artifact."""
        code = np.frombuffer(b"".join(step.encode() for step in self.code), np.uint8)
        return pack(KIND, self.workspace, {"code": code, "constants": np.frombuffer(self.constants, np.int8)})


def generate(function: FuncOp) -> Program:
    """The program of a function. Raises Unsupported, naming the op, for an op that the accelerator does not run."""
    region = Region(function)
    program = Assembler(region)
    for number, argument in enumerate(region.inputs):
        program.addresses[argument] = address(TENSORS + number)
    targets: dict[SSAValue, int] = {}
    for number, value in enumerate(region.outputs, len(region.inputs)):
        targets.setdefault(root(region, value), address(TENSORS + number))
    buffers, workspace = planned(region, targets)
    targets |= {value: address(WORKSPACE, buffer.offset) for value, buffer in buffers.items()}
    for kernel in region.kernels:
        first, result = kernel.ops[0], kernel.root.results[0]
        if isinstance(first, relay.ReshapeOp):
            program.addresses[result] = program.addresses[first.input]
        else:
            program.addresses[result] = targets[result]
            write_kernel(program, kernel, targets[result])
    for number, value in enumerate(region.outputs, len(region.inputs)):
        if program.addresses[value] != address(TENSORS + number):
            vectors.copy(program, program.addresses[value], address(TENSORS + number), prod(shape(value)))
    return Program(program.code, bytes(program.constants), workspace)


def write_kernel(program: Assembler, kernel: Kernel, target: int) -> None:
    """Generate the instructions of a kernel: a convolution or dense product with its epilogue, or a single op.
    `target`: the address to which they write the result."""
    match op := kernel.ops[0]:
        case qnn.Conv2dOp() | qnn.DenseOp():
            product = product_of(kernel.ops)
            if isinstance(product, Refusal):
                raise Unsupported(kernel.place, f"systolic cannot run it: {product.reason}")
            write(program, product, program.addresses[op.operands[0]], target)
        case qnn.AddOp():
            vectors.write_add(program, op, target)
        case relay.AvgPool2dOp():
            vectors.write_average(program, op, target)
        case qnn.SoftmaxOp():
            vectors.write_softmax(program, op, target)
        case _:
            raise Unsupported(kernel.place, f"systolic has no instructions for {op.name}")


def root(region: Region, value: SSAValue) -> SSAValue:
    """Return the tensor from which `value` is computed by reshapes alone; `value` itself if no reshape computes it."""
    while isinstance(op := region.of(value).owner, relay.ReshapeOp):
        value = op.input
    return region.of(value)


def planned(region: Region, targets: Collection[SSAValue]) -> tuple[dict[SSAValue, Buffer], int]:
    """Return a buffer of the workspace for each value that a kernel computes, and the size of the workspace in bytes.
    Values in `targets` get no buffer, since they have an address already; results of reshapes get none, since they
    share the address of their operand."""
    found: dict[SSAValue, Buffer] = {}
    for number, kernel in enumerate(region.kernels):
        for value in (root(region, operand) for op in kernel.ops for operand in op.operands):
            if value in found:
                found[value].last = number
        result = kernel.root.results[0]
        if not isinstance(kernel.root, relay.ReshapeOp) and result not in targets:
            found[result] = Buffer(-(-prod(shape(result)) // ALIGNMENT) * ALIGNMENT, number, number)
    return found, place(found.values())
