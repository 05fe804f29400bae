"""Register tiles fit the registers and suit the shape; weights that do not fit a dot product are told apart exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import MemRefType, i8, i32
from xdsl.ir import Block

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.lowering.scheduling.bias import add_bias
from relay.lowering.scheduling.contraction import Convolution, Operand
from relay.lowering.scheduling.outliers import centred, extra_steps, few, most_steps, offsets
from relay.lowering.scheduling.packed import Packed, pack_constants
from relay.lowering.scheduling.packing import blocks_of, groups_of, runs
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import Around, TileSchedule, decide_tiles, needs_sums
from relay.lowering.scheduling.prefetch import pays, share_of
from relay.lowering.scheduling.tiles import Problem, block_cycles, choose, tile_cycles
from relay.target import CpuTarget
from relay.target.dots import DOTS

VNNI = CpuTarget("", "", frozenset({"avx512f", "avx512vnni"}))
WITH_CACHES = CpuTarget("", "", VNNI.features | {"sse2"})
COSTS = VNNI.costs


def convolution(kernel: tuple[int, int, int, int], *, zero_point: int = 130, size: int = 9, dilation: int = 1):
    """One of unsigned codes and weights, on a square image."""
    o, kh, kw, c = kernel
    block = Block(arg_types=[MemRefType(i8, [1, size, size, c]), MemRefType(i8, kernel), MemRefType(i32, [1])])
    rows = size - (kh - 1) * dilation
    columns = size - (kw - 1) * dilation
    return Convolution(
        Operand(block.args[0], True, 7), Operand(block.args[1], True, zero_point), block.args[2], 1, size, size, c,
        rows, columns, o, kh, kw, (1, 1), (dilation, dilation), False, i32,
    )  # fmt: skip


@given(st.integers(1, 2000), st.integers(1, 500), st.integers(1, 600), st.sampled_from([4, 8, 32]), st.integers(0, 2))
def test_tiles_fit_the_registers(outputs: int, width: int, steps: int, registers: int, extra: int):
    tiles = choose(Problem(outputs, width, 3, steps, registers, extra), COSTS)
    assert len(tiles.pixels) == tiles.vectors + 1 and tiles.cycles > 0
    for vectors, pixels in enumerate(tiles.pixels[1:], 1):
        assert 1 <= pixels <= width
        assert pixels == 1 or pixels * (vectors + extra) + vectors < registers


def test_large_products_keep_the_multipliers_busy():
    tiles = choose(Problem(256, 784, 1, 64), COSTS)
    pixels = tiles.pixels[tiles.vectors]
    assert pixels * tiles.vectors >= 20
    floor = 256 / 16 * 784 * 64 / 2
    assert floor < tiles.cycles < 1.2 * floor


def test_one_pixel_streams_some_vectors_and_leaves_blocks_to_share():
    assert choose(Problem(1001, 1, 1, 320), COSTS).vectors == 4


@pytest.mark.parametrize("group", [4, 8])
@given(st.integers(1, 2000), st.integers(1, 500), st.integers(1, 600), st.integers(0, 2))
def test_tiles_of_registers_of_a_quarter_fit(group: int, outputs: int, width: int, steps: int, extra: int):
    dot = next(dot for dot in DOTS if dot.group == group and "i8mm" in dot.features)
    tiles = choose(Problem(outputs, width, 3, steps, 8, extra, 16 * group, dot), COSTS)
    for vectors, pixels in enumerate(tiles.pixels[1:], 1):
        assert pixels == 1 or pixels * (vectors + extra) * 4 + pixels // dot.rows <= 25


def test_widths_are_divided_without_a_small_rest():
    problem = Problem(512, 7, 7, 1152)
    tiles = choose(problem, COSTS)
    assert tiles.pixels[tiles.vectors] == 7
    assert block_cycles(problem, COSTS, 3, 7) == 7 * tile_cycles(problem, COSTS, 3, 7)


def test_few_accumulators_wait_for_themselves():
    problem = Problem(16, 100, 1, 1000)
    assert tile_cycles(problem, COSTS, 1, 2) == pytest.approx(tile_cycles(problem, COSTS, 1, 1), rel=0.05)


def test_a_tile_leaves_registers_for_what_finishes_it_where_spilling_costs():
    problem = Problem(outputs=16, width=1000, rows=1, steps=2)
    assert choose(problem, COSTS).pixels[-1] + COSTS.finishing_registers > problem.registers
    for taken in (8, 18):
        spilling = replace(COSTS, spilled_vector=10.0, finishing_registers=taken)
        assert choose(problem, spilling).pixels[-1] + taken == problem.registers


@given(st.integers(1, 300), st.integers(1, 8))
def test_groups_cover_all_blocks(outputs: int, vectors: int):
    found: list[tuple[int, int]] = []
    for group in groups_of(outputs, vectors):
        numbers = range(group.first, group.first + group.count)
        found += [(number * vectors * 16, group.vectors) for number in numbers]
    assert found == blocks_of(outputs, vectors)


def weights(shape: tuple[int, ...], outlying: int, seed: int = 3) -> Array:
    """Unsigned codes around 130, and some zeros, which do not fit."""
    random = np.random.default_rng(seed)
    codes = random.integers(10, 250, shape).astype(np.uint8)
    codes.reshape(-1)[random.choice(codes.size, outlying, replace=False)] = 0
    return codes


@pytest.mark.parametrize("kernel", [(40, 1, 1, 24), (70, 3, 3, 6), (5, 2, 3, 3)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_clipped_weights_and_extra_steps_make_the_weights(kernel: tuple[int, int, int, int], dilation: int):
    conv, codes, vectors = convolution(kernel, dilation=dilation), weights(kernel, 3), 2
    clipped, rest = centred(conv, codes)
    assert np.array_equal(clipped + rest, codes.astype(int) - 130) and np.count_nonzero(rest) == 3
    most = most_steps(conv, codes, vectors)
    found = extra_steps(conv, codes, vectors, most)
    data = np.random.default_rng(5).integers(0, 256, (9, 9, kernel[3])).reshape(-1)
    data = np.append(data, [0] * 64)
    lacking = np.zeros(-(-kernel[0] // 32) * 32, int)
    for block, (first, count) in enumerate(blocks_of(kernel[0], vectors)):
        part = found.weights.reshape(-1, most * vectors * 64)[block][: most * count * 64].reshape(most, count * 16, 4)
        for step in range(found.counts[block]):
            at = found.offsets[block * most + step]
            lacking[first : first + count * 16] += part[step].astype(int) @ data[at : at + 4]
    image = data[: 81 * kernel[3]].reshape(9, 9, -1)
    taps = image[: kernel[1] * dilation : dilation, : kernel[2] * dilation : dilation]
    wanted = np.einsum("oijc,ijc->o", rest.astype(int), taps)
    assert np.array_equal(lacking[: kernel[0]], wanted)


def test_each_step_is_found_where_its_run_is():
    conv = convolution((4, 3, 2, 5), dilation=2)
    positions = np.arange(9 * 9 * 5).reshape(9, 9, 5)[:5:2, :3:2]
    matrix = runs(conv, positions[None].astype(np.int64) + 1, 4)[0].reshape(-1, 4)
    assert np.array_equal(offsets(conv), matrix[:, 0] - 1)


def decided(conv: Convolution, *kernels: Array, target: CpuTarget = VNNI) -> TileSchedule:
    """The schedule for these weights, of pixels in one row."""
    return decide_tiles(Picks(), conv, kernels, target, Around(flat=(True,)))


NEON = CpuTarget("", "", frozenset({"neon", "dotprod"}))


@pytest.mark.parametrize(
    ("target", "size", "costs", "decision"),
    [
        (VNNI, 9, {"most_outlier_steps": 0}, ("sums_of_data", False, True)),
        (VNNI, 9, {"unrolled_operations": 4}, ("unrolled_epilogue", True, False)),
        (VNNI, 9, {"inner_weight_bytes": 0}, ("channels_inside", True, False)),
        (VNNI, 1, {"streamed_vectors": 2}, ("tile", (1, 64), (1, 32))),
        (NEON, 9, {"few_pixels": 81}, ("sign_flip", "copy", "loop")),
    ],
)
def test_a_cost_of_the_target_decides(
    target: CpuTarget, size: int, costs: dict[str, float], decision: tuple[str, object, object]
):
    conv, codes = convolution((128, 1, 1, 64), size=size), weights((128, 1, 1, 64), 3)
    machines = (target, target.with_costs(costs))
    found = [decide_tiles(Picks(), conv, [codes], each, Around(flat=(True,), epilogue=5)) for each in machines]
    assert [getattr(schedule, decision[0]) for schedule in found] == [*decision[1:]]


@pytest.mark.parametrize("tile", [(8, 448), (28, 16), (0, 16), (1, 24)])
def test_a_tile_that_the_operation_does_not_have_is_refused(tile: tuple[int, int]):
    conv = convolution((20, 1, 1, 8), size=3)
    with pytest.raises(
        InvalidArgument, match=r"^@k: tile = \[.*\] is not possible; possible: \[1 to 9, 16 to 32 by 16\]$"
    ):
        decide_tiles(Picks("@k", {"tile": tile}), conv, [weights((20, 1, 1, 8), 0)], VNNI, Around(flat=(True,)))


def test_a_tile_for_all_operations_is_cut_to_each():
    conv, pick = convolution((20, 1, 1, 8), size=3), Picks()
    pick.at_most = (28, 448)
    assert decide_tiles(pick, conv, [weights((20, 1, 1, 8), 0)], VNNI, Around(flat=(True,))).tile == (9, 32)


def test_many_outlying_weights_are_corrected_by_sums():
    conv = convolution((64, 1, 1, 64))
    assert decided(conv, weights((64, 1, 1, 64), 3)).outlier_steps > 0
    chosen = decided(conv, weights((64, 1, 1, 64), 900))
    assert chosen.sums_of_data and chosen.outlier_steps == 0


def test_a_weight_too_far_off_is_not_split():
    conv, codes = convolution((8, 1, 1, 8), zero_point=0), weights((8, 1, 1, 8), 0)
    codes[0, 0, 0, 0] = 255
    assert not few(conv, codes, 1, COSTS)


def test_no_outlying_weight_needs_nothing():
    conv, codes = convolution((32, 1, 1, 64)), weights((32, 1, 1, 64), 0)
    chosen = decided(conv, codes)
    assert needs_sums(conv) and not chosen.sums_of_data and chosen.outlier_steps == 0
    assert pack_constants(conv, chosen, codes).more == ()


def test_registers_by_features():
    features = ({"avx512f", "avx"}, {"avx", "fma"}, {"neon"}, set[str]())
    assert [CpuTarget("", "", frozenset(each)).vector_registers for each in features] == [32, 8, 8, 4]


def test_small_weights_go_inside():
    conv = convolution((96, 1, 1, 16), size=56)
    assert decided(conv, weights((96, 1, 1, 16), 0)).channels_inside
    assert not decided(convolution((512, 1, 1, 512), size=56), weights((512, 1, 1, 512), 0)).channels_inside


def test_a_bias_is_added_to_every_kind_of_start():
    packed = Packed(np.zeros(4, np.int8), np.arange(64, dtype=np.int32))
    found = add_bias(packed, np.array([5, -(2**31), 7], np.int32))
    assert found.initial[[0, 2, 3, 32, 34]].tolist() == [5, 9, 3, 37, 41]
    assert found.initial[33] == 33 - 2**31 and found.initial.dtype == np.int32
    floats = add_bias(Packed(np.zeros(4), np.zeros(16, np.float32)), np.array([0.5], np.float32))
    assert floats.initial.dtype == np.float32 and floats.initial[:2].tolist() == [0.5, 0.0]


@given(st.integers(1, 80), st.integers(2, 30), st.integers(1, 700), st.integers(1, 8), st.sampled_from([1, 4]))
def test_the_tiles_of_a_block_ask_for_all_lines_of_the_next(
    points: int, pixels: int, steps: int, vectors: int, bytes: int
):
    unit = 64 // bytes
    share = share_of(vectors * unit * steps, points, pixels, steps)
    asked: set[int] = set()
    for first in range(0, points, pixels):
        tile = share_of(vectors * unit * steps, points, min(pixels, points - first), steps)
        for step in range(steps):
            at = first * tile.pixel + step * tile.step
            asked |= {(at + line) // unit for line in range(0, tile.step, unit)}
    assert share.step >= 1
    missing = set(range(vectors * steps)) - asked
    assert len(missing) <= 0.1 * vectors * steps + points // pixels


def test_the_next_block_is_asked_for_where_few_pixels_share_it():
    assert pays(WITH_CACHES, 49, 7, 3, 216 << 10, 1 << 20)
    assert not pays(WITH_CACHES, 1, 1, 8, 1 << 10, 8 << 10)
    assert pays(WITH_CACHES, 1, 1, 4, 48 << 10, 1 << 20)
    assert not pays(WITH_CACHES, 4, 2, 8, 576 << 10, 1 << 20)
    assert not pays(WITH_CACHES, 56 * 56, 9, 3, 1 << 10, 1 << 20)
    assert not pays(CpuTarget("", "", frozenset()), 49, 7, 3, 1 << 10, 1 << 20)
    conv = convolution((512, 3, 3, 512), zero_point=128)
    assert decided(conv, target=WITH_CACHES).prefetch_next_block and not decided(conv).prefetch_next_block
