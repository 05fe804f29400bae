"""Pools of every kind: interpreted as their windows, cut out one by one, say, and compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import TensorOp
from tests.numeric.nn_examples import Example, Make, Rng, array, numbers, pick, random_tests, sizes

pytestmark = pytest.mark.guarded
DTYPES = ("float32", "int8", "uint8", "int16", "int32")


def largest(cells: Array, dtype: np.dtype[np.generic]) -> Array:
    """Of [cells, channels]; the lowest number of none."""
    lowest = -np.inf if dtype.kind == "f" else int(np.iinfo(dtype.name).min)
    return cells.max(axis=0, initial=lowest)


def mean(cells: Array, count: int, dtype: np.dtype[np.generic]) -> Array:
    """Of [cells, channels]: integers to the nearest, halves away from zero."""
    total = cells.astype(np.float64).sum(axis=0) / max(count, 1)
    if dtype.kind == "f":
        return total
    return np.sign(total) * np.floor(np.abs(total) + 0.5)


def numbers_of(rng: Rng, dtype: str, shape: Sequence[int]) -> Array:
    return rng.integers(-1000, 1000, shape).astype(dtype) if dtype == "int32" else numbers(rng, dtype, shape)


def laid(rng: Rng, letters: str, data: Array, wanted: Array) -> tuple[Array, Array, StringAttr]:
    """Data channels last in a layout of chance."""
    order = [int(n) for n in rng.permutation(len(letters))] if rng.integers(2) else list(range(len(letters)))
    data, wanted = (np.ascontiguousarray(x.transpose(order)) for x in (data, wanted))
    return data, wanted, StringAttr("".join(letters[n] for n in order))


def inside(start: int, cells: int, dilation: int, size: int) -> list[int]:
    return [at for at in range(start, start + (cells - 1) * dilation + 1, dilation) if 0 <= at < size]


def grids(places: Sequence[Sequence[Sequence[int]]]) -> Iterator[tuple[tuple[int, ...], tuple[Array, ...]]]:
    """Each position of the result, and the positions of the data under its window."""
    for position in np.ndindex(*(len(axis) for axis in places)):
        yield position, np.ix_(*(np.array(axis[i], np.int64) for axis, i in zip(places, position, strict=True)))


def pool(kind: type[relay.PoolOp], rng: Rng) -> Example:
    count = len(kind.SPATIAL)
    cells, strides, dilation = sizes(rng, count, 1, 4), sizes(rng, count, 1, 4), sizes(rng, count, 1, 3)
    spans = [(k - 1) * d + 1 for k, d in zip(cells, dilation, strict=True)]
    before, after = ([int(rng.integers(span)) for span in spans] for _ in range(2))
    least = [max(s - b - a, 1) for s, b, a in zip(spans, before, after, strict=True)]
    spatial = [int(rng.integers(n, n + 6)) for n in least]
    ceil, counted = (bool(n) for n in rng.integers(0, 2, 2))
    averages = issubclass(kind, relay.AvgPoolBase)
    data = numbers_of(rng, pick(rng, *DTYPES), [*sizes(rng, 1, 1, 3), *spatial, int(rng.integers(1, 20))])
    starts: list[list[int]] = []
    for size, span, stride, b, a in zip(spatial, spans, strides, before, after, strict=True):
        fits = [at for at in range(-b, size + a, stride) if at + span <= size + a]
        more = fits[-1] + stride
        starts.append([*fits, more] if ceil and fits[-1] + span < size + a and more < size else fits)
    axes = list(zip(starts, cells, dilation, spatial, strict=True))
    places = [[inside(at, k, d, size) for at in begins] for begins, k, d, size in axes]
    wanted = np.zeros((data.shape[0], *(len(begins) for begins in starts), data.shape[-1]), data.dtype)
    for position, grid in grids(places):
        for image in range(data.shape[0]):
            under = data[image][grid].reshape(-1, data.shape[-1])
            number = len(under)
            if counted:
                bounds = zip(position, axes, before, after, strict=True)
                number = int(np.prod([len(inside(x[0][i] + b, x[1], x[2], x[3] + b + a)) for i, x, b, a in bounds]))
            wanted[(image, *position)] = mean(under, number, data.dtype) if averages else largest(under, data.dtype)
    data, wanted, layout = laid(rng, f"N{kind.SPATIAL}C", data, wanted)
    properties: dict[str, Attribute] = {
        "pool_size": array(cells),
        "strides": array(strides),
        "dilation": array(dilation),
        "padding": array([*before, *after]),
        "ceil_mode": IntegerAttr.from_bool(ceil),
        "layout": layout,
    }
    if averages:
        properties["count_include_pad"] = IntegerAttr.from_bool(counted)
    return Example([data], properties, wanted)


def whole(kind: type[relay.SpatialOp], rng: Rng) -> Example:
    """Global pools, and adaptive ones."""
    count = len(kind.SPATIAL)
    spatial = sizes(rng, count, 1, 9)
    data = numbers_of(rng, pick(rng, *DTYPES), [*sizes(rng, 1, 1, 3), *spatial, int(rng.integers(1, 9))])
    adaptive = issubclass(kind, relay.AdaptivePoolOp)
    result = [int(rng.integers(1, size + 2)) for size in spatial] if adaptive else [1] * count
    if adaptive and rng.integers(3) == 0:
        result = [int(rng.choice([n for n in range(1, size + 1) if size % n == 0])) for size in spatial]
    places = [
        [list(range(i * size // n, -(-(i + 1) * size // n))) for i in range(n)]
        for size, n in zip(spatial, result, strict=True)
    ]
    wanted = np.zeros((data.shape[0], *result, data.shape[-1]), data.dtype)
    for position, grid in grids(places):
        for image in range(data.shape[0]):
            under = data[image][grid].reshape(-1, data.shape[-1])
            taken = largest(under, data.dtype) if "max" in kind.name else mean(under, len(under), data.dtype)
            wanted[(image, *position)] = taken
    data, wanted, layout = laid(rng, f"N{kind.SPATIAL}C", data, wanted)
    return Example([data], {"layout": layout} | ({"output_size": array(result)} if adaptive else {}), wanted)


POOLS: list[type[relay.PoolOp]] = [
    relay.MaxPool1dOp,
    relay.MaxPool2dOp,
    relay.MaxPool3dOp,
    relay.AvgPool1dOp,
    relay.AvgPool2dOp,
    relay.AvgPool3dOp,
]
WHOLE: list[type[relay.SpatialOp]] = [
    relay.GlobalMaxPool2dOp,
    relay.GlobalAvgPool2dOp,
    relay.AdaptiveMaxPool1dOp,
    relay.AdaptiveMaxPool2dOp,
    relay.AdaptiveMaxPool3dOp,
    relay.AdaptiveAvgPool1dOp,
    relay.AdaptiveAvgPool2dOp,
    relay.AdaptiveAvgPool3dOp,
]
MAKERS: dict[type[TensorOp], Make] = {
    **{kind: partial(pool, kind) for kind in POOLS},
    **{kind: partial(whole, kind) for kind in WHOLE},
}

test_random_ones, test_many_random_ones = random_tests(MAKERS)
