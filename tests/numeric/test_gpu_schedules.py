"""Schedules that a person or a tuner may write for GPU kernels: legal ones keep every integer, others are one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import BoolAttr
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import relay
from relay import signature
from relay.compile.assemble import Signature
from relay.compile.gpu import describe_device, gpu_passes
from relay.dialects import relay as ops
from relay.dialects.attributes import Array, ints
from relay.dialects.context import make_context
from relay.dialects.gpu import ModuleOp
from relay.errors import InvalidArgument
from relay.interpreters import run
from relay.lowering.call_graph import CallGraph
from relay.lowering.gpu.emulator import Emulator, run_model
from relay.lowering.gpu.kernel_text import NVPTX, kernels_text
from relay.lowering.gpu.schedule_gpu import FunctionScheduler, ScheduleGpu
from relay.lowering.gpu.strategies import matching, schedules_of
from relay.lowering.gpu.strategies.mma import MmaSchedule
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import ATTRIBUTE, OpSchedule, Value, write
from relay.module import IRModule
from relay.passes import Pipeline
from relay.target import GpuTarget, attach, resolve_gpu
from tests.numeric.compiled_modules import Net, equal, offsets
from tests.numeric.test_gpu_attention import CASES, MANY, attention

TARGET = "cuda -arch=sm_90a"
MACHINE = resolve_gpu(TARGET)
T = TypeVar("T", bound=Value)


def product() -> Net:
    """A product that leaves remainders in each dimension, with a rescale behind it."""
    net = Net(3)
    x = net.argument(net.numbers("int8", 70, 144))
    net.result("product", net.requantize(net.dense(x, net.constant(net.numbers("int8", 80, 144)), (3, 0)), 80, "int8"))
    return net


def convolution() -> Net:
    """A convolution of few channels, which are copied first."""
    net = Net(4)
    x = net.argument(net.numbers("uint8", 1, 9, 10, 3))
    sums = net.conv2d(x, net.constant(net.numbers("int8", 24, 3, 3, 3)), padding=(1, 1, 1, 1), zero_points=(128, 0))
    net.result("convolution", net.requantize(sums, 24, "uint8"))
    return net


def borders() -> Net:
    """A convolution whose windows reach outside of images, where a device's copies give zeros."""
    net = Net(10)
    x = net.argument(net.numbers("int8", 2, 6, 6, 64))
    sums = net.conv2d(x, net.constant(net.numbers("int8", 72, 3, 3, 64)), padding=(1, 1, 1, 1), zero_points=(-9, 0))
    net.result("borders", net.requantize(sums, 72, "int8"))
    return net


def sums() -> Net:
    """A product of two arguments: a sum for each result."""
    net = Net(5)
    x, y = net.argument(net.numbers("int8", 5, 256)), net.argument(net.numbers("int8", 12, 256))
    net.result("sums", net.dense(x, y, (3, 5)))
    return net


def codes() -> Net:
    """Codes that are rescaled, element by element."""
    net = Net(6)
    x = net.argument(net.numbers("int32", 6, 7, 64))
    net.result("codes", net.requantize(x, 64, "int8"))
    return net


def rows() -> Net:
    """Rows of codes from which their largest one is taken: each is a team's."""
    net = Net(7)
    x = net.argument(net.numbers("int32", 6, 72))
    least = net.add(ops.MaxOp, [x], {"axis": ints([1]), "keepdims": BoolAttr.from_bool(True)})
    net.result("rows", net.add(ops.SubtractOp, [x, least], {}))
    return net


def pairs() -> Net:
    """A stack of products of computed factors that leave remainders, and a rescale."""
    net = Net(8)
    x, y = net.argument(net.numbers("uint8", 2, 20, 72)), net.argument(net.numbers("int8", 2, 72, 36))
    properties = offsets((9, -4)) | {"transpose_b": BoolAttr.from_bool(False)}
    net.result("pairs", net.requantize(net.add(ops.BatchMatmulOp, [x, y], properties), 36, "int8"))
    return net


def heads() -> Net:
    """Attention of three heads that leaves remainders."""
    net = Net(9)
    attention(net, CASES[1], "of heads", rescaled=True)
    return net


def many_keys() -> Net:
    """Attention whose keys come in tiles."""
    net = Net(10)
    attention(net, MANY[0], "of many keys", rescaled=True)
    return net


NETS: Sequence[Callable[[], Net]] = (product, convolution, borders, sums, codes, rows, pairs, heads, many_keys)


