"""Products in tile registers (AMX): exact integers by a model of the instructions, and how the assembly looks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, i32
from xdsl.ir import Attribute

import relay
from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects import relay as ops
from relay.dialects.attributes import Array
from relay.exploration.tuning import DrawnPicks, scheduled
from relay.interpreters import run
from relay.lowering.call_graph import CallGraph
from relay.lowering.scheduling.contractions import ContractionSchedule
from relay.lowering.scheduling.decide import Chooser, decide
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import MATRIX
from relay.lowering.scheduling.record import Given, Value, write
from relay.lowering.scheduling.registry import schedules_of
from relay.lowering.scheduling.strategy import Unit
from relay.lowering.scheduling.work import Costs
from relay.passes import Pass
from relay.target import CpuCosts, cpu_of
from tests import guarded
from tests.marks import ci
from tests.numeric import tile_model
from tests.numeric.compiled_modules import Net, equal
from tests.numeric.exported import digits, golden
from tests.numeric.test_assembly import Instruction, functions
from tests.numeric.test_schedule_attributes import with_pass
from tests.unit.test_build import DIGITS

SAPPHIRE_RAPIDS = "x86_64-unknown-linux-gnu -mcpu=sapphirerapids"
AVX2 = "x86_64-unknown-linux-gnu -mattr=+avx2,+fma,+amx-tile,+amx-int8"
T = TypeVar("T", bound=Value)
Call = Callable[..., Any]
Result = TypeVar("Result")


@pytest.fixture(scope="module")
def on_model() -> Generator[Call]:
    """Calls a function of this file in a process that builds with the model of the instructions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAY_CACHE_DIR", "off")
        with ProcessPoolExecutor(1, get_context("spawn"), initializer=tile_model.start) as pool:

            def call(function: Callable[..., Result], *arguments: object) -> Result:
                return pool.submit(function, *arguments).result(600)

            yield call


class TilePicks(DrawnPicks):
    """Takes tile registers where they are possible, and anything else by chance."""

    def __call__(self, name: str, possible: Sequence[T], best: T) -> T:
        if name == "codes_per_step":
            best = max(possible, key=lambda value: value if isinstance(value, int) else 0)
            return Picks.__call__(self, name, possible, best)
        return super().__call__(name, possible, best)


class Tiles(Chooser):
    """Decides so, and takes contractions where they are possible."""

    def __init__(self, random: Random):
        self.random = random

    def picks(self, where: str, given: Given) -> Picks:
        return TilePicks(where, given, self.random)

    def unit(self, units: Sequence[Unit]) -> Unit:
        return min(units, key=lambda unit: unit.strategy.name not in ("contraction", "product"))


@dataclass(frozen=True)
class DrawTiles(Pass):
    """Give every kernel such a schedule."""

    name = "draw-tiles"
    seed: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        random, calls, target = Random(self.seed), CallGraph(op.walk()), cpu_of(op, self.name)
        for function in scheduled(op):
            constants = GivenConstants(function.body.block, calls.of(function))
            write(function, decide(function, constants, target, chooser=Tiles(random)).schedules)


def codes(net: Net, zero_point: int, *shape: int) -> Array:
    """Weights: signed ones around 0, else unsigned ones, of which one at most is not within 128 of the zero point."""
    if not zero_point:
        return net.numbers("int8", *shape)
    found = np.minimum(net.numbers("uint8", *shape), min(zero_point + 127, 255)).astype(np.uint8)
    found.reshape(-1)[5] = 255
    return found


@dataclass(frozen=True)
class Product:
    """`rows` of `depth` codes by as many `columns` of weights."""

    rows: int
    depth: int
    columns: int
    data: str
    zero_point: int
    per_channel: bool

    def net(self) -> Net:
        net = Net(self.rows * self.depth + self.columns)
        data, weights = (
            net.numbers(self.data, self.rows, self.depth),
            codes(net, self.zero_point, self.columns, self.depth),
        )
        zeros = (-7 if self.data == "int8" else 119, self.zero_point)
        sums = net.dense(net.argument(data), net.constant(weights), zeros)
        net.result("product", net.requantize(sums, self.columns, self.data, per_channel=self.per_channel))
        return net


