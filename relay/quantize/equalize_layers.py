"""The pass `equalize-layers`: balances channel ranges between layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import Origin, TensorOp, rank
from relay.interpreters.meaning import along
from relay.passes import Pass
from relay.quantize import marks
from relay.quantize.layers import Layer, clamp_bounds, layers_of, only_user
from relay.quantize.shifting import set_bias, set_weights


@dataclass(frozen=True)
class EqualizeLayers(Pass):
    """Scale the channels between two layers so that both layers' weights have similar ranges. Results only change by
    the rounding of floats.

    Channel c, computed by one layer and read only by the next (through ReLU, padding with 0 or pooling), is divided by
    `s_c = sqrt(r1_c / r2_c)`, where r is the largest magnitude of its weights in the two layers, and the next layer's
    weights are multiplied by `s_c`. This is repeated `rounds` times. A pair of layers with an upper clamp between
    them, as in ReLU6, is not changed. Source: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias
    Correction, 2019, section 4.1.
    """

    name: ClassVar[str] = "equalize-layers"
    aliases = ("CrossLayerEqualization",)
    invalidates = ("folded",)
    why = "equalizes the ranges of channels"
    rounds: int = 8

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        function = marks.main_of(op, self.name)
        for _ in range(self.rounds):
            layers = layers_of(function)
            moved = [equalize(first, second) for first, second in pairs(layers)]
            if not any(moved):
                break


def pairs(layers: list[Layer]) -> Iterator[tuple[Layer, Layer]]:
    """Each layer whose result is read by exactly one other layer, with that layer."""
    anchors = {layer.anchor: layer for layer in layers}
    for layer in layers:
        bounds = clamp_bounds(layer.clamp)
        if bounds is not None and (bounds[0] != 0.0 or bounds[1] < float(np.finfo(np.float32).max)):
            continue
        value: SSAValue = layer.result
        user = only_user(value)
        while isinstance(user, TensorOp) and passes_factors(user, value):
            value = user.results[0]
            user = only_user(value)
        if isinstance(user, relay.Conv2dOp | relay.DenseOp) and user in anchors and user.data is value:
            yield layer, anchors[user]


def passes_factors(op: TensorOp, data: SSAValue) -> bool:
    """Whether the op has one data operand, and multiplying the channels (last axis) of this operand by positive factors
    multiplies the channels of the result by the same factors."""
    last = rank(data) - 1
    return (
        op.origin is not Origin.COMPUTED
        and op.data_operands() == (data,)
        and [rank(result) - 1 for result in op.results] == [last]
        and op.independent_along(last)
        and all(to_numpy(op.properties[name]) == 0 for name in op.FILLS)
    )


def outgoing(layer: Layer) -> Array:
    """The largest magnitude of the weights of each output channel."""
    others = tuple(axis for axis in range(layer.weights.ndim) if axis != layer.axis)
    return np.abs(layer.weights).max(axis=others).astype(np.float64)


def incoming(layer: Layer) -> Array:
    """The largest magnitude of the weights that each input channel of a layer is multiplied by, as a float64 vector
    with an element for each input channel, in the order of the channels of the layer's data."""
    weights = np.abs(layer.weights)
    if layer.axis == 2:
        found = weights.max(axis=(0, 1)).reshape(layer.groups, -1).max(axis=1)
    else:
        found = weights.reshape(layer.groups, -1, weights.shape[-1]).max(axis=1).reshape(-1)
    return found.astype(np.float64)


def equalize(first: Layer, second: Layer) -> bool:
    """Scale the channels between two layers. Returns whether that changed the weights."""
    made, read = outgoing(first), incoming(second)
    if made.size != read.size:
        return False
    usable = (made > 0) & (read > 0)
    factors = np.where(usable, np.sqrt(np.where(usable, made, 1.0) / np.where(usable, read, 1.0)), 1.0)
    factors = np.clip(factors, 2.0**-20, 2.0**20)
    if bool(np.all(np.abs(factors - 1) < 1e-3)):
        return False
    set_weights(first, first.weights / along(factors, first.axis, first.weights.ndim))
    if (bias := first.vector) is not None:
        set_bias(first, (bias / factors).astype(np.float32))
    set_weights(second, scale_inputs(second, factors))
    return True


def scale_inputs(layer: Layer, factors: Array) -> Array:
    """The layer's weights multiplied per input channel by the factors."""
    weights = layer.weights
    if layer.axis == 2:
        return weights * np.repeat(factors, weights.shape[2] // layer.groups)
    split = weights.reshape(layer.groups, -1, weights.shape[-1]) * factors.reshape(layer.groups, 1, -1)
    return split.reshape(weights.shape)
