"""Depthwise convolutions of codes on machines with dot products: every split of channels, rows and taps."""

from __future__ import annotations

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.lowering.scheduling.depthwise_layout import sections
from tests.numeric.compiled_modules import Net
from tests.numeric.test_operators_compiled import FLAVOURS, follow

SHAPES = (
    (64, (9, 11), 3, 1, 1, (1, 1, 1, 1)),
    (96, (7, 8), 3, 2, 1, (0, 0, 1, 1)),
    (112, (5, 21), 3, 1, 1, (1, 1, 1, 1)),
    (130, (6, 6), 3, 1, 1, (1, 1, 1, 1)),
    (72, (3, 9), 3, 1, 1, (0, 0, 0, 0)),
    (144, (9, 9), 5, 2, 1, (2, 2, 2, 2)),
    (20, (11, 10), 3, 1, 2, (2, 2, 2, 2)),
    (48, (1, 12), 1, 1, 1, (0, 0, 0, 0)),
    (9, (6, 7), 4, 1, 1, (1, 2, 2, 1)),
)
"""Channels, rows and columns, taps, strides, dilation, padding."""


def weights_of(net: Net, kernel: str, zero_point: int, shape: tuple[int, ...], kind: str) -> Array:
    """Weights of the whole range; or near the zero point, but for a few at the other end of the range."""
    if kind == "any":
        return net.numbers(kernel, *shape)
    info = np.iinfo(kernel)
    near = np.clip(net.rng.normal(zero_point, 20, shape), info.min, info.max).astype(kernel)
    far = info.max if zero_point < (info.min + info.max) / 2 else info.min
    rows = range(shape[0]) if kind == "several rows" else [shape[0] // 2]
    for row in rows:
        near[row, net.rng.integers(shape[1]), net.rng.integers(shape[2], size=2), 0] = far
    return near


@pytest.mark.parametrize(
    ("flavour", "kind"), [("i8", "any"), pytest.param("u8", "one row", marks=pytest.mark.slow), ("u8", "several rows")]
)
def test_every_split(flavour: str, kind: str):
    net = Net(21)
    data, kernel, zero_points = FLAVOURS[flavour]
    assert zero_points is not None
    for number, (channels, (rows, columns), size, stride, dilation, padding) in enumerate(SHAPES):
        x = net.argument(net.numbers(data, 1 + number % 2, rows, columns, channels))
        weights = net.constant(weights_of(net, kernel, zero_points[1], (size, size, channels, 1), kind))
        sums = net.conv2d(
            x, weights, strides=(stride, stride), padding=padding, dilation=(dilation, dilation), groups=channels,
            zero_points=zero_points, depthwise=True,
        )  # fmt: skip
        follow(net, flavour, f"{number}: {channels} channels", sums, channels, number != 3)
    net.check()


def test_sections_cover_all_channels():
    for channels in range(1, 300):
        covered = np.zeros(channels + 64, np.int64)
        for section in sections(channels, 64):
            assert section.rows * section.channels == 64
            for block in range(section.blocks):
                start = section.first + block * section.channels
                covered[start : start + min(section.channels, section.lanes if section.rows == 4 else 64)] += 1
        assert (covered[:channels] >= 1).all() and not covered[channels:].any()
        assert covered.sum() < channels + 16
