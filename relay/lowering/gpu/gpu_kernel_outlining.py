"""`gpu-kernel-outlining`: the bodies of `gpu.launch` become kernels of one `gpu.module`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref, vector
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects import gpu as upstream
from relay.errors import Unsupported
from relay.lowering import shaped
from relay.lowering.gpu.convert_parallel_loops_to_gpu import constant
from relay.lowering.shaped import root
from relay.passes import Pass
from relay.transforms.location import place

MODULE = "kernels"
"""The symbol name of the `gpu.module` that holds all outlined kernels."""
VIEWS = shaped.VIEWS | memref.CastOp
"""Views, which are recreated inside a kernel: of two pointers to the same memory, neither could be `noalias`."""
IDS = (gpu.BlockIdOp, gpu.ThreadIdOp, gpu.GridDimOp, gpu.BlockDimOp)
"""The ops that the body arguments of `gpu.launch` stand for, three dimensions each."""
DIMENSIONS = (gpu.DimensionEnum.X, gpu.DimensionEnum.Y, gpu.DimensionEnum.Z)


@dataclass(frozen=True)
class GpuKernelOutlining(Pass):
    """Turn each `gpu.launch` into a `gpu.launch_func` of a kernel. Kernels are called `FUNCTION_kernel`,
    `FUNCTION_kernel_1`, ..., and are in one module, `@kernels`. Upstream makes a module for each; here all kernels of a
    model are compiled together. Constants, views of buffers, and numbers computed from elements (such as the start of a
    slice) are recomputed inside the kernel; other values that it reads become its arguments."""

    name = "gpu-kernel-outlining"
    requires = ("launches",)
    establishes = ("outlined",)
    invalidates = ()
    why = "outlines gpu.launch bodies as kernels"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(isinstance(inner, gpu.LaunchOp) for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        module = upstream.ModuleOp(MODULE)
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            launches = [inner for inner in function.walk() if isinstance(inner, gpu.LaunchOp)]
            loads = {*remaining(function)}
            again = {op: None for op in function.walk() if op in loads or isinstance(op, VIEWS) or is_arithmetic(op)}
            for number, launch in enumerate(launches):
                name = f"{function.sym_name.data}_kernel" + (f"_{number}" if number else "")
                module.body.block.add_op(outline(launch, name, again.keys()))
            for inner in reversed(again):
                if all(result.first_use is None for result in inner.results):
                    Rewriter.erase_op(inner)
        if module.body.block.first_op is not None:
            op.attributes[upstream.CONTAINER] = UnitAttr()
            Rewriter.insert_op(module, InsertPoint.at_start(op.body.block))


@dataclass
class Captured:
    """The values of the surrounding function that a launch uses, mapped to values inside the kernel."""

    block: Block
    again: Set[Operation]
    """The operations that are recomputed inside the kernel."""
    arguments: list[SSAValue] = field(default_factory=list[SSAValue])
    known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def inside(self, value: SSAValue) -> SSAValue:
        """Return the value inside the kernel: an argument, or the result of a recomputed operation."""
        if value in self.known:
            return self.known[value]
        owner = value.owner
        if isinstance(owner, Operation) and owner in self.again:
            for operand in owner.operands:
                self.inside(operand)
            copy = owner.clone(self.known)
            copy.location = owner.location
            self.block.add_op(copy)
            self.known[value] = copy.results[0]
        else:
            self.arguments.append(value)
            self.known[value] = self.block.insert_arg(value.type, len(self.block.args))
        return self.known[value]


def outline(launch: gpu.LaunchOp, name: str, again: Set[Operation]) -> upstream.FuncOp:
    """gpu.launch { body }  =>  gpu.launch_func @kernels::@name

    Returns the kernel. Values from outside the body become its arguments, but operations in `again` are repeated inside
    it."""
    sizes = [launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ]
    sizes += [launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ]
    counts = constants(launch, sizes)
    body = launch.body.block
    entry = Block()
    captured = Captured(entry, again)
    for number, argument in enumerate(body.args):
        if any(argument.uses):
            dimension = gpu.DimensionAttr(DIMENSIONS[number % 3])
            id = IDS[number // 3](dimension)
            entry.add_op(id)
            argument.replace_all_uses_with(id.result)
    operations = [op for op in body.ops if not isinstance(op, gpu.TerminatorOp)]
    for op in [inner for outer in operations for inner in outer.walk()]:
        for number, operand in enumerate(op.operands):
            if not launch.is_ancestor(operand.owner) and not is_in(operand, entry):
                op.operands[number] = captured.inside(operand)
    for op in operations:
        op.detach()
        entry.add_op(op)
    entry.add_op(upstream.ReturnOp.create())
    kernel = upstream.FuncOp(name, Region(entry), prod(counts[3:]), prod(counts[:3]))
    kernel.location = launch.location
    symbol = SymbolRefAttr(MODULE, [name])
    call = gpu.LaunchFuncOp(
        symbol,
        sizes[:3],
        sizes[3:],
        dynamicSharedMemorySize=launch.dynamicSharedMemorySize,
        kernelOperands=captured.arguments,
        asyncDependencies=[],
    )
    call.location = launch.location
    Rewriter.insert_op(call, InsertPoint.before(launch))
    Rewriter.erase_op(launch, safe_erase=False)
    return kernel


def constants(launch: Operation, sizes: Sequence[SSAValue]) -> tuple[int, ...]:
    """Return the sizes of the grid or blocks of a launch. Raises Unsupported if they are not constant."""
    found = [constant(size) for size in sizes]
    if None in found:
        raise Unsupported(place(launch), "has a grid whose size is not constant")
    return tuple(size for size in found if size is not None)


def is_arithmetic(op: Operation) -> bool:
    """Whether the operation is arithmetic on scalars."""
    return op.dialect_name() == arith.Arith.name


def remaining(function: FuncOp) -> Iterator[memref.LoadOp]:
    """Yield the function's loads from buffers that no later op writes: a kernel that needs the loaded value can execute
    the load itself, and reads the same value."""
    written = set[SSAValue]()
    for op in reversed([*function.walk()]):
        if isinstance(op, memref.LoadOp) and root(op.memref) not in written:
            yield op
        elif isinstance(op, memref.StoreOp | vector.StoreOp):
            written.add(root(op.operands[1]))


def is_in(value: SSAValue, block: Block) -> bool:
    """Whether the value is defined by an operation of the block."""
    return isinstance(value.owner, Operation) and value.owner.parent is block
