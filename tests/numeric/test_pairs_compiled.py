"""Convolutions of codes where the target multiplies pairs of 16-bit numbers: two taps at a time, data widened once."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from relay.lowering.scheduling.epilogue import pieces
from relay.passes import PassContext
from relay.target import host
from tests.numeric.compiled_modules import Net

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="a processor of another kind")


def convolutions(dtype: str) -> Net:
    """Depthwise ones of channels that fill vectors or not, and others, with borders, strides and gaps."""
    net, zeros = Net(70), (-5 if dtype == "int8" else 131)
    for channels, taps, stride, gap, pad in (
        (8, 3, 1, 1, 1), (13, 3, 2, 1, 0), (16, 5, 1, 1, 2), (23, 2, 1, 2, 1), (40, 3, 1, 1, 1), (1, 3, 1, 1, 1),
    ):  # fmt: skip
        x = net.argument(net.numbers(dtype, 2, 7, 6, channels))
        for unsigned in (False, True):
            kernel = net.constant(net.numbers("uint8" if unsigned else "int8", taps, taps, channels, 1))
            geometry = {"strides": (stride,) * 2, "dilation": (gap,) * 2, "padding": (pad,) * 4}
            zero_points = (zeros, 100 if unsigned else 0)
            sums = net.conv2d(x, kernel, groups=channels, zero_points=zero_points, depthwise=True, **geometry)
            net.result(f"depthwise {channels} {unsigned}", net.requantize(sums, channels, dtype))
    for deep, wide, taps, pad in ((3, 10, 3, 1), (24, 20, 1, 0), (5, 33, 2, 0)):
        x = net.argument(net.numbers(dtype, 1, 6, 7, deep))
        kernel = net.constant(net.numbers("int8", wide, taps, taps, deep))
        sums = net.conv2d(x, kernel, padding=(pad,) * 4, zero_points=(zeros, 0))
        net.result(f"{deep} to {wide}", net.requantize(sums, wide, dtype))
    return net


AVX2, AVX512 = "avx2,+fma", "avx512f,+avx512bw,+avx512vl,+fma"
CASES = [(AVX2, "int8"), (AVX512, "uint8")]
REST = [(AVX2, "uint8"), (AVX512, "int8"), ("sse2", "int8"), ("sse2", "uint8")]
MORE = [pytest.param(*case, marks=pytest.mark.slow) for case in REST]


def dense_layers(rows: int) -> tuple[Net, int]:
    """Products of so many rows, and how many of their weights, less the zero point, have 8 bits."""
    net, small = Net(71), 0
    for dtype, point, deep, wide in (
        ("int8", 0, 70, 37), ("int8", 0, 64, 1100), ("uint8", 128, 33, 64), ("uint8", 100, 34, 48), ("int8", -1, 9, 16),
    ):  # fmt: skip
        x = net.argument(net.numbers("int8", rows, deep))
        weights = net.numbers(dtype, wide, deep)
        weights[0, :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
        sums = net.dense(x, net.constant(weights), zero_points=(-7, point))
        net.result(f"{deep} to {wide}, {point}", net.requantize(sums, wide, "int8"))
        small += weights.size if point == (128 if dtype == "uint8" else 0) else 0
    return net, small


@pytest.mark.parametrize("few", [(2,), pytest.param((1, 3), marks=pytest.mark.ci)])
def test_weights_that_are_read_once_keep_8_bits(few: tuple[int, ...]):
    if "avx2" not in host().features:
        pytest.skip("this CPU lacks avx2")
    found, small = dict[int, int](), 0
    for rows in (*few, 40):
        net, small = dense_layers(rows)
        with PassContext(opt_level=1):
            found[rows] = net.check(f"x86_64-unknown-linux-gnu -mattr=+{AVX2}").graph["constants_bytes"]
    assert all(0 <= found[40] - found[rows] - small <= small / 5 for rows in few), (found, small)


@pytest.mark.parametrize(("features", "dtype"), [*CASES, *MORE])
def test_pairs(features: str, dtype: str):
    needed = {name.lstrip("+") for name in features.split(",")}
    if not needed <= host().features:
        pytest.skip(f"this CPU lacks {sorted(needed - host().features)}")
    with PassContext(opt_level=1):
        convolutions(dtype).check(f"x86_64-unknown-linux-gnu -mattr=+{features}")


def test_pieces():
    assert pieces(13) == [(0, 8), (8, 4), (12, 1)] and pieces(6) == [(0, 4), (4, 2)]
    assert all(sum(count for _, count in pieces(lanes)) == lanes for lanes in range(1, 16))
