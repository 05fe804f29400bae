"""`dead-pixels` changes no number that is read, and thins what only strided windows of one pixel read."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import Float32Type, StringAttr, i8, i32
from xdsl.ir import SSAValue

import relay
from relay.dialects import relay as relay_dialect
from relay.dialects.attributes import int_values, ints, scalar_attr
from relay.dialects.op import shape
from relay.interpreters import run
from relay.module import IRModule
from relay.transforms.dead_pixels import DeadPixels
from tests.numeric.compiled_modules import Net

CHANNELS = 3


class Block(Net):
    """Images of 3 channels of codes, through convolutions and other steps."""

    def image(self, rows: int, columns: int) -> SSAValue:
        return self.argument(self.numbers("int8", 1, rows, columns, CHANNELS))

    def step(self, x: SSAValue, size: int = 1, stride: int = 1, pad: int = 0, *, depthwise: bool = False) -> SSAValue:
        """A convolution, and its sums as codes."""
        kernel = (size, size, CHANNELS, 1) if depthwise else (CHANNELS, size, size, CHANNELS)
        sums = self.conv2d(
            x, self.constant(self.numbers("int8", *kernel)), strides=(stride, stride), padding=(pad,) * 4,
            groups=CHANNELS if depthwise else 1, depthwise=depthwise, zero_points=(-5, 0),
        )  # fmt: skip
        return self.requantize(sums, CHANNELS, "int8")

    def plus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        wide = [self.add(relay_dialect.CastOp, [v], {"dtype": i32}) for v in (a, b)]
        sums = self.add(relay_dialect.AddOp, wide, {})
        bounds = {"a_min": scalar_attr(-128, i32), "a_max": scalar_attr(127, i32)}
        return self.add(relay_dialect.CastOp, [self.add(relay_dialect.ClipOp, [sums], bounds)], {"dtype": i8})

    def pool(self, x: SSAValue, size: int, stride: int, pad: int = 0) -> SSAValue:
        properties = {"pool_size": ints([size] * 2), "strides": ints([stride] * 2), "padding": ints([pad] * 4)}
        return self.add(relay_dialect.MaxPool2dOp, [x], properties)

    def thin(self) -> IRModule:
        """The module after the pass: it computes what it did before."""
        before = self.module()
        after = DeadPixels()(before)
        after.verify()
        for old, new in zip(run(before, self.inputs), run(after, self.inputs), strict=True):
            assert np.array_equal(old, new)
        return after


def convolutions(module: IRModule) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Strides of each convolution, and rows and columns of its result."""
    found = [op for op in module["main"].walk() if isinstance(op, relay_dialect.Conv2dOp)]
    return [(int_values(op.strides), shape(op.result)[1:3]) for op in found]


def test_a_residual_block_before_two_strided_convolutions():
    net = Block(1)
    x = net.step(net.image(9, 12), 3, pad=1)
    sums = net.plus(net.step(net.step(net.step(x), 3, pad=1)), x)
    net.result("branch", net.step(sums, stride=2))
    net.result("shortcut", net.step(sums, stride=2))
    module = net.thin()
    expected = [((1, 1), (9, 12))] * 2 + [((2, 2), (5, 6))] + [((1, 1), (5, 6))] * 3
    assert convolutions(module) == expected
    slices = [op for op in module["main"].walk() if isinstance(op, relay_dialect.StridedSliceOp)]
    assert [int_values(op.strides) for op in slices] == [(1, 2, 2, 1)]


def test_strides_multiply_through_pooling_and_depthwise_convolutions():
    net = Block(2)
    x = net.pool(net.step(net.image(17, 23), 3, pad=1), 3, 2, pad=1)
    x = net.step(net.step(x, 3, pad=1, depthwise=True), stride=2)
    net.result("end", net.pool(x, 1, 3))
    module = net.thin()
    assert convolutions(module) == [((1, 1), (17, 23)), ((6, 6), (2, 2)), ((1, 1), (2, 2))]


def test_different_readers_share_the_finest_steps():
    net = Block(3)
    x = net.step(net.image(13, 13))
    net.result("every 4", net.step(x, stride=4))
    net.result("every 6", net.step(x, stride=6))
    assert convolutions(net.thin()) == [((2, 2), (7, 7)), ((2, 2), (4, 4)), ((3, 3), (3, 3))]


@pytest.mark.parametrize("reader", ["result", "window", "padding"])
def test_what_is_read_otherwise_keeps_all_pixels(reader: str):
    net = Block(4)
    x = net.step(net.image(8, 8))
    net.result("thin", net.step(x, stride=2))
    if reader == "result":
        net.result("all", x)
    elif reader == "window":
        net.result("all", net.step(x, 2, stride=2))
    else:
        net.result("all", net.step(x, stride=2, pad=1))
    before = str(net.module())
    assert str(DeadPixels()(IRModule.parse(before))) == before


def test_images_of_another_layout_keep_all_pixels():
    net = Block(4)
    kernels = [net.constant(net.numbers("float32", 4, 1, 1, 4)) for _ in range(2)]
    x, layout = net.argument(net.numbers("float32", 1, 4, 4, 4)), StringAttr("NCHW")
    given = {"data_layout": layout, "out_dtype": Float32Type()}
    x = net.add(relay_dialect.Conv2dOp, [x, kernels[0]], given)
    net.result("end", net.add(relay_dialect.Conv2dOp, [x, kernels[1]], given | {"strides": ints([2, 2])}))
    before = str(net.module())
    assert str(DeadPixels()(IRModule.parse(before))) == before


def test_broadcast_operands_and_parameters():
    net = Block(5)
    x = net.step(net.image(7, 1))
    row = net.argument(net.numbers("int8", 1, 1, 6, CHANNELS))
    plane = net.argument(net.numbers("int8", 7, 6, CHANNELS))
    net.result("end", net.step(net.plus(net.plus(x, row), plane), stride=2))
    module = net.thin()
    assert convolutions(module) == [((2, 1), (4, 1)), ((1, 1), (4, 3))]


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed: int):
    net = Block(seed)
    rows, columns = net.rng.integers(5, 20, 2)
    values = [net.image(int(rows), int(columns))]
    for number in range(12):
        x = values[int(net.rng.integers(max(len(values) - 3, 0), len(values)))]
        alike = [v for v in values if shape(v) == shape(x)]
        match int(net.rng.integers(6)):
            case 0:
                values.append(net.step(x, 3, int(net.rng.integers(1, 3)), 1, depthwise=bool(number % 2)))
            case 1 | 2:
                values.append(net.step(x, stride=int(net.rng.integers(1, 4))))
            case 3:
                values.append(net.pool(x, 1 + 2 * (number % 2), int(net.rng.integers(1, 3)), number % 2))
            case _:
                values.append(net.plus(x, alike[int(net.rng.integers(len(alike)))]))
    net.result("end", values[-1])
    net.thin()


def test_compiled():
    net = Block(6)
    x = net.step(net.image(9, 10), 3, pad=1)
    sums = net.plus(net.step(net.step(x), 3, pad=1), x)
    net.result("end", net.step(sums, stride=2))
    assert "dead-pixels" in str(relay.default_pipeline())
    net.check()
