"""Turns a module with planned memory into the steps that the runtime executes: kernel launches with the addresses of
their buffers, and the host's work between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, func, gpu, memref, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from relay import artifact
from relay.errors import Unsupported
from relay.lowering import externals
from relay.lowering.gpu.convert_parallel_loops_to_gpu import constant
from relay.lowering.gpu.gpu_kernel_outlining import VIEWS, constants
from relay.lowering.gpu.tensor_maps import TensorMap, map_of
from relay.lowering.shaped import buffer_of, size_of
from relay.module import IRModule
from relay.transforms.location import place

Place = tuple[int, int]
"""The address of a buffer: the number of an argument of @main, and an offset in bytes."""


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: `grid` blocks of `block` threads, with `shared` bytes of shared memory per block."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    arguments: tuple[Place, ...]
    maps: tuple[tuple[int, TensorMap], ...] = ()
    """Arguments, by number, that are tensor maps of a matrix instead of its address."""

    def row(self) -> dict[str, Any]:
        """Return the launch in the form that is stored as JSON."""
        row: dict[str, Any] = {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "shared": self.shared,
            "arguments": [list(argument) for argument in self.arguments],
        }
        if self.maps:
            row["maps"] = [{"argument": number, **map.row()} for number, map in self.maps]
        return row


def program(module: IRModule) -> tuple[list[Launch], list[dict[str, Any]]]:
    """Return the launches of @main, in order, and its steps: ranges of these launches, and the host's work between
    them. Raises Unsupported for an operation that is neither a launch nor expressible as one of the host's steps.

    Steps: `{launches: [first, last]}`; `{external, inputs, outputs}`, a call of the external function of this number
    with addresses and sizes; `{read, to}`, which reads a condition from memory; `{set, to}`, which sets conditions to
    constants or to other conditions; `{if, then, else}`; `{before, while, do}`. Conditions are identified by numbers.
    """
    writer = StepWriter(module)
    main = module["main"].body.block
    places: dict[SSAValue, Place] = {argument: (number, 0) for number, argument in enumerate(main.args)}
    return writer.launches, writer.steps(main, places)


class StepWriter:
    """Converts the host function of a module to the steps of a device program, as JSON objects: launches of kernels,
    calls of external functions, branches and loops. `launches` collects the arguments of the launches."""

    def __init__(self, module: IRModule):
        self.functions = {f.sym_name.data: f for f in module.op.body.block.ops if isinstance(f, func.FuncOp)}
        self.externals = list(externals.called(module.op))
        self.launches: list[Launch] = []
        self.bits: dict[SSAValue, int] = {}

    def bit(self, value: SSAValue) -> int:
        """Return the number that identifies a condition (an `i1` value) in the steps of the program, counted from 0."""
        return self.bits.setdefault(value, len(self.bits))

    def steps(self, block: Block, places: Mapping[SSAValue, Place]) -> list[dict[str, Any]]:
        """Return the steps of the device program, as JSON objects (see `step`), that execute the operations of a block,
        with consecutive launches joined to one step. `places`: the address of each buffer that is defined outside of
        the block."""
        found: list[dict[str, Any]] = []
        for op in block.ops:
            for step in self.step(op, places):
                if "launches" in step and found and "launches" in found[-1]:
                    found[-1]["launches"][1] = step["launches"][1]
                else:
                    found.append(step)
        return found

    def step(self, op: Operation, places: Mapping[SSAValue, Place]) -> list[dict[str, Any]]:
        """Return the steps of the device program, as JSON objects, that execute one operation of the host: launches of
        kernels, calls of external functions, branches and loops. Raises Unsupported for any other operation."""
        match op:
            case gpu.LaunchFuncOp():
                number = len(self.launches)
                self.launches.append(launch(op, places))
                return [{"launches": [number, number + 1]}]
            case func.CallOp():
                return self.call(op, places)
            case memref.LoadOp() if op.res.type == i1:
                slot, offset = place_of(op.memref, places)
                return [{"read": [slot, offset + element(op)], "to": self.bit(op.res)}]
            case arith.ConstantOp() if op.result.type == i1 and any(op.result.uses):  # kernels define their own
                return [{"set": [bool(constant(op.result))], "to": [self.bit(op.result)]}]
            case scf.IfOp():
                test = self.bit(op.cond)
                parts = [self.region(region, list(op.results), places) for region in op.regions]
                return [{"if": test, "then": parts[0], "else": parts[1]}]
            case scf.WhileOp():
                before, after = op.before_region.block, op.after_region.block
                test = before.last_op
                assert isinstance(test, scf.ConditionOp)
                start = self.moved(list(op.arguments), list(before.args))
                first = self.steps(before, places) + self.moved(list(test.args), [*after.args, *op.results])
                turn = self.region(op.after_region, list(before.args), places)
                return [*start, {"before": first, "while": self.bit(test.condition), "do": turn}]
            case scf.YieldOp() | scf.ConditionOp() | func.ReturnOp() | arith.ConstantOp() | memref.ViewOp():
                return []
            case op if isinstance(op, VIEWS):
                return []
            case _:
                raise Unsupported(place(op), "is done by the host between kernels", 'build for target="llvm"')

    def call(self, op: func.CallOp, places: Mapping[SSAValue, Place]) -> list[dict[str, Any]]:
        """Return the launches of a kernel function, or the call of an external compiler's function."""
        name = op.callee.string_value()
        callee = self.functions[name]
        if callee.body.blocks:
            arguments = zip(callee.body.block.args, op.arguments, strict=True)
            return self.steps(callee.body.block, {inner: place_of(value, places) for inner, value in arguments})
        rows = [[*place_of(value, places), size_of(buffer_of(value))] for value in op.arguments]
        count = len(artifact.read(callee).types.inputs)
        return [{"external": self.externals.index(name), "inputs": rows[:count], "outputs": rows[count:]}]

    def region(
        self, region: Region, targets: Sequence[SSAValue], places: Mapping[SSAValue, Place]
    ) -> list[dict[str, Any]]:
        """Return the runtime's steps for a region of a conditional or loop: those of its ops, and a last one that sets
        the conditions `targets` to the conditions that the region yields. Returns an empty list for an empty region."""
        if not region.blocks:
            return []
        last = region.block.last_op
        values = list(last.operands) if last is not None else []
        return self.steps(region.block, places) + self.moved(values, targets)

    def moved(self, values: Sequence[SSAValue], targets: Sequence[SSAValue]) -> list[dict[str, Any]]:
        """Return a list with one step (none if there are no targets), which assigns the conditions `values` to the
        conditions `targets`, all at once. If there are more targets than values, the values are used again from the
        first on."""
        if not targets:
            return []
        numbers = [self.bit(values[number % len(values)]) for number in range(len(targets))]
        return [{"set": numbers, "to": [self.bit(target) for target in targets]}]


