"""Numpy implementation of ops that rearrange elements in neural networks: padding, and space to batch or depth."""

from __future__ import annotations

from typing import Literal

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, int_values, to_numpy
from relay.interpreters.meaning import Meanings, padded
from relay.interpreters.nn import channels_last


def batch_flatten(op: relay.BatchFlattenOp, x: Array) -> Array:
    return x.reshape(x.shape[0], -1) if x.size else x.reshape(op.result_shape())


MODES: dict[str, Literal["symmetric", "reflect", "edge"]] = {
    "SYMMETRIC": "symmetric", "REFLECT": "reflect", "EDGE": "edge",
}  # fmt: skip


def mirror_pad(op: relay.MirrorPadOp, x: Array) -> Array:
    return padded(x, op.widths(), mode=MODES[op.mode.data])


def space_to_batch_nd(op: relay.SpaceToBatchNdOp, x: Array) -> Array:
    """Pad the data, and move the elements at each position of a block into a batch of their own."""
    blocks, rest = op.blocks(), x.ndim - 1 - len(op.blocks())
    image = padded(x, [(0, 0), *op.widths(), *[(0, 0)] * rest], constant_values=to_numpy(op.pad_value).item())
    parts = [
        image[(slice(None), *(slice(i, None, block) for i, block in zip(place, blocks, strict=True)))]
        for place in np.ndindex(*blocks)
    ]
    return np.concatenate(parts)


def batch_to_space_nd(op: relay.BatchToSpaceNdOp, x: Array) -> Array:
    """Move each batch back to its position in the blocks, and crop: the inverse of `space_to_batch_nd`."""
    blocks = op.blocks()
    count = int(np.prod(blocks))
    sizes = [size * block for size, block in zip(x.shape[1:], blocks, strict=False)]
    result = np.empty((x.shape[0] // count, *sizes, *x.shape[1 + len(blocks) :]), x.dtype)
    for part, place in zip(np.split(x, count), np.ndindex(*blocks), strict=True):
        result[(slice(None), *(slice(i, None, block) for i, block in zip(place, blocks, strict=True)))] = part
    kept = [slice(before, size - after) for size, (before, after) in zip(sizes, op.widths(), strict=True)]
    return result[(slice(None), *kept)]


def depth_to_space(op: relay.DepthToSpaceOp, x: Array) -> Array:
    (n, height, width, depth), block = x.shape, op.block_size.value.data
    channels = depth // block**2
    result = np.empty((n, height * block, width * block, channels), x.dtype)
    for i, j in np.ndindex(block, block):
        here = i * block + j
        part = slice(here, None, block**2) if op.mode.data == "CRD" else slice(here * channels, (here + 1) * channels)
        result[:, i::block, j::block] = x[..., part]
    return result


def space_to_depth(op: relay.SpaceToDepthOp, x: Array) -> Array:
    block = op.block_size.value.data
    return np.concatenate([x[:, i::block, j::block] for i, j in np.ndindex(block, block)], axis=-1)


def dilate(op: relay.DilateOp, x: Array) -> Array:
    result = np.full(op.result_shape(), to_numpy(op.dilation_value), x.dtype)
    result[tuple(slice(None, None, stride) for stride in int_values(op.strides))] = x
    return result


def fifo_buffer(op: relay.FifoBufferOp, data: Array, buffer: Array) -> Array:
    axis = op.axis.value.data
    last = range(data.shape[axis], data.shape[axis] + buffer.shape[axis])
    return np.concatenate([buffer, data], axis).take(last, axis)


MEANINGS: Meanings = {
    relay.BatchFlattenOp: batch_flatten,
    relay.MirrorPadOp: mirror_pad,
    relay.SpaceToBatchNdOp: space_to_batch_nd,
    relay.BatchToSpaceNdOp: batch_to_space_nd,
    relay.DepthToSpaceOp: channels_last(depth_to_space),
    relay.SpaceToDepthOp: channels_last(space_to_depth),
    relay.DilateOp: dilate,
    relay.FifoBufferOp: fifo_buffer,
}
