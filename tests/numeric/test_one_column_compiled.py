"""Convolutions whose result has one column run by rows: the interpreter's numbers, by tiles of several pixels."""

from __future__ import annotations

import re

import pytest

from relay.dialects import relay
from relay.dialects.op import shape
from tests.numeric.compiled_modules import Net
from tests.numeric.test_schedules_compiled import choices

SHAPES = (
    # images, rows, columns, channels, outputs, kernel, strides, padding, dilation
    (1, 40, 1, 12, 24, (9, 1), (1, 1), (4, 0, 4, 0), 1),
    (2, 33, 1, 16, 20, (5, 1), (2, 1), (2, 0, 1, 0), 1),
    (1, 30, 1, 8, 36, (3, 1), (1, 1), (0, 0, 0, 0), 3),
    (3, 17, 1, 6, 16, (3, 3), (1, 1), (1, 1, 1, 1), 1),
    (1, 25, 10, 3, 48, (4, 10), (1, 1), (0, 0, 0, 0), 1),
    (2, 9, 1, 5, 7, (1, 1), (2, 1), (0, 0, 0, 0), 1),
)
"""Windows as wide as the image, with and without padding."""


@pytest.mark.parametrize("dtype", [pytest.param("int8", marks=pytest.mark.ci), "uint8", "float32"])
def test_convolutions(dtype: str):
    net = Net(40)
    for n, rows, columns, c, o, kernel, strides, padding, dilation in SHAPES:
        x = net.argument(net.numbers(dtype, n, rows, columns, c))
        taps = net.numbers("float32" if dtype == "float32" else "int8", o, *kernel, c)
        zero_points = None if dtype == "float32" else (7, 0)
        sums = net.conv2d(
            x,
            net.constant(taps),
            strides=strides,
            padding=padding,
            dilation=(dilation, 1),
            zero_points=zero_points,
        )
        finished = net.relu(sums, o) if dtype == "float32" else net.requantize(sums, o, dtype)
        net.result(f"{rows}x{columns}x{c} by {kernel}", finished)
    net.check()


def test_what_follows_a_column():
    """Sums of two images, numbers per row (which have no place in a row of one image), one number, nothing."""
    net = Net(41)
    x = net.argument(net.numbers("float32", 2, 19, 1, 24))
    for number, more in enumerate([(2, 19, 1, 40), (1, 19, 1, 1), (40,), ()]):
        sums = net.conv2d(x, net.constant(net.numbers("float32", 40, 3, 1, 24)), padding=(1, 0, 1, 0))
        added = [sums, net.argument(net.numbers("float32", *more))] if more else []
        net.result(f"{number}", net.add(relay.AddOp, added, {}) if added else sums)
    one_image = net.argument(net.numbers("float32", 1, 19, 3, 8))
    sums = net.conv2d(one_image, net.constant(net.numbers("float32", 20, 2, 3, 8)), strides=(2, 1))
    net.result("one", net.add(relay.AddOp, [sums, net.argument(net.numbers("float32", 1, 1, 1, 1))], {}))
    net.check()


def test_depthwise_convolutions():
    """Floats by rows, codes as they were; borders of few kinds and of many."""
    net = Net(42)
    for dtype, rows, channels, taps, stride, padding, dilation in (
        ("float32", 41, 40, 3, 1, (1, 0, 1, 0), 1), ("float32", 30, 16, 9, 2, (4, 0, 4, 0), 1),
        ("float32", 30, 20, 5, 1, (0, 0, 0, 0), 2), ("float32", 12, 16, 5, 1, (4, 0, 1, 0), 1),
        ("int8", 20, 40, 3, 1, (1, 0, 1, 0), 1),
        ("int8", 20, 16, 9, 1, (4, 0, 4, 0), 1),
    ):  # fmt: skip
        x = net.argument(net.numbers(dtype, 2, rows, 1, channels))
        sums = net.conv2d(
            x,
            net.constant(net.numbers(dtype, taps, 1, channels, 1)),
            strides=(stride, 1),
            padding=padding,
            dilation=(dilation, 1),
            groups=channels,
            zero_points=None if dtype == "float32" else (-3, 0),
            depthwise=True,
        )
        finished = net.relu(sums, channels) if dtype == "float32" else net.requantize(sums, channels, dtype)
        net.result(f"{dtype} {rows}x{channels} by {taps}", finished)
    net.check()


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_tiles_have_several_pixels(dtype: str):
    """One column of 28 rows takes the tiles of one row of 28 pixels."""
    found: list[str] = []
    for size, kernel in (((30, 1), (3, 1)), ((1, 30), (1, 3))):
        net = Net(43)
        x = net.argument(net.numbers(dtype, 1, *size, 32))
        taps = net.constant(net.numbers(dtype, 32, *kernel, 32))
        sums = net.conv2d(x, taps, zero_points=None if dtype == "float32" else (7, 0))
        assert shape(sums)[1] * shape(sums)[2] == 28
        net.result("sums", net.relu(sums, 32) if dtype == "float32" else net.requantize(sums, 32, dtype))
        found += re.findall(r"tile \d+x\d+", choices(net))
    assert found[0] == found[1] != "tile 1x32"