def launch(op: gpu.LaunchFuncOp, places: Mapping[SSAValue, Place]) -> Launch:
    """Return what the runtime must know to execute a `gpu.launch_func`: kernel, grid, block and the addresses of the
    arguments. `places`: the addresses of the buffers that are block arguments."""
    return Launch(
        op.kernel.nested_references.data[0].data,
        constants(op, [op.gridSizeX, op.gridSizeY, op.gridSizeZ]),
        constants(op, [op.blockSizeX, op.blockSizeY, op.blockSizeZ]),
        0 if op.dynamicSharedMemorySize is None else constant(op.dynamicSharedMemorySize) or 0,
        tuple(place_of(value, places) for value in op.kernelOperands),
        tuple((n, map) for n, value in enumerate(op.kernelOperands) if (map := map_of(value)) is not None),
    )


def place_of(value: SSAValue, places: Mapping[SSAValue, Place]) -> Place:
    """Return the address of a buffer. Raises Unsupported if the buffer is not part of the memory plan."""
    if isinstance(value, BlockArgument):
        return places[value]
    match value.owner:
        case memref.ViewOp() as view if (shift := constant(view.byte_shift)) is not None:
            base, offset = place_of(view.source, places)
            return base, offset + shift
        case view if isinstance(view, VIEWS):
            return place_of(view.operands[0], places)
        case other:
            assert isinstance(other, Operation)
            raise Unsupported(place(other), "gives a kernel what is no buffer of the plan")


def element(op: memref.LoadOp) -> int:
    """Return the number of the element that is loaded from a row-major buffer. Raises Unsupported if it is not
    constant."""
    found = 0
    for index, size in zip(op.indices, buffer_of(op.memref).get_shape(), strict=True):
        number = constant(index)
        if number is None:
            raise Unsupported(place(op), "reads an element whose number is computed", 'build for target="llvm"')
        found = found * size + number
    return found
