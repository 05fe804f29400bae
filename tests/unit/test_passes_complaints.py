"""What users of Relay complained about, each with the number of its report; here it does not happen."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import bufferization
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f32
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

import relay
from relay.errors import InvalidArgument
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.module import IRModule
from relay.passes import PassContext, PassInfo, PassInstrument, Pipeline, Sequential, function_pass, registry
from relay.passes.info import info_of, names_of
from relay.target import CpuTarget, host
from relay.transform import (
    AttachTarget,
    FoldConstant,
    FuseOps,
    InferTypes,
    Legalize,
    OpStatistics,
    PassTimingInstrument,
    PrintChanged,
)
from relay.universe import PASSES
from tests.unit.pass_modules import DIGITS, Log, image, small

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch):
    """Passes made here are not known elsewhere."""
    monkeypatch.setattr(registry, "MADE", {})


def test_3761_which_pass_runs_at_which_level_is_told_by_the_pipeline_itself():
    page = (ROOT / "docs" / "passes.md").read_text()
    for level in range(5):
        for step in relay.default_pipeline("llvm", level):
            assert f"## `{step.name}`" in page


def test_6074_6075_a_disabled_prerequisite_does_not_run():
    log = Log()
    with PassContext(disabled_pass=["legalize"], instruments=[log]):
        with pytest.raises(InvalidArgument, match="disabled_pass 'legalize': is required by fuse-ops"):
            FuseOps()(from_tflite(DIGITS))
    assert log.lines == ["enter", "exit"]


def test_4067_693_prerequisites_are_transitive_and_changes_are_shown():
    ran: list[str] = []

    class Names(PassInstrument):
        def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
            ran.append(info.name)

    with PassContext(instruments=[Names()]):
        Pipeline.parse("schedule")(from_tflite(DIGITS))
    assert ran == ["legalize", "relay-to-linalg", "bufferize", "expand-apply-scale", "schedule"]


def test_16261_18511_printing_what_changed_and_numbered_dumps_are_instruments(tmp_path: Path):
    with PassContext(instruments=[PrintChanged(), relay.transform.DumpIR(tmp_path)]):
        relay.optimize(small())
    count = 1 + relay.default_pipeline().index("relay-to-linalg")
    assert [path.name[:3] for path in sorted(tmp_path.iterdir())] == [f"{n:03}" for n in range(count)]


def test_3236_5096_passes_say_what_they_need_and_leave():
    mod = from_tflite(DIGITS)
    assert tuple(FuseOps.requires) == ("legal", "inference", "layouts") and "legal" in Legalize.establishes
    assert not Legalize.holds(mod.op) and Legalize.holds(Legalize()(mod).op)


def test_9674_what_must_run_is_level_0_and_the_rest_can_be_bisected():
    must = {step.name for step in relay.default_pipeline("llvm", 0)}
    assert {"legalize", "schedule", "plan-memory"} <= must and not {"fold-constant", "cse"} & must
    optional = [step for step in relay.default_pipeline() if not info_of(step).mandatory]
    bisect = relay.transform.BisectLimit(0)
    with PassContext(instruments=[bisect]):
        executable = relay.build(DIGITS)
    codes = np.load(DIGITS.with_name("digits_test.npz"))["int8_out"][:1]
    assert np.array_equal(np.asarray(executable.run(image())), codes) and len(bisect.log) == len(optional)


def test_7008_types_are_not_inferred_again_and_again():
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        relay.build(DIGITS)
    assert "infer-types" not in {entry.name for entry in timing.root.inner}


def test_9831_a_function_pass_runs():
    seen: list[str] = []

    def look(func: FuncOp, mod: IRModule, ctx: PassContext) -> FuncOp:
        seen.append(func.sym_name.data)
        return func

    with PassContext(opt_level=0):
        Sequential([FuseOps(), function_pass(look, opt_level=0, name="look")])(small())
        function_pass(look, opt_level=4, name="look4")(small())
    assert seen == ["main", "elementwise_0", "main"]


def test_8432_inferred_types_do_not_depend_on_stale_ones():
    mod = small()
    function = mod["main"]
    for value in (function.body.block.args[0], *(op.results[0] for op in mod.op.walk() if op.name == "relay.abs")):
        Rewriter.replace_value_with_new_type(value, TensorType(f32, [7, 1] if value.name_hint == "x" else [9]))
    function.properties["function_type"] = FunctionType.from_lists([TensorType(f32, [7, 1])], [TensorType(f32, [9])])
    after = InferTypes()(mod)
    after.verify()
    assert after["main"].function_type.outputs.data == (TensorType(f32, [7, 4]),)
    assert str(InferTypes()(after)) == str(after)


def test_9164_11228_constants_behind_qnn_ops_are_folded():
    mod = IRModule.parse("""func.func @main() -> tensor<2xf32> {
      %c = relay.constant dense<[3, 5]> : tensor<2xi8>
      %r = qnn.dequantize %c {scale = 5.000000e-01 : f32, zero_point = 1 : i32} : (tensor<2xi8>) -> tensor<2xf32>
      func.return %r : tensor<2xf32>
    }""")
    folded = FoldConstant()(mod)
    assert "qnn" not in str(folded) and np.array_equal(run(folded, [])[0], np.array([1, 2], np.float32))


def test_5224_5766_7288_7565_types_survive_between_an_external_compilers_passes():
    mod = IRModule.parse("""func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
      %a, %b = byoc.region "dsp"(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
      ^bb0(%inner: tensor<4xf32>):
        %n = relay.negative %inner : (tensor<4xf32>) -> tensor<4xf32>
        %c = relay.cast %n {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
        byoc.yield %n, %c : tensor<4xf32>, tensor<4xi32>
      }
      %in = byoc.compiler_begin %a {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xf32>
      %out = byoc.compiler_end %in {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xf32>
      func.return %out, %b : tensor<4xf32>, tensor<4xi32>
    }""")
    x = np.array([1, -2, 3, 4], np.float32)
    wanted = run(mod, [x])
    for step in (InferTypes(), Legalize(), FoldConstant(), InferTypes()):
        mod = step(mod)
        mod.verify()
        assert [str(type) for type in mod["main"].function_type.outputs] == ["tensor<4xf32>", "tensor<4xi32>"]
        assert all(np.array_equal(a, b) for a, b in zip(run(mod, [x]), wanted, strict=True))


def test_12882_fusion_does_not_meet_qnn_ops():
    assert "qnn." not in str(FuseOps()(from_tflite(DIGITS)))


def test_names_are_unique():
    """Three legalize passes shared one name."""
    names = [name for factory in PASSES.values() for name in dict.fromkeys(names_of(factory()))]
    assert len(names) == len(set(names))


def test_4198_quantised_models_build_at_every_level():
    for level in range(3):
        text = str(relay.optimize(from_tflite(DIGITS), opt_level=level))
        assert "qnn." not in text


def test_11155_results_do_not_depend_on_the_target_that_legalize_is_told():
    mod = from_tflite(DIGITS)
    wanted = run(mod, [image()])[0]
    for target in ("x86_64", "x86_64 -mattr=+avx512vnni", "aarch64 -mattr=+dotprod"):
        legal = Sequential([AttachTarget(target), Legalize()])(mod)
        assert np.array_equal(run(legal, [image()])[0], wanted)


def feature_sets() -> dict[str, frozenset[str]]:
    """What processors of this kind have: nothing more than all of them, then more. Other tests use what is here."""
    here = host().features
    newest = {name for name in here if name.startswith("avx512") or name in ("avxvnni", "dotprod", "i8mm", "sve")}
    return {
        "none": frozenset(),
        "without dot products": here - newest,
        "wide, without dot products": frozenset(name for name in here if "vnni" not in name) - {"dotprod", "i8mm"},
    }


@pytest.mark.ci
def test_11155_16534_integers_do_not_depend_on_the_processor():
    """Neither do those of other processors: see tests/numeric/test_aarch64.py."""
    codes = np.load(DIGITS.with_name("digits_test.npz"))
    images, wanted = codes["int8_images"][:5], codes["int8_out"][:5]
    cpu = "x86-64" if host().triple.startswith("x86_64") else "generic"
    assembly: set[str] = set()
    for name, features in feature_sets().items():
        executable = relay.build(DIGITS, CpuTarget(host().triple, cpu, features))
        found = np.concatenate([np.asarray(executable.run(each[None])) for each in images])
        assert np.array_equal(found, wanted), name
        assembly.add(executable.get_source("asm"))
    assert len(assembly) > 1


def buffers(mod: IRModule, *, constant: bool) -> list[tuple[str, list[Attribute]]]:
    """The kernels that `@main` calls, and the types of the buffers that are constants, or that are none."""
    found: list[tuple[str, list[Attribute]]] = []
    for op in mod["main"].walk():
        if isinstance(op, CallOp):
            types = [v.type for v in op.operands if isinstance(v.owner, bufferization.ToBufferOp) == constant]
            found.append((op.callee.string_value(), types))
    return found


def test_3670_14835_layouts_are_changed_by_one_pass_for_constants_only():
    """Of a kernel the weights are packed, at build time, as the kernel likes them; between kernels nothing moves, so
    there is no layout of the whole graph to alter, and nothing to transform back."""
    pipeline = relay.default_pipeline()
    end = pipeline.index("schedule")
    before = pipeline[:end](from_tflite(DIGITS))
    after = Pipeline([pipeline["schedule"]])(before)
    assert buffers(before, constant=False) == buffers(after, constant=False)
    assert buffers(before, constant=True) != buffers(after, constant=True)
    assert not any("transpose" in name or "layout" in name for name, _ in buffers(after, constant=False))


def structured(count: int) -> ModuleOp:
    """A module of about this many ops."""
    body = "\n".join(f"%v{n + 1} = relay.negative %v{n} : (tensor<4xf32>) -> tensor<4xf32>" for n in range(count))
    text = f"func.func @main(%v0: tensor<4xf32>) -> tensor<4xf32> {{ {body}\nfunc.return %v{count} : tensor<4xf32> }}"
    return IRModule.parse(text).op


def test_5755_the_machinery_is_cheap():
    """A pass that does nothing takes few calls, no more in a large module; benchmarks/passes.py measures times."""

    def nothing(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod

    idle = relay.transform.module_pass(nothing, opt_level=0, name="nothing")
    pipeline = Sequential([idle] * 100)

    def calls(size: int) -> int:
        op, seen = structured(size), Counter[str]()
        pipeline.apply(op)
        gc.disable()  # Hypothesis has a function called by collections
        sys.setprofile(lambda frame, event, arg: seen.update([event]))
        try:
            pipeline.apply(op)
        finally:
            sys.setprofile(None)
            gc.enable()
        return seen["call"]

    assert calls(500) == calls(5) < 100 * 100


def test_statistics_tell_what_a_pass_did():
    statistics = OpStatistics()
    with PassContext(instruments=[statistics]):
        Legalize()(from_tflite(DIGITS))
    (name, row), *_ = statistics.rows
    assert name == "legalize" and row["qnn.conv2d"] == -5 and row["relay.nn.conv2d"] == 5
