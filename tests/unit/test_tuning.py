"""`relay.tune`: schedules that are faster beyond doubt become records, and builds run by them."""

from __future__ import annotations

import functools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.ir import Attribute

import relay
from relay import IRModule, Records
from relay.compile import cache
from relay.compile.records import Record
from relay.compile.request import Request
from relay.dialects.context import make_context
from relay.errors import InvalidArgument, Malformed
from relay.exploration.tuning import (
    DrawSchedules,
    Job,
    Kernel,
    Measured,
    faster,
    fitted,
    measured,
    seconds_of,
    sums_floats,
    tune,
)
from relay.lowering.scheduling.records import attribute_of, processor_of
from relay.passes import PassContext, Pipeline
from relay.runtime.profile import Call
from relay.target import resolve
from relay.target.record import CpuTarget

TARGET = "x86_64-linux-gnu -mcpu=cascadelake"
MODEL = """func.func @main(%x: tensor<12x32xi8>) -> (tensor<12x24xi32>, tensor<12xf32>) {
  %w = relay.constant dense<3> : tensor<24x32xi8>
  %0 = relay.nn.dense %x, %w {out_dtype = i32} : (tensor<12x32xi8>, tensor<24x32xi8>) -> tensor<12x24xi32>
  %1 = relay.cast %x {dtype = f32} : (tensor<12x32xi8>) -> tensor<12x32xf32>
  %2 = relay.sum %1 {axis = array<i64: 1>} : (tensor<12x32xf32>) -> tensor<12xf32>
  func.return %0, %2 : tensor<12x24xi32>, tensor<12xf32>
}"""
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
COMMITTED = Records.load(Path(__file__).parents[2] / "benchmarks" / "records.json")
SLOW = '{strategy = "nest"}'


def processor() -> str:
    machine = resolve(TARGET)
    assert isinstance(machine, CpuTarget)
    return processor_of(machine)


def lowered(text: str = MODEL) -> tuple[IRModule, DrawSchedules]:
    """A module before `schedule`, and what its kernels are."""
    module, names = lowered_once(text)
    return module.clone(), names


@functools.cache
def lowered_once(text: str) -> tuple[IRModule, DrawSchedules]:
    names = DrawSchedules(None)
    steps = [*relay.default_pipeline(TARGET)]
    end = [step.name for step in steps].index("schedule")
    return Pipeline([*steps[:end], names])(IRModule.parse(text)), names


def decisions_of(schedule: Attribute) -> str:
    """A schedule without its reasons."""
    return re.sub(r', why = "[^"]*"', "", str(schedule))


def kernel_of(module: IRModule) -> str:
    return next(f.sym_name.data for f in module.functions.values() if f.sym_name.data.startswith("dense"))


def test_a_kernel_is_known_by_what_it_computes() -> None:
    module, first = lowered()
    name = kernel_of(module)
    _, renamed = lowered(MODEL.replace("%x", "%y").replace("dense<3>", "dense<-5>"))
    _, larger = lowered(MODEL.replace("12x", "16x"))
    assert first.signatures[name] == renamed.signatures[name] != larger.signatures[name]


@pytest.mark.parametrize(
    ("schedule", "of_this", "obeyed"),
    [(SLOW, True, True), (SLOW, False, False), ('{strategy = "contraction", tile = [1, 4096]}', True, False)],
)
def test_a_record_is_obeyed_where_it_is_possible(schedule: str, of_this: bool, obeyed: bool) -> None:
    module, names = lowered()
    name = kernel_of(module)
    rows = {names.signatures[name]: Record(schedule, 1.0, 2.0)}
    records = Records({processor() if of_this else "another": rows})
    with PassContext(config={"schedule.records": records.text}):
        found = str(Pipeline.parse("schedule")(module)[name].attributes["relay.schedule"])
    assert ("asked for" in found) == obeyed and ('strategy = "nest"' in found) == obeyed


def test_an_attribute_counts_more_than_a_record() -> None:
    module, names = lowered()
    name = kernel_of(module)
    records = Records({processor(): {names.signatures[name]: Record(SLOW, 1.0, 2.0)}})
    module[name].attributes["relay.schedule"] = attribute_of('{strategy = "contraction"}')
    with PassContext(config={"schedule.records": records.text}):
        assert '"contraction"' in str(Pipeline.parse("schedule")(module)[name].attributes["relay.schedule"])