@dataclass(frozen=True)
class Built:
    """Kernels before they are scheduled, the model's inputs and outputs, and what the interpreter computes."""

    module: IRModule
    described: Signature
    inputs: Sequence[Array]
    wanted: Sequence[Array]


@cache
def bufferized(make: Callable[[], Net]) -> Built:
    """A net whose kernels are not scheduled yet."""
    net = make()
    module = net.module()
    kernels = relay.optimize(module, TARGET)
    attach(kernels.op, MACHINE)
    passes = gpu_passes(MACHINE)
    kernels = Pipeline(passes[: place(passes)])(kernels)
    return Built(kernels, signature.read(module["main"]), net.inputs, run(module, net.inputs))


def place(passes: Sequence[ModulePass]) -> int:
    """Where `schedule-gpu` is."""
    return next(number for number, step in enumerate(passes) if step.name == ScheduleGpu.name)


def schedulers(module: IRModule, machine: GpuTarget = MACHINE) -> Iterator[FunctionScheduler]:
    """What decides about each kernel."""
    calls = CallGraph(module.op.walk())
    for function in module.op.body.block.ops:
        if isinstance(function, FuncOp) and function.body.blocks and function.sym_name.data != "main":
            yield FunctionScheduler(function, calls.of(function), machine)


def outputs(built: Built, module: IRModule) -> tuple[IRModule, list[Array]]:
    """A bufferized module once it is lowered, and what its kernels compute, on the emulator."""
    passes = gpu_passes(MACHINE)
    lowered = Pipeline(passes[place(passes) :])(module)
    graph, params = describe_device(lowered, MACHINE, built.described)
    kernels = next(op for op in lowered.op.body.block.ops if isinstance(op, ModuleOp))
    return lowered, run_model(graph, Emulator(kernels_text(kernels, NVPTX)), params, built.inputs)


class Drawn(Picks):
    """Answers every decision with any of what is possible."""

    def __init__(self, data: st.DataObject):
        super().__init__(given=dict.fromkeys(("tile", "warps"), 0))
        self.data = data

    def __call__(self, name: str, possible: Sequence[T], best: T) -> T:
        self.decided[name] = value = possible[self.data.draw(st.integers(0, len(possible) - 1), name)]
        return value


def drawn(data: st.DataObject, scheduler: FunctionScheduler) -> list[OpSchedule]:
    """Any strategy that applies to each operation of a kernel, and any schedule of it."""
    found = list[OpSchedule]()
    for number, op in scheduler.numbered.items():
        options = matching(op, scheduler.kernel)
        strategy = options[data.draw(st.integers(0, len(options) - 1), "strategy")]
        found.append(replace(strategy.decide(scheduler.kernel, Drawn(data)).schedule, op=number))
    return found


def check(make: Callable[[], Net], data: st.DataObject) -> None:
    """Write drawn schedules down as text, have them obeyed, and compare the results."""
    built = bufferized(make)
    module = built.module.clone()
    asked: dict[str, list[OpSchedule]] = {}
    for scheduler in schedulers(module):
        asked[scheduler.function.sym_name.data] = schedules = drawn(data, scheduler)
        write(scheduler.function, schedules)
        text = str(scheduler.function.attributes[ATTRIBUTE])
        scheduler.function.attributes[ATTRIBUTE] = Parser(make_context(), text).parse_attribute()
        assert [each.attribute() for each in schedules_of(scheduler.function)] == [
            each.attribute() for each in schedules
        ]
    lowered, results = outputs(built, module)
    for name, schedules in asked.items():
        assert [each.decisions for each in schedules_of(lowered[name])] == [each.decisions for each in schedules]
    assert all(map(equal, results, built.wanted))


@pytest.mark.ci
@pytest.mark.parametrize("make", NETS)
@settings(max_examples=3, deadline=None, phases=[Phase.generate], derandomize=True)
@given(data=st.data())
def test_legal_schedules_keep_the_integers(make: Callable[[], Net], data: st.DataObject):
    check(make, data)


