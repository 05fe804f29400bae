"""Activations, normalization across channels and losses: interpreted as ONNX Runtime or formulas in double say, and
compiled."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, f32, i64

from relay.dialects import relay
from relay.dialects.attributes import Array, scalar_attr
from relay.dialects.op import TensorOp
from tests.numeric.nn_examples import Example, Make, Rng, numbers, pick, random_tests, sizes


def floats(rng: Rng, rank: int = 0) -> Array:
    return numbers(rng, "float32", sizes(rng, rank or int(rng.integers(1, 5)), 1, 8)) * np.float32(4)


def relu(rng: Rng) -> Example:
    x = numbers(rng, pick(rng, "float32", "int8", "int32", "uint8"), sizes(rng, int(rng.integers(1, 5)), 1, 8))
    return Example([x], {}, x.clip(0))


def leaky_relu(rng: Rng) -> Example:
    x, alpha = floats(rng), float(np.float32(rng.uniform(-1, 2)))
    return Example([x], {"alpha": scalar_attr(alpha, f32)}, x.clip(0) + np.float32(alpha) * x.clip(None, 0))


def prelu(rng: Rng) -> Example:
    x = floats(rng)
    axis = int(rng.integers(x.ndim))
    alpha = numbers(rng, "float32", [x.shape[axis]])
    wanted = np.moveaxis(np.moveaxis(x, axis, -1).clip(0) + alpha * np.moveaxis(x, axis, -1).clip(None, 0), -1, axis)
    return Example([x, alpha], {"axis": IntegerAttr(axis - x.ndim, i64)}, wanted, (1,))


def log_softmax(rng: Rng) -> Example:
    x = floats(rng)
    axis = int(rng.integers(x.ndim))
    wide = x.astype(np.float64)
    wanted = (wide - np.log(np.exp(wide).sum(axis=axis, keepdims=True))).astype(np.float32)
    return Example([x], {"axis": IntegerAttr(axis, i64)}, wanted)


def fast_softmax(rng: Rng) -> Example:
    x = floats(rng)
    axis = int(rng.integers(x.ndim))
    powers = np.exp(x.astype(np.float64))
    wanted = (powers / powers.sum(axis=axis, keepdims=True)).astype(np.float32)
    return Example([x], {"axis": IntegerAttr(axis, i64)}, wanted)


def softmax(rng: Rng) -> Example:
    x = floats(rng)
    axis, beta = int(rng.integers(-x.ndim, x.ndim)), float(np.float32(rng.uniform(0.5, 2)))
    powers = np.exp(beta * x.astype(np.float64))
    wanted = (powers / powers.sum(axis=axis, keepdims=True)).astype(np.float32)
    return Example([x], {"axis": IntegerAttr(axis, i64), "beta": scalar_attr(beta, f32)}, wanted)


def lrn(rng: Rng) -> Example:
    x = floats(rng)
    axis, size = int(rng.integers(x.ndim)), int(rng.integers(1, 7))
    bias, alpha, beta = (float(np.float32(v)) for v in rng.uniform((0.5, 1e-4, 0.25), (2, 0.5, 1.5)))
    squares, wanted = x.astype(np.float64) ** 2, np.empty_like(x)
    for c in range(x.shape[axis]):
        near = range(max(0, c - (size - 1) // 2), min(x.shape[axis], c + size // 2 + 1))
        base = bias + alpha / size * squares.take(near, axis).sum(axis=axis)
        part = (slice(None),) * axis + (c,)
        wanted[part] = x[part] / base**beta
    properties = {"axis": IntegerAttr(axis, i64), "size": IntegerAttr(size, i64)}
    reals = {"bias": scalar_attr(bias, f32), "alpha": scalar_attr(alpha, f32), "beta": scalar_attr(beta, f32)}
    return Example([x], {**properties, **reals}, wanted)


def losses(rng: Rng) -> tuple[Array, Array]:
    """Probabilities, and targets of one sign: sums without cancellation."""
    x, y = (numbers(rng, "float32", sizes(rng, 2, 1, 8)) for _ in range(2))
    return 1 / (1 + np.exp(x)), np.abs(np.resize(y, x.shape))


def cross_entropy(rng: Rng) -> Example:
    x, y = losses(rng)
    wanted = -(np.log(x.astype(np.float64)) * y).sum() / x.shape[0]
    return Example([x, y], {}, np.asarray(wanted, np.float32))


def cross_entropy_with_logits(rng: Rng) -> Example:
    x, y = losses(rng)
    wanted = -(x.astype(np.float64) * y).sum() / x.shape[0]
    return Example([x, y], {}, np.asarray(wanted, np.float32))


MAKERS: dict[type[TensorOp], Make] = {
    relay.ReluOp: relu,
    relay.LeakyReluOp: leaky_relu,
    relay.PreluOp: prelu,
    relay.LogSoftmaxOp: log_softmax,
    relay.FastSoftmaxOp: fast_softmax,
    relay.SoftmaxOp: softmax,
    relay.LrnOp: lrn,
    relay.CrossEntropyOp: cross_entropy,
    relay.CrossEntropyWithLogitsOp: cross_entropy_with_logits,
}

test_random_ones, test_many_random_ones = random_tests(MAKERS)
