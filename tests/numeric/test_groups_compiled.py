"""Convolutions of groups of channels, and depthwise ones with several results for a channel: by the micro-kernel, held
against the interpreter."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from relay.lowering.scheduling.groups import joined_kernel
from relay.passes import PassContext
from relay.target import host
from tests.numeric.compiled_modules import Net
from tests.numeric.test_schedules_compiled import choices, narrow

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="a processor of another kind")


def many_groups(dtype: str) -> Net:
    """Groups that fill vectors or do not, that are joined by all, some or none; images with and without borders."""
    net, codes = Net(40), dtype != "float32"
    for groups, deep, wide, taps, stride, pad in (
        (2, 32, 32, 3, 1, 1), (32, 4, 4, 3, 1, 1), (3, 5, 7, 3, 2, 0), (3, 80, 24, 1, 1, 0),
        (4, 1, 3, 3, 1, 1), (2, 3, 50, 5, 2, 2), (1, 1, 8, 4, 2, 1),
    ):  # fmt: skip
        x = net.argument(net.numbers(dtype, 2, 7, 9, groups * deep))
        weights = net.numbers("int8" if codes else dtype, groups * wide, taps, taps, deep)
        zeros = (7, 0) if codes else None
        sums = net.conv2d(
            x, net.constant(weights), strides=(stride,) * 2, padding=(pad,) * 4, groups=groups, zero_points=zeros
        )
        end = net.requantize(sums, groups * wide, dtype) if codes else net.relu(sums, groups * wide)
        net.result(f"{groups} of {deep} to {wide}, {taps}", end)
    x = net.argument(net.numbers(dtype, 1, 6, 5, 12))
    kernel = net.constant(net.numbers("int8" if codes else dtype, 3, 3, 12, 2))
    net.result("sums", net.conv2d(x, kernel, groups=12, zero_points=(7, 0) if codes else None, depthwise=True))
    kernel = net.constant(net.numbers("int8" if codes else dtype, 8, 3, 3, 6))
    net.result(
        "sums of groups", net.conv2d(x, kernel, padding=(1,) * 4, groups=2, zero_points=(7, 0) if codes else None)
    )
    return net


ci, slow = pytest.mark.ci, pytest.mark.slow


@pytest.mark.parametrize("dtype", ["int8", pytest.param("float32", marks=ci), pytest.param("uint8", marks=slow)])
def test_groups(dtype: str):
    with PassContext(opt_level=1):
        many_groups(dtype).check()


@on_x86
@pytest.mark.parametrize("features", [pytest.param("avx2,+fma", marks=ci), pytest.param("sse2", marks=slow)])
def test_groups_without_avx512(features: str):
    if "avx2" in features and "avx2" not in host().features:
        pytest.skip("this CPU has no AVX2")
    with PassContext(opt_level=1):
        many_groups("uint8").check(f"x86_64-unknown-linux-gnu -mattr=+{features}")


def test_zero_points_of_kernels():
    """Weights that fit less their zero point, few and many that do not; zeros of joined groups are zero points."""
    net = Net(41)
    for groups, deep, wide, outlying in ((4, 4, 4, 1), (2, 24, 24, 3), (2, 16, 40, 0), (2, 16, 16, 400)):
        x = net.argument(net.numbers("uint8", 1, 5, 5, groups * deep))
        kernel = net.constant(narrow(net, outlying, groups * wide, 3, 3, deep))
        sums = net.conv2d(x, kernel, padding=(1,) * 4, groups=groups, zero_points=(9, 130))
        net.result(f"{groups} of {deep} to {wide}", net.requantize(sums, groups * wide, "uint8"))
    with PassContext(opt_level=1):
        net.check()


def test_what_is_chosen():
    said = choices(many_groups("int8"))
    assert "2 groups of channels, each: " in said and "8 groups of channels, each: " in said


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_groups_without_epilogue(dtype: str):
    net, codes = Net(42), dtype != "float32"
    x, kernel = net.argument(net.numbers(dtype, 1, 6, 6, 8)), net.constant(net.numbers(dtype, 8, 3, 3, 4))
    net.result("sums", net.conv2d(x, kernel, groups=2, zero_points=(7, 0) if codes else None))
    assert "groups of channels" in choices(net)


def test_joined_kernel():
    kernel = np.arange(1, 9).reshape(4, 2, 1, 1, 1)
    assert joined_kernel(kernel, 2, -1)[:, :, 0, 0].tolist() == [
        [[1, -1], [2, -1], [-1, 3], [-1, 4]],
        [[5, -1], [6, -1], [-1, 7], [-1, 8]],
    ]
    assert np.array_equal(joined_kernel(kernel, 1, 0), kernel)
