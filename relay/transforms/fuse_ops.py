"""The pass `fuse-ops`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects import byoc, relay
from relay.dialects.attributes import WeightAttr, elements
from relay.dialects.op import rank
from relay.passes import Pass
from relay.target import target_of
from relay.transforms.dead_ops import erase_dead
from relay.transforms.fusion import Fusion, Group, recompute
from relay.transforms.inlining import inline_calls


@dataclass(frozen=True)
class FuseOps(Pass):
    """Outline each op, with the ops fused with it, as a kernel: a private function. The functions that call them hold
    only constants, calls of kernels and reshapes.

    A kernel is an anchor (convolution, reduction, ...) with the elementwise ops after it, or elementwise ops alone; the
    rules are those of `relay.transforms.fusion.Fusion`. Constants of rank 0 are cloned into the kernel, others are its
    arguments, in the order of their first use. Kernels with equal bodies are one function, named after the anchor's
    kind and numbered in program order. The blocks of control-flow ops are outlined in the same way, each separately.
    Private functions and those of an external compiler are left alone; calls of other functions are inlined first.
    """

    name: ClassVar[str] = "fuse-ops"
    requires = ("legal", "inference", "layouts")
    establishes = ("kernels",)
    invalidates = ()
    why = "groups ops into kernels, so that intermediate results stay in registers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_calls(op)
        outline = Outline(op)
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            private = function.sym_visibility is not None and function.sym_visibility.data == "private"
            if not private and "compiler" not in function.attributes and len(function.body.blocks) == 1:
                outline.function(function)


class Outline:
    """Outlines groups as kernels; groups with equal bodies use one kernel."""

    def __init__(self, module: ModuleOp):
        self.module, self.target = module, target_of(module)
        self.names = {f.sym_name.data for f in module.body.block.ops if isinstance(f, FuncOp)}
        self.kernels: dict[Hashable, FuncOp] = {}

    def function(self, function: FuncOp) -> None:
        """Replace each group of fused ops of a function, also in nested blocks, by a call of a kernel."""
        erase_dead(function.body.walk())
        for block in [function.body.block, *nested(function.body.block)]:
            self.block(block)

    def block(self, block: Block) -> None:
        """Replace the groups of a block by calls."""
        recompute(block)
        order: list[Operation] = []
        for group in Fusion(block, self.target).groups():
            order.append(self.call(group) if group.fusible else group.ops[0])
            if group.fusible:
                for op in reversed(group.ops):
                    Rewriter.erase_op(op)
        for op in list(block.ops):
            op.detach()
        block.add_ops(order)
        for op in order:
            if isinstance(op, relay.ConstantOp) and not op.result.uses.get_length():
                Rewriter.erase_op(op)

    def call(self, group: Group) -> CallOp:
        """Insert a call of the group's kernel, and replace the group's results by the call's."""
        outputs = group.outputs()
        block, arguments = body(group, outputs)
        kernel = self.kernel(block, group)
        call = CallOp(kernel.sym_name.data, arguments, [value.type for value in outputs])
        call.location = (group.anchor or group.ops[-1]).location
        for old, new in zip(outputs, call.res, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        return call

    def kernel(self, block: Block, group: Group) -> FuncOp:
        """The kernel function with this body; created for the first group that needs it."""
        key = structure(block)
        if key in self.kernels:
            return self.kernels[key]
        number = 0
        while f"{group.kind}_{number}" in self.names:
            number += 1
        name = f"{group.kind}_{number}"
        self.names.add(name)
        assert isinstance(end := block.last_op, ReturnOp)
        types = ([argument.type for argument in block.args], [value.type for value in end.arguments])
        kernel = FuncOp(name, types, Region(block), visibility="private")
        kernel.location = (group.anchor or group.ops[-1]).location
        self.module.body.block.add_op(kernel)
        self.kernels[key] = kernel
        return kernel


def nested(block: Block) -> Iterator[Block]:
    """The blocks nested in control-flow ops."""
    for op in block.ops:
        if not isinstance(op, byoc.Body):
            for region in op.regions:
                for inner in region.blocks:
                    yield inner
                    yield from nested(inner)


def body(group: Group, outputs: Sequence[SSAValue]) -> tuple[Block, list[SSAValue]]:
    """The kernel's block, and the values that a caller passes for the block's arguments."""
    inside = set(group.ops)
    outside = list(dict.fromkeys(v for op in group.ops for v in op.operands if v.owner not in inside))
    scalars = [v for v in outside if isinstance(v.owner, relay.ConstantOp) and rank(v) == 0]
    arguments = [v for v in outside if v not in scalars]
    block = Block(arg_types=[value.type for value in arguments])
    known: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
    constants: dict[Hashable, SSAValue] = {}
    for value in scalars:
        assert isinstance(value.owner, relay.ConstantOp)
        number = value.owner.value
        if isinstance(number, WeightAttr):
            number = elements(number.array)  # whatever the model's file calls it: equal kernels are one
        if number not in constants:
            copy = relay.ConstantOp.make([], {"value": number})
            block.add_op(copy)
            constants[number] = copy.results[0]
        known[value] = constants[number]
    block.add_ops(op.clone(known, clone_name_hints=False) for op in group.ops)
    block.add_op(ReturnOp(*(known[value] for value in outputs)))
    return block, arguments


def structure(block: Block) -> Hashable:
    """A description of a block that is equal for blocks that differ only in names and locations."""
    number: dict[SSAValue, int] = {}
    for value in (*block.args, *(result for op in block.ops for result in op.results)):
        number[value] = len(number)
    ops = (
        (
            op.name,
            tuple(number[value] for value in op.operands),
            tuple(op.result_types),
            frozenset(op.properties.items()),
            frozenset(op.attributes.items()),
        )
        for op in block.ops
    )
    return (tuple(argument.type for argument in block.args), *ops)
