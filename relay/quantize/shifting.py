"""Bias correction, and replacement of a layer's weights and bias.

Source: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, 2019, section 4.2.
"""

from __future__ import annotations

import numpy as np
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import shape
from relay.quantize import marks
from relay.quantize.layers import Layer, constant_before


def corrected_bias(layer: Layer, rounded: Array, means: Array) -> Array:
    """`bias - sum over taps of (rounded - weights) * mean of the input channel`: the bias for which the mean error of
    the layer's output is 0, except at positions whose window overlaps padding. `rounded`: the weights after rounding;
    `means`: the mean of each input channel."""
    error = rounded.astype(np.float64) - layer.weights.astype(np.float64)
    if isinstance(layer.anchor, relay.DenseOp):
        shift = error @ means
    elif layer.anchor.depthwise:
        multiplier = error.shape[2] // means.size
        shift = error.sum(axis=(0, 1)) * np.repeat(means, multiplier)
    else:
        groups = layer.anchor.groups.value.data
        by_group = error.sum(axis=(1, 2)).reshape(groups, -1, error.shape[3])
        shift = np.einsum("goi,gi->go", by_group, means.reshape(groups, -1)).reshape(-1)
    bias = np.zeros(shift.shape) if layer.vector is None else layer.vector.astype(np.float64)
    return (bias - shift).astype(np.float32)


def set_weights(layer: Layer, weights: Array) -> None:
    """Replace the layer's weights, given in the shape of `Layer.weights`."""
    array = np.ascontiguousarray(weights.astype(np.float32)).reshape(shape(layer.anchor.kernel))
    layer.anchor.operands[1] = constant_before(layer.anchor, array, layer.anchor.kernel)


def set_bias(layer: Layer, bias: Array) -> None:
    """Replace the layer's bias, or add one."""
    if layer.bias is not None:
        layer.bias.operands[1] = constant_before(layer.anchor, bias, layer.bias.bias)
        return
    old = layer.anchor.result
    new = relay.BiasAddOp.make([old, constant_before(layer.anchor, bias, None)], like=layer.anchor)
    marks.move(layer.anchor, new)
    Rewriter.insert_op(new, InsertPoint.after(layer.anchor))
    old.replace_uses_with_if(new.result, lambda use: use.operation is not new)
