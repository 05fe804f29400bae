"""Constants of channels in the order in which threads read them, and depthwise convolutions by dot products of taps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relay.lowering.gpu.channel_tables import ACCESS, interleave
from tests.numeric.compiled_modules import Net
from tests.numeric.gpu_models import check


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("channels", "lanes", "threads"), [(144, 8, 18), (256, 16, 4), (40, 8, 4), (96, 4, 24)])
def test_accesses_of_neighbouring_threads_lie_side_by_side(channels: int, lanes: int, threads: int, dtype: str):
    table = np.arange(1, channels + 1, dtype=dtype)
    found = interleave(table, lanes, threads)
    each = ACCESS // table.itemsize
    for channel in range(channels):
        group, inside = divmod(channel, lanes * threads)
        thread, place = divmod(inside, lanes)
        access, number = divmod(place, each)
        assert found[group * lanes * threads + (access * threads + thread) * each + number] == table[channel]
    assert np.count_nonzero(found) == channels


def distances(ptx: str) -> set[int]:
    """How far apart the loads of 16 bytes from one address are."""
    places: dict[str, list[int]] = {}
    for base, offset in re.findall(r"ld\.global\.nc\.v[24]\.b(?:32|64).*?\[(%rd\d+)\+?(-?\d+)?\]", ptx):
        places.setdefault(base, []).append(int(offset or 0))
    found = [sorted(offsets) for offsets in places.values() if len(offsets) > 1]
    return {b - a for offsets in found for a, b in zip(offsets, offsets[1:], strict=False)}


CASES = {
    "3x3": ((1, 9, 10, 48), (3, 3), (1, 1), "int8", (-128, 0)),
    "3x3 of unsigned codes by strides": ((2, 9, 10, 24), (3, 3), (2, 2), "uint8", (131, 0)),
    "3x5": ((1, 9, 10, 24), (3, 5), (1, 1), "int8", (7, 0)),
    "1x4": ((1, 9, 10, 24), (1, 4), (1, 1), "int8", (0, 0)),
    "4x2": ((1, 9, 10, 20), (4, 2), (1, 1), "int8", (5, 0)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("3x3", "4x2") else pytest.mark.ci) for name in CASES]
)
def test_taps_are_multiplied_together(name: str):
    """All that is put out is the interpreter's; borders are the data's zero point."""
    shape, window, strides, dtype, zero_points = CASES[name]
    net = Net(11)
    x, channels = net.argument(net.numbers(dtype, *shape)), shape[-1]
    weights = net.constant(net.numbers("int8", *window, channels, 1))
    rows, columns = (size - 1 for size in window)
    padding = (rows // 2, columns // 2, rows - rows // 2, columns - columns // 2)
    sums = net.conv2d(
        x,
        weights,
        strides=strides,
        padding=padding,
        groups=channels,
        zero_points=zero_points,
        depthwise=True,
    )
    net.result("codes", net.requantize(sums, channels, dtype))
    ptx = check(net).executable.get_source("ptx")
    assert "dp4a" in ptx and "mad.lo.s32" not in ptx


def test_weights_with_a_zero_point_are_multiplied_one_by_one():
    net = Net(12)
    x = net.argument(net.numbers("uint8", 1, 6, 6, 16))
    weights = net.constant(net.numbers("uint8", 3, 3, 16, 1))
    sums = net.conv2d(x, weights, groups=16, zero_points=(128, 120), depthwise=True)
    net.result("codes", net.requantize(sums, 16, "uint8"))
    assert "dp4a" not in check(net).executable.get_source("ptx")


def test_threads_read_constants_side_by_side():
    """Tables of 96 channels, 8 for each of 12 threads: 12 accesses of 16 bytes, then the next ones. A thread's 8
    numbers of the data are 32 bytes."""
    net = Net(13)
    x = net.argument(net.numbers("int32", 64, 64, 96))
    net.result("codes", net.requantize(x, 96, "int8"))
    assert distances(check(net).executable.get_source("ptx")) == {16, 12 * ACCESS}
