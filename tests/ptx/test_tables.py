"""The tables of the PTX ISA on their own: entries read off its figures, and what must hold of each table."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ptx.tables import (
    ACCUMULATOR,
    MMA,
    SWIZZLES,
    Descriptor,
    Fragment,
    Im2colMap,
    TensorMap,
    group_accumulator,
)

FIGURES = [
    # shape, type, factor, lane, element: row, column
    ("m16n8k32", "s8", 0, 0, 3, (0, 3)),
    ("m16n8k32", "s8", 0, 0, 4, (8, 0)),
    ("m16n8k32", "s8", 0, 1, 8, (0, 20)),
    ("m16n8k32", "s8", 0, 31, 15, (15, 31)),
    ("m16n8k32", "s8", 1, 5, 0, (4, 1)),
    ("m16n8k32", "s8", 1, 31, 7, (31, 7)),
    ("m16n8k16", "f16", 0, 4, 2, (9, 0)),
    ("m16n8k16", "f16", 0, 3, 5, (0, 15)),
    ("m16n8k16", "f16", 1, 9, 3, (11, 2)),
    ("m16n8k8", "tf32", 0, 2, 1, (8, 2)),
    ("m16n8k8", "tf32", 0, 2, 2, (0, 6)),
    ("m16n8k8", "tf32", 1, 6, 1, (6, 1)),
]


@pytest.mark.parametrize("shape, type, factor, lane, element, place", FIGURES)
def test_a_fragment_is_that_of_the_figure(
    shape: str, type: str, factor: int, lane: int, element: int, place: tuple[int, int]
):
    rows, columns = MMA[shape, type][factor].places()
    assert (rows[lane, element], columns[lane, element]) == place


@pytest.mark.parametrize("fragment", [ACCUMULATOR, *{id(f): f for pair in MMA.values() for f in pair}.values()])
def test_each_element_is_held_once(fragment: Fragment):
    rows, columns = fragment.places()
    assert sorted((rows * fragment.columns + columns).reshape(-1)) == [*range(fragment.rows * fragment.columns)]


@pytest.mark.parametrize("columns", [8, 64, 256])
def test_each_sum_of_a_group_is_held_once(columns: int):
    rows, places = group_accumulator(columns)
    assert sorted((rows * columns + places).reshape(-1)) == [*range(64 * columns)]
    # the figure: thread 33 is the second of the second warp; its third register is 8 rows below its first
    assert (rows[33, 0], places[33, 0], rows[33, 2], places[33, 3]) == (16, 2, 24, 3)
    assert (rows[127, -1], places[127, -1]) == (63, columns - 1)


@pytest.mark.parametrize("mode", SWIZZLES)
def test_swizzling_exchanges_pieces_of_a_pattern(mode: int):
    swizzle = SWIZZLES[mode]
    addresses = np.arange(4 * swizzle.pattern)
    found = swizzle.of(addresses)
    assert np.array_equal(np.sort(found), addresses) and np.array_equal(swizzle.of(found), addresses)
    assert np.array_equal(found // 16 * 16 + addresses % 16, found) and (found // 128 == addresses // 128).all()
    assert np.array_equal(swizzle.of(addresses + swizzle.pattern), found + swizzle.pattern)


def test_swizzling_by_128_bytes_is_that_of_the_figure():
    """Where the piece of row r and column c lies: in the third row, pieces are in the order 2 3 0 1 6 7 4 5."""
    pieces = SWIZZLES[1].of(np.arange(0, 1024, 16)).reshape(8, 8) // 16 % 8
    assert pieces[0].tolist() == [*range(8)]
    assert pieces[2].tolist() == [2, 3, 0, 1, 6, 7, 4, 5] and pieces[7].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert all(sorted(column) == [*range(8)] for column in pieces.T.tolist()), "a column of 8 rows meets all banks"


def test_a_descriptor_has_the_fields_of_the_table():
    bits = 0x2400 >> 4 | 1 << 16 | (1024 >> 4) << 32 | 1 << 62
    assert Descriptor.decoded(bits) == Descriptor(0x2400, 16, 1024, 0, 1)
    assert not Descriptor.decoded(bits).wrong()
    assert "no multiple of 1024" in Descriptor.decoded(bits + (128 >> 4)).wrong()
    assert "no multiple of the pattern" in Descriptor.decoded(bits + (1 << 32)).wrong()
    assert "without swizzling" in Descriptor.decoded(bits & ~(3 << 62)).wrong()
    assert "base offsets" in Descriptor.decoded(bits | 1 << 49).wrong()


def test_a_matrix_is_where_a_copied_tile_lies():
    """A product reads what a tile's copy wrote, row for row, also from the middle of the depth on."""
    map = TensorMap(1 << 32, (256, 64), 256, (128, 64), 128)
    source, places, inside = map.tile(128, 0, 4096)
    at = dict(zip(places.reshape(-1).tolist(), (source - (1 << 32)).reshape(-1).tolist(), strict=True))
    for depth in (0, 32, 96):
        read = Descriptor(4096 + depth, 16, 1024, 0, 1).addresses(64, 32)
        found = np.array([at[address] for address in read.reshape(-1).tolist()]).reshape(64, 32)
        assert np.array_equal(found, np.arange(64)[:, None] * 256 + 128 + depth + np.arange(32))
    assert inside.all() and not map.tile(192, 1, 0)[2][:, 64:].any() and not map.tile(0, 1, 0)[2][63].any()


