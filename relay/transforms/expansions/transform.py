"""Expansions of shape ops to reshapes, slices, broadcasts, concatenations and sums."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import int_values, ints
from relay.dialects.op import axis_of, rank, shape, tensor
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.resizing import repeated
from relay.transforms.expansions.steps import Expansions, relaid


def turned(new: Expansion, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    """x reversed along these axes."""
    dims = shape(x)
    if 0 in dims or not axes:
        return x
    begin = [d - 1 if a in axes else 0 for a, d in enumerate(dims)]
    end = [-1 if a in axes else d for a, d in enumerate(dims)]
    return new.slice(x, begin, end, [-1 if a in axes else 1 for a in range(len(dims))])


def reshaped(new: Expansion, op: relay.TransformOp) -> Sequence[SSAValue]:
    """Reshape the input to the result's shape."""
    return [new.reshape(op.input, shape(op.result))]


def stack(new: Expansion, op: relay.StackOp) -> Sequence[SSAValue]:
    axis = axis_of(op.axis.value.data, rank(op.result), op.name)
    dims = list(shape(op.result))
    dims[axis] = 1
    return [new.joined([new.reshape(value, dims) for value in op.inputs], axis)]


def split(new: Expansion, op: relay.SplitOp) -> Sequence[SSAValue]:
    axis = axis_of(op.axis.value.data, rank(op.input), op.name)
    return [new.sliced(op.input, axis, begin, end) for begin, end in op.bounds()]


def tile(new: Expansion, op: relay.TileOp) -> Sequence[SSAValue]:
    """Expand to a reshape, a broadcast and a reshape; with sizes d and repetitions r, the shapes are
    [d0, d1]  =>  [1, d0, 1, d1]  =>  [r0, d0, r1, d1]  =>  [r0 d0, r1 d1]."""
    dims, reps = op.aligned()
    single = new.reshape(op.input, [size for d in dims for size in (1, d)])
    many = new.broadcast(single, [size for d, r in zip(dims, reps, strict=True) for size in (r, d)])
    return [new.reshape(many, shape(op.result))]


def repeat(new: Expansion, op: relay.RepeatOp) -> Sequence[SSAValue]:
    """[d0, d1]  =>  [d0, 1, d1]  =>  [d0, r, d1]  =>  [d0 r, d1]"""
    return [repeated(new, op.input, axis_of(op.axis.value.data, rank(op.input), op.name), op.repeats.value.data)]


def reverse(new: Expansion, op: relay.ReverseOp) -> Sequence[SSAValue]:
    return [turned(new, op.input, [axis_of(a, rank(op.input), op.name) for a in int_values(op.axis)])]


def meshgrid(new: Expansion, op: relay.MeshgridOp) -> Sequence[SSAValue]:
    grids: list[SSAValue] = []
    for value, axis in zip(op.inputs, op.order(), strict=True):
        dims = shape(op.grids[0])
        line = new.reshape(value, [d if a == axis else 1 for a, d in enumerate(dims)])
        grids.append(new.broadcast(line, dims))
    return grids


def cast_like(new: Expansion, op: relay.CastLikeOp) -> Sequence[SSAValue]:
    return [new.cast(op.input, tensor(op.other).element_type)]


def reshape_like(new: Expansion, op: relay.ReshapeLikeOp) -> Sequence[SSAValue]:
    return [new.reshape(op.input, shape(op.other))]


def broadcast_to_like(new: Expansion, op: relay.BroadcastToLikeOp) -> Sequence[SSAValue]:
    return [new.broadcast(op.input, shape(op.other))]


def collapse_sum(new: Expansion, op: relay.CollapseSumToOp | relay.CollapseSumLikeOp) -> Sequence[SSAValue]:
    """The sum over leading axes, and over axes that have size 1 in the result."""
    given, wanted = shape(op.input), shape(op.result)
    more = len(given) - len(wanted)
    axes = [a for a, d in enumerate(given) if a < more or (wanted[a - more] == 1 and d != 1)]
    total = new.value(relay.SumOp, op.input, properties={"axis": ints(axes)}) if axes else op.input
    return [new.reshape(total, wanted)]


def slice_like(new: Expansion, op: relay.SliceLikeOp) -> Sequence[SSAValue]:
    return [new.slice(op.input, [0] * rank(op.input), shape(op.result))]


def layout_transform(new: Expansion, op: relay.LayoutTransformOp) -> Sequence[SSAValue]:
    return [relaid(new, op.input, *op.layouts())]


EXPANSIONS: Expansions = {
    relay.ExpandDimsOp: reshaped,
    relay.SqueezeOp: reshaped,
    relay.StackOp: stack,
    relay.SplitOp: split,
    relay.TileOp: tile,
    relay.RepeatOp: repeat,
    relay.ReverseOp: reverse,
    relay.MeshgridOp: meshgrid,
    relay.CastLikeOp: cast_like,
    relay.ReshapeLikeOp: reshape_like,
    relay.BroadcastToLikeOp: broadcast_to_like,
    relay.CollapseSumToOp: collapse_sum,
    relay.CollapseSumLikeOp: collapse_sum,
    relay.SliceLikeOp: slice_like,
    relay.LayoutTransformOp: layout_transform,
}
