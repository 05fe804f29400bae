"""Products of codes by a GPU's matrix units, on the emulator, against the interpreter: tiles, borders, zero points."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.lowering.gpu import tiles
from relay.lowering.gpu.emulator import Emulator, KernelFault, run_model
from relay.lowering.gpu.strategies import mma
from relay.lowering.gpu.strategies.mma import TILES
from relay.lowering.gpu.tiles import Tile, cheapest, choices
from relay.target import GpuCosts
from tests.numeric.compiled_modules import Net
from tests.numeric.gpu_models import Emulated, check

FLAVOURS = {
    "i8": ("int8", "int8", (-7, 0)),
    "u8": ("uint8", "uint8", (121, 131)),
    "u8_i8": ("uint8", "int8", (128, 0)),
    "i8_i8": ("int8", "int8", (5, -9)),
}
"""Types of data and weights, and their zero points."""
Case = tuple[tuple[int, int, int, int], tuple[int, int, int], tuple[int, int], tuple[int, int], tuple[int, ...]]
"""Data (NHWC), weights (outputs, rows, columns), strides, dilation, padding."""
CONVOLUTIONS: Sequence[Case] = (
    ((1, 9, 7, 16), (24, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((2, 9, 8, 32), (20, 3, 3), (2, 2), (1, 1), (0, 0, 1, 1)),
    ((1, 8, 8, 48), (70, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((2, 9, 9, 80), (16, 1, 1), (2, 2), (1, 1), (0, 0, 0, 0)),
    ((1, 12, 11, 16), (9, 3, 2), (1, 1), (2, 3), (2, 3, 2, 0)),
)

Product = tuple[int, int, int]
"""Rows, depth, outputs."""
PRODUCTS: Sequence[Product] = ((70, 208, 33), (9, 16, 40))


def network(flavour: str, convolutions: Sequence[Case] = CONVOLUTIONS, products: Sequence[Product] = PRODUCTS) -> Net:
    """Convolutions and products that leave remainders in each dimension; some with nothing after them."""
    net = Net(17)
    data, kernel, zero_points = FLAVOURS[flavour]
    for number, (shape, (outputs, *taps), strides, dilation, padding) in enumerate(convolutions):
        x = net.argument(net.numbers(data, *shape))
        weights = net.constant(net.numbers(kernel, outputs, *taps, shape[-1]))
        sums = net.conv2d(x, weights, strides=strides, dilation=dilation, padding=padding, zero_points=zero_points)
        net.result(f"convolution {number}", sums if number == 1 else net.requantize(sums, outputs, data))
    for rows, depth, outputs in products:
        x = net.argument(net.numbers(data, rows, depth))
        weights = net.constant(net.numbers(kernel, outputs, depth))
        net.result(f"{rows} rows of {depth}", net.requantize(net.dense(x, weights, zero_points), outputs, data))
    return net


def products_of(model: Emulated) -> int:
    """How many kernels use matrix units."""
    kernels = re.split(r"^define ", model.executable.get_source("ll").partition("\ndeclare ")[0], flags=re.MULTILINE)
    return sum("call { i32, i32, i32, i32 } @llvm.nvvm.mma." in kernel for kernel in kernels)


@pytest.mark.slow
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_products(flavour: str):
    assert products_of(check(network(flavour))) == len(CONVOLUTIONS) + 2


def test_products_of_codes_with_two_zero_points():
    model = check(network("u8", CONVOLUTIONS[4:], PRODUCTS[1:]))
    assert products_of(model) == 2
    assert all(row["shared"] <= 48 << 10 for row in model.graph["device"]["launches"])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(TILES)))
def test_every_tile(number: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mma, "TILES", TILES[number : number + 1])
    monkeypatch.setattr(tiles, "SPLITS", (1,))
    monkeypatch.setattr(mma, "SLICES", (1,))
    tile, net = TILES[number], Net(20 + number)
    x = net.argument(net.numbers("uint8", 1, 13, 14, 48))
    weights = net.constant(net.numbers("int8", tile.columns + 16, 3, 3, 48))
    sums = net.conv2d(x, weights, padding=(1, 1, 1, 1), zero_points=(128, 0))
    net.result("sums", net.requantize(sums, tile.columns + 16, "uint8"))
    (row,) = check(net).graph["device"]["launches"]
    assert (row["grid"][0], row["block"][0]) == (-(-13 * 14 // tile.rows) * 2, tile.threads)
    assert row["shared"] == tile.stages * tile.stage_bytes


def chosen(rows: int, columns: int, depth: int, processors: int) -> tuple[Tile, int]:
    """The tile and the parts of the depth that cost least."""
    found = cheapest(choices(TILES, rows, columns, depth, GpuCosts(processors=processors)))
    return found.tile, found.splits


def test_tiles_fill_the_device():
    """A few large tiles leave processors without work, many small ones copy more."""
    assert chosen(8192, 8192, 8192, 108) == (TILES[0], 1)
    assert chosen(49, 320, 64, 108) == (TILES[-1], 1)


def test_the_depth_is_split_where_processors_would_have_nothing_to_do():
    for processors in (16, 132):
        tile, splits = chosen(49, 512, 4608, processors)
        assert (-(-49 // tile.rows) * -(-512 // tile.columns) * splits > processors // 2) == (splits > 1)
    assert chosen(49, 512, 4608, 132)[1] > 4
    assert chosen(49 * 128, 512, 4608, 132)[1] == 1


FEW_CHANNELS: Sequence[Case] = (
    ((1, 13, 14, 3), (16, 3, 3), (2, 2), (1, 1), (0, 0, 1, 1)),
    ((2, 17, 15, 3), (12, 7, 7), (2, 2), (1, 1), (3, 3, 3, 3)),
    ((1, 9, 9, 1), (8, 5, 4), (1, 1), (2, 1), (1, 2, 3, 4)),
    ((1, 8, 7, 2), (9, 2, 2), (1, 3), (1, 1), (0, 0, 0, 0)),
    ((1, 6, 9, 24), (16, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((2, 7, 6, 12), (24, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
)
"""Those whose rows of windows are one run, and those whose channels are copied 8 and 4 at a time."""


@pytest.mark.parametrize("flavour", ["i8", *(pytest.param(f, marks=pytest.mark.slow) for f in FLAVOURS if f != "i8")])
def test_few_channels(flavour: str):
    cases = FEW_CHANNELS[:1] if flavour == "i8" else FEW_CHANNELS
    assert products_of(check(network(flavour, cases, ()))) == len(cases)


@pytest.mark.parametrize("flavour", ["i8", pytest.param("u8", marks=pytest.mark.slow)])
def test_parts_of_the_depth(flavour: str):
    """Sums that several blocks have parts of, with remainders of rows, columns and steps; and nothing after them."""
    net = Net(41)
    data, kernel, zero_points = FLAVOURS[flavour]
    if flavour == "u8":
        x = net.argument(net.numbers(data, 1, 7, 7, 80))
        weights = net.constant(net.numbers(kernel, 40, 3, 3, 80))
        sums = net.conv2d(x, weights, padding=(1, 1, 1, 1), zero_points=zero_points)
        net.result("convolution", net.requantize(sums, 40, data))
    y = net.argument(net.numbers(data, 9, 2048))
    net.result("product", net.dense(y, net.constant(net.numbers(kernel, 33, 2048)), zero_points))
    launches = check(net).graph["device"]["launches"]
    assert len(launches) == (4 if flavour == "u8" else 2), "each sums parts, and then adds them"
    assert all(row["grid"][0] >= 4 and row["block"][0] == 128 for row in launches[::2])


def altered(old: str, new: str) -> tuple[list[Array], list[Array]]:
    """What kernels with another text compute, and what they should."""
    net = network("i8")
    module = net.module()
    model = Emulated(module)
    text = model.executable.get_source("ll")
    assert old in text
    emulator = Emulator(text.replace(old, new))
    return run_model(model.graph, emulator, model.executable.params, net.inputs), list(run(module, net.inputs))


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["cp.async.wait.group(i32 0)", "cp.async.wait.group(i32 2)"])
def test_a_wait_for_too_little_is_seen(wait: str):
    with pytest.raises(KernelFault, match="shared memory at byte .*, which nothing has written"):
        altered(f"call void @llvm.nvvm.{wait}", "call void @llvm.nvvm.cp.async.wait.group(i32 9)")


def test_small_products_stay_sums():
    net = Net(19)
    x = net.argument(net.numbers("int8", 4, 64))
    net.result("few rows", net.dense(x, net.constant(net.numbers("int8", 32, 64)), (3, 0)))
    y, w = net.argument(net.numbers("int8", 32, 64)), net.argument(net.numbers("int8", 4, 64))
    net.result("few columns of two arguments", net.dense(y, w, (3, 1)))
    z = net.argument(net.numbers("int8", 1, 8, 8, 3))
    net.result("one column", net.conv2d(z, net.constant(net.numbers("int8", 16, 3, 1, 3)), zero_points=(3, 0)))
    assert products_of(check(net)) == 0
