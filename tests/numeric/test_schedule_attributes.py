"""Every legal `relay.schedule` gives the same integers, those of the interpreter and of plain loops; an illegal one is
one line that says what is possible."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, ints
from relay.errors import InvalidArgument
from relay.exploration.tuning import DrawSchedules
from relay.interpreters import run
from relay.lowering import schedule, scheduling
from relay.lowering.call_graph import CallGraph
from relay.lowering.schedule import Schedule
from relay.lowering.scheduling.decide import decide
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.record import ATTRIBUTE, dictionaries, write
from relay.lowering.scheduling.registry import RECORDS, STRATEGIES, schedules_of
from relay.lowering.scheduling.strategy import Emission
from relay.module import IRModule
from relay.passes import Pass, PassContext, Pipeline
from relay.target import CpuTarget, cpu_of
from tests.numeric.compiled_modules import Net
from tests.numeric.drawn_schedules import PlainSchedules

CASCADE_LAKE = "x86_64-unknown-linux-gnu -mcpu=cascadelake"


def many() -> Net:
    """A kernel for every strategy of codes and 32-bit integers."""
    net = Net(70)
    image = net.argument(net.numbers("int8", 1, 6, 7, 24))
    conv = net.conv2d(image, net.constant(net.numbers("int8", 40, 3, 3, 24)), padding=(1, 1, 1, 1), zero_points=(3, 0))
    net.result("contraction", net.requantize(conv, 40, "int8"))
    small = net.conv2d(image, net.constant(net.numbers("int8", 70, 1, 1, 24)), zero_points=(3, 0))
    net.result("pointwise", net.requantize(small, 70, "int8"))
    depthwise = net.constant(net.numbers("int8", 3, 3, 24, 1))
    channels = net.conv2d(image, depthwise, padding=(1, 1, 1, 1), groups=24, depthwise=True, zero_points=(3, 0))
    net.result("depthwise", net.requantize(channels, 24, "int8"))
    grouped = net.conv2d(
        image, net.constant(net.numbers("int8", 24, 3, 3, 6)), padding=(1, 1, 1, 1), groups=4, zero_points=(3, 0)
    )
    net.result("groups", net.requantize(grouped, 24, "int8"))
    signal = net.argument(net.numbers("uint8", 2, 30, 1, 8))
    column = net.conv2d(signal, net.constant(net.numbers("uint8", 20, 5, 1, 8)), zero_points=(9, 130))
    net.result("column", net.requantize(column, 20, "uint8"))
    sparse = net.numbers("int8", 64, 3, 3, 24)
    sparse[:32, 1:], sparse[32:, :, 1:] = 0, 0
    net.result("parts", net.requantize(net.conv2d(image, net.constant(sparse), zero_points=(3, 0)), 64, "int8"))
    a, b = net.argument(net.numbers("int8", 2, 9, 20)), net.argument(net.numbers("int8", 2, 18, 20))
    properties: dict[str, Attribute] = {
        "transpose_b": BoolAttr.from_bool(True),
        "input_zero_point": IntegerAttr(4, i32),
        "kernel_zero_point": IntegerAttr(0, i32),
    }
    net.result("product", net.requantize(net.add(relay.BatchMatmulOp, [a, b], properties), 18, "int8"))
    pool = {"pool_size": ints((3, 3)), "strides": ints((2, 2)), "padding": ints((1, 1, 1, 1))}
    net.result("windows", net.add(relay.MaxPool2dOp, [image], pool))
    wide = net.add(relay.CastOp, [image], {"dtype": element_type("int32")})
    keep = BoolAttr.from_bool(True)
    net.result("sums", net.add(relay.SumOp, [wide], {"axis": ints([1, 2]), "keepdims": keep}))
    net.result("reduction", net.add(relay.SumOp, [wide], {"axis": ints([3]), "keepdims": keep}))
    net.result("transpose", net.add(relay.TransposeOp, [image], {"axes": ints([0, 3, 1, 2])}))
    net.result("lookup", net.add(relay.LookupOp, [image, net.constant(net.numbers("int8", 256))], {}))
    codes = net.argument(net.numbers("uint8", 3, 40))
    sides = [net.add(relay.LookupOp, [codes, net.constant(net.numbers("int32", 256))], {}) for _ in "ab"]
    number = net.argument(net.numbers("int32", 3, 1))
    rescaled = [net.add(relay.HighMultiplyOp, [number, side], {}) for side in sides]
    net.result("staged", net.add(relay.SubtractOp, rescaled, {}))
    rows = net.constant(net.numbers("int32", 9, 40))
    places = net.argument(np.arange(7, dtype=np.int32))
    net.result("gathered", net.add(relay.TakeOp, [rows, places], {"axis": IntegerAttr(0, i64)}))
    near = net.argument((net.numbers("int8", 5, 64) % 3).astype(np.float32))  # all sums of a normalization are exact
    vectors = [net.constant(np.full(64, number, np.float32)) for number in (8, 0.3)]
    norm = net.add(relay.LayerNormOp, [near, *vectors], {"epsilon": FloatAttr(0.25, f32)})
    net.result("in_turn", net.add(relay.CastOp, [net.add(relay.RoundOp, [norm], {})], {"dtype": element_type("int8")}))
    net.result("attention", attention(net))
    net.result("elementwise", net.add(relay.MaximumOp, [wide, net.constant(np.array(5, np.int32))], {}))
    return net


def attention(net: Net) -> SSAValue:
    """Codes of two heads. Scores of a row are equal or far apart, so that their exponentials are 1 and 0."""
    q, k, v = (net.argument(net.numbers("uint8", 2, *shape)) for shape in ((21, 18), (18, 37), (37, 20)))
    properties: dict[str, Attribute] = {"transpose_b": BoolAttr.from_bool(False)}
    zeros = [{"input_zero_point": IntegerAttr(a, i32), "kernel_zero_point": IntegerAttr(b, i32)}
             for a, b in ((131, 126), (0, 120))]  # fmt: skip
    mask = net.argument(np.where(net.rng.random((21, 37)) < 0.3, -1e9, 0).astype(np.float32))

    def real(codes: SSAValue) -> SSAValue:
        return net.add(relay.CastOp, [codes], {"dtype": f32})

    def number(value: float) -> SSAValue:
        return net.constant(np.array(value, np.float32))

    scores = real(net.add(relay.BatchMatmulOp, [q, k], properties | zeros[0]))
    scores = net.add(relay.AddOp, [net.add(relay.MultiplyOp, [scores, number(1000)], {}), mask], {})
    weights = net.add(relay.SoftmaxOp, [scores], {"beta": FloatAttr(1.0, f32)})
    weights = net.add(relay.RoundOp, [net.add(relay.MultiplyOp, [weights, number(255)], {})], {})
    weights = net.add(relay.CastOp, [weights], {"dtype": element_type("uint8")})
    return net.requantize(net.add(relay.BatchMatmulOp, [weights, v], properties | zeros[1]), 20, "int8")


@pytest.fixture(scope="module")
def wanted() -> Sequence[Array]:
    """What the interpreter computes."""
    net = many()
    return run(net.module(), net.inputs)


def with_pass(step: Pass, target: str = "llvm") -> Pipeline:
    """The default pipeline with a pass before `schedule`."""
    steps = list(default_pipeline(target))
    at = next(number for number, each in enumerate(steps) if isinstance(each, Schedule))
    return Pipeline([*steps[:at], step, *steps[at:]])


def results(step: Pass) -> list[Array]:
    """What a build computes with these schedules."""
    net = many()
    with PassContext(opt_level=1):  # LLVM is quick there
        executable = build(net.module(), pipeline=with_pass(step))
    for spec, array in zip(executable.inputs, net.inputs, strict=True):
        executable.set_input(spec.name, array)
    executable.run()
    return [executable.get_output(number) for number in range(len(executable.outputs))]


def check(found: list[Array], wanted: Sequence[Array]) -> None:
    """Compare all results."""
    wrong = [name for name, a, b in zip(many().results, found, wanted, strict=True) if not np.array_equal(a, b)]
    assert not wrong, f"other integers: {wrong}"


def test_plain_loops_compute_the_same(wanted: Sequence[Array]):
    check(results(PlainSchedules()), wanted)


@pytest.mark.ci
@given(st.integers(0, 2**32))
@settings(max_examples=2, deadline=None)
@example(0)  # had parts with weights of 8 and of 16 bits
def test_every_legal_schedule_computes_the_same(wanted: Sequence[Array], seed: int):
    check(results(DrawSchedules(seed)), wanted)


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_more_legal_schedules_compute_the_same(wanted: Sequence[Array], seed: int):
    check(results(DrawSchedules(seed)), wanted)


# What is not legal


def before_schedule(target: str) -> IRModule:
    """The module as `schedule` gets it."""
    module, steps = many().module(), list(default_pipeline(target))
    at = next(number for number, each in enumerate(steps) if isinstance(each, Schedule))
    Pipeline(steps[:at]).apply(module)
    return module


@pytest.fixture(scope="module")
def decided() -> tuple[IRModule, IRModule, Schedule]:
    """A module before and after `schedule`, for a target with all strategies of codes."""
    (step,) = [step for step in default_pipeline(CASCADE_LAKE) if isinstance(step, Schedule)]
    before = before_schedule(CASCADE_LAKE)
    return before, step(before), step


def of_kernels(module: IRModule) -> dict[str, DictionaryAttr]:
    """What was decided, by kernel."""
    attrs = {name: function.attributes.get(ATTRIBUTE) for name, function in module.functions.items()}
    return {name: attr for name, attr in attrs.items() if isinstance(attr, DictionaryAttr)}


def test_every_strategy_of_codes_is_there(decided: tuple[IRModule, IRModule, Schedule]):
    _, after, _ = decided
    found = {one.strategy for function in after.functions.values() for one in schedules_of(function)}
    of_others = {"tile", "depthwise", "pad", "copy", "nest", "scalar_products"}
    of_floats = {"depthwise_float", "weight_only", "blocked_reduction", "row_products", "weighted_rows"}
    assert found == RECORDS.keys() - of_others - of_floats


def test_what_was_decided_is_obeyed(decided: tuple[IRModule, IRModule, Schedule]):
    before, after, step = decided
    given = before.clone()
    for name, attr in of_kernels(after).items():
        given[name].attributes[ATTRIBUTE] = attr
    again = step(given)
    for name, function in after.functions.items():
        wanted, found = (schedules_of(each) for each in (function, again[name]))
        assert [one.decisions for one in found] == [one.decisions for one in wanted], name
        assert all(one.why.startswith("asked for") for one in found)


@pytest.mark.ci
def test_emitting_reads_nothing_of_the_target(
    decided: tuple[IRModule, IRModule, Schedule], monkeypatch: pytest.MonkeyPatch
):
    before, after, step = decided
    emitting = False

    def turn_to(emits: bool, function: Callable[..., object]) -> Callable[..., object]:
        def turned(*given: object) -> object:
            nonlocal emitting
            emitting = False
            result = function(*given)
            emitting = emits
            return result

        return turned

    def guarded(target: CpuTarget, name: str) -> object:
        assert not emitting, f"emitting reads {name} of the target"
        return object.__getattribute__(target, name)

    monkeypatch.setattr(schedule, "decide", turn_to(False, decide))
    monkeypatch.setattr(schedule, "write", turn_to(True, write))
    monkeypatch.setattr(schedule, "erase_dead", turn_to(False, schedule.erase_dead))
    monkeypatch.setattr(CpuTarget, "__getattribute__", guarded)
    assert str(step(before)) == str(after)


def test_no_emitter_takes_a_target():
    emitters: list[type[object]] = [Emission]
    for name in [each.name for each in pkgutil.iter_modules(scheduling.__path__)]:
        members = vars(importlib.import_module(f"{scheduling.__name__}.{name}")).values()
        emitters += [each for each in members if inspect.isclass(each) and hasattr(each, "emit")]
    assert len(emitters) > len(STRATEGIES)
    for emitter in emitters:
        for name in ("__init__", "emit"):
            taken = str(inspect.signature(getattr(emitter, name))) if hasattr(emitter, name) else ""
            assert not re.search("Target|Costs", taken), f"{emitter.__name__}.{name} takes {taken}"


WRONG: tuple[Attribute, ...] = (
    IntegerAttr(-7, i64),
    IntegerAttr(10**6 + 7, i64),
    StringAttr("none such"),
    ints([0]),
    ints([10**6 + 7, 3, 5, 7, 9]),
    ArrayAttr([StringAttr("none such")]),
    DictionaryAttr({"a": IntegerAttr(1, i64)}),
    StringAttr(""),
)
"""Decisions that are none of any strategy."""


@given(st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_an_illegal_schedule_is_one_clear_line(decided: tuple[IRModule, IRModule, Schedule], random: Random):
    before, after, step = decided
    name, attr = random.choice(list(of_kernels(after).items()))
    entry = dict(random.choice(dictionaries(attr, name)).data)
    entry.pop("op", None)
    field = random.choice([key for key in entry if key not in ("cycles", "why", "threads")])
    if random.random() < 0.2:
        field = "nothing_like_it"
    entry[field] = random.choice(WRONG)
    message = refused(before, step, name, DictionaryAttr(entry))
    assert re.fullmatch(rf"@{name}: relay\.schedule.*; .+", message), message
    assert field in message or "none such" in message, message


def refused(before: IRModule, step: Schedule, name: str, attr: Attribute) -> str:
    """The error with which a schedule of a kernel is refused."""
    function, target = before[name], cpu_of(before.op, step.name)
    constants = GivenConstants(function.body.block, CallGraph(before.op.walk()).of(function))
    function.attributes[ATTRIBUTE] = attr
    with pytest.raises(InvalidArgument) as error:
        decide(function, constants, target)
    del function.attributes[ATTRIBUTE]
    return str(error.value)


def test_decisions_without_a_strategy_are_refused(decided: tuple[IRModule, IRModule, Schedule]):
    before, after, step = decided
    name = next(iter(of_kernels(after)))
    message = refused(before, step, name, DictionaryAttr({"tile": ints((5, 64))}))
    assert message.startswith(f"@{name}: relay.schedule") and "names no strategy; write {strategy" in message


@pytest.mark.parametrize("attr", [StringAttr("contraction"), IntegerAttr(3, i64), ArrayAttr[Attribute]([])])
def test_what_is_no_dictionary_is_refused(decided: tuple[IRModule, IRModule, Schedule], attr: Attribute):
    before, after, step = decided
    name = next(iter(of_kernels(after)))
    assert "relay.schedule: is not a dictionary" in refused(before, step, name, attr)


@pytest.mark.ci
def test_drawn_schedules_of_float_sums_add_in_the_same_order():
    net = Net(72)
    image = net.argument(net.numbers("float32", 1, 14, 14, 64))
    small = net.conv2d(image, net.constant(net.numbers("float32", 40, 1, 1, 64)))
    net.result("contraction", net.relu(small, 40))
    large = net.conv2d(image, net.constant(net.numbers("float32", 72, 3, 3, 64)), padding=(1, 1, 1, 1))
    net.result("blocked_reduction", net.relu(large, 72))
    depthwise = net.constant(net.numbers("float32", 3, 3, 64, 1))
    net.result("depthwise", net.conv2d(image, depthwise, padding=(1, 1, 1, 1), groups=64, depthwise=True))
    module, found = net.module(), list[list[bytes]]()
    drawn = [DrawSchedules(None), *(DrawSchedules(seed, sums=False, candidates=1) for seed in range(12))]
    for draw in drawn:
        pipeline = default_pipeline("llvm").insert_before("schedule", draw)
        outputs = build(module, pipeline=pipeline).run(*net.inputs)
        found.append([np.asarray(output).tobytes() for output in outputs or ()])
    assert all(each == found[0] for each in found)
    names = {name for draw in drawn for name in draw.schedules if "conv" in name}
    assert len(names) == 3 and all(len({draw.schedules.get(name) for draw in drawn}) > 2 for name in names)