def test_a_build_with_records_gives_the_same_and_has_a_key_of_its_own() -> None:
    _, names = lowered()
    rows = {signature: Record(SLOW, 1.0, 2.0) for signature in names.signatures.values()}
    machine = resolve("llvm")
    assert isinstance(machine, CpuTarget)
    x = np.random.default_rng(0).integers(-128, 128, (12, 32)).astype(np.int8)
    default = relay.build(IRModule.parse(MODEL))
    slow, none = (relay.build(IRModule.parse(MODEL), records=Records({processor_of(machine): r})) for r in (rows, {}))
    assert default.library.code == none.library.code != slow.library.code
    wanted, found = default.run(x), slow.run(x)
    assert isinstance(wanted, tuple) and isinstance(found, tuple)
    assert np.array_equal(np.asarray(wanted[0]), np.asarray(found[0]))
    assert cache.keyed(Request(MODEL.encode(), records=Records({}))) is None
    with pytest.raises(InvalidArgument, match="records: 3 is no Records; give what relay.tune returned"):
        relay.build(IRModule.parse(MODEL), records=cast(Any, 3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "is no table of processors, kernels and schedules"),
        ('{"a": {"b": 3}}', "is no table of processors, kernels and schedules"),
    ],
)
def test_texts_that_are_no_records(text: str, said: str) -> None:
    module, _ = lowered()
    with PassContext(config={"schedule.records": text}), pytest.raises(InvalidArgument, match=said):
        Pipeline.parse("schedule")(module)


@pytest.mark.parametrize(("schedule", "said"), [("{strategy", "is no attribute"), ("3 : i64", "is no dictionary")])
def test_schedules_that_are_none(schedule: str, said: str) -> None:
    module, names = lowered()
    rows = {signature: Record(schedule, 1.0, 2.0) for signature in names.signatures.values()}
    with PassContext(config={"schedule.records": Records({processor(): rows}).text}):
        with pytest.raises(InvalidArgument, match=said):
            Pipeline.parse("schedule")(module)


def test_records_are_kept_and_joined(tmp_path: Path) -> None:
    first = Records({"a": {"k": Record(SLOW, 1.0, 2.0), "l": Record(SLOW, 3.0, 4.0)}})
    second = Records({"a": {"k": Record("{}", 0.5, 2.0)}, "b": {"k": Record(SLOW, 1.0, 2.0)}})
    first.save(tmp_path / "first.json")
    assert Records.load(tmp_path / "first.json") == first
    joined = first | second
    assert joined.kernels["a"]["k"].schedule == "{}" and len(joined.kernels["a"]) == 2 and "b" in joined.kernels
    again = replace(second, kernels={"a": {"k": Record("{}", 0.6, 2.1)}, "b": second.kernels["b"]})
    assert again.text == second.text  # seconds do not make another build
    for text in ("{", "{}", '{"version": 2, "kernels": {}}', '{"version": 1, "kernels": {"a": {"k": {}}}}'):
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(Malformed, match="has no records"):
            Records.load(tmp_path / "wrong.json")
    assert json.loads((tmp_path / "first.json").read_text())["version"] == 1


def test_kernels_that_the_start_has_as_another_have_no_record() -> None:
    start = {"a": Kernel("a", "", (2.0, 2.0))}
    alone = {"b": Kernel("b", "other", (1.0, 1.0))}  # where all schedules are the same, @b may become @a
    assert faster([Measured("cpu", [start, alone])]) == Records({"cpu": {}})


def test_ties_are_no_records() -> None:
    start = {name: Kernel(name, "", (2.0, 2.1, 3.0)) for name in "abcd"}
    tied = {"a": Kernel("a", "slow", (1.0, 2.0, 2.0)), "b": Kernel("b", "fast", (1.0, 1.5, 9.0))}
    slower = {"b": Kernel("b", "slower", (1.8, 1.8, 1.9)), "c": Kernel("c", "", (1.0, 1.0, 1.0))}
    same = {"d": Kernel("d", "same", (1.985, 1.985, 1.985))}
    found = faster([Measured("cpu", [start, tied, slower]), Measured("other", [start, same])])
    assert found == Records({"cpu": {"b": Record("fast", 1.0, 2.0)}, "other": {}})


def test_a_search_goes_on_from_records_and_by_what_was_measured() -> None:
    module, names = lowered()
    signature = names.signatures[kernel_of(module)]
    tile = '{strategy = "contraction", tile = array<i64: 3, 32>}'
    drawn = [DrawSchedules(seed, candidates=1, known={signature: tile}) for seed in range(8)]
    for each in drawn:
        each.apply(make_context(), lowered()[0].op)
    assert any("array<i64: 3, 32>" in each.schedules[kernel_of(module)] for each in drawn)
    pairs = [('{strategy = "nest", cycles = 10}', 5.0), ('{strategy = "nest", cycles = 10}', 9.0), (tile, 1.0)]
    several = '{ops = [{strategy = "fill", cycles = 1}, {strategy = "nest", cycles = 9}]}'
    assert fitted([*pairs, (several, 8.0)]) == {"nest": 0.8}
    slow = DrawSchedules(0, candidates=24, per_cycle={"contraction": 1e9, "product": 1e-9})
    slow.apply(make_context(), module.op)
    slow.apply(make_context(), module.op)  # what has a schedule keeps it
    assert '"product"' in slow.schedules[kernel_of(module)]


