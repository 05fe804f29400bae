"""`convert-parallel-loops-to-gpu`: turns mapped `scf.parallel` loops into `gpu.launch`, as upstream's pass of this
name."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from relay.dialects.gpu import DynamicSharedMemoryOp
from relay.errors import Unsupported
from relay.lowering.builder import INDEX
from relay.lowering.gpu.grids import MAPPED
from relay.lowering.gpu.shared_memory import SHARED_BYTES as SHARED
from relay.passes import Pass
from relay.transforms.location import place

PROCESSORS = (
    gpu.ProcessorEnum.Block_X,
    gpu.ProcessorEnum.Block_Y,
    gpu.ProcessorEnum.Block_Z,
    gpu.ProcessorEnum.Thread_X,
    gpu.ProcessorEnum.Thread_Y,
    gpu.ProcessorEnum.Thread_Z,
)
"""The processors in the order of the body arguments of `gpu.launch`, and of its sizes."""


@dataclass(frozen=True)
class ConvertParallelLoopsToGpu(Pass):
    """Turn each outermost `scf.parallel` that is mapped to blocks into a `gpu.launch`. Inner loops that are mapped to
    threads become part of it; every thread executes the ops between the loops. Loops must start at 0 and have step 1;
    loops that are not mapped to a processor are rejected."""

    name = "convert-parallel-loops-to-gpu"
    requires = ("loops",)
    establishes = ("launches",)
    invalidates = ()
    why = "maps parallel loops to gpu.launch"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(isinstance(inner, scf.ParallelOp) and MAPPED in inner.attributes for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = [inner for inner in op.walk() if isinstance(inner, scf.ParallelOp) and MAPPED in inner.attributes]
        for loop in [loop for loop in loops if not isinstance(loop.parent_op(), scf.ParallelOp)]:
            convert(loop)


def convert(loop: scf.ParallelOp) -> None:
    """scf.parallel (%b) { scf.parallel (%t) { ... } }  =>  gpu.launch blocks(%b) threads(%t) { ... }"""
    body = Block(arg_types=[INDEX] * 12)
    one = arith.ConstantOp(IntegerAttr(1, INDEX))
    one.location = loop.location
    Rewriter.insert_op(one, InsertPoint.before(loop))
    sizes: list[SSAValue] = [one.result] * 6
    inline(loop, body, sizes)
    body.add_op(gpu.TerminatorOp())
    shared = shared_bytes(body)
    if shared is not None:
        Rewriter.insert_op(shared, InsertPoint.before(loop))
    launch = gpu.LaunchOp(Region(body), sizes[:3], sizes[3:], dynamicSharedMemorySize=shared)
    launch.location = loop.location
    Rewriter.replace_op(loop, launch, [], safe_erase=False)


def shared_bytes(body: Block) -> arith.ConstantOp | None:
    """Return a constant with the largest shared memory that a kernel's ops request, and remove these requests; None if
    there are none."""
    found = [op for op in body.walk() if isinstance(op, DynamicSharedMemoryOp)]
    sizes = [size.value.data for op in found if isinstance(size := op.attributes.pop(SHARED, None), IntegerAttr)]
    if not sizes:
        return None
    constant = arith.ConstantOp(IntegerAttr(max(sizes), i32))
    constant.location = found[-1].location
    return constant


def inline(loop: scf.ParallelOp, body: Block, sizes: list[SSAValue]) -> None:
    """Move the operations of a loop that is mapped to blocks or threads, and of the mapped loops inside it, to `body`,
    the body of a `gpu.launch`. The body's arguments replace the loops' indices. The loops' upper bounds are stored in
    `sizes`: the number of blocks in x, y and z, then of threads. Raises Unsupported for reductions, unmapped
    dimensions, and loops that do not go from 0 in steps of 1."""
    mapping = loop.attributes[MAPPED]
    if not isa(mapping, ArrayAttr[gpu.LoopDimMapAttr]) or loop.initVals or len(mapping) != len(loop.lowerBound):
        raise Unsupported(place(loop), "has reductions, or dimensions that are not mapped")
    block = loop.body.block
    dims = zip(mapping.data, loop.lowerBound, loop.upperBound, loop.step, block.args, strict=True)
    for map, lower, upper, step, argument in dims:
        if map.processor.data not in PROCESSORS or (constant(lower), constant(step)) != (0, 1):
            raise Unsupported(place(loop), "does not go from 0 in steps of 1, by blocks or threads", "run schedule-gpu")
        number = PROCESSORS.index(map.processor.data)
        sizes[number] = upper
        argument.replace_all_uses_with(body.args[number])
    for op in list(block.ops):
        if isinstance(op, scf.ReduceOp):
            continue
        if isinstance(op, scf.ParallelOp) and MAPPED in op.attributes:
            inline(op, body, sizes)
        else:
            op.detach()
            body.add_op(op)


def constant(value: SSAValue) -> int | None:
    """Return the value of an integer constant, else None."""
    owner = value.owner
    attr = owner.value if isinstance(owner, arith.ConstantOp) else None
    return attr.value.data if isinstance(attr, IntegerAttr) else None
