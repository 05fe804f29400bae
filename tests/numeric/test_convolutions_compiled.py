"""Convolutions of one to three dimensions, plain and transposed, and matrix products: compiled, interpreted, and as
sums written out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, MemRefType, StringAttr, i8, i32, i64
from xdsl.ir import Attribute, Block

from relay.compile.entry import build
from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, ints
from relay.dialects.op import TensorOp
from relay.interpreters import compute
from relay.lowering.scheduling.contraction import Convolution, Operand
from relay.lowering.scheduling.padding import Padding, border_runs, skipping_pays
from relay.passes import PassContext
from relay.target import CpuCosts
from tests.conftest import Cases
from tests.numeric.compiled_modules import Net

Rng = np.random.Generator
FLAVOURS = [("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("int16", "int8", "int64"), ("float32",) * 3]
"""Dtypes of data, kernel and result."""


def numbers(rng: Rng, dtype: str, shape: Sequence[int]) -> Array:
    if dtype == "float32":
        return rng.standard_normal(shape).astype(np.float32)
    bounds = np.iinfo(dtype)
    return rng.integers(int(bounds.min), int(bounds.max) + 1, shape).astype(dtype)


def zero_points(rng: Rng, dtypes: Sequence[str]) -> tuple[dict[str, Attribute], tuple[int, int]]:
    """Properties, and the zero points that they hold."""
    if dtypes[0] == "float32":
        return {}, (0, 0)
    data, kernel = (0 if dtypes[0] == "int16" else int(numbers(rng, dtypes[0], ()))), int(rng.integers(0, 2)) * 3
    return {"input_zero_point": IntegerAttr(data, i32), "kernel_zero_point": IntegerAttr(kernel, i32)}, (data, kernel)


Example = tuple[type[TensorOp], list[Array], dict[str, Attribute], Array]
"""An op, its operands and properties, and its result."""


class Geometry(NamedTuple):
    """Numbers for each spatial axis."""

    strides: Array
    dilation: Array
    before: Array
    after: Array
    extra: Array


def under(at: Sequence[int], taps: Sequence[int], window: Geometry) -> tuple[slice, ...]:
    """What lies under the window at a position."""
    numbers = zip(at, taps, window.strides, window.dilation, strict=True)
    return (slice(None), *(slice(p * s, p * s + (k - 1) * d + 1, d) for p, k, s, d in numbers))


def gathered(data: Array, kernel: Array, groups: int, window: Geometry) -> Array:
    """Each position of the result, its window cut out."""
    padded = np.pad(data, [(0, 0), *zip(window.before, window.after, strict=True), (0, 0)])
    taps = kernel.shape[1:-1]
    size = (np.array(padded.shape[1:-1]) - (np.array(taps) - 1) * window.dilation - 1) // window.strides + 1
    result = np.zeros((data.shape[0], *size, kernel.shape[0]), data.dtype)
    axes = range(1, data.ndim)
    for at in np.ndindex(*size):
        parts = np.split(padded[under(at, taps, window)], groups, axis=-1)
        sums = [np.tensordot(part, k, (axes, axes)) for part, k in zip(parts, np.split(kernel, groups), strict=True)]
        result[(slice(None), *at)] = np.concatenate(sums, axis=-1)
    return result


def scattered(data: Array, kernel: Array, groups: int, window: Geometry) -> Array:
    """Each position of the data adds its window to the result."""
    taps, size = kernel.shape[1:-1], data.shape[1:-1]
    whole = (np.array(size) - 1) * window.strides + (np.array(taps) - 1) * window.dilation + 1 + window.extra
    result = np.zeros((data.shape[0], *whole, kernel.shape[0] * groups), data.dtype)
    kernels = np.split(kernel, groups, axis=-1)
    for at in np.ndindex(*size):
        parts = np.split(data[(slice(None), *at)], groups, axis=-1)
        sums = [np.tensordot(part, k, (1, k.ndim - 1)) for part, k in zip(parts, kernels, strict=True)]
        result[under(at, taps, window)] += np.concatenate([np.moveaxis(x, 1, -1) for x in sums], axis=-1)
    cut = [slice(int(b), int(n - a)) for b, a, n in zip(window.before, window.after, whole, strict=True)]
    return result[(slice(None), *cut)]


def convolution(rng: Rng, kind: type[relay.SpatialConvolution]) -> Example:
    """A random convolution, and its sums: one product for each position of the result (or of the data) and tap."""
    count, transposed = len(kind.SPATIAL), issubclass(kind, relay.ConvTransposeBase)
    dtypes = FLAVOURS[int(rng.integers(len(FLAVOURS)))]
    kernel = rng.integers(1, 5 if count < 3 else 4, count)
    strides, dilation = rng.integers(1, 4, count), rng.integers(1, 3, count)
    spans = (kernel - 1) * dilation + 1
    window = Geometry(strides, dilation, rng.integers(0, spans), rng.integers(0, spans), rng.integers(0, 2, count))
    least = np.maximum(window.before + window.after - spans + 1, 0) if transposed else spans
    size = rng.integers(1, 6, count) + least
    images, groups = int(rng.integers(1, 3)), int(rng.choice([1, 1, 2, 3]))
    deep, wide = (int(n) for n in rng.integers(1, 4, 2))
    deep = 1 if rng.integers(3) == 0 else deep
    depths = (wide, groups * deep) if transposed else (groups * wide, deep)
    data = numbers(rng, dtypes[0], [images, *size, groups * deep])
    weights = numbers(rng, dtypes[1], [depths[0], *kernel, depths[1]])
    properties, zeros = zero_points(rng, dtypes)
    a, b = (x.astype(dtypes[2]) - z for x, z in zip((data, weights), zeros, strict=True))
    sums = scattered(a, b, groups, window) if transposed else gathered(a, b, groups, window)
    properties |= {
        "strides": integers(strides),
        "dilation": integers(dilation),
        "padding": integers([*window.before, *window.after]),
        "groups": IntegerAttr(groups, i64),
        "out_dtype": element_type(dtypes[2]),
        **({"output_padding": integers(window.extra)} if transposed else {}),
    }
    shuffled: list[Array] = []
    for name, letters, array in zip(
        ("data_layout", "kernel_layout", "out_layout"),
        (f"N{kind.SPATIAL}C", f"O{kind.SPATIAL}I", f"N{kind.SPATIAL}C"),
        (data, weights, sums),
        strict=True,
    ):
        order = [int(n) for n in rng.permutation(count + 2)]
        properties[name] = StringAttr("".join(letters[n] for n in order))
        shuffled.append(np.ascontiguousarray(array.transpose(order)))
    return kind, shuffled[:2], properties, shuffled[2]


def integers(values: Iterable[Any]) -> Attribute:
    return ints([int(value) for value in values])


def product(rng: Rng, kind: type[relay.MatmulBase]) -> Example:
    """A random product of matrices."""
    dtypes = FLAVOURS[int(rng.integers(len(FLAVOURS)))]
    rows, inner, columns = (int(n) for n in rng.integers(1, 20, 3))
    leading = [] if kind is relay.MatmulOp else [int(n) for n in rng.integers(1, 4, int(rng.integers(1, 3)))]
    outer = [[d if rng.integers(3) else 1 for d in leading] for _ in range(2)]
    a, b = numbers(rng, dtypes[0], [*outer[0], rows, inner]), numbers(rng, dtypes[1], [*outer[1], inner, columns])
    properties, zeros = zero_points(rng, dtypes)
    result = np.matmul(a.astype(dtypes[2]) - zeros[0], b.astype(dtypes[2]) - zeros[1])
    flags = [bool(n) for n in rng.integers(0, 2, 2)]
    operands = [np.ascontiguousarray(x.swapaxes(-1, -2)) if flag else x for x, flag in zip((a, b), flags, strict=True)]
    named: Mapping[str, Attribute] = {
        f"transpose_{side}": IntegerAttr.from_bool(flag) for side, flag in zip("ab", flags, strict=True)
    }
    return kind, operands, {**properties, **named, "out_dtype": element_type(dtypes[2])}, result


def example(rng: Rng, kind: type[TensorOp]) -> Example:
    if issubclass(kind, relay.MatmulBase):
        return product(rng, kind)
    assert issubclass(kind, relay.SpatialConvolution)
    return convolution(rng, kind)


KINDS: list[type[TensorOp]] = [
    relay.Conv1dOp,
    relay.Conv3dOp,
    relay.Conv1dTransposeOp,
    relay.Conv2dTransposeOp,
    relay.Conv3dTransposeOp,
    relay.MatmulOp,
    relay.BatchMatmulOp,
]


def name_of(kind: type[TensorOp]) -> str:
    return kind.name


def compare(kind: type[TensorOp], count: int, seed: int, level: int = 1) -> None:
    """Hold the interpreter against the sums, and the code against the interpreter, kernels constant or not; the code
    at `level`, by default one at which LLVM is quick."""
    net, rng = Net(seed), np.random.default_rng([seed, len(kind.name)])
    for number in range(count):
        op, operands, properties, wanted = example(rng, kind)
        (meant,) = compute(op, operands, properties)
        assert (meant.dtype, meant.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind == "f":
            assert np.abs(meant - wanted).max(initial=0) <= 1e-5 * np.abs(wanted).max(initial=1e-6), properties
        else:
            assert np.array_equal(meant, wanted), properties
        second = net.argument(operands[1]) if number % 3 == 0 else net.constant(operands[1])
        net.result(f"{number}", net.add(op, [net.argument(operands[0]), second], properties))
    with PassContext(opt_level=level):
        net.check()


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.ci if k is relay.Conv3dTransposeOp else (), id=k.name) for k in KINDS]
)
def test_random_ones(kind: type[TensorOp]):
    compare(kind, 3, 1)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_many_random_ones(kind: type[TensorOp], cases: Cases):
    for number in cases(4):
        compare(kind, 20, 2 + number, 2)


@pytest.mark.parametrize(
    ("dtype", "kernel_dtype", "zero_points"),
    [
        ("float32", "float32", None),
        ("int8", "int8", (5, 0)),
        pytest.param("uint8", "uint8", (131, 128), marks=pytest.mark.ci),
        pytest.param("uint8", "uint8", (131, 77), marks=pytest.mark.ci),
        pytest.param("int16", "int8", (0, 0), marks=pytest.mark.ci),
    ],
)
def test_kernel_rows_outside_of_the_image(dtype: str, kernel_dtype: str, zero_points: tuple[int, int] | None):
    """Strides, batches, several runs of rows, images lower than the dilation, channels that fill vectors or not."""
    net = Net(91)
    for rows, window, stride, dilation, above, below, channels in (
        (9, 3, 2, 6, 6, 6, 16),
        (7, 5, 1, 2, 4, 4, 20),
        (12, 3, 1, 6, 9, 3, 100),
    ):
        x = net.argument(net.numbers(dtype, 2, rows, 4, 8))
        kernel = net.constant(net.numbers(kernel_dtype, channels, window, 3, 8))
        padding, dilations = (above, 1, below, 1), (dilation, 1)
        sums = net.conv2d(x, kernel, strides=(stride, 1), padding=padding, dilation=dilations, zero_points=zero_points)
        finished = net.relu(sums, channels) if zero_points is None else sums
        if dtype.endswith("int8"):
            finished = net.requantize(sums, channels, dtype)
        net.result(f"{rows} rows, {window}, {stride}, {dilation}", finished)
    net.check()


@pytest.mark.parametrize(("zero_point", "around", "runs"), [(5, 5, 3), (131, -125, 3), (5, 0, 0)])
def test_only_zero_points_outside_are_left_out(zero_point: int, around: int, runs: int):
    block = Block(arg_types=[MemRefType(i8, shape) for shape in ([1, 9, 8, 16], [1, 21, 8, 16], [16, 3, 3, 16])])
    source, buffer, weights = block.args
    value = arith.ConstantOp(IntegerAttr(around, i8)).result
    conv = Convolution(
        Operand(buffer, zero_point > 127, zero_point), Operand(weights, False, 0), buffer, 1, 21, 8, 16, 9, 6, 16, 3, 3,
        (1, 1), (6, 1), False, i32,
    )  # fmt: skip
    found = border_runs(conv, Padding(buffer, source, (0, 6, 0, 0), value, ()))
    assert (len(found) if skipping_pays(conv, found, CpuCosts()) else 0) == runs


def test_kernel_rows_outside_of_the_image_are_left_out():
    """Weights that would be noticed."""
    seen: list[bool] = []
    for dilation in (6, 1):
        net, weights = Net(92), np.ones((16, 3, 1, 16), np.float32)
        weights[:, [0, 2]] = np.inf
        x, padding = net.argument(np.ones((1, 5, 4, 16), np.float32)), (dilation, 0, dilation, 0)
        net.result("sums", net.conv2d(x, net.constant(weights), padding=padding, dilation=(dilation, 1)))
        seen.append(bool(np.isfinite(np.asarray(build(net.module())(*net.inputs))).all()))
    assert seen == [True, False]
