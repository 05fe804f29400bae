"""Numpy implementation of constants and of ops that move or select elements."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, int_values, to_numpy
from relay.interpreters.meaning import Meanings, padded


def constant(op: relay.ConstantOp) -> Array:
    return to_numpy(op.value)


def reshape(op: relay.ReshapeOp, x: Array) -> Array:
    return x.reshape(int_values(op.newshape))


def transpose(op: relay.TransposeOp, x: Array) -> Array:
    return np.ascontiguousarray(x.transpose(int_values(op.axes)))


def broadcast_to(op: relay.BroadcastToOp, x: Array) -> Array:
    return np.broadcast_to(x, int_values(op.shape))


def concatenate(op: relay.ConcatenateOp, *inputs: Array) -> Array:
    return np.concatenate(inputs, op.axis.value.data)


def strided_slice(op: relay.StridedSliceOp, x: Array) -> Array:
    numbers = zip(int_values(op.begin), int_values(op.end), int_values(op.strides), strict=True)
    return x[tuple(slice(begin, None if end < 0 else end, stride) for begin, end, stride in numbers)]


def take(op: relay.TakeOp, x: Array, indices: Array) -> Array:
    axis = None if op.axis is None else op.axis.value.data
    return np.take(x, indices.astype(np.int64), axis=axis, mode="wrap" if op.mode.data == "wrap" else "clip")


def gather_nd(op: relay.GatherNdOp, x: Array, indices: Array) -> Array:
    coordinates = np.moveaxis(indices.astype(np.int64), -1, 0)
    return x[tuple(np.clip(c, 0, size - 1) for c, size in zip(coordinates, x.shape, strict=False))]


def pad(op: relay.PadOp, x: Array) -> Array:
    return padded(x, op.widths(), constant_values=to_numpy(op.pad_value))


MEANINGS: Meanings = {
    relay.ConstantOp: constant,
    relay.ReshapeOp: reshape,
    relay.TransposeOp: transpose,
    relay.BroadcastToOp: broadcast_to,
    relay.ConcatenateOp: concatenate,
    relay.StridedSliceOp: strided_slice,
    relay.TakeOp: take,
    relay.GatherNdOp: gather_nd,
    relay.PadOp: pad,
}
