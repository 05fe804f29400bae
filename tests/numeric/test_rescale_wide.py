"""Rescaling on a GPU by products of 32 x 32 bits, at all its steps, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr, i32

from relay.dialects import relay as ops
from relay.dialects.attributes import Array, element_type, scalar_attr
from tests.numeric.compiled_modules import Net
from tests.numeric.gpu_models import check

CHANNELS = 16


def around_steps(multiplier: Array, exponent: Array, levels: Array) -> Array:
    """Numbers of up to 24 bits around those where the results of each channel rise: a row for each."""
    steps = (levels[:, None] - 0.5) * 2.0 ** (31 - exponent) / multiplier
    near = np.rint(steps)[:, None, :] + np.arange(-2, 3)[None, :, None]
    return np.clip(near.reshape(-1, CHANNELS), -(2**23) + 2**15, 2**23 - 2**16).astype(np.int64)


def digits(x: Array) -> list[Array]:
    """Codes a, b and c of x = 2^16 a + 2^8 b + c."""
    found: list[Array] = []
    for _ in range(2):
        low = (x & 255).astype(np.uint8).view(np.int8)
        found.append(low)
        x = (x - low) >> 8
    return [x.astype(np.int8), *found[::-1]]


@pytest.mark.parametrize("rounding", ["tflite", "tflite_single"])
@pytest.mark.parametrize(("dtype", "low", "high"), [("int8", -128, 127), ("int8", -100, 90), ("uint8", 0, 255)])
def test_steps(dtype: str, low: int, high: int, rounding: str):
    net = Net(17)
    multiplier = net.rng.integers(1 << 30, 1 << 31, CHANNELS)
    multiplier[:3] = 1 << 30, (1 << 31) - 1, 3 << 29
    exponent = net.rng.integers(-14, -2, CHANNELS)
    x = around_steps(multiplier, exponent, np.arange(-140, 270))
    zero_point = 3 if low < 0 else 0
    total = None
    for code, weight in zip(digits(x), (1 << 16, 1 << 8, 1), strict=True):
        wide = net.add(ops.CastOp, [net.argument(code)], {"dtype": i32})
        part = net.add(ops.MultiplyOp, [wide, net.constant(np.array(weight, np.int32))], {})
        total = part if total is None else net.add(ops.AddOp, [total, part], {})
    assert total is not None
    numbers = [net.constant(each.astype(np.int32)) for each in (multiplier, exponent)]
    total = net.add(ops.FixedPointMultiplyOp, [total, *numbers], {"rounding": StringAttr(rounding)})
    total = net.add(ops.AddOp, [total, net.constant(np.array(zero_point, np.int32))], {})
    clipped = net.add(ops.ClipOp, [total], {"a_min": scalar_attr(low, i32), "a_max": scalar_attr(high, i32)})
    net.result("codes", net.add(ops.CastOp, [clipped], {"dtype": element_type(dtype)}))
    text = check(net).executable.get_source("ptx")
    assert "cvt.pack.sat" in text and "cvt.rzi" not in text
