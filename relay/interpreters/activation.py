"""Numpy implementation of activations, normalization across channels, and losses. Every step is computed in the data's
type."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import FloatAttr

from relay.dialects import relay
from relay.dialects.attributes import Array, to_numpy
from relay.interpreters.elementwise import exp, in_double, tanh
from relay.interpreters.functions import erf
from relay.interpreters.meaning import Meanings, along

log = in_double(np.log)


def number(attr: FloatAttr, x: Array) -> Array:
    """The value of a float property in the type of `x`."""
    return to_numpy(attr).astype(x.dtype)


def relu(op: relay.ReluOp, x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def leaky_relu(op: relay.LeakyReluOp, x: Array) -> Array:
    return np.where(x > 0, x, x * number(op.alpha, x))


def gelu(op: relay.GeluOp, x: Array) -> Array:
    one = x.dtype.type
    if op.approximate.value.data:
        curve = tanh((x + x * x * x * one(0.044715)) * one(math.sqrt(2 / math.pi)))
    else:
        curve = erf(x * one(math.sqrt(0.5)))
    return x * one(0.5) * (curve + one(1))


def prelu(op: relay.PreluOp, x: Array, alpha: Array) -> Array:
    return np.where(x > 0, x, x * along(alpha, op.along, x.ndim))


def total(x: Array, axis: int) -> Array:
    """The sum along an axis, which is kept with size 1; elements are added in order, as reference kernels do."""
    return np.cumsum(x, axis=axis, dtype=x.dtype).take([-1], axis)


def log_softmax(op: relay.LogSoftmaxOp, x: Array) -> Array:
    if not x.size:
        return x
    centred = x - x.max(axis=op.along, keepdims=True)
    return centred - log(total(exp(centred), op.along))


def fast_softmax(op: relay.FastSoftmaxOp, x: Array) -> Array:
    if not x.size:
        return x
    powers = exp(x - x.max(axis=op.along, keepdims=True))
    return powers / total(powers, op.along)


def lrn(op: relay.LrnOp, x: Array) -> Array:
    axis, (before, after) = op.along, op.neighbours()
    widths = [(0, 0)] * x.ndim
    widths[axis] = (before, after)
    squares = np.lib.stride_tricks.sliding_window_view(np.pad(x * x, widths), before + after + 1, axis)
    factor = number(op.alpha, x) / x.dtype.type(op.size.value.data)
    base = number(op.bias, x) + factor * squares.sum(axis=-1, dtype=x.dtype)
    return x / np.power(base.astype(np.float64), op.beta.value.data).astype(x.dtype)


def cross_entropy(op: relay.CrossEntropyOp, x: Array, y: Array) -> Array:
    return -np.sum(log(x) * y, dtype=x.dtype) / x.dtype.type(x.shape[0])


def cross_entropy_with_logits(op: relay.CrossEntropyWithLogitsOp, x: Array, y: Array) -> Array:
    return -np.sum(x * y, dtype=x.dtype) / x.dtype.type(x.shape[0])


MEANINGS: Meanings = {
    relay.ReluOp: relu,
    relay.LeakyReluOp: leaky_relu,
    relay.GeluOp: gelu,
    relay.PreluOp: prelu,
    relay.LogSoftmaxOp: log_softmax,
    relay.FastSoftmaxOp: fast_softmax,
    relay.LrnOp: lrn,
    relay.CrossEntropyOp: cross_entropy,
    relay.CrossEntropyWithLogitsOp: cross_entropy_with_logits,
}
