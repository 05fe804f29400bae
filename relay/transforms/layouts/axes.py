"""Finds the layouts of a block's values, starting from ops with a known layout and continuing through ops that keep the
layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from xdsl.ir import Block, Operation, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import int_values
from relay.dialects.layout import Layout, steps
from relay.dialects.op import TensorOp, is_tensor, rank, shape

Imaging = relay.Conv2dBase | relay.Pool2dOp | relay.Resize2dOp
"""Ops that declare the layout of their images."""

REDUCTIONS = (relay.ReduceOp, qnn.MeanOp)


def keeps(op: Operation) -> TypeGuard[TensorOp]:
    """Whether the op is known to keep axes in place: axis i of its result corresponds to axis i of each data operand
    that has the same rank."""
    return isinstance(op, TensorOp) and (op.ELEMENTWISE or op.SAME_AXES)


def aligned(op: TensorOp) -> list[SSAValue]:
    """The operands that have the axes of the result. If an elementwise op has several operands, its constant ones are
    left out: they can take any layout, since they are converted at compile time."""
    found = list(op.broadcast_operands())
    if op.ELEMENTWISE and len(found) > 1:
        found = [value for value in found if not isinstance(value.owner, relay.ConstantOp)]
    width = rank(op.results[0])
    return [value for value in found if is_tensor(value.type) and rank(value) == width]


def layout_of_operand(op: Imaging) -> Layout:
    return Layout.parse((op.data_layout if isinstance(op, relay.Conv2dBase) else op.layout).data)


def layout_of_result(op: Imaging) -> Layout:
    return Layout.parse((op.result_layout if isinstance(op, relay.Conv2dBase) else op.layout).data)


class Axes:
    """The known layouts of the values of a block. Where two ops disagree, the first in program order decides, and the
    other is not converted."""

    def __init__(self, block: Block):
        self.of: dict[SSAValue, Layout] = {}
        self.todo: list[SSAValue] = []
        for op in block.ops:
            if isinstance(op, Imaging):
                self.name(op.data, layout_of_operand(op))
                self.name(op.result, layout_of_result(op))
        self.block = block
        while self.todo:
            value = self.todo.pop(0)
            for op in self.around(value):
                self.spread(op)

    def name(self, value: SSAValue, layout: Layout) -> None:
        if value in self.of or not is_tensor(value.type) or rank(value) != len(layout.axes):
            return
        if whole(shape(value), layout):
            self.of[value] = layout
            self.todo.append(value)

    def around(self, value: SSAValue) -> Iterator[Operation]:
        """The ops of the block that compute or read a value."""
        if isinstance(value.owner, Operation):
            yield value.owner
        for use in value.uses:
            if use.operation.parent is self.block:
                yield use.operation

    def spread(self, op: Operation) -> None:
        """Record the layouts that follow from the known operands and results of one op."""
        if keeps(op):
            values = [*aligned(op), *op.results]
            known = next((self.of[value] for value in values if value in self.of), None)
            if known is not None:
                for value in values:
                    self.name(value, known)
        elif isinstance(op, REDUCTIONS) and (known := self.of.get(op.input)) is not None:
            if (left := reduced(op, known)) is not None:
                self.name(op.results[0], left)
        elif isinstance(op, relay.TransposeOp):
            axes = int_values(op.axes)
            if (known := self.of.get(op.input)) is not None:
                self.name(op.result, Layout(tuple(known.axes[a] for a in axes), known.factor))
            if (known := self.of.get(op.result)) is not None:
                self.name(op.input, Layout(tuple(known.axes[axes.index(i)] for i in range(len(axes))), known.factor))
        elif isinstance(op, relay.ReshapeOp):
            for packed, plain in ((op.result, op.input), (op.input, op.result)):
                known = self.of.get(packed)
                if known is not None and known.split and regroups(packed, plain, known):
                    self.name(plain, known.plain)


def reduced(op: relay.ReduceOp | qnn.MeanOp, layout: Layout) -> Layout | None:
    """The layout after the reduction; None where only one part of a split axis is reduced."""
    gone = {letter for i, letter in enumerate(layout.axes) if i in op.axes()}
    if layout.split and (layout.split in gone) != (layout.split.lower() in gone):
        return None
    return layout if bool(op.keepdims.value.data) else layout.only(layout.letters - gone)


def whole(dims: Sequence[int], layout: Layout) -> bool:
    """Whether a tensor of the shape `dims` can have the layout. If the layout splits an axis, the inner part must have
    its full size (`layout.factor`), or both parts the size 1."""
    if not layout.split:
        return True
    outer, inner = dims[layout.index(layout.split)], dims[layout.index(layout.split.lower())]
    return inner == layout.factor or (outer, inner) == (1, 1)


def regroups(packed: SSAValue, plain: SSAValue, layout: Layout) -> bool:
    """Whether a reshape of `packed`, which has the layout, to `plain`, or back, only joins or splits the channels."""
    return [*steps(shape(packed), layout, layout.plain)] == [("reshape", shape(plain))]
