"""What went where and why, at every step; the tensors at the edges."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.byoc import calibration
from relay.byoc.compiler import Refusal
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.compile_external import CompileExternal
from relay.byoc.partitioning.inline_partitions import InlinePartitions
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.byoc.partitioning.prune_regions import PruneRegions
from relay.byoc.patterns import Entry, is_constant, is_op, wildcard
from relay.errors import InvalidArgument, Unsupported
from relay.interpreters import run
from relay.module import IRModule
from relay.tools.relay_opt import main
from relay.transform import FuseOps, Legalize, Sequential
from tests.unit.partitioning_modules import Known, arguments, function, merged, module, partition
from tests.unit.test_annotate_target import DIGITS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def steps(known: Known) -> dict[str, IRModule]:
    """A model on its way to two compilers: `npu` takes convolutions and dense layers, `dsp` what it is told."""
    conv = is_op("qnn.conv2d", "qnn.dense")(wildcard(), is_constant())
    entry = Entry("conv", is_op("qnn.requantize")(is_op("nn.bias_add")(conv, is_constant())))
    known("npu", entries=[entry], supports=lambda op: Refusal("it only has multipliers"))
    known("dsp", "nn.max_pool2d", "nn.avg_pool2d", "qnn.mean")
    found = {"model": relay.frontend.from_tflite(DIGITS)}
    names = ("npu", "dsp")
    for name, step in (
        ("composites", MergeComposite(names)),
        ("annotated", AnnotateTarget(names)),
        ("regions", MergeCompilerRegions()),
        ("pruned", PruneRegions(compute=False)),
        ("functions", PartitionGraph()),
        ("legal", Legalize()),
        ("declarations", CompileExternal()),
        ("kernels", FuseOps()),
    ):
        found[name] = step(list(found.values())[-1])
    return found


def test_every_step_tells_the_same(steps: dict[str, IRModule]):
    """Which compiler has which operator, and the reasons, do not depend on the step; places become more exact."""
    wanted = steps["annotated"].partition_report()
    assert {row.compiler for row in wanted.rows} == {"npu", "dsp", ""}
    for name in ("regions", "pruned", "functions", "legal", "declarations", "kernels"):
        report = steps[name].partition_report()
        assert report.targets == ("npu", "dsp")
        found = [(row.op, row.source, row.compiler, row.macs, row.refused) for row in report.rows]
        assert found == [(row.op, row.source, row.compiler, row.macs, row.refused) for row in wanted.rows], name
    places = {row.place for row in steps["kernels"].partition_report().rows}
    assert places == {"", *(name for name in steps["functions"] if name != "main")}


def test_rows_are_all_ops_of_the_model(steps: dict[str, IRModule]):
    ops = [op.name for op in steps["model"]["main"].body.block.ops if op.name not in ("relay.constant", "func.return")]
    assert sorted(row.op for row in steps["kernels"].partition_report().rows) == sorted(ops)


def test_table(steps: dict[str, IRModule]):
    lines = str(steps["functions"].partition_report()).splitlines()
    rows = steps["functions"].partition_report().rows
    mine = [row for row in rows if row.compiler == "npu"]
    assert lines[0].startswith(f"npu: {len(mine)} of {len(rows)} ops, 100.0 % of {sum(row.macs for row in rows)} mult")
    assert lines[2].startswith("host: ") and lines[4].split() == "operator ops where why not elsewhere".split()
    conv = next(line for line in lines if line.startswith("operator 0 CONV_2D"))
    assert "qnn.conv2d, nn.bias_add, qnn.requantize" in conv and "npu: relay_npu_main_0" in conv
    softmax = next(line for line in lines if "SOFTMAX" in line)
    assert softmax.endswith(
        "host                   npu: it only has multipliers; dsp: no pattern matches it, and it is not taken alone"
    )


def test_json(steps: dict[str, IRModule]):
    found = json.loads(steps["functions"].partition_report().to_json())
    assert found["targets"] == ["npu", "dsp"] and len(found["summary"]) == 3
    assert found["rows"][0] == {
        "op": "qnn.conv2d",
        "source": steps["functions"].partition_report().rows[0].source,
        "function": "relay_npu_main_0",
        "compiler": "npu",
        "place": "relay_npu_main_0",
        "macs": steps["functions"].partition_report().rows[0].macs,
        "line": 0,
        "refused": {},
    }


def test_text_keeps_it(steps: dict[str, IRModule]):
    """Parsed again, the module tells the same."""
    before = steps["declarations"]
    again = IRModule.parse(before.to_text(locations=True), before.side_car())
    assert str(again.partition_report()) == str(before.partition_report())


def test_why_an_earlier_compiler_does_not_have_what_a_later_one_took(known: Known):
    known("a", supports=lambda op: Refusal("it is too small for a"))
    known("b", "abs")
    (row,) = partition(module("r = abs x\nreturn r"), "a", "b").partition_report().rows
    assert (row.compiler, row.refused) == ("b", {"a": "it is too small for a"})


def test_a_check_s_reason_stays_beside_that_of_the_single_op(known: Known):
    entry = Entry("clip_abs", is_op("clip")(is_op("abs")(wildcard())), lambda match: Refusal("4 columns"))
    known("a", entries=[entry], supports=lambda op: Refusal(f"a has no {op.name}"))
    done = merged(module("r = abs x\ns = clip r\nreturn s"), "a")
    rows = AnnotateTarget("a")(done).partition_report().rows
    assert [row.refused["a"] for row in rows] == [f"clip_abs: 4 columns; a has no {row.op}" for row in rows]


@pytest.mark.parametrize("targets", [("a",), ("a", "b"), ("b", "a")])
def test_the_cheapest_plan_says_why_others_have_no_part(known: Known, targets: tuple[str, ...]):
    """Whichever plan is chosen, also one that did not offer an op to the compiler."""
    known("a", supports=lambda op: True, cost=lambda ops: sum(1e9 if op.name == "relay.exp" else 1e-9 for op in ops))
    known("b", supports=lambda op: op.name == "relay.tanh" or Refusal("b says no"), cost=lambda ops: 1e-8)
    mod = module("r = abs x\ns = exp r\nt = tanh s\nreturn t")
    report = relay.build_external_compiler(mod, targets, choose="cost").partition_report()
    assert set(report.targets) == set(targets)
    for row in report.rows:
        reasons = {"a": "the region takes 1e+09 us, on the host ", "b": "b says no"}
        if row.op == "relay.tanh":
            reasons["b"] = "the plan costs less without it"
        refused = [name for name in targets if name != row.compiler]
        assert set(row.refused) == set(refused)
        assert all(row.refused[name].startswith(reasons[name]) for name in refused)


def test_what_was_pruned_says_so(known: Known):
    known("a", "abs")
    done = PartitionGraph()(PruneRegions(min_ops=2)(merged(module("r = abs x\nreturn r"), "a")))
    (row,) = done.partition_report().rows
    assert row.compiler == "" and row.refused == {"a": "a region of 1 ops is smaller than min_ops = 2"}


def test_reasons_for_what_is_never_taken(known: Known):
    known("a", "abs", "clip")
    mod = module("k = constant 1.0\nn = negative k\nr = abs x\ns = clip r\nreturn r, n")
    rows = {row.op: row.refused for row in AnnotateTarget("a")(mod).partition_report().rows}
    assert rows["relay.negative"] == {"a": "is computed from constants alone"}
    assert rows["relay.clip"] == {"a": "nothing uses its result"}


def test_a_composite_that_nobody_was_given(known: Known):
    known("a", entries=[Entry("abs", is_op("abs")(wildcard()))])
    done = MergeComposite("a")(module("r = abs x\nreturn r"))
    (row,) = done.partition_report().rows
    assert row.refused == {"a": "a.abs matches it, but was not annotated"}


def test_a_function_that_nobody_asked_about_has_no_reasons(known: Known):
    known("a", "abs")
    mod = module("r = exp x\nreturn r")
    mod["other"] = function("r = exp x\nreturn r", name="other")
    mod["main"].set_func_attr("compiler", "a")
    rows = PartitionGraph()(AnnotateTarget()(mod)).partition_report().rows
    assert [(row.function, bool(row.refused)) for row in rows] == [("main", True), ("other", False)]


def test_partitioning_further_keeps_reasons(known: Known):
    known("a", supports=lambda op: op.name == "relay.abs" or Refusal("a says no"))
    known("b", "exp")
    mod = module("r = exp x\ns = abs r\nt = tanh s\nreturn t")
    first = PartitionGraph()(merged(mod, "a"))
    rows = {row.op: row for row in PartitionGraph()(merged(first, "b")).partition_report().rows}
    assert rows["relay.exp"].compiler == "b" and rows["relay.exp"].refused == {"a": "a says no"}
    other = "no pattern matches it, and it is not taken alone"
    assert rows["relay.tanh"].refused == {"a": "a says no", "b": other}
    assert rows["relay.abs"].compiler == "a"


def test_inlined_nothing_is_kept(known: Known):
    known("a", "abs")
    done = InlinePartitions()(partition(module("r = exp x\ns = abs r\nreturn s"), "a"))
    assert "byoc" not in done.to_text() and str(done.partition_report()).startswith("host: 2 of 2 ops\n")


@pytest.mark.usefixtures("known")
def test_relay_opt_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    load = ["--load", str(ROOT / "tests" / "filecheck" / "compilers.py")]
    passes = ["-p", "merge-composite{compiler=alpha},annotate-target{targets=alpha},partition-graph"]
    assert main([str(DIGITS), "--partition-report", "-o", str(tmp_path / "out"), *load, *passes]) == 0
    assert capsys.readouterr().err.startswith("alpha: 0 of ")
    bad = tmp_path / "bad.py"
    bad.write_text("1 / 0")
    assert main([str(DIGITS), "--load", str(bad)]) == 1
    assert capsys.readouterr().err == f"--load {bad}: ZeroDivisionError: division by zero; it is run as Python\n"
    assert main([str(DIGITS), "--load", "none.py"]) == 1
    assert capsys.readouterr().err == "--load: there is no file none.py; name a Python file\n"


def test_calibration_gives_the_tensors_at_the_edges(steps: dict[str, IRModule]):
    """By function or by region: the same tensors; running the function on them gives its outputs."""
    image = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    functions = calibration(steps["functions"], [image])
    regions = calibration(steps["regions"], [image])
    assert list(regions) == [f"main region {k}" for k in range(len(functions))]
    for (name, (edges,)), (again,) in zip(functions.items(), regions.values(), strict=True):
        assert edges.compiler == again.compiler and name.startswith(f"relay_{edges.compiler}_main_")
        for a, b in zip((*edges.inputs, *edges.outputs), (*again.inputs, *again.outputs), strict=True):
            assert np.array_equal(a, b)
        for a, b in zip(run(steps["functions"], edges.inputs, name), edges.outputs, strict=True):
            assert np.array_equal(a, b)


def test_calibration_of_a_function_that_runs_twice_and_one_that_does_not(known: Known):
    known("x", "abs")
    mod = module("r = abs x\nreturn r")
    mod["inner"] = function("r = abs x\nreturn r", name="inner")
    mod["unused"] = function("r = abs x\nreturn r", name="unused")
    mod["main"] = function("a = call inner x\nb = exp a\nc = call inner b\nreturn c")
    done = PartitionGraph()(merged(mod, "x"))
    found = calibration(done, arguments(mod))
    assert {name: len(edges) for name, edges in found.items()} == {"relay_x_inner_0": 2, "relay_x_unused_0": 0}


def test_calibration_needs_regions_and_bodies(known: Known):
    known("x", "abs")
    mod = module("r = abs x\nreturn r")
    with pytest.raises(
        InvalidArgument, match="calibration: the module is annotated, but has no regions yet; run merge"
    ):
        calibration(AnnotateTarget("x")(mod), arguments(mod))
    done = Sequential([AnnotateTarget("x"), PartitionGraph(), CompileExternal()])(mod)
    with pytest.raises(Unsupported, match="function relay_x_main_0: has no body"):
        calibration(done, arguments(mod))
