"""Products of codes by groups of four warps, on the emulator, against the interpreter: tiles, borders, stages."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import relay
from benchmarks.ptxas import find_ptxas
from relay.interpreters import run
from relay.lowering.gpu import tiles
from relay.lowering.gpu.emulator import Emulator, KernelFault, run_model
from relay.lowering.gpu.strategies import mma, wgmma
from relay.lowering.gpu.strategies.mma import TILES
from relay.lowering.gpu.strategies.wgmma import BULK_TILES, GROUP_TILES, TURN_TILES
from relay.lowering.gpu.tiles import BulkTile, GroupTile, Tile, TurnTile, cheapest, choices
from relay.runtime import Executable
from relay.target import resolve_gpu
from tests.numeric.compiled_modules import Net, equal
from tests.numeric.gpu_models import Emulated

TARGET = "cuda -arch=sm_90a"
SMALL = GroupTile(128, 64, 8, 1, 4)
"""Two groups, and a quarter of the sums of the largest tile."""


def only(tile: Tile, monkeypatch: pytest.MonkeyPatch, splits: int = 1) -> None:
    """Let there be one tile."""
    turns = isinstance(tile, TurnTile)
    monkeypatch.setattr(mma, "TILES", ())
    monkeypatch.setattr(wgmma, "GROUP_TILES", () if turns else (tile,))
    monkeypatch.setattr(wgmma, "BULK_TILES", () if turns else (tile,))
    monkeypatch.setattr(wgmma, "TURN_TILES", (tile,) if turns else ())
    monkeypatch.setattr(tiles, "SPLITS", (splits,))


def check(net: Net, target: str = TARGET) -> Emulated:
    """Build it, and compare all results."""
    module = net.module()
    wanted = run(module, net.inputs)
    model = Emulated(module, target)
    wrong = [
        name for name, got, want in zip(net.results, model.run(net.inputs), wanted, strict=True) if not equal(got, want)
    ]
    assert not wrong, f"differ from the interpreter's: {wrong}"
    return model


def product(data: str, kernel: str, rows: int, depth: int, columns: int, zero_point: int = 3) -> Net:
    net = Net(rows + depth + columns)
    x = net.argument(net.numbers(data, rows, depth))
    weights = net.constant(net.numbers(kernel, columns, depth))
    net.result("product", net.requantize(net.dense(x, weights, (zero_point, 0)), columns, data))
    return net


def convolution(data: str, kernel: str, columns: int) -> Net:
    """Borders of another code than 0, a stride, and a depth that is no multiple of a stage's."""
    net = Net(columns)
    x = net.argument(net.numbers(data, 2, 17, 16, 48))
    weights = net.constant(net.numbers(kernel, columns, 3, 3, 48))
    zero_point = 121 if data == "uint8" else -7
    sums = net.conv2d(x, weights, strides=(2, 1), padding=(1, 1, 1, 1), zero_points=(zero_point, 0))
    net.result("convolution", net.requantize(sums, columns, data))
    return net


def test_a_convolution(monkeypatch: pytest.MonkeyPatch):
    only(SMALL, monkeypatch)
    (row,) = check(convolution("int8", "int8", 80)).graph["device"]["launches"]
    assert (row["grid"][0], row["block"][0], row["shared"]) == (6, 256, 4 * 192 * 128)


def test_sums_start_from_what_their_own_channels_are_off_by(monkeypatch: pytest.MonkeyPatch):
    """A thread's sums in a wide tile are of several runs of channels; the zero point, which borders keep out of the
    bias, makes each off by its own."""
    only(GroupTile(64, 128, 4, 1, 3), monkeypatch)
    net = Net(5)
    x, weights = net.argument(net.numbers("int8", 1, 2, 2, 16)), net.constant(net.numbers("int8", 144, 1, 1, 16))
    sums = net.conv2d(x, weights, padding=(1, 1, 1, 1), zero_points=(-101, 0))
    net.result("convolution", net.requantize(sums, 144, "int8"))
    model = check(net)
    (row,) = model.graph["device"]["launches"]
    assert (row["grid"][0], row["block"][0]) == (2, 128)
    checked = model.run(net.inputs)
    model.emulator = Emulator(model.executable.get_source("ll"), checked=False)
    assert np.array_equal(model.run(net.inputs), checked)