def test_what_the_driver_refuses():
    assert "multiples of 16" in TensorMap(8, (128, 8), 128, (128, 8), 128).wrong()
    assert "too large" in TensorMap(0, (256, 8), 256, (256, 8), 128).wrong()
    assert "swizzling by 128" in TensorMap(0, (128, 8), 128, (128, 8), 64).wrong()


def test_pixels_of_windows_are_those_of_the_example():
    """Of 64 pixels, 3 x 3 with a border of one, from column 7 and row 7 of image 4 on (Figure 13): the last two of a
    row of 9, then whole rows of windows, then the next image. Nine columns start at -1, which is outside."""
    map = Im2colMap(1 << 32, (64, 9, 14, 64), (64, 576, 8064), (-1, -1), 1, (32, 64), 32)
    source, places, inside = map.tile((32, 7, 7, 4), (0, 0), 2048)
    pixels = (source[:, 0] - (1 << 32) - 32) // 64
    rows = [(x, y) for y in range(7, 13) for x in range(-1, 8)][8:]
    wanted = [(4 * 14 + y) * 9 + x for x, y in rows] + [(5 * 14 - 1) * 9 + x for x in range(-1, 8)]
    wanted += [(5 * 14 + y) * 9 + x for y in (0,) for x in range(-1, 8)]
    assert pixels.tolist() == wanted[:64]
    outside = [not (0 <= x < 9) for x, _ in rows]
    assert (~inside[: len(rows), 0]).tolist() == outside and not inside[len(rows) : len(rows) + 9].any()
    assert sorted(places.reshape(-1).tolist()) == [*range(2048, 2048 + 64 * 32)]


def test_windows_with_strides_go_by_them():
    """Every second column and row; the tap is added to where each window starts; images end with zeros."""
    map = Im2colMap(0, (128, 8, 8, 2), (128, 1024, 8192), (0, -1), 2, (128, 40), 128)
    source, _, inside = map.tile((0, 2, 6, 0), (2, 1), 0)
    pixels = [int(pixel) for pixel in source[inside[:, 0], 0] // 128]
    found = [(pixel // 64, pixel // 8 % 8, pixel % 8) for pixel in pixels]
    assert found[:3] == [(0, 7, 4), (0, 7, 6), (1, 1, 2)] and len(found) == 2 + 12
    assert not inside[19:].any() and not inside[2].any()
    with pytest.raises(ValueError, match="outside of the bounding box"):
        map.tile((0, 3, 6, 0), (0, 0), 0)
    assert "multiples of 16" in Im2colMap(0, (8, 8, 8, 1), (8, 64, 512), (0, 0), 1, (32, 8), 32).wrong()
    assert "outside of 8 bits" in Im2colMap(0, (32, 8, 8, 1), (32, 256, 2048), (-129, 0), 1, (32, 8), 32).wrong()
