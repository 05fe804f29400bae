"""Ops that move elements: interpreted as their formulas say, position by position, and compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64

from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, scalar_attr
from relay.dialects.op import TensorOp
from tests.numeric.compiled_modules import Net
from tests.numeric.nn_examples import Example, Make, Rng, array, numbers, pick, random_tests, sizes

DTYPES = ("int8", "uint8", "float32")


def by_formula(source: Array, shape: list[int], place: Callable[[tuple[int, ...]], tuple[int, ...] | None]) -> Array:
    """The element at `place(position)` of the source for each position; zero where there is none."""
    result = np.zeros(shape, source.dtype)
    for position in np.ndindex(*shape):
        if (found := place(position)) is not None:
            result[position] = source[found]
    return result


def batch_flatten(rng: Rng) -> Example:
    x = numbers(rng, pick(rng, *DTYPES), sizes(rng, int(rng.integers(1, 5))))
    return Example([x], {}, x.reshape(x.shape[0], -1))


def mirror_pad(rng: Rng) -> Example:
    mode = pick(rng, "SYMMETRIC", "REFLECT", "EDGE")
    x = numbers(rng, pick(rng, *DTYPES), sizes(rng, int(rng.integers(1, 5))))
    most = [size - (mode == "REFLECT") for size in x.shape]
    widths = [sizes(rng, 2, 0, limit + 1) for limit in most]
    match mode:
        case "SYMMETRIC":
            wanted = np.pad(x, widths, "symmetric")
        case "REFLECT":
            wanted = np.pad(x, widths, "reflect")
        case _:
            wanted = np.pad(x, widths, "edge")
    flat = array([n for pair in widths for n in pair])
    return Example([x], {"pad_width": flat, "mode": StringAttr(mode)}, wanted)


def space_to_batch_nd(rng: Rng) -> Example:
    dtype, count = pick(rng, *DTYPES), int(rng.integers(1, 4))
    block, before = sizes(rng, count, 1, 4), sizes(rng, count, 0, 3)
    spatial = sizes(rng, count)
    after = [-(size + b) % n for size, b, n in zip(spatial, before, block, strict=True)]
    batch, places = int(rng.integers(1, 3)), list(np.ndindex(*block))
    x = numbers(rng, dtype, [batch, *spatial, *sizes(rng, int(rng.integers(0, 2)))])
    whole = [(size + b + a) // n for size, b, a, n in zip(spatial, before, after, block, strict=True)]
    shape = [batch * len(places), *whole, *x.shape[1 + count :]]

    def place(position: tuple[int, ...]) -> tuple[int, ...] | None:
        within = places[position[0] // batch]
        at = [p * n + i - b for p, n, i, b in zip(position[1:], block, within, before, strict=False)]
        inside = all(0 <= p < size for p, size in zip(at, spatial, strict=True))
        return (position[0] % batch, *at, *position[1 + count :]) if inside else None

    widths = [n for pair in zip(before, after, strict=True) for n in pair]
    zero = scalar_attr(0, element_type(dtype))
    properties = {"block_shape": array(block), "paddings": array(widths), "pad_value": zero}
    return Example([x], properties, by_formula(x, shape, place))


def batch_to_space_nd(rng: Rng) -> Example:
    dtype, count = pick(rng, *DTYPES), int(rng.integers(1, 4))
    block, spatial = sizes(rng, count, 1, 4), sizes(rng, count)
    batch = int(rng.integers(1, 3))
    x = numbers(rng, dtype, [batch * int(np.prod(block)), *spatial, *sizes(rng, int(rng.integers(0, 2)))])
    before = [int(rng.integers(0, n)) for n in block]
    after = [int(rng.integers(0, size * n - b)) for size, n, b in zip(spatial, block, before, strict=True)]
    left = [size * n - b - a for size, n, b, a in zip(spatial, block, before, after, strict=True)]

    def place(position: tuple[int, ...]) -> tuple[int, ...]:
        at = [p + b for p, b in zip(position[1:], before, strict=False)]
        within = np.ravel_multi_index([p % n for p, n in zip(at, block, strict=True)], block)
        spot = (p // n for p, n in zip(at, block, strict=True))
        return (int(within) * batch + position[0], *spot, *position[1 + count :])

    crops = [n for pair in zip(before, after, strict=True) for n in pair]
    wanted = by_formula(x, [batch, *left, *x.shape[1 + count :]], place)
    return Example([x], {"block_shape": array(block), "crops": array(crops)}, wanted)


def in_layout(rng: Rng, data: Array, wanted: Array) -> tuple[Array, Array, StringAttr]:
    """Images NHWC in a layout of chance."""
    order = [int(n) for n in rng.permutation(4)]
    data, wanted = (np.ascontiguousarray(x.transpose(order)) for x in (data, wanted))
    return data, wanted, StringAttr("".join("NHWC"[n] for n in order))


def depth_to_space(rng: Rng) -> Example:
    block, mode = int(rng.integers(1, 4)), pick(rng, "DCR", "CRD")
    n, height, width, channels = sizes(rng, 4, 1, 4)
    x = numbers(rng, pick(rng, *DTYPES), [n, height, width, channels * block**2])

    def place(position: tuple[int, ...]) -> tuple[int, ...]:
        image, row, column, c = position
        i, j = row % block, column % block
        k = (i * block + j) * channels + c if mode == "DCR" else (c * block + i) * block + j
        return image, row // block, column // block, k

    wanted = by_formula(x, [n, height * block, width * block, channels], place)
    x, wanted, layout = in_layout(rng, x, wanted)
    size = IntegerAttr(block, i64)
    return Example([x], {"block_size": size, "mode": StringAttr(mode), "layout": layout}, wanted)


def space_to_depth(rng: Rng) -> Example:
    block = int(rng.integers(1, 4))
    n, height, width, channels = sizes(rng, 4, 1, 4)
    x = numbers(rng, pick(rng, *DTYPES), [n, height * block, width * block, channels])

    def place(position: tuple[int, ...]) -> tuple[int, ...]:
        image, row, column, k = position
        i, j, c = (int(index) for index in np.unravel_index(k, (block, block, channels)))
        return image, row * block + i, column * block + j, c

    wanted = by_formula(x, [n, height, width, channels * block**2], place)
    x, wanted, layout = in_layout(rng, x, wanted)
    return Example([x], {"block_size": IntegerAttr(block, i64), "layout": layout}, wanted)


def dilate(rng: Rng) -> Example:
    dtype, rank = pick(rng, *DTYPES), int(rng.integers(1, 5))
    x, strides = numbers(rng, dtype, sizes(rng, rank)), sizes(rng, rank, 1, 4)

    def place(position: tuple[int, ...]) -> tuple[int, ...] | None:
        hit = all(p % s == 0 for p, s in zip(position, strides, strict=True))
        return tuple(p // s for p, s in zip(position, strides, strict=True)) if hit else None

    wanted = by_formula(x, [(d - 1) * s + 1 for d, s in zip(x.shape, strides, strict=True)], place)
    zero = scalar_attr(0, element_type(dtype))
    return Example([x], {"strides": array(strides), "dilation_value": zero}, wanted)


def fifo_buffer(rng: Rng) -> Example:
    dtype, rank = pick(rng, *DTYPES), int(rng.integers(1, 4))
    axis, dims = int(rng.integers(rank)), sizes(rng, rank, 2)
    buffer = numbers(rng, dtype, dims)
    dims[axis] = int(rng.integers(1, dims[axis] + 1))
    data = numbers(rng, dtype, dims)
    kept = np.split(buffer, [dims[axis]], axis)[1]
    wanted = np.concatenate([kept, data], axis)
    return Example([data, buffer], {"axis": IntegerAttr(axis, i64)}, wanted)


MAKERS: dict[type[TensorOp], Make] = {
    relay.BatchFlattenOp: batch_flatten,
    relay.MirrorPadOp: mirror_pad,
    relay.SpaceToBatchNdOp: space_to_batch_nd,
    relay.BatchToSpaceNdOp: batch_to_space_nd,
    relay.DepthToSpaceOp: depth_to_space,
    relay.SpaceToDepthOp: space_to_depth,
    relay.DilateOp: dilate,
    relay.FifoBufferOp: fifo_buffer,
}

test_random_ones, test_many_random_ones = random_tests(MAKERS)


@pytest.mark.parametrize("channels", [16, 24, 5])
def test_parts_of_a_tensor_are_rescaled_in_place(channels: int):
    net = Net(7)
    x = net.argument(net.numbers("int32", 1, 6, 9, channels))
    bounds = {"begin": array([0, 1, 2, 0]), "end": array([1, 5, 9, channels]), "strides": array([1, 1, 1, 1])}
    part = net.add(relay.StridedSliceOp, [x], bounds)
    net.result("codes", net.requantize(part, channels, "int8"))
    narrow = {"begin": array([0, 0, 0, 1]), "end": array([1, 6, 9, channels]), "strides": array([1, 2, 1, 2])}
    stepped = net.add(relay.StridedSliceOp, [x], narrow)
    net.result("stepped", net.requantize(stepped, channels // 2, "int8"))
    net.check()
