"""The build is a pipeline: listed, edited, requested, leveled; the founding snippets as they were written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import relay
from relay.errors import InvalidArgument
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.module import IRModule
from relay.passes import PassContext, Pipeline, registry
from relay.passes.info import info_of
from relay.runtime import Executable
from relay.transform import ConvertLayout, Quantize, Sequential
from tests.marks import ci
from tests.unit.pass_modules import DATA, DIGITS, Log, Mark, image

MODELS = Path(__file__).parents[2] / "../shared/models"
CODES = np.load(DATA)["int8_out"][:1]
REAL = [
    "ad01_int8",
    pytest.param("kws_int8", marks=pytest.mark.ci),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("resnet8_int8", "vww_96_int8")),
]
NEEDED = [
    "compile-external", "legalize", "fuse-ops",
    "relay-to-linalg", "expand-apply-scale", "bufferize", "schedule", "plan-memory",
]  # fmt: skip
"""What correctness needs, in this order."""


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "MADE", {"mark": Mark})


def right(executable: Executable) -> bool:
    return np.array_equal(np.asarray(executable.run(image())), CODES)


def names(pipeline: Pipeline) -> list[str]:
    return [step.name for step in pipeline]


def test_the_default_pipeline_is_what_build_runs():
    log = Log()
    with PassContext(instruments=[log]):
        relay.build(DIGITS)
        listed = names(relay.default_pipeline())
    assert [line.removeprefix("before ") for line in log.lines if line.startswith("before")] == listed


def test_levels():
    by_level = [relay.default_pipeline("llvm", level) for level in range(5)]
    assert [name for name in names(by_level[0]) if name in NEEDED] == NEEDED
    assert {"fold-constant", "simplify", "dce"} <= set(names(by_level[1])) - set(names(by_level[0]))
    for level, pipeline in enumerate(by_level):
        assert names(pipeline) == [step.name for step in by_level[4] if info_of(step).opt_level <= level]
    with PassContext(opt_level=1, required_pass=["cse"], disabled_pass=["dce"]):
        assert "cse" in relay.default_pipeline() and "dce" not in relay.default_pipeline()


@pytest.mark.parametrize("level", [0, *ci((1, 4))])
def test_integers_are_equal_at_every_level_of_the_context(level: int):
    with PassContext(opt_level=level):
        assert right(relay.build(DIGITS))


def test_an_edited_pipeline_runs():
    log = Log()
    mine = relay.default_pipeline().remove("simplify").insert_before("fuse-ops", Mark()).replace("dce", "canonicalize")
    with PassContext(instruments=[log]):
        assert right(relay.build(DIGITS, pipeline=mine))
    assert "before mark" in log.lines and "before simplify" not in log.lines and "before canonicalize" in log.lines


OTHERS = ("legalize,fuse-ops", "", "legalize,simplify,relay-to-linalg,bufferize")


@pytest.mark.parametrize("text", ["mark", *ci(OTHERS)])
def test_what_code_generation_needs_is_completed(text: str):
    assert right(relay.build(DIGITS, pipeline=text))


def test_disabling_what_correctness_needs_says_who_needs_it():
    with PassContext(disabled_pass=["legalize"]):
        with pytest.raises(
            InvalidArgument, match=r"disabled_pass 'legalize': is required by fuse-ops \(it needs 'legal'"
        ):
            relay.build(DIGITS)
    with PassContext(disabled_pass=["PlanMemory"]):
        with pytest.raises(InvalidArgument, match="disabled_pass 'plan-memory': is required by code generation"):
            relay.build(DIGITS)


def test_requests_are_honoured():
    mod, log = from_tflite(DIGITS), Log()
    mod.request_pass("qnn-legalize", before="legalize")
    mod.request_pass("mark", after="FuseOps")
    with PassContext(instruments=[log]):
        assert right(relay.build(IRModule.parse(mod.to_text(weights=True))))
    ran = [line for line in log.lines if line.startswith("before")]
    assert ran.index("before qnn-legalize") < ran.index("before legalize")
    assert ran.index("before mark") == ran.index("before fuse-ops") + 1
    mod.request_pass("mark", before="infer-types")
    with pytest.raises(
        InvalidArgument, match=r"request_pass\('mark', before='infer-types'\): the pipeline ran no such"
    ):
        relay.build(mod)


def test_optimize_stops_before_loops():
    mod = relay.optimize(DIGITS_MODULE)
    assert "qnn." not in str(mod) and "linalg." not in str(mod) and "conv2d_0" in str(mod)
    assert "linalg." in str(relay.optimize(DIGITS_MODULE, pipeline="legalize,relay-to-linalg"))


DIGITS_MODULE = from_tflite(DIGITS)


def test_build_config_stands_for_passes():
    with relay.BuildConfig(before={"dce#1": "canonicalize"}, after={"FoldConstant": Mark()}, remove=["simplify"]):
        listed = names(relay.default_pipeline())
        assert listed[(at := listed.index("fold-constant")) : at + 5] == [
            "fold-constant",
            "mark",
            "fold-explicit-padding",
            "cse",
            "canonicalize",
        ]
        assert right(relay.build(DIGITS))
    with relay.BuildConfig(quantize_model=True, quantize_start_layer=1):
        assert str(relay.default_pipeline()[0]) == "quantize{from_layer=1}"
        assert right(relay.build(DIGITS))  # of integers already: nothing to quantise
    with pytest.raises(InvalidArgument, match="BuildConfig: has no option opt_levle"):
        relay.BuildConfig(opt_levle=1)


def test_founding_snippets():
    """As they were written, Python keywords aside."""
    mod = relay.frontend.from_tflite(DIGITS)
    mod = relay.qnn.Legalize()(mod)
    assert right(relay.build(mod))

    graph, lib, params = relay.build(mod, target="llvm")
    assert right(Executable(graph, lib, params))

    passmgr = relay.default_pipeline()
    mypass = Mark()
    passmgr.run_before("FoldConstant", mypass)
    passmgr.run_after("FoldConstant", mypass)
    passmgr.remove("FoldConstant")
    assert names(passmgr)[(at := passmgr.index("fold-explicit-padding")) - 2 : at] == ["mark", "mark"]
    assert "fold-constant" not in passmgr

    seq = relay.transform.Sequential([relay.transform.FoldConstant(), relay.transform.FuseOps()])
    assert "conv2d_0" in seq(mod)


def test_founding_composition():
    """Quantise, then change the layout; the layout changes no number, and neither does the compiler."""
    digits = np.load(DATA)
    images = digits["images"][:4]
    calibration = list(images[:, None])
    seq = Sequential([Quantize(calibration=calibration), ConvertLayout("NHWC", "NHWC4c")])
    with relay.transform.PassContext(opt_level=3):
        mod = relay.frontend.from_tflite(DIGITS.with_name("digits_float.tflite"))
        mod = seq(mod)
        assert "NHWC4c" in str(mod) and "qnn.conv2d" in str(mod)
        executable = relay.build(mod)
    plain = relay.quantize.Quantize(calibration=calibration)(from_tflite(DIGITS.with_name("digits_float.tflite")))
    wanted = [run(plain, [x])[0] for x in images[:, None]]
    assert all(np.array_equal(np.asarray(executable.run(x)), y) for x, y in zip(images[:, None], wanted, strict=True))
    assert [int(y.argmax()) for y in wanted] == [int(y.argmax()) for y in digits["float_out"][:4]]


def test_both_ways_of_porting_constant_folding():
    fold = relay.transform.FoldConstant()

    @relay.transform.module_pass(opt_level=2, name="ConstFoldModule")
    def on_module(mod: IRModule, ctx: PassContext) -> IRModule:
        return fold(mod)

    def fold_function(func: FuncOp, mod: IRModule, ctx: PassContext) -> FuncOp:
        return fold(func)

    on_function = relay.transform.function_pass(fold_function, opt_level=2, name="ConstFoldFunction", required=[])
    mod = relay.qnn.Legalize()(DIGITS_MODULE)
    wanted = str(fold(mod))
    assert str(on_module(mod)) == wanted == str(on_function(mod))


@pytest.mark.parametrize("name", REAL)
def test_founding_snippet_on_real_models(name: str):
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    tag = sorted(key.split("_in")[0] for key in golden.files if "_in" in key)[0]
    mod = relay.frontend.from_tflite(path)
    mod = relay.qnn.Legalize()(mod)
    passmgr = relay.default_pipeline().run_before("FoldConstant", relay.transform.InferType()).remove("simplify")
    executable = relay.build(mod, pipeline=passmgr.passes, opt_level=1)
    assert np.array_equal(np.asarray(executable.run(golden[f"{tag}_in0"])), golden[f"{tag}_out0"])


def test_build_names_no_dialect():
    source = (Path(relay.__file__).parent / "driver.py").read_text()
    assert "qnn" not in source and "relay.dialects" not in source


def test_every_form_of_module_builds():
    assert isinstance(DIGITS_MODULE.op, ModuleOp) and right(relay.build(DIGITS_MODULE.op))
    assert right(relay.build(relay.optimize(DIGITS_MODULE)))