def pointwise(data: str, kernel: str, shape: tuple[int, ...], columns: int) -> Net:
    net = Net(columns)
    x = net.argument(net.numbers(data, *shape))
    weights = net.constant(net.numbers(kernel, columns, 1, 1, shape[-1]))
    net.result("convolution", net.requantize(net.conv2d(x, weights, zero_points=(5, 0)), columns, data))
    return net


@pytest.mark.parametrize("types", [("int8", "int8"), pytest.param(("uint8", "int8"), marks=pytest.mark.ci)])
def test_matrices_come_by_tiles(types: tuple[str, str], monkeypatch: pytest.MonkeyPatch):
    """Neither rows, nor columns, nor the depth are multiples of the tile's."""
    only(SMALL, monkeypatch)
    (row,) = check(pointwise(*types, (3, 9, 5, 656), 80)).graph["device"]["launches"]
    assert (row["grid"][0], row["shared"]) == (4, 4 * (192 * 128 + 8))
    data, weights = row["maps"]
    assert data == {"argument": 0, "dims": [656, 135], "strides": [656], "box": [128, 128], "swizzle": 128}
    assert weights == {"argument": 1, "dims": [768, 128], "strides": [768], "box": [128, 64], "swizzle": 128}


def test_three_groups_make_one_turn_of_what_would_be_two(monkeypatch: pytest.MonkeyPatch):
    """196 tiles of 128 rows are 132 of 192, as many as processors; neither rows nor columns are multiples of them."""
    costs, wide = resolve_gpu(TARGET).costs, BULK_TILES[-1]
    assert cheapest(choices((*BULK_TILES, *TURN_TILES), 6272, 512, 4608, costs)).tile == wide
    only(BulkTile(192, 128, 12, 1, 3), monkeypatch)
    (row,) = check(product("int8", "int8", 300, 400, 144)).graph["device"]["launches"]
    assert (row["grid"][0], row["block"][0], row["maps"][0]["box"]) == (4, 384, [128, 192])


@pytest.mark.slow
@pytest.mark.parametrize("types", [("int8", "int8"), ("uint8", "uint8"), ("uint8", "int8"), ("int8", "uint8")])
@pytest.mark.parametrize("number", range(len(GROUP_TILES)))
def test_every_tile_and_type(number: int, types: tuple[str, str], monkeypatch: pytest.MonkeyPatch):
    only(GROUP_TILES[number], monkeypatch)
    check(convolution(*types, GROUP_TILES[number].columns + 16))
    check(pointwise(*types, (1, 13, 10, 272), GROUP_TILES[number].columns + 16))


@pytest.mark.slow
@pytest.mark.parametrize("depth", [16, 128, 144, 272, 400, 528, 640])
@pytest.mark.parametrize("stages", [3, 4, 5])
def test_depths_and_stages(depth: int, stages: int, monkeypatch: pytest.MonkeyPatch):
    """One turn of the loop, as many as there are stages, and more."""
    only(GroupTile(64, 64, 4, 1, stages), monkeypatch)
    check(product("int8", "int8", 65, depth, 64))
    only(BulkTile(192, 64, 12, 1, stages), monkeypatch)
    check(product("int8", "int8", 193, depth, 64))


