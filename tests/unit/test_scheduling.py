"""Packed weights hold every number at the place where the micro-kernels read it, and zeros elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import MemRefType, f32, i8, i32
from xdsl.ir import Attribute, Block

from relay.dialects.attributes import Array
from relay.lowering.scheduling.contraction import Convolution, Operand
from relay.lowering.scheduling.depthwise import pack_depthwise
from relay.lowering.scheduling.packing import (
    LANES,
    as_matrix,
    blocks_of,
    initial_accumulator,
    pack,
    padded,
    run_length,
    wrap_i32,
)


def convolution(
    kernel: tuple[int, ...], *, zero_points: tuple[int, int] = (0, 0), dilation: int = 1, element: Attribute = i8,
) -> Convolution:  # fmt: skip
    """One of a kernel [o, i, j, c], or depthwise [i, j, c]; the data is larger than its taps."""
    depthwise = len(kernel) == 3
    o, kh, kw, c = (kernel[2], *kernel) if depthwise else kernel
    accumulator = f32 if element == f32 else i32
    block = Block(
        arg_types=[MemRefType(element, [1, 20, 20, c]), MemRefType(element, kernel), MemRefType(accumulator, [1])]
    )
    data, weights, out = block.args
    return Convolution(
        Operand(data, False, zero_points[0]), Operand(weights, False, zero_points[1]), out, 1, 20, 20, c, 8, 8, o,
        kh, kw, (1, 1), (dilation, dilation), depthwise, accumulator,
    )  # fmt: skip


def codes(*shape: int) -> Array:
    return np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)


@given(st.integers(1, 300), st.integers(1, 6))
def test_blocks_cover_all_channels_in_order(outputs: int, vectors: int):
    blocks = blocks_of(outputs, vectors)
    covered = [first + 16 * v for first, count in blocks for v in range(count)]
    assert covered == list(range(0, outputs, 16))
    assert all(count == vectors for _, count in blocks[:-1]) and 1 <= blocks[-1][1] <= vectors


@given(st.integers(1, 90), st.integers(1, 5), st.sampled_from([1, 2, 4]), st.integers(1, 5))
def test_pack_puts_every_number_where_the_kernel_reads_it(outputs: int, steps: int, group: int, vectors: int):
    depth = steps * group
    matrix = np.arange(1, outputs * depth + 1).reshape(outputs, depth)
    packed = pack(matrix, vectors, group)
    assert packed.size == -(-outputs // LANES) * LANES * depth
    for first, count in blocks_of(outputs, vectors):
        for step in range(steps):
            for vector in range(count):
                at = first * depth + (step * count + vector) * LANES * group
                lanes = packed[at : at + LANES * group].reshape(LANES, group)
                for lane in range(LANES):
                    channel = first + vector * LANES + lane
                    wanted = matrix[channel, step * group : (step + 1) * group] if channel < outputs else 0
                    assert np.all(lanes[lane] == wanted)


@pytest.mark.parametrize(
    ("kernel", "dilation", "run"),
    [((2, 3, 3, 5), 1, 15), ((2, 3, 3, 5), 2, 5), ((2, 3, 1, 5), 2, 5), ((2, 1, 1, 8), 1, 8)],
)
def test_runs_are_rows_of_taps_unless_taps_lie_apart(kernel: tuple[int, ...], dilation: int, run: int):
    conv = convolution(kernel, dilation=dilation, zero_points=(0, 3))
    assert run_length(conv) == run
    weights = codes(*kernel)
    matrix = as_matrix(conv, weights, 4)
    runs = matrix.reshape(kernel[0], -1, -(-run // 4) * 4)
    assert np.array_equal(runs[..., :run], weights.reshape(kernel[0], -1, run).astype(np.int32) - 3)
    assert not runs[..., run:].any()


def test_floats_are_packed_as_they_are():
    conv = convolution((3, 1, 1, 5), element=f32)
    weights = np.random.default_rng(1).standard_normal((3, 1, 1, 5)).astype(np.float32)
    matrix = as_matrix(conv, weights, 1)
    assert matrix.dtype == np.float32 and np.array_equal(matrix, weights.reshape(3, 5))


@pytest.mark.parametrize("zero_points", [(0, 0), (-5, 0), (117, 3), (255, -128)])
@pytest.mark.parametrize("kernel", [(20, 3, 3, 7), (3, 3, 7)])
def test_the_initial_accumulator_takes_the_datas_zero_point_off(kernel: tuple[int, ...], zero_points: tuple[int, int]):
    conv, weights = convolution(kernel, zero_points=zero_points), codes(*kernel)
    start = initial_accumulator(conv, weights, zero_points[0])
    assert start.dtype == np.int32 and start.size % LANES == 0 and not start[conv.outputs :].any()
    data = np.random.default_rng(4).integers(-128, 128, kernel[:3] if conv.depthwise else kernel[1:])
    wide = weights.astype(np.int64) - zero_points[1]
    axes = (0, 1) if conv.depthwise else (1, 2, 3)
    wanted = ((data - zero_points[0]) * wide).sum(axes)
    assert np.array_equal((data * wide).sum(axes) + start[: conv.outputs], wanted)


@pytest.mark.parametrize("channels", [1, 8, 16, 17, 40])
def test_depthwise_weights_lie_channels_block_by_block(channels: int):
    conv, weights = convolution((3, 2, channels), zero_points=(4, -9)), codes(3, 2, channels)
    packed = pack_depthwise(conv, weights)
    blocks = packed.weights.reshape(-1, 3, 2, LANES)
    assert packed.weights.dtype == np.int16 and blocks.shape[0] == -(-channels // LANES)
    flat = blocks.transpose(1, 2, 0, 3).reshape(3, 2, -1)
    assert np.array_equal(flat[..., :channels], weights.astype(np.int16) + 9)
    assert np.array_equal(packed.initial, initial_accumulator(conv, weights, 4))


def test_padded_and_wrapped():
    assert padded(np.arange(1, 18)).tolist() == [*range(1, 18), *[0] * 15]
    assert padded(np.arange(16)).size == 16
    assert wrap_i32(np.array([1 << 31, -(1 << 31) - 1, 7])).tolist() == [-(1 << 31), (1 << 31) - 1, 7]
