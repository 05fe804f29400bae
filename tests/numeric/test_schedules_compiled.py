"""What `schedule` chooses by shape and weights, held against the interpreter: outlying weights, copies, loop orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.dialects.attributes import Array, ints
from relay.dialects.op import TensorOp
from relay.errors import InvalidArgument
from relay.interpreters import run
from relay.lowering.schedule import Schedule
from relay.lowering.scheduling.plan import parse_tile
from relay.module import IRModule
from relay.passes import Pipeline
from relay.target import host
from relay.transforms.print_choices import schedule_lines
from tests.numeric.compiled_modules import Net

has_dot = pytest.mark.skipif(
    not host().features >= {"avx512f", "avx512vnni"}, reason="this CPU has no dot product of 8-bit codes"
)


def choices(net: Net) -> str:
    """What the schedule says of all kernels."""
    module = net.module()
    default_pipeline().apply(module)
    return said(module)


def said(module: IRModule) -> str:
    """The attributes of all kernels."""
    return "\n".join("\n".join(schedule_lines(f.attributes.get("relay.schedule"))) for f in module.functions.values())


def narrow(net: Net, outlying: int, *shape: int) -> Array:
    """Unsigned weights around 130, and some that do not fit 8 bits beside that."""
    codes = net.rng.integers(10, 250, shape).astype(np.uint8)
    codes.reshape(-1)[net.rng.choice(codes.size, outlying, replace=False)] = net.rng.integers(0, 2, outlying)
    return codes


def with_outlying_weights() -> Net:
    net = Net(30)
    for o, kh, c, size, outlying in ((40, 1, 24, 6, 2), (17, 3, 5, 7, 2), (130, 1, 64, 5, 3), (8, 3, 3, 9, 0)):
        x = net.argument(net.numbers("uint8", 2, size, size, c))
        kernel = net.constant(narrow(net, outlying, o, kh, kh, c))
        sums = net.conv2d(x, kernel, padding=(kh // 2,) * 4, zero_points=(9, 130))
        net.result(f"{o}x{kh}x{kh}x{c}", net.requantize(sums, o, "uint8"))
    y = net.argument(net.numbers("uint8", 1, 32))
    for layer, outlying in enumerate((0, 3, 1)):
        sums = net.dense(y, net.constant(narrow(net, outlying, 32, 32)), (9, 130))
        y = net.requantize(sums, 32, "uint8")
        net.result(f"layer {layer}", y)
    return net


def test_outlying_weights():
    net = with_outlying_weights()
    net.check()


@has_dot
def test_outlying_weights_take_extra_steps():
    said = choices(with_outlying_weights())
    assert "outlier_steps" in said and "sums_of_data" not in said


def asked(tile: str) -> Pipeline:
    """The default pipeline with such a tile for all kernels."""
    return Pipeline([replace(step, tile=tile) if isinstance(step, Schedule) else step for step in default_pipeline()])


def test_a_tile_that_was_asked_for():
    net = Net(32)
    x = net.argument(net.numbers("int8", 1, 5, 7, 24))
    sums = net.conv2d(x, net.constant(net.numbers("int8", 70, 3, 3, 24)), zero_points=(3, 0))
    net.result("codes", net.requantize(sums, 70, "int8"))
    module = net.module()
    (wanted,) = run(module, net.inputs)
    executable = build(module, pipeline=asked("2x32"))
    executable.set_input(executable.inputs[0].name, net.inputs[0])
    executable.run()
    assert np.array_equal(executable.get_output(0), wanted)
    asked("2x32").apply(module)
    assert "tile 2x32" in said(module) and "asked for" in said(module)


@pytest.mark.parametrize(
    ("tile", "message"), [("8", "is no tile"), ("8x24", "is not possible"), ("0x16", "not possible")]
)
def test_tiles_that_cannot_be(tile: str, message: str):
    with pytest.raises(InvalidArgument, match=message):
        parse_tile(tile, "@conv2d_0")


@pytest.mark.parametrize("data", [pytest.param("int8", marks=pytest.mark.ci), "uint8"])
def test_copied_images(data: str):
    """Codes that are turned, padded, or followed by room; rows shorter and longer than a vector."""
    net = Net(31)
    for n, width, c, kernel, padding in (
        (1, 9, 3, 3, (0, 0, 1, 1)), (2, 5, 1, 3, (1, 1, 1, 1)), (1, 30, 3, 7, (3, 3, 3, 3)),
        (2, 6, 20, 1, (0, 0, 0, 0)),
        (1, 7, 33, 3, (2, 0, 0, 1)), (1, 3, 2, 2, (0, 1, 0, 0)),
    ):  # fmt: skip
        x = net.argument(net.numbers(data, n, 8, width, c))
        weights = net.constant(net.numbers("int8", 20, kernel, kernel, c))
        sums = net.conv2d(x, weights, strides=(1, 2), padding=padding, zero_points=(-3 if data == "int8" else 77, 0))
        net.result(f"{n}x8x{width}x{c} by {kernel}", net.requantize(sums, 20, data))
    net.check()


@pytest.mark.parametrize("dtype", [pytest.param("uint8", marks=pytest.mark.ci), "float32"])
def test_tiles_of_every_shape(dtype: str):
    """Channels that fill blocks or not, inside and outside of the loop over pixels; rows with a rest."""
    net = Net(32)
    zero_points = None if dtype == "float32" else (4, 0)
    weights = "float32" if dtype == "float32" else "int8"
    for o, c, rows, columns in ((96, 16, 5, 9), (100, 16, 3, 7), (7, 8, 4, 31), (64, 300, 2, 7), (200, 90, 1, 1)):
        x = net.argument(net.numbers(dtype, 1, rows, columns, c))
        sums = net.conv2d(x, net.constant(net.numbers(weights, o, 1, 1, c)), zero_points=zero_points)
        finished = net.relu(sums, o) if zero_points is None else net.requantize(sums, o, dtype)
        net.result(f"{c} to {o} at {rows}x{columns}", finished)
    net.check()


@has_dot
def test_small_weights_are_inside():
    net = Net(33)
    x = net.argument(net.numbers("uint8", 1, 20, 20, 16))
    sums = net.conv2d(x, net.constant(net.numbers("int8", 200, 1, 1, 16)), zero_points=(4, 0))
    net.result("codes", net.requantize(sums, 200, "uint8"))
    assert host().vector_registers == 32 and "channels_inside" in choices(net)


def test_a_bias_that_varies_over_pixels_stays_in_the_epilogue():
    """Only a bias per channel can be what accumulators start with."""
    net = Net(34)
    x = net.argument(net.numbers("float32", 1, 4, 4, 8))
    sums = net.conv2d(x, net.constant(net.numbers("float32", 8, 1, 1, 8)))
    for name, shape in (("pixels", (1, 4, 4, 1)), ("all", (1, 4, 4, 8)), ("channels", (8,)), ("one", (1,))):
        net.result(name, net.add(relay.AddOp, [sums, net.constant(net.numbers("float32", *shape))], {}))
    net.check()
    net = Net(35)
    x = net.argument(net.numbers("float32", 1, 4, 4, 8))
    for name, shape in (("pixels", (1, 4, 4, 1)), ("all", (1, 4, 4, 8)), ("channels", (8,)), ("one", (1,))):
        sums = net.conv2d(x, net.constant(net.numbers("float32", 8, 1, 1, 8)))
        net.result(name, net.add(relay.AddOp, [sums, net.constant(net.numbers("float32", *shape))], {}))
    net.check()


REDUCED = ((3, 700), (2, 33), (2, 3, 47), (130,))
"""Sizes of two vectors and more, with a rest."""


@pytest.mark.parametrize(
    ("dtype", "ops"),
    [
        pytest.param("int32", (relay.SumOp, relay.MaxOp, relay.MinOp), marks=pytest.mark.ci),
        ("uint8", (relay.MaxOp, relay.MinOp, relay.SumOp)),
        pytest.param("int8", (relay.MaxOp, relay.SumOp), marks=pytest.mark.ci),
        ("float32", (relay.MaxOp, relay.MinOp)),
    ],
    ids=["int32", "uint8", "int8", "float32"],
)
def test_reductions_of_neighbours(dtype: str, ops: tuple[type[TensorOp], ...]):
    """Maxima, minima and integer sums along the last dimensions, with the extremes anywhere."""
    net = Net(36)
    for shape in REDUCED:
        x = net.argument(net.numbers(dtype, *shape))
        for op in ops:
            axes = list(range(len(shape)))[len(shape) // 2 :]
            net.result(f"{op.name} of {dtype} {shape} along {axes}", net.add(op, [x], {"axis": ints(axes)}))
    net.check()


def test_maxima_of_floats_know_infinities_and_no_numbers():
    net = Net(37)
    rows = np.repeat(net.numbers("float32", 1, 100) - 5, 5, axis=0)
    rows[0, 99], rows[1, 3], rows[2, 40], rows[3], rows[4, 17] = np.inf, -np.inf, np.nan, -np.inf, 0.0
    rows = rows.astype(np.float32)
    net.result("largest", net.add(relay.MaxOp, [net.argument(rows)], {"axis": ints([1])}))
    np.testing.assert_array_equal(np.asarray(build(net.module()).run(rows)), rows.max(axis=1))


Depthwise = tuple[int, int, int, tuple[int, int], tuple[int, int], int, tuple[int, int, int, int]]
"""Rows, columns, channels, window, strides, dilation, padding."""
FEW: Sequence[Depthwise] = (
    (7, 23, 16, (3, 3), (1, 1), 1, (1, 1, 1, 1)), (9, 18, 40, (3, 3), (2, 2), 1, (0, 0, 1, 1)),
    (5, 30, 17, (1, 3), (1, 2), 1, (0, 1, 0, 0)),
)  # fmt: skip
OTHERS: Sequence[Depthwise] = (
    (6, 6, 3, (5, 5), (1, 1), 1, (2, 2, 2, 2)), (2, 2, 8, (3, 3), (1, 1), 1, (1, 1, 1, 1)),
    (8, 8, 33, (3, 3), (1, 1), 2, (2, 2, 2, 2)), (4, 5, 6, (3, 2), (1, 1), 1, (5, 0, 5, 0)),
    (20, 4, 16, (10, 4), (2, 2), 1, (4, 1, 5, 1)), (7, 11, 17, (7, 7), (1, 1), 1, (3, 3, 3, 3)),
    (9, 6, 16, (9, 9), (2, 2), 1, (4, 4, 4, 4)),
)  # fmt: skip


@pytest.mark.parametrize("cases", [FEW, pytest.param(OTHERS, marks=pytest.mark.ci)], ids=["few", "others"])
def test_depthwise_floats_at_borders(cases: Sequence[Depthwise]):
    """Tiles of pixels with rests, borders of all kinds, channels that fill vectors or not."""
    net = Net(38)
    for height, width, channels, kernel, stride, dilation, padding in cases:
        x = net.argument(net.numbers("float32", 2, height, width, channels))
        weights = net.constant(net.numbers("float32", *kernel, channels, 1))
        sums = net.conv2d(
            x, weights, strides=stride, padding=padding, dilation=(dilation, dilation), groups=channels, depthwise=True
        )
        net.result(f"{height}x{width}x{channels} by {kernel} of {stride}", net.relu(sums, channels))
    net.check()


def test_large_depthwise_windows_of_floats():
    net = Net(39)
    x, weights = net.argument(net.numbers("float32", 1, 12, 12, 16)), net.constant(net.numbers("float32", 7, 7, 16, 1))
    net.result("r", net.conv2d(x, weights, padding=(3, 3, 3, 3), groups=16, depthwise=True))
    assert "rows of pixels" in choices(net)


ONE_OF_FOUR = """
func.func @main(%x: tensor<1x4xf32>, %y: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %s = relay.strided_slice %x {begin = array<i64: 0, 2>, end = array<i64: 1, 3>, strides = array<i64: 1, 1>} :
    (tensor<1x4xf32>) -> tensor<1x1xf32>
  %r = relay.add %s, %y : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  func.return %r : tensor<1x1xf32>
}"""


def test_a_part_of_one_element_keeps_its_place():
    x, y = np.array([[1, 2, 3, 4]], np.float32), np.array([[10]], np.float32)
    assert np.asarray(build(IRModule.parse(ONE_OF_FOUR)).run(x, y)).item() == 13
