"""Reference implementations in numpy of ops that reshape tensors or move or repeat their elements, and of the sums that
reverse broadcasting."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, int_values
from relay.dialects.layout import parted
from relay.dialects.op import shape
from relay.interpreters.meaning import Meanings


def reshaped(op: relay.TransformOp | relay.ReshapeLikeOp, x: Array, *others: Array) -> Array:
    return x.reshape(shape(op.result))


def stack(op: relay.StackOp, *inputs: Array) -> Array:
    return np.stack(inputs, op.axis.value.data)


def split(op: relay.SplitOp, x: Array) -> tuple[Array, ...]:
    return tuple(np.split(x, [begin for begin, _ in op.bounds()[1:]], op.axis.value.data))


def tile(op: relay.TileOp, x: Array) -> Array:
    return np.tile(x, int_values(op.reps))


def repeat(op: relay.RepeatOp, x: Array) -> Array:
    return np.repeat(x, op.repeats.value.data, op.axis.value.data)


def reverse(op: relay.ReverseOp, x: Array) -> Array:
    return np.flip(x, int_values(op.axis))


def meshgrid(op: relay.MeshgridOp, *inputs: Array) -> tuple[Array, ...]:
    return tuple(np.meshgrid(*inputs, indexing="xy" if op.indexing.data == "xy" else "ij"))


def cast_like(op: relay.CastLikeOp, x: Array, other: Array) -> Array:
    return x.astype(other.dtype)


def broadcast_to_like(op: relay.BroadcastToLikeOp, x: Array, other: Array) -> Array:
    return np.broadcast_to(x, other.shape)


def collapse_sum(op: relay.CollapseSumToOp | relay.CollapseSumLikeOp, x: Array, *others: Array) -> Array:
    wanted = shape(op.result)
    leading = x.sum(tuple(range(x.ndim - len(wanted))), dtype=x.dtype)
    repeated = tuple(axis for axis, size in enumerate(wanted) if size == 1)
    return leading.sum(repeated, dtype=x.dtype, keepdims=True)


def slice_like(op: relay.SliceLikeOp, x: Array, other: Array) -> Array:
    return x[tuple(slice(size) for size in shape(op.result))]


def layout_transform(op: relay.LayoutTransformOp, x: Array) -> Array:
    """Change the layout: the two parts of an axis that the source layout splits are merged, the axis that the target
    layout splits is split, and the axes are transposed."""
    source, target = op.layouts()
    x = x.transpose([source.index(letter) for letter in parted(source.plain.axes, source.split)])
    sizes = dict(zip(target.axes, shape(op.result), strict=True))
    order = parted(source.plain.axes, target.split)
    x = x.reshape([sizes[letter] for letter in order])
    return np.ascontiguousarray(x.transpose([order.index(letter) for letter in target.axes]))


def reinterpret(op: relay.ReinterpretOp, x: Array) -> Array:
    return np.ascontiguousarray(x).view(dtype_of(op.dtype)).reshape(x.shape)


MEANINGS: Meanings = {
    relay.ExpandDimsOp: reshaped,
    relay.SqueezeOp: reshaped,
    relay.StackOp: stack,
    relay.SplitOp: split,
    relay.TileOp: tile,
    relay.RepeatOp: repeat,
    relay.ReverseOp: reverse,
    relay.MeshgridOp: meshgrid,
    relay.CastLikeOp: cast_like,
    relay.ReshapeLikeOp: reshaped,
    relay.BroadcastToLikeOp: broadcast_to_like,
    relay.CollapseSumToOp: collapse_sum,
    relay.CollapseSumLikeOp: collapse_sum,
    relay.SliceLikeOp: slice_like,
    relay.LayoutTransformOp: layout_transform,
    relay.ReinterpretOp: reinterpret,
}
