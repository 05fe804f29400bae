"""Float contractions in blocks of the reduction: the bits of `contraction`, which adds in one go, for any sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr

from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects.attributes import Array
from relay.exploration.tuning import DrawSchedules, scheduled
from relay.interpreters import run
from relay.lowering.schedule import Schedule
from relay.lowering.scheduling.blocked_reduction import BlockedReductionSchedule
from relay.lowering.scheduling.record import ATTRIBUTE
from relay.lowering.scheduling.registry import schedules_of
from relay.passes import Pass, PassContext, Pipeline
from relay.target import host
from tests.numeric.compiled_modules import Net, equal

HASWELL = "x86_64-unknown-linux-gnu -mcpu=haswell"
runs = pytest.mark.skipif(not host().features >= {"avx2", "fma"}, reason="this CPU has no AVX2")


@dataclass(frozen=True)
class InOneGo(Pass):
    """Have every kernel with a contraction be `contraction`."""

    name = "in-one-go"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in scheduled(op):
            if "conv2d" in function.sym_name.data or "dense" in function.sym_name.data:
                function.attributes[ATTRIBUTE] = DictionaryAttr({"strategy": StringAttr("contraction")})


def convolutions(*cases: int) -> Net:
    """Tiles and blocks of channels with rests, batches, borders of all kinds or none, blocks of steps of several sizes;
    the last one is a product."""
    net = Net(71)
    for number, (images, height, width, channels, outputs, kernel, stride, dilation, padding) in enumerate((
        (1, 7, 7, 96, 40, (3, 3), (1, 1), 1, (1, 1, 1, 1)), (2, 5, 9, 65, 19, (3, 3), (2, 1), 1, (1, 1, 1, 1)),
        (1, 9, 6, 130, 16, (3, 2), (1, 1), 1, (0, 1, 1, 0)), (3, 4, 4, 300, 33, (2, 2), (1, 1), 1, (0, 0, 0, 0)),
        (1, 8, 8, 64, 24, (3, 3), (1, 1), 2, (2, 2, 2, 2)), (1, 3, 13, 50, 17, (5, 5), (1, 2), 1, (4, 3, 2, 1)),
        (2, 6, 6, 513, 16, (1, 1), (2, 2), 1, (0, 0, 0, 0)), (1, 9, 40, 64, 32, (3, 3), (1, 1), 1, (1, 1, 1, 1)),
        (1, 2, 9, 48, 8, (5, 3), (1, 1), 1, (4, 1, 4, 1)),
    )):  # fmt: skip
        if number in cases or not cases:
            x = net.argument(net.numbers("float32", images, height, width, channels))
            weights = net.constant(net.numbers("float32", outputs, *kernel, channels))
            sums = net.conv2d(x, weights, strides=stride, padding=padding, dilation=(dilation, dilation))
            net.result(f"{number}", net.relu(sums, outputs))
    if not cases:
        x = net.argument(net.numbers("float32", 50, 500))
        net.result("product", net.relu(net.dense(x, net.constant(net.numbers("float32", 40, 500))), 40))
    return net


def results(net: Net, *before: Pass) -> list[Array]:
    """What a build computes whose schedules these passes give."""
    steps = list(default_pipeline(HASWELL))
    at = next(number for number, each in enumerate(steps) if isinstance(each, Schedule))
    with PassContext(opt_level=1):  # LLVM is quick there
        executable = build(net.module(), HASWELL, pipeline=Pipeline([*steps[:at], *before, *steps[at:]]))
    return arrays(executable(*net.inputs))


def arrays(results: Any) -> list[Array]:
    """The results of a run of several."""
    return [np.asarray(each) for each in results]


def test_is_chosen_for_all_of_these():
    module = default_pipeline(HASWELL)(convolutions().module())
    every = [one for function in module.functions.values() for one in schedules_of(function)]
    chosen = [one.skip_border for one in every if isinstance(one, BlockedReductionSchedule)]
    assert len(chosen) == 10 and {*chosen} == {True, False}


@runs
@pytest.mark.parametrize("cases", [(2, 5), pytest.param((), marks=pytest.mark.ci)], ids=["some", "all"])
def test_bits_are_those_of_sums_in_one_go(cases: tuple[int, ...]):
    wanted = results(convolutions(*cases), InOneGo())
    for number, (found, want) in enumerate(zip(results(convolutions(*cases)), wanted, strict=True)):
        assert np.array_equal(found, want), number


@pytest.mark.ci
@runs
def test_sums_are_near_the_interpreter():
    convolutions().check(HASWELL)


@runs
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40))])
def test_every_legal_schedule_computes_the_same(seed: int):
    wanted = run(convolutions(0, 1, 5).module(), convolutions(0, 1, 5).inputs)
    for number, pair in enumerate(zip(results(convolutions(0, 1, 5), DrawSchedules(seed)), wanted, strict=True)):
        assert equal(*pair), number


@runs
def test_threads_compute_the_same():
    net = convolutions(0, 7)
    wanted = results(convolutions(0, 7))
    executable = build(net.module(), HASWELL, num_threads=2)
    assert all(map(np.array_equal, arrays(executable(*net.inputs)), wanted))
