"""Convolutions of which blocks of channels need different taps: the interpreter's numbers, without the zeros."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i8

from relay.dialects import relay
from relay.dialects.attributes import Array, ints
from relay.lowering.scheduling.parts import parts_of, products
from relay.target import CpuCosts
from tests.numeric.compiled_modules import Net, offsets
from tests.numeric.test_schedules_compiled import choices
from tests.unit.test_scheduling import convolution

WINDOWS = (((0, 2), (0, 2)), ((0, 2), (1, 2)), ((1, 3), (0, 3)), ((2, 3), (2, 3)), ((1, 1), (1, 1)))
"""Rows and columns of taps, of a window of 3x3; none at last."""


def with_windows(net: Net, dtype: str, each: int, channels: int) -> Array:
    """A kernel [o, 3, 3, c]; so many channels with each window."""
    kernel = np.zeros((each * len(WINDOWS), 3, 3, channels), net.numbers(dtype, 1).dtype)
    for number, ((first, end), (left, right)) in enumerate(WINDOWS):
        block = kernel[number * each : (number + 1) * each, first:end, left:right]
        block[...] = net.numbers(dtype, *block.shape)
    return kernel


@pytest.mark.parametrize("dtype", ["int8", pytest.param("uint8", marks=pytest.mark.ci), "float32"])
def test_windows_of_blocks(dtype: str):
    """Blocks of whole vectors and not; strides, dilation, padding, images."""
    net, float = Net(50), dtype == "float32"
    for n, size, c, each, strides, padding, dilation in (
        (2, 8, 4, 20, 2, 1, 1), (1, 11, 8, 16, 1, 0, 2),
    ):  # fmt: skip
        x = net.argument(net.numbers(dtype, n, size, size + 5, c))
        kernel = net.constant(with_windows(net, "float32" if float else "int8", each, c))
        sums = net.conv2d(
            x,
            kernel,
            strides=(strides, strides),
            padding=(padding,) * 4,
            dilation=(dilation, dilation),
            zero_points=None if float else (5, 0),
        )
        outputs = each * len(WINDOWS)
        finished = net.relu(sums, outputs) if float else net.requantize(sums, outputs, dtype)
        net.result(f"{size}x{c} to {each}", finished)
    net.check()


@pytest.mark.parametrize("dtype", ["int8", pytest.param("float32", marks=pytest.mark.ci)])
def test_a_transposed_convolution_multiplies_no_zeros(dtype: str):
    """A window of 3x3 at strides of 2: four places, with 1, 2, 2 and 4 taps of 4 each."""
    assert "4 blocks of channels with windows of their own" in choices(transposed(dtype))
    transposed(dtype).check()


def transposed(dtype: str) -> Net:
    net = Net(51)
    x = net.argument(net.numbers(dtype, 1, 6, 7, 16))
    operands = [x, net.constant(net.numbers(dtype, 16, 3, 3, 16))]
    properties = {
        "strides": ints([2, 2]),
        "padding": ints([0, 0, 1, 1]),
        **offsets(None if dtype == "float32" else (3, 0)),
    }
    net.result("sums", net.add(relay.Conv2dTransposeOp, operands, properties))
    return net


def test_parts_cover_all_weights():
    net = Net(52)
    conv = convolution((16 * len(WINDOWS), 3, 3, 8), element=f32)
    kernel = with_windows(net, "float32", 16, 8)
    parts = parts_of(conv, [kernel], CpuCosts())
    assert [products(part.conv) for part in parts] == [4, 2, 6, 1, 1]
    rebuilt = np.zeros_like(kernel)
    for part in parts:
        window = part.kernel_of(rebuilt)
        window[...] = part.kernel_of(kernel)
    assert np.array_equal(rebuilt, kernel)


def test_few_zeros_are_no_parts():
    conv = convolution((32, 3, 3, 8), element=i8)
    kernel = np.ones((32, 3, 3, 8), np.int8)
    assert parts_of(conv, [kernel], CpuCosts()) == []
    kernel[:16, 0] = 0
    assert parts_of(conv, [kernel], CpuCosts()) == []  # 15 of 18 are left
    kernel[:16, 1] = 0
    assert len(parts_of(conv, [kernel], CpuCosts())) == 2
    assert parts_of(conv, [kernel, np.ones_like(kernel)], CpuCosts()) == []
