"""Adaptive rounding: weights are rounded up or down so that a layer's output, not each weight, has the least error.

The objective is that of Nagel et al., Up or Down? Adaptive Rounding for Post-Training Quantization, 2020 (equation 8):
for each output channel the least `d^T E[x x^T] d`, where d are the weights' errors and x their inputs. Starting from
the nearest values, single roundings are flipped as long as that lowers the error; no training is needed.
"""

from __future__ import annotations

import numpy as np

from relay.dialects.attributes import Array
from relay.quantize.layers import Layer
from relay.quantize.statistics import Moments
from relay.quantize.weights import Kernel

SWEEPS = 12
"""The maximum number of passes over all weights."""
DAMPING = 0.01
"""The share of the mean diagonal element of the second moments that is added to the diagonal, so that weight errors in
directions in which no sample has inputs count a little, too."""


def adaptive_codes(layer: Layer, kernel: Kernel, moments: Moments) -> Array:
    """The quantized weights of a layer, in the shape of `Layer.weights`; each is the value next below or next above the
    real weight."""
    positions = kernel.positions(layer.weights)
    channels_first = np.moveaxis(positions, layer.axis, 0)
    steps = np.broadcast_to(kernel.scale.astype(np.float64), (channels_first.shape[0],))
    flat = channels_first.reshape(channels_first.shape[0], -1)
    groups = moments.total.shape[0]
    rows = np.split(flat, groups)
    scales = np.split(steps, groups)
    low, high = float(kernel.low), float(kernel.high)
    chosen = [
        turn(row, scale, damped(total / max(moments.rows, 1)), low, high)
        for row, scale, total in zip(rows, scales, moments.total, strict=True)
    ]
    codes = np.concatenate(chosen).reshape(channels_first.shape)
    return np.ascontiguousarray(np.moveaxis(codes, 0, layer.axis)).astype(kernel.dtype)


def damped(moments: Array) -> Array:
    """The second moments with `DAMPING` times the mean diagonal element added to the diagonal."""
    return moments + np.eye(len(moments)) * (DAMPING * float(np.trace(moments)) / max(len(moments), 1) + 1e-12)


def turn(positions: Array, steps: Array, moments: Array, low: float, high: float) -> Array:
    """Round rows of weights up or down. `positions`: the weights divided by their scales, plus the zero point; `steps`:
    the scale of each row; `moments`: the matrix M of the inputs' second moments. The search starts from the nearest
    values; the error `d^T M d` of each row, where d are the differences from the real weights, is at most that of the
    nearest values."""
    below = np.clip(np.floor(positions), low, high)
    above = np.clip(below + 1, low, high)
    codes = np.clip(np.rint(positions), low, high)
    codes = np.where(codes < below, below, np.where(codes > above, above, codes))
    slope = ((codes - positions) * steps[:, None]) @ moments
    for _ in range(SWEEPS):
        turned = False
        for tap in range(positions.shape[1]):
            change = np.where(codes[:, tap] == below[:, tap], above[:, tap], below[:, tap]) - codes[:, tap]
            change = change * steps
            gain = 2 * change * slope[:, tap] + change * change * moments[tap, tap]
            chosen = gain < -1e-12 * np.abs(change * slope[:, tap])
            if chosen.any():
                turned = True
                other = np.where(codes[:, tap] == below[:, tap], above[:, tap], below[:, tap])
                codes[:, tap] = np.where(chosen, other, codes[:, tap])
                slope += np.where(chosen, change, 0.0)[:, None] * moments[tap]
        if not turned:
            break
    return codes