def test_sums_of_floats_keep_their_order() -> None:
    module, _ = lowered()
    assert {name for name, function in module.functions.items() if sums_floats(function)} == {"sum_0"}
    default = Pipeline.parse("schedule")(lowered()[0])["sum_0"].attributes["relay.schedule"]
    changed = set[bool]()
    for sums in (False, True):
        for seed in range(4):
            drawn = DrawSchedules(seed, sums=sums)
            drawn.apply(make_context(), (drawing := lowered()[0]).op)
            found = Pipeline.parse("schedule")(drawing)["sum_0"].attributes["relay.schedule"]
            assert (decisions_of(found) != decisions_of(default)) == ("sum_0" in drawn.schedules)
            changed.add(sums and "sum_0" in drawn.schedules)
            assert sums or "sum_0" not in drawn.schedules
    assert changed == {False, True}


def test_what_is_drawn_is_not_the_default() -> None:
    default = Pipeline.parse("schedule")(lowered()[0])
    for seed in range(8):
        drawn = DrawSchedules(seed, candidates=1)
        drawn.apply(make_context(), lowered()[0].op)
        for name, schedule in drawn.schedules.items():
            assert decisions_of(attribute_of(schedule)) != decisions_of(default[name].attributes["relay.schedule"])


def test_a_kernel_counts_by_a_call() -> None:
    calls = [Call(name, (), 9.0, 0.3, 0, 0.0, None, 0, least) for name, least in (("a", 1.0), ("b", 2.0), ("a", 3.0))]
    assert seconds_of(calls) == {"a": 2.0, "b": 2.0}


def test_what_is_measured() -> None:
    job = Job(MODEL, True, "llvm", (DrawSchedules(3, sums=False),), None, None, 2, 0.0)
    found = measured(job)
    default, drawn = found.builds
    machine = resolve("llvm")
    assert isinstance(machine, CpuTarget) and found.processor == processor_of(machine)
    name = next(each for each in default if each.startswith("dense"))
    assert default[name].schedule == "" and drawn[name].schedule.startswith("{strategy")
    assert default[name].signature == drawn[name].signature and len(drawn[name].seconds) == 2


def test_a_model_is_tuned() -> None:
    with ThreadPoolExecutor(1) as pool:
        found = tune(IRModule.parse(MODEL), trials=1, rounds=2, seconds=0.0, executor=pool)
    assert all(row.seconds < row.default_seconds for rows in found.kernels.values() for row in rows.values())
    with pytest.raises(InvalidArgument, match="tune: trials is 0; it must be at least 1"):
        tune(IRModule.parse(MODEL), trials=0)
    with pytest.raises(InvalidArgument, match="tune: the target cuda is no CPU"):
        tune(IRModule.parse(MODEL), "cuda")


@pytest.mark.parametrize("cpu", COMMITTED.kernels)
def test_committed_records_still_fit(cpu: str) -> None:
    """Kernels of the digits' model have them, and obey them, built for the processor that they were measured on."""
    name, _, features = cpu.partition(" ")
    target, wanted = f"x86_64-unknown-linux-gnu -mcpu={name}", set(features.split(","))
    there = resolve(target).features
    changes = [f"+{each}" for each in sorted(wanted - there)] + [f"-{each}" for each in sorted(there - wanted)]
    target = " ".join([target, *(["-mattr=" + ",".join(changes)] if changes else [])])
    machine, names = resolve(target), DrawSchedules(None)
    assert isinstance(machine, CpuTarget) and processor_of(machine) == cpu
    steps = [*relay.default_pipeline(target)]
    end = [step.name for step in steps].index("schedule")
    with PassContext(config={"schedule.records": COMMITTED.text}):
        module = Pipeline([*steps[:end], names, steps[end]])(relay.frontend.from_tflite(DIGITS))
    fitting = {each for each, signature in names.signatures.items() if signature in COMMITTED.kernels[cpu]}
    asked = {each for each in names.signatures if "asked for" in str(module[each].attributes["relay.schedule"])}
    assert len(fitting) >= 4 and asked == fitting