@dataclass(frozen=True)
class Windows:
    """A convolution of `channels` to `outputs` with square windows."""

    size: int
    channels: int
    outputs: int
    window: int
    stride: int
    dilation: int
    border: int
    data: str
    zero_point: int

    def net(self) -> Net:
        net = Net(self.size * self.channels + self.outputs)
        image = net.argument(net.numbers(self.data, 2, self.size, self.size + 3, self.channels))
        kernel = net.constant(codes(net, self.zero_point, self.outputs, self.window, self.window, self.channels))
        for name in ("sums", "codes"):
            sums = net.conv2d(
                image,
                kernel,
                strides=[self.stride] * 2,
                padding=[self.border] * 4,
                dilation=[self.dilation] * 2,
                zero_points=(5, self.zero_point),
            )
            net.result(name, sums if name == "sums" else net.requantize(sums, self.outputs, self.data))
        return net


@dataclass(frozen=True)
class Computed:
    """Two products of matrices of codes, both computed: `rows` x `depth` by `depth` x `columns`."""

    rows: int
    depth: int
    columns: int
    data: str
    turned: bool

    def net(self) -> Net:
        net = Net(self.rows * self.depth + self.columns)
        sizes = (self.columns, self.depth) if self.turned else (self.depth, self.columns)
        sides = [
            net.argument(net.numbers(self.data, 2, self.rows, self.depth)),
            net.argument(net.numbers("int8", 2, *sizes)),
        ]
        properties: dict[str, Attribute] = {
            "transpose_b": BoolAttr.from_bool(self.turned),
            "input_zero_point": IntegerAttr(5, i32),
            "kernel_zero_point": IntegerAttr(0, i32),
        }
        sums = net.add(ops.BatchMatmulOp, sides, properties)
        net.result("codes", net.requantize(sums, self.columns, self.data))
        return net


Case = Product | Windows | Computed


def differing(case: Case, target: str, seed: int | None) -> tuple[list[str], int]:
    """The results that are not the interpreter's, and the products of tiles in the code."""
    net = case.net()
    module = net.module()
    wanted = run(module, net.inputs)
    pipeline = None if seed is None else with_pass(DrawTiles(seed), target)
    executable = build(module, target, pipeline=pipeline)
    got = guarded.run(executable, *net.inputs)
    found = got if isinstance(got, tuple) else (np.asarray(got),)
    wrong = [name for name, a, b in zip(net.results, found, wanted, strict=True) if not equal(np.asarray(a), b)]
    return wrong, executable.get_source("mlir").count("amx.tile_muli")


def near(*numbers: int) -> st.SearchStrategy[int]:
    """A number, one less or one more."""
    return st.sampled_from([number + more for number in numbers for more in (-1, 0, 1)])


ZEROS = st.sampled_from([0, 125, 128])
CODES = st.sampled_from(["int8", "uint8"])
PRODUCTS = st.builds(
    Product, near(9, 16, 32, 80), near(12, 29, 64, 128, 192), near(2, 16, 32, 64), CODES, ZEROS, st.booleans()
)
WINDOWS = st.builds(
    Windows, near(7, 16), near(4, 16, 22, 64), near(16, 33), near(2), st.integers(1, 2), st.integers(1, 2),
    st.integers(0, 2), CODES, ZEROS,
)  # fmt: skip
COMPUTED = st.builds(
    Computed, near(9, 16, 32, 80), near(12, 29, 64, 128) | st.sampled_from([68, 100, 188]), near(16, 32, 64), CODES,
    st.booleans(),
)  # fmt: skip
TARGETS = st.sampled_from([SAPPHIRE_RAPIDS, AVX2])


@pytest.mark.parametrize("target", [SAPPHIRE_RAPIDS, AVX2])
def test_a_product_with_rests_is_exact(on_model: Call, target: str):
    """Rows, codes and columns that fill no tile; weights that do not fit beside their zero point."""
    wrong, tiles = on_model(differing, Product(33, 129, 17, "uint8", 125, True), target, None)
    assert not wrong and tiles


@pytest.mark.ci
@given(PRODUCTS, TARGETS)
@settings(max_examples=25, deadline=None)
def test_products_are_exact(on_model: Call, case: Product, target: str):
    wrong, tiles = on_model(differing, case, target, None)
    assert not wrong
    assert tiles or case.rows < 31 or case.depth < 63


