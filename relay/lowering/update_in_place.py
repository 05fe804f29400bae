"""`update-in-place`: updates caches of a model's state in place instead of copying them first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from relay.dialects.attributes import ints
from relay.lowering.builder import INDEX, Before
from relay.lowering.shaped import is_buffer
from relay.passes.target_pass import TargetPass
from relay.target import CpuTarget

IN_PLACE = "relay.in_place"
"""An attribute of public functions: pairs of an input and the result whose memory it may share. Each is `array<i64: a,
b>`, the argument indices of the two buffers, since bufferized functions take the buffers of their results as
arguments."""
VIEWS = memref.CollapseShapeOp | memref.ExpandShapeOp


@dataclass(frozen=True)
class UpdateInPlace(TargetPass):
    """Skip the copy before an update if the caller passes one buffer as argument and result.

    That is possible for an input of a public function if its only reader is a kernel that does nothing with it but copy
    it to a result of the function, and if nothing uses this result before the copy. Such a kernel does not copy if the
    input is null. `relay.in_place` of the public function lists these inputs, each with its result. Streams pass null,
    so that a step writes only the new elements of a key-value cache. On a GPU, the copy is a launch, which the runtime
    omits.
    """

    name = "update-in-place"
    requires = ("bufferized",)
    invalidates = ()
    why = "writes caches of streams without copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, func.FuncOp) and f.body.blocks}
        changed = dict[memref.CopyOp, None]()
        for function in functions.values():
            if function.sym_visibility is None:
                pairs = list[DenseArrayBase[IntegerType]]()
                for argument in function.body.block.args:
                    if (found := updated(argument, functions)) is not None:
                        result, copy = found
                        changed[copy] = None
                        pairs.append(ints([argument.index, result.index]))
                if pairs:
                    function.attributes[IN_PLACE] = ArrayAttr(pairs)
        if isinstance(self.target(op), CpuTarget):
            for copy in changed:
                unless_null(copy)


def updated(argument: BlockArgument, functions: dict[str, func.FuncOp]) -> tuple[BlockArgument, memref.CopyOp] | None:
    """If the function does nothing with an input but call a kernel that copies it to one of the function's results,
    return the argument of this result and the `memref.copy` in the kernel; else None."""
    found = list(users(argument))
    if len(found) != 1 or not isinstance(call := found[0][0], func.CallOp) or call.parent is not argument.block:
        return None
    kernel = functions.get(call.callee.string_value())
    if kernel is None or kernel.sym_visibility is None:
        return None
    own = kernel.body.block.args[found[0][1]]
    copies = [use.operation for use in own.uses]
    if len(copies) != 1 or not isinstance(copy := copies[0], memref.CopyOp) or copy.parent is not own.block:
        return None
    target = copy.destination
    if copy.source is not own or not isinstance(target, BlockArgument) or not is_first(copy, target):
        return None
    result = call.operands[target.index]
    while isinstance(result.owner, VIEWS):
        result = result.owner.operands[0]
    fits = isinstance(result, BlockArgument) and result.type == argument.type and is_first(call, result)
    return (result, copy) if fits and isinstance(result, BlockArgument) else None


def users(buffer: SSAValue) -> Iterator[tuple[Operation, int]]:
    """Yield the ops that read or write a buffer or a reshape of it, with the number of the operand."""
    for use in buffer.uses:
        if isinstance(use.operation, VIEWS):
            yield from users(use.operation.results[0])
        else:
            yield use.operation, use.index


def is_first(op: Operation, argument: BlockArgument) -> bool:
    """Whether `op` is the first user of the block argument `argument`, directly or through a reshape, and uses it only
    once."""
    block, using = argument.block, [user for user, _ in users(argument)]
    holders = {block.find_ancestor_op_in_block(user) for user in using}
    first = next((each for each in block.ops if each in holders), None)
    return first is op and using.count(op) == 1


def unless_null(copy: memref.CopyOp) -> None:
    """memref.copy %a, %b  =>  scf.if (%a is not null) { memref.copy %a, %b }"""
    b, body = Before(copy), Block()
    assert is_buffer(copy.source.type)
    address = b.add(memref.ExtractAlignedPointerAsIndexOp.get(copy.source)).aligned_pointer
    zero = b.add(arith.ConstantOp(IntegerAttr(0, INDEX))).result
    b.add(scf.IfOp(b.compare(address, "ne", zero), [], Region(body)))
    copy.detach()
    body.add_ops([copy, scf.YieldOp()])
