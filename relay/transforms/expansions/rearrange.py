"""Expansions of rearrangements to reshapes, transposes, slices, concatenations and padding."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import int_values, ints
from relay.dialects.layout import Layout
from relay.dialects.op import axis_of, rank, shape
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions, relaid

NHWC = Layout.parse("NHWC")


def batch_flatten(new: Expansion, op: relay.BatchFlattenOp) -> SSAValue:
    """relay.nn.batch_flatten %x  =>  relay.reshape %x"""
    return new.value(relay.ReshapeOp, op.data, properties={"newshape": ints(op.result_shape())})


def mirror_pad(new: Expansion, op: relay.MirrorPadOp) -> SSAValue:
    """relay.nn.mirror_pad %x  =>  relay.concatenate of reversed or repeated slices of %x before, %x, and such slices
    after"""
    x = op.data
    for axis, (before, after) in enumerate(op.widths()):
        if not before and not after:
            continue
        size = shape(x)[axis]
        if op.mode.data == "EDGE":
            first = edge(new, new.sliced(x, axis, 0, 1), axis, before)
            last = edge(new, new.sliced(x, axis, size - 1, size), axis, after)
        else:
            skip = int(op.mode.data == "REFLECT")
            first = new.sliced(x, axis, before - 1 + skip, skip - 1, -1) if before else None
            last = new.sliced(x, axis, size - 1 - skip, size - 1 - skip - after, -1) if after else None
        x = new.joined([part for part in (first, x, last) if part is not None], axis)
    return x


def edge(new: Expansion, x: SSAValue, axis: int, count: int) -> SSAValue | None:
    """Repeat x along `axis`, which has size 1, `count` times; None if `count` is 0."""
    if not count:
        return None
    dims = list(shape(x))
    dims[axis] = count
    return new.broadcast(x, dims)


def padded(new: Expansion, x: SSAValue, widths: Sequence[tuple[int, int]], value: Attribute) -> SSAValue:
    """Pad the first axes with `value`, by `widths`: (before, after) for each of these axes."""
    flat = [n for pair in widths for n in pair]
    if not any(flat):
        return x
    flat += [0] * (2 * rank(x) - len(flat))
    return new.value(relay.PadOp, x, properties={"pad_width": ints(flat), "pad_value": value})


def space_to_batch_nd(new: Expansion, op: relay.SpaceToBatchNdOp) -> SSAValue:
    """relay.nn.space_to_batch_nd %x  =>  relay.nn.pad, then a transpose of [n, (s, block)..., c...]"""
    blocks = op.blocks()
    x = padded(new, op.data, [(0, 0), *op.widths()], op.pad_value)
    (batch, *sizes), count = shape(x), len(blocks)
    spatial, rest = sizes[:count], sizes[count:]
    pairs = [n for size, block in zip(spatial, blocks, strict=True) for n in (size // block, block)]
    places = [*range(2, 2 * count + 1, 2)]
    order = [*places, 0, *range(1, 2 * count, 2), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    return new.reshape(new.transpose(new.reshape(x, [batch, *pairs, *rest]), order), shape(op.result))


def batch_to_space_nd(new: Expansion, op: relay.BatchToSpaceNdOp) -> SSAValue:
    """relay.nn.batch_to_space_nd %x  =>  a transpose of [block..., n, s..., c...], then relay.strided_slice"""
    blocks = op.blocks()
    (batch, *sizes), count = shape(op.data), len(blocks)
    spatial, rest = sizes[:count], sizes[count:]
    parts = new.reshape(op.data, [*blocks, batch // prod(blocks), *spatial, *rest])
    order = [count, *(axis for k in range(count) for axis in (count + 1 + k, k))]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    whole = [size * block for size, block in zip(spatial, blocks, strict=True)]
    x = new.reshape(new.transpose(parts, order), [batch // prod(blocks), *whole, *rest])
    for axis, (before, after) in enumerate(op.widths()):
        x = new.sliced(x, axis + 1, before, whole[axis] - after)
    return x


def depth_to_space(new: Expansion, op: relay.DepthToSpaceOp) -> SSAValue:
    """relay.nn.depth_to_space %x  =>  a transpose of [n, y, x, b, b, c] (or [n, y, x, c, b, b])"""
    x, block = relaid(new, op.data, op.axes, NHWC), op.block_size.value.data
    n, height, width, depth = shape(x)
    channels = depth // block**2
    if op.mode.data == "DCR":
        parts, order = new.reshape(x, [n, height, width, block, block, channels]), [0, 1, 3, 2, 4, 5]
    else:
        parts, order = new.reshape(x, [n, height, width, channels, block, block]), [0, 1, 4, 2, 5, 3]
    result = new.reshape(new.transpose(parts, order), [n, height * block, width * block, channels])
    return relaid(new, result, NHWC, op.axes)


def space_to_depth(new: Expansion, op: relay.SpaceToDepthOp) -> SSAValue:
    """relay.nn.space_to_depth %x  =>  a transpose of [n, y, b, x, b, c]"""
    x, block = relaid(new, op.data, op.axes, NHWC), op.block_size.value.data
    n, height, width, channels = shape(x)
    parts = new.reshape(x, [n, height // block, block, width // block, block, channels])
    flat = [n, height // block, width // block, block**2 * channels]
    return relaid(new, new.reshape(new.transpose(parts, [0, 1, 3, 2, 4, 5]), flat), NHWC, op.axes)


def dilate(new: Expansion, op: relay.DilateOp) -> SSAValue:
    """relay.nn.dilate %x  =>  relay.strided_slice (relay.reshape (relay.nn.pad (relay.reshape %x)))

    Each axis of size d is reshaped to [d, 1], padded to [d, stride], and reshaped to [d * stride]; the slice removes
    the padding after the last element."""
    dims, strides = shape(op.data), int_values(op.strides)
    widths = [pair for stride in strides for pair in ((0, 0), (0, stride - 1))]
    parts = padded(new, new.reshape(op.data, [n for d in dims for n in (d, 1)]), widths, op.dilation_value)
    whole = new.reshape(parts, [d * stride for d, stride in zip(dims, strides, strict=True)])
    return new.slice(whole, [0] * rank(whole), op.result_shape())


def fifo_buffer(new: Expansion, op: relay.FifoBufferOp) -> SSAValue:
    """relay.nn.fifo_buffer %x, %b  =>  relay.strided_slice of relay.concatenate %b, %x"""
    axis = axis_of(op.axis.value.data, rank(op.buffer), op.name)
    size, more = shape(op.buffer)[axis], shape(op.data)[axis]
    return new.joined([new.sliced(op.buffer, axis, more, size), op.data], axis) if more < size else op.data


EXPANSIONS: Expansions = {
    relay.BatchFlattenOp: batch_flatten,
    relay.MirrorPadOp: mirror_pad,
    relay.SpaceToBatchNdOp: space_to_batch_nd,
    relay.BatchToSpaceNdOp: batch_to_space_nd,
    relay.DepthToSpaceOp: depth_to_space,
    relay.SpaceToDepthOp: space_to_depth,
    relay.DilateOp: dilate,
    relay.FifoBufferOp: fifo_buffer,
}
