"""Numpy implementation of normalizations. Every step is computed in the data's type."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.interpreters.activation import number
from relay.interpreters.meaning import Meanings, along


def batch_norm(op: relay.BatchNormOp, data: Array, gamma: Array, beta: Array, mean: Array, var: Array) -> Array:
    one = data.dtype.type(1)
    factor = (gamma if op.scale.value.data else one) / np.sqrt(var + number(op.epsilon, data))
    offset = (beta if op.center.value.data else data.dtype.type(0)) - mean * factor
    axis = op.axis.value.data
    return data * along(factor, axis, data.ndim) + along(offset, axis, data.ndim)


def mean_of(x: Array, axes: tuple[int, ...]) -> Array:
    count = x.dtype.type(np.prod([x.shape[a] for a in axes]))
    return np.add.reduce(x, axis=axes, keepdims=True) / count


def norm(op: relay.NormOp, data: Array, gamma: Array, beta: Array) -> Array:
    grouped = data.reshape(op.shape_of_groups())
    centred = grouped - mean_of(grouped, op.reduced())
    variance = mean_of(centred * centred, op.reduced())
    result = (centred / np.sqrt(variance + number(op.epsilon, data))).reshape(data.shape)
    if op.scale.value.data:
        result = result * along(gamma, op.along, data.ndim)
    return result + along(beta, op.along, data.ndim) if op.center.value.data else result


def rms_norm(op: relay.RmsNormOp, data: Array, gamma: Array) -> Array:
    root = np.sqrt(mean_of(data * data, (data.ndim - 1,)) + number(op.epsilon, data))
    return data * (data.dtype.type(1) / root) * gamma


def l2_normalize(op: relay.L2NormalizeOp, data: Array) -> Array:
    total = np.add.reduce(data * data, axis=op.axes(), keepdims=True)
    return data / np.sqrt(np.maximum(total, number(op.eps, data)))


def dropout(op: relay.DropoutOp, data: Array) -> Array:
    return data


MEANINGS: Meanings = {
    relay.BatchNormOp: batch_norm,
    relay.LayerNormOp: norm,
    relay.RmsNormOp: rms_norm,
    relay.InstanceNormOp: norm,
    relay.GroupNormOp: norm,
    relay.L2NormalizeOp: l2_normalize,
    relay.DropoutOp: dropout,
}
