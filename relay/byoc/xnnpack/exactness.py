"""Checks that LiteRT's reference kernels compute, from the scales alone, the multipliers that the ops have.

Source: the `Prepare` functions of TFLite's kernels (2.3), which multiply scales in float or in double.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.quantized import PRODUCTS, Product, Quantization, code_bounds, dtype, read_product
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import shape
from relay.interpreters.arithmetic import quantize_multiplier, quantize_multipliers

Pair = tuple[int, int]


def refusal(ops: Sequence[Operation]) -> str | None:
    """The reason why LiteRT's reference kernel would round differently from these ops, which have their own
    multipliers; None if it would not."""
    op = ops[0]
    if isinstance(op, PRODUCTS):
        product = read_product(ops)
        if isinstance(product, Refusal):
            return product.reason
        return None if product.quantization is None else _product_refusal(product, product.quantization)
    match op:
        case relay.CeilOp():
            return "there is no reference kernel of CEIL"
        case qnn.QnnAddBase():
            same = _sum(op) == _pairs(op, "lhs_", "rhs_", "")
        case qnn.MulOp():
            lhs, rhs, out = (np.float32(attr.value.data) for attr in (op.lhs_scale, op.rhs_scale, op.output_scale))
            same = [quantize_multiplier(float(lhs * rhs / out))] == _pairs(op, "")
        case qnn.MeanOp():
            same = [_mean(op)] == _pairs(op, "")
        case qnn.SoftmaxOp():
            scaled = np.float64(np.float32(op.beta.value.data)) * np.float64(op.input_scale.value.data) * (1 << 26)
            same = [quantize_multiplier(min(float(scaled), float((1 << 31) - 1)))] == _pairs(op, "")
        case qnn.RequantizeOp():
            same = [_rescale(op)] == _pairs(op, "")
        case _:
            same = True
    return None if same else "its multipliers are not those that TFLite computes from its scales"


def _pairs(op: Operation, *prefixes: str) -> list[Pair]:
    """The (multiplier, shift) pairs of the op, one for each of its property prefixes, such as `lhs_`: the values of
    `lhs_multiplier` and `lhs_shift`."""
    numbers = [[int(to_numpy(op.properties[prefix + what])) for what in ("multiplier", "shift")] for prefix in prefixes]
    return [(multiplier, shift) for multiplier, shift in numbers]


def _product_refusal(product: Product, quantization: Quantization) -> str | None:
    op, rounding = quantization.requantize, "tflite" if product.window is not None else "f64_away"
    if op.rounding.data != rounding:
        return f"it rounds as {op.rounding.data}; TFLite's kernel as {rounding}"
    reals = quantization.real_multipliers
    if product.window is not None:
        if dtype(product.data) == np.uint8:
            single = np.float32(quantization.input.scale) * quantization.kernel_scale
            reals = single.astype(np.float64) / np.float64(quantization.output.scale)
        multipliers, shifts = quantize_multipliers(reals)
        same = _equal(multipliers, to_numpy(op.multiplier)) and _equal(shifts, to_numpy(op.shift))
    else:
        same = op.real_multiplier is not None and _equal(reals, to_numpy(op.real_multiplier))
    return None if same else "its multipliers are not those that TFLite computes from its scales"


def _equal(computed: Array, given: Array) -> bool:
    return bool((computed == given).all())


def _sum(op: qnn.QnnAddBase) -> list[Pair]:
    lhs, rhs, out = (np.float32(attr.value.data) for attr in (op.lhs_scale, op.rhs_scale, op.output_scale))
    up = op.left_shift.value.data
    twice = np.float64(2 * max(lhs, rhs))
    last = twice / np.float64(np.float32(1 << up) * out)
    reals = (np.float64(lhs) / twice, np.float64(rhs) / twice, last)
    return [quantize_multiplier(float(real)) for real in reals] if up == 20 else []


def _mean(op: qnn.MeanOp) -> Pair:
    count = math.prod(shape(op.input)[axis] for axis in op.axes())
    scales = np.float64(op.input_scale.value.data) / np.float64(op.output_scale.value.data)
    multiplier, shift = quantize_multiplier(float(scales))
    doublings = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << doublings) // count, shift - doublings


def _rescale(op: qnn.RequantizeOp) -> Pair:
    source, target = to_numpy(op.input_scale).reshape(-1), to_numpy(op.output_scale)
    if code_bounds(op) == (None, None):
        return quantize_multiplier(float(np.float64(source[0]) / np.float64(target)))
    return quantize_multiplier(float(np.float32(source[0]) / np.float32(target)))