LAYERS = (((3, 7, 7, 512), (512, 3, 3), 1), ((3, 14, 14, 1024), (272, 1, 1), 2), ((2, 14, 14, 256), (256, 3, 3), 2))
"""Of ResNet-50, with fewer images: data, weights, stride."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_large_layers(number: int, monkeypatch: pytest.MonkeyPatch):
    only(GROUP_TILES[number % 2], monkeypatch)
    shape, (outputs, *taps), stride = LAYERS[number]
    net, around = Net(number), taps[0] // 2
    x = net.argument(net.numbers("int8", *shape))
    weights = net.constant(net.numbers("int8", outputs, *taps, shape[-1]))
    padding = (around, around, around, around)
    sums = net.conv2d(x, weights, strides=(stride, stride), padding=padding, zero_points=(-11, 0))
    net.result("layer", net.requantize(sums, outputs, "int8"))
    check(net)


@pytest.mark.slow
def test_parts_of_the_depth(monkeypatch: pytest.MonkeyPatch):
    only(SMALL, monkeypatch, splits=3)
    launches = check(product("int8", "int8", 70, 1024, 80)).graph["device"]["launches"]
    assert [row["grid"][0] for row in launches][0] == 6 and len(launches) == 2


def test_only_large_products_are_for_groups_of_warps():
    """Others, chips without `wgmma`, and weights with a zero point keep to `mma.sync`."""
    every, costs = (*TILES, *GROUP_TILES), resolve_gpu(TARGET).costs
    assert cheapest(choices(every, 8192, 8192, 8192, costs))[1:] == (GROUP_TILES[0], 1)
    assert cheapest(choices(every, 49, 512, 4608, costs)).tile in TILES
    assert resolve_gpu(TARGET).warpgroups and not resolve_gpu("cuda -arch=sm_90").warpgroups


@pytest.mark.parametrize("make", [pytest.param(convolution, marks=pytest.mark.ci), product])
def test_products_overlap(make: Callable[..., Net], monkeypatch: pytest.MonkeyPatch):
    """Nothing else touches the sums in the loop: the assembler would make products wait for each other."""
    only(GROUP_TILES[0], monkeypatch)
    net = make("int8", "int8", *((128, 2048, 256) if make is product else (256,)))
    ptx = relay.build(net.module(), target=TARGET).get_source("ptx")
    place = re.findall(r"m64n256k32\.s32\.s8\.s8 \{(.*?)\}", ptx)[0]
    sums = set(place.split(", "))
    assert len(sums) == 128
    loop = ptx[ptx.rindex("bar.sync") : ptx.index("wait_group.sync.aligned 0;")]
    others = [line for line in loop.splitlines() if "wgmma" not in line]
    assert not [line for line in others if sums & set(re.findall(r"%r\d+", line))]
    if (tool := find_ptxas()) is not None:
        command = [tool, "-arch=sm_90a", "-v", "-", "-o", "/dev/null"]
        said = subprocess.run(command, input=ptx, capture_output=True, text=True, check=True).stderr
        assert "0 bytes spill stores" in said and "warning" not in said and "serialized" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cp.async.wait.group(i32 0)", "cp.async.wait.group(i32 1)"),
        ("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;"),
        ("wgmma.fence.sync.aligned; ", ""),
    ],
)
def test_a_wait_for_too_little_is_seen(old: str, new: str, monkeypatch: pytest.MonkeyPatch):
    only(GroupTile(128, 64, 8, 1, 3), monkeypatch)
    net = convolution("int8", "int8", 64)
    executable = relay.build(net.module(), target=TARGET)
    text = executable.get_source("ll")
    assert old in text
    with pytest.raises(KernelFault, match="product"):
        run_model(executable.graph, Emulator(text.replace(old, new)), executable.params, net.inputs)


def turns(processors: int) -> str:
    """A target with so few processors that blocks take several tiles."""
    return f"{TARGET} -costs=processors={processors}"


def test_blocks_stay(monkeypatch: pytest.MonkeyPatch):
    """Two blocks take six tiles; there are fewer stages than steps, so that both groups use each of them."""
    only(TurnTile(128, 128, 4, 1, 3), monkeypatch)
    model = check(product("int8", "int8", 300, 640, 192), turns(2))
    (row,) = model.graph["device"]["launches"]
    assert (row["grid"][0], row["block"][0], row["shared"]) == (2, 384, 3 * 256 * 128 + 8 * (2 * 3 + 2))


@pytest.mark.slow
@pytest.mark.parametrize("tile", TURN_TILES)
@pytest.mark.parametrize("depth", [16, 128, 272, 640, 1152])
def test_every_tile_in_turns(tile: TurnTile, depth: int, monkeypatch: pytest.MonkeyPatch):
    """One tile and several for a block, an odd number of them, one step and more than there are stages."""
    only(tile, monkeypatch)
    for processors in (1, 3):
        check(product("uint8", "int8", 2 * tile.rows + 7, depth, tile.columns + 16), turns(processors))


@pytest.mark.slow
def test_parts_of_the_depth_in_turns(monkeypatch: pytest.MonkeyPatch):
    only(TurnTile(64, 64, 4, 1, 3), monkeypatch, splits=3)
    launches = check(product("int8", "int8", 70, 1024, 80), turns(5)).graph["device"]["launches"]
    assert [row["grid"][0] for row in launches][0] == 5 and len(launches) == 2


def windows(
    data: str, kernel: int, image: tuple[int, int, int], columns: int, stride: int = 1, padding: str = "same"
) -> Net:
    """Two images, whose borders are another code than 0; or none, or more behind than before."""
    net, around = Net(kernel + columns), kernel // 2
    x = net.argument(net.numbers(data, 2, *image))
    weights = net.constant(net.numbers("int8", columns, kernel, kernel, image[-1]))
    sides = {"same": (around,) * 4, "behind": (0, 0, around, around), "none": (0,) * 4}[padding]
    zero_points = (121 if data == "uint8" else -7, 0)
    sums = net.conv2d(x, weights, strides=(stride, stride), padding=sides, zero_points=zero_points)
    net.result("convolution", net.requantize(sums, columns, data))
    return net


def test_windows_come_by_themselves(monkeypatch: pytest.MonkeyPatch):
    """What is outside of an image is 0 then: sums start from other numbers there."""
    only(TurnTile(128, 64, 4, 1, 3), monkeypatch)
    (row,) = check(windows("int8", 3, (7, 7, 128), 80)).graph["device"]["launches"]
    found, strides = {"argument": 0, "dims": [128, 7, 7, 2], "strides": [128, 896, 6272]}, [-1, -1, 1]
    assert row["maps"][0] == found | {"box": [128, 128], "swizzle": 128, "corners": strides}


@pytest.mark.slow
@pytest.mark.parametrize("tile", [TurnTile(128, 128, 4, 1, 3), GroupTile(128, 64, 8, 1, 3), BULK_TILES[-1]])
@pytest.mark.parametrize(
    "given",
    [
        ("uint8", 3, (9, 9, 64), 80),
        ("int8", 5, (11, 11, 32), 48),
        ("int8", 3, (8, 8, 256), 64, 2, "behind"),
        ("uint8", 3, (9, 9, 128), 64, 2),
        ("int8", 1, (8, 8, 256), 64, 2, "none"),
        ("int8", 3, (10, 10, 128), 64, 1, "none"),
    ],
)
def test_every_window(tile: GroupTile, given: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch):
    """Rows of 128, 64 and 32 bytes, strides, and borders on some sides."""
    only(tile, monkeypatch)
    assert "corners" in check(windows(*given), turns(2)).graph["device"]["launches"][0]["maps"][0]


@pytest.mark.slow
def test_parts_of_windows(monkeypatch: pytest.MonkeyPatch):
    """Numbers that sums are off by are added with the parts, those of the borders, too."""
    only(TurnTile(128, 64, 4, 1, 3), monkeypatch, splits=3)
    assert len(check(windows("int8", 3, (7, 7, 128), 80), turns(2)).graph["device"]["launches"]) == 2


@pytest.mark.parametrize(
    ("data", "image", "padding"),
    [
        ("int8", (8, 8, 48), (1, 1, 1, 1)),
        ("int8", (8, 8, 128), (1, 0, 1, 0)),
        pytest.param("int8", (8, 9, 128), (0, 1, 2, 1), marks=pytest.mark.ci),
    ],
)
def test_other_windows_are_copied_by_threads(data: str, image: tuple[int, ...], padding: tuple[int, ...]):
    """Of other channels, and with borders that are not alike in rows and columns."""
    net = Net(1)
    x, weights = net.argument(net.numbers(data, 64, *image)), net.constant(net.numbers("int8", 128, 3, 3, image[-1]))
    net.result("sums", net.conv2d(x, weights, padding=padding, zero_points=(3, 0)))
    graph = relay.build(net.module(), target=TARGET).graph
    assert all("corners" not in map for row in graph["device"]["launches"] for map in row.get("maps", ()))


@cache
def of_turns() -> tuple[Executable, Net]:
    """A product whose blocks take several tiles in turn."""
    net = product("int8", "int8", 300, 640, 64)
    with pytest.MonkeyPatch.context() as patch:
        only(TurnTile(64, 64, 4, 1, 3), patch)
        return relay.build(net.module(), target=turns(2)), net


WAITED = r"call void asm sideeffect \"\{ \.reg \.pred[^\n]*\n"


@pytest.mark.parametrize(
    ("old", "number", "new", "said"),
    [
        (WAITED, 0, "\n", "nothing has written"),
        (WAITED, 2, "\n", "two copies to byte"),
        ("wait_group.sync.aligned 1;", 0, "wait_group.sync.aligned 2;", "overwritten while products under way read"),
        (r"call void asm sideeffect \"mbarrier.arrive.shared[^\n]*\n", 0, "\n", "waits for ever at the barrier"),
    ],
)
def test_a_turn_that_is_not_waited_for_is_seen(old: str, number: int, new: str, said: str):
    executable, net = of_turns()
    text = executable.get_source("ll")
    place = [*re.finditer(old, text)][number]
    wrong = text[: place.start()] + new + text[place.end() :]
    with pytest.raises(KernelFault, match=said):
        run_model(executable.graph, Emulator(wrong), executable.params, net.inputs)