@pytest.mark.ci
@given(st.one_of(PRODUCTS, WINDOWS, COMPUTED), TARGETS, st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_any_schedule_with_tiles_is_exact(on_model: Call, case: Case, target: str, seed: int):
    wrong, tiles = on_model(differing, case, target, seed)
    assert not wrong
    few = isinstance(case, Windows) and case.channels <= MATRIX
    assert tiles or few or isinstance(case, Computed)


@pytest.mark.ci
@given(COMPUTED, TARGETS)
@settings(max_examples=15, deadline=None)
def test_products_of_computed_matrices_are_exact(on_model: Call, case: Computed, target: str):
    wrong, tiles = on_model(differing, case, target, None)
    assert not wrong
    assert tiles or case.rows < 31 or case.depth < 63 or case.depth % 4 or case.columns < 31


def outputs(path: Path, images: Array) -> Array:
    """What a model computes of each image on a Sapphire Rapids."""
    executable = relay.build(path, target=SAPPHIRE_RAPIDS)
    assert "amx.tile_muli" in executable.get_source("mlir")
    return np.stack([np.asarray(executable.run(image)) for image in images])


def test_digits_are_exact(on_model: Call):
    _, images, wanted = digits(5)
    assert np.array_equal(on_model(outputs, DIGITS, images), wanted)


SMALL = ("resnet8_int8", "kws_int8")
LARGE = ("mobilenet_v2_1.0_224_quant", "tf2_mobilenet_v2_1.0_224_ptq", "resnet50_224_int8")


@pytest.mark.parametrize(
    "name",
    [
        *ci((*SMALL, "vww_96_int8")),
        *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE),
    ],
)
def test_a_whole_model_is_exact(on_model: Call, name: str):
    path, images, wanted = golden(name, 1)
    assert np.array_equal(on_model(outputs, path, images), wanted)


# How it looks


def kernels(net: Net, seed: int | None = None) -> list[list[Instruction]]:
    """The functions that multiply tiles, by default or by schedules that are drawn."""
    pipeline = None if seed is None else with_pass(DrawTiles(seed), SAPPHIRE_RAPIDS)
    code = functions(build(net.module(), SAPPHIRE_RAPIDS, pipeline=pipeline).get_source("asm")).values()
    return [each for each in code if any(one.mnemonic == "tdpbusd" for one in each)]


def dense(net: Net, rows: int, depth: int, columns: int) -> None:
    """A product, and codes of it."""
    data, weights = net.argument(net.numbers("uint8", rows, depth)), net.numbers("int8", columns, depth)
    sums = net.dense(data, net.constant(weights), (3, 0))
    net.result(f"{rows}x{columns}", net.requantize(sums, columns, "uint8"))


@pytest.mark.ci
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_no_tile_is_spilled(seed: int | None):
    """The registers are configured once; no tile is read from the stack, where sums go after all products."""
    net = Net(4)
    for columns in (16, 20, 64, 72):
        for rows in (16, 50, 200):
            dense(net, rows, 200, columns)
    found = kernels(net, seed)
    assert len(found) == 12
    for kernel in found:
        names = Counter(one.mnemonic for one in kernel)
        assert names["ldtilecfg"] == names["tilerelease"] == 1
        assert names["vpdpbusd"] == 0
        assert not [one for one in kernel if one.mnemonic == "tileloadd" and re.search("%[re](sp|bp)", one.operands)]


def test_registers_are_filled():
    """Four tiles of sums, of two tiles of data and two of weights: a load for each product, and those of the start."""
    net = Net(5)
    dense(net, 256, 768, 768)
    (kernel,) = kernels(net)
    names = Counter(one.mnemonic for one in kernel)
    assert names["tileloadd"] - names["tilestored"] == names["tdpbusd"] == 48
    assert names["tilestored"] == 4


def test_loops_of_tiles_cost_their_cycles():
    """What decides whether threads share them: the products alone take 16 cycles each."""
    net = Net(7)
    dense(net, 128, 256, 256)
    kernel = default_pipeline(SAPPHIRE_RAPIDS)(net.module())["dense_0"]
    (schedule,) = schedules_of(kernel)
    cycles = Costs(CpuCosts()).block(kernel.body.block)
    assert 128 // 16 * 256 // 16 * 256 // 64 * 16 < cycles < 2 * schedule.cycles


@pytest.mark.parametrize(
    ("rows", "depth", "tiles"), [(1, 768, False), (4, 768, False), (64, 768, True), (64, 8, False)]
)
def test_tiles_are_for_rows_of_many_codes(rows: int, depth: int, tiles: bool):
    net = Net(6)
    dense(net, rows, depth, 64)
    (schedule,) = schedules_of(default_pipeline(SAPPHIRE_RAPIDS)(net.module())["dense_0"])
    assert isinstance(schedule, ContractionSchedule)
    assert (schedule.codes_per_step == 64) == tiles