@pytest.mark.slow
@pytest.mark.parametrize("make", NETS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_many_legal_schedules_keep_the_integers(make: Callable[[], Net], data: st.DataObject):
    check(make, data)


ILLEGAL = {
    '{strategy = "mma", tile = [64, 33]}': r"mma: tile = \[64, 33\] is not possible; possible: \[16, 32\], .*",
    '{strategy = "mma", stages = 1}': r"mma: stages = 1 is not possible; possible: 2 to \d+",
    '{strategy = "mma", tile = [128, 128], warps = [1, 1]}': r"mma: warps = \[1, 1\] is not possible; possible: .*",
    '{strategy = "mma", block = 64}': "mma: block = 64 is not possible; possible: 128",
    '{strategy = "mma", lanes = 3}': "mma: lanes = 3 is not possible; possible: 8, 4, 2, 1",
    '{strategy = "mma", splits = 9}': "mma: splits = 9 is not possible; possible: 1 to 3",
    '{strategy = "mma", slices = 3}': "mma: slices = 3 is not possible; possible: 1, 2, 4",
    '{strategy = "wgmma", slices = 2}': "wgmma: slices = 2 is not possible; possible: 1",
    '{strategy = "wgmma", tile = [64, 48]}': r"wgmma: tile = \[64, 48\] is not possible; possible: .*",
    '{strategy = "reduction", dot = 5}': "reduction: dot = 5 is not possible; possible: 16, 8, 4, 0",
    '{strategy = "reduction", team = 512}': "reduction: team = 512 is not possible; possible: 256, .*",
    '{strategy = "reduction", block = 100}': "reduction: block = 100 is not possible; possible: 32 to 1024 by 32",
    '{strategy = "elementwise"}': "strategy elementwise does not apply; possible: mma, wgmma-turns, wgmma-tma, .*",
    '{strategy = "mma", colour = 3}': "mma: colour is not decided here; decisions: tile, warps, .*",
    '{strategy = "mma", op = 7}': "op 7 is not scheduled by itself, or is twice; the kernel has: op 2",
}
"""What may not be written for the product, and the error."""


@pytest.mark.parametrize("text", ILLEGAL)
def test_what_is_illegal_is_one_line(text: str):
    (scheduler,) = schedulers(bufferized(product).module.clone())
    scheduler.function.attributes[ATTRIBUTE] = Parser(make_context(), text).parse_attribute()
    with pytest.raises(InvalidArgument, match=rf"^@dense_0: relay.schedule: {ILLEGAL[text]}$"):
        scheduler.decide()


@pytest.mark.parametrize(
    "text",
    [
        "tile = [64, 32], slices = 2",
        "tile = [64, 64], slices = 4, stages = 2",
        "tile = [32, 64], warps = [1, 2], slices = 4, splits = 2",
    ],
)
def test_slices_of_the_depth_are_added(text: str):
    """Three steps of the depth are shared by two slices, or four of which some have nothing."""
    module = bufferized(product).module.clone()
    (scheduler,) = schedulers(module)
    scheduler.function.attributes[ATTRIBUTE] = Parser(make_context(), f'{{strategy = "mma", {text}}}').parse_attribute()
    ((_, schedule),) = scheduler.decide().values()
    assert isinstance(schedule, MmaSchedule)
    assert schedule.block == 32 * schedule.warps[0] * schedule.warps[1] * schedule.slices
    _, results = outputs(bufferized(product), module)
    assert all(map(equal, results, bufferized(product).wanted))


@pytest.mark.parametrize("chip, most", {"sm_80": 27, "sm_89": 16, "sm_90a": 37, "sm_100": 37, "sm_120": 16}.items())
def test_stages_are_as_many_as_the_chip_has_shared_memory_for(chip: str, most: int):
    (scheduler,) = schedulers(bufferized(product).module.clone(), resolve_gpu(f"cuda -arch={chip}"))
    for stages in (most, most + 1):
        text = f'{{strategy = "mma", tile = [64, 32], stages = {stages}}}'
        scheduler.function.attributes[ATTRIBUTE] = Parser(make_context(), text).parse_attribute()
        if stages > most:
            with pytest.raises(InvalidArgument, match=f"stages = {stages} is not possible; possible: 2 to {most}$"):
                scheduler.decide()
        else:
            ((_, schedule),) = scheduler.decide().values()
            assert isinstance(schedule, MmaSchedule) and schedule.shared == most * 6144


def test_what_is_not_said_is_chosen():
    """The parts of the depth that are cheapest for a tile of 16 x 64, and what follows from both."""
    module = bufferized(product).module.clone()
    (scheduler,) = schedulers(module)
    text = '{strategy = "mma", tile = [16, 64], lanes = 2}'
    scheduler.function.attributes[ATTRIBUTE] = Parser(make_context(), text).parse_attribute()
    ((_, schedule),) = scheduler.decide().values()
    assert isinstance(schedule, MmaSchedule) and schedule.why.startswith("as asked for: codes 70 x 80 x 144")
    assert (schedule.tile, schedule.lanes, schedule.block) == ((16, 64), 2, 64)
    _, results = outputs(bufferized(product), module)
    assert all(map(equal, results, bufferized(product).wanted))
