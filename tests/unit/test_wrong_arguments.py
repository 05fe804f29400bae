"""What public functions say of arguments that are of another type, or of no sense: one line, never Python's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import SSAValue
from xdsl.utils.test_value import create_ssa_value

import relay
from relay.dialects.attributes import ints
from relay.dialects.relay import AddOp, TransposeOp
from relay.errors import InvalidArgument, RelayError
from relay.frontend import from_tflite
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node
from relay.module import IRModule
from relay.passes import PassContext, Pipeline, Sequential, function_pass, module_pass
from relay.transform import (
    AttachTarget,
    BisectLimit,
    CrashReproducer,
    DumpIR,
    FoldConstant,
    Legalize,
    PassPrintingInstrument,
    PassTimingInstrument,
    explore,
    find_culprit,
)
from tests.unit.pass_modules import Mark, small

SCALAR = "func.func @main(%x: f32) -> f32 {\n  func.return %x : f32\n}"
DECLARED = "func.func private @main(tensor<4xf32>) -> tensor<4xf32>"
DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"
X = [np.zeros(4, np.float32)]


def any_of(value: object) -> Any:
    """A value of which nothing is known: arguments here are wrong on purpose."""
    return value


def same(mod: IRModule, ctx: PassContext) -> IRModule:
    return mod


def made(**options: object) -> object:
    return module_pass(same, **any_of({"opt_level": 1, **options}))


def call(function: Callable[..., object], *arguments: object) -> object:
    return function(*arguments)


def requested(*names: object, **where: object) -> IRModule:
    mod = small()
    mod.request_pass(*any_of(names), **any_of(where))
    return mod


def imported(**options: object) -> IRModule:
    return from_tflite(DIGITS, **any_of(options))


def one_per_output(importer: Importer, node: Node) -> list[SSAValue]:
    return [importer.value(node.input(0))]


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "build(None)": (lambda: relay.build(any_of(None)), "model: None is no module and no file; import a model with rel"),
    "build(nul)": (lambda: relay.build("a\0b"), r"a\\x00b: cannot be read: .*embedded null .*; give the path or"),
    "build([])": (lambda: relay.build(any_of([])), r"model: \[\] is no module and no file"),
    "params=[1]": (
        lambda: relay.build(small(), params=any_of([1])),
        r"params: \[1\] is no mapping; write params={name",
    ),
    "params={1: 2}": (lambda: relay.build(small(), params=any_of({1: 2})), "params, key: 1 is no text"),
    "ragged params": (
        lambda: relay.build(weighted(), params={"w": any_of([[1], [1, 2]])}),
        r"params\['w'\]: is no array: ",
    ),
    "params of objects": (
        lambda: relay.build(weighted(), params={"w": any_of(["a"])}),
        r"params\['w'\]: is an array of <U1; give numbers",
    ),
    "frontend=[]": (
        lambda: relay.build(small(), frontend=any_of([])),
        r"frontend: \[\] is no mapping; write frontend={'batch': 1}",
    ),
    "frontend=[1]": (
        lambda: relay.build("x.tflite", frontend=any_of([1])),
        r"frontend: \[1\] is no mapping; write frontend={'batch': 1}",
    ),
    "pipeline=3": (lambda: relay.build(small(), pipeline=any_of(3)), "pipeline: 3 is no list; give a list of passes"),
    "pipeline=pass": (lambda: relay.build(small(), pipeline=any_of(Legalize())), "is no list; give a list of passes"),
    "level 2.0": (lambda: relay.build(small(), opt_level=any_of(2.0)), "opt_level=2.0: is not one of 0, 1, 2, 3, 4"),
    "build a scalar": (lambda: relay.build(IRModule.parse(SCALAR)), "function main: takes f32, which is no tensor"),
    "build a declaration": (lambda: relay.build(IRModule.parse(DECLARED)), "function main: is only declared; give it"),
    "optimize(None)": (lambda: relay.optimize(any_of(None)), "module: None is no module; import a model with"),
    "optimize(path)": (lambda: relay.optimize(any_of("a.tflite")), "module: 'a.tflite' is no module; import a model"),
    "IRModule(3)": (lambda: IRModule(any_of(3)), "IRModule: 3 is no ModuleOp; text is read by IRModule.parse"),
    "parse(None)": (lambda: IRModule.parse(any_of(None)), "IRModule.parse: None is no text"),
    "parse(bytes)": (lambda: IRModule.parse(any_of(b"x")), "IRModule.parse: b'x' is no text"),
    "parse deep": (lambda: IRModule.parse("builtin.module {" * 3000), "<text>: is nested too deeply"),
    "parse weights=3": (lambda: IRModule.parse(SCALAR, weights=any_of(3)), "weights: 3 is no mapping"),
    "mod['f'] = 3": (lambda: small().__setitem__("f", any_of(3)), "function f: 3 is no FuncOp"),
    "request 3": (lambda: requested(3), r"request_pass\(3\): 3 is no text; passes are told by their names"),
    "request before 3": (lambda: requested("cse", before=3), r"request_pass\('cse'\): 3 is no text"),
    "Pass()(None)": (lambda: call(Legalize(), None), "module: None is no module"),
    "option of a pass": (
        lambda: FoldConstant(max_bytes=any_of("x"))(small()),
        "pass fold-constant, option max_bytes: 'x' is not of type int",
    ),
    "feature list": (
        lambda: AttachTarget(any_of(3))(small()),
        "pass attach-target, option target: 3 is not of type str",
    ),
    "Pipeline(None)": (lambda: Pipeline(any_of(None)), "pipeline: None is no list"),
    "Pipeline(text)": (lambda: Pipeline(any_of("cse")), "pipeline: is the text 'cse'; Pipeline.parse reads one"),
    "Pipeline level": (lambda: Pipeline([Mark()], any_of("x")), "pipeline sequential, opt_level='x': is not one of"),
    "Pipeline required": (
        lambda: Pipeline([], required="legal"),
        "required: is the text 'legal'; write required=\\['l",
    ),
    "Pipeline required 3": (lambda: Pipeline([], required=any_of([3])), "required: 3 is no text"),
    "parse(3)": (lambda: Pipeline.parse(any_of(3)), "pipeline: 3 is no text; write for example 'cse,dce'"),
    "index(3)": (lambda: Pipeline([Mark()]).index(any_of(3)), "pipeline: 3 is no text; passes are told by their names"),
    "remove(class)": (lambda: Pipeline([Mark()]).remove(any_of(Mark)), "pipeline: <class .* is no text"),
    "[None]": (lambda: call(Pipeline([Mark()]).__getitem__, None), "pipeline: has no position None; it has 1 passes"),
    "[1]": (lambda: Pipeline([Mark()])[1], "pipeline: has no position 1; it has 1 passes"),
    "mark#": (lambda: Pipeline.parse("cse").remove("cse#"), "has 1 of 'cse', no 'cse#'; count from #1"),
    "mark#²": (lambda: Pipeline.parse("cse").remove("cse#²"), "has 1 of 'cse', no 'cse#²'; count from #1"),
    "+ 3": (lambda: Pipeline() + any_of(3), "pipeline: 3 is no list"),
    "required_pass=[3]": (
        lambda: PassContext(required_pass=any_of([3])),
        "required_pass: 3 is no text; passes are told",
    ),
    "disabled_pass=3": (lambda: PassContext(disabled_pass=any_of(3)), "disabled_pass: 3 is no list"),
    "config=[1]": (
        lambda: PassContext(config=any_of([1])),
        r"config: \[1\] is no mapping; write config={'fold-constant",
    ),
    "config={3: 1}": (lambda: PassContext(config=any_of({3: 1})), "config, key: 3 is no text"),
    "instruments=[3]": (lambda: PassContext(instruments=any_of([3])), "instruments: 3 is no PassInstrument"),
    "instruments=class": (
        lambda: PassContext(instruments=any_of([PassTimingInstrument])),
        r"instruments: PassTimingInstrument is a class; write PassTimingInstrument\(\)",
    ),
    "instruments=3": (lambda: PassContext(instruments=any_of(3)), "instruments: 3 is no list"),
    "DumpIR(None)": (lambda: DumpIR(any_of(None)), "DumpIR: None is no path"),
    "CrashReproducer(None)": (lambda: CrashReproducer(any_of(None)), "CrashReproducer: None is no path"),
    "BisectLimit": (lambda: BisectLimit(any_of("x")), "BisectLimit: 'x' is no int; give a number of passes"),
    "printing": (lambda: PassPrintingInstrument(before="cse"), "PassPrintingInstrument: is the text 'cse'; write"),
    "culprit inputs": (lambda: find_culprit(small(), "cse", any_of(3)), "inputs: 3 is no list; give a list of arrays"),
    "culprit pipeline": (lambda: find_culprit(small(), any_of(3), X), "pipeline: 3 is no list"),
    "choices": (lambda: explore(small(), any_of(3)), "choices: 3 is no mapping; write choices={'default': {}}"),
    "BuildConfig before": (lambda: relay.BuildConfig(before=any_of(3)), "before: 3 is no mapping"),
    "BuildConfig remove": (
        lambda: relay.BuildConfig(remove="cse"),
        r"remove: is the text 'cse'; write remove=\['cse'\]",
    ),
    "no function": (lambda: call(module_pass, 3, 1), "module_pass: 3 is no function; give f"),
    "level of a function": (lambda: made(opt_level=9, name="x"), "module_pass same, opt_level=9: is not one of"),
    "name of a function": (lambda: made(name=3), "module_pass same: 3 is no text"),
    "required of a function": (lambda: made(name="x", required=[3]), "required: 3 is no text"),
    "required by a function": (
        lambda: call(function_pass, str, 1),
        "function_pass str: the class has no method transform_function",
    ),
    "batch too large": (
        lambda: imported(batch=1 << 31),
        r"operator 8 RESHAPE '.*: batch 2147483648 needs 2147483648 in tensor .*int32; use a smaller batch",
    ),
    "numerics=[]": (lambda: imported(numerics=["litert"]), r"numerics \['litert'\] is unknown; use one of litert, "),
    "custom_ops builtin": (
        lambda: imported(custom_ops={"CONV_2D": one_per_output}),
        r"custom_ops\['CONV_2D'\]: is no code of a custom operator; operators of TFLite's own stay as they are",
    ),
    "custom_ops CUSTOM:X": (lambda: imported(custom_ops={"CUSTOM:X": one_per_output}), "is no code of a custom oper"),
    "make without a property": (
        lambda: TransposeOp.make([create_ssa_value(TensorType(f32, [2, 3]))]),
        "^relay.transpose: its property 'axes' is not given",
    ),
    "make with one operand": (
        lambda: AddOp.make([create_ssa_value(TensorType(f32, [2]))]),
        "^relay.add: takes 2 operands, not 1$",
    ),
    "make with an unknown property": (
        lambda: TransposeOp.make([create_ssa_value(TensorType(f32, [2, 3]))], {"axis": ints([1, 0])}),
        "^relay.transpose: has no property 'axis'; it has axes",
    ),
    "make with a number": (
        lambda: TransposeOp.make([create_ssa_value(TensorType(f32, [2, 3]))], cast(Any, {"axes": [1, 0]})),
        r"^relay.transpose: its property 'axes' is \[1, 0\], which is no attribute; ",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_is_one_clear_line(name: str):
    call, said = CASES[name]
    with pytest.raises(RelayError, match=said) as raised:
        call()
    assert "\n" not in str(raised.value)


def weighted() -> IRModule:
    return IRModule.parse('%w = relay.constant {label = "w"} dense<0.0> : tensor<4xf32>')


def test_an_executable_told_nonsense(tmp_path: Path):
    executable = relay.build(small())
    for key in ([1], None, "x", 7, -1):
        with pytest.raises(InvalidArgument, match="input .* is unknown; the inputs are arg0"):
            executable.set_input(any_of(key), X[0])
    for path in (None, 3.5, "", "a\0b", tmp_path, tmp_path / "nowhere" / "x", "/proc/x"):
        with pytest.raises(InvalidArgument, match="is none; give the name of a file|names no file|cannot be "):
            executable.save(any_of(path))
        with pytest.raises(InvalidArgument, match="is none; give the name of a file|names no file|cannot be "):
            relay.runtime.load(any_of(path))


def test_a_pipeline_does_not_hold_itself():
    outer, inner = Pipeline([Mark()], name="outer"), Pipeline(name="inner")
    outer.append(inner)
    for step in (outer, inner, Pipeline([outer])):
        with pytest.raises(InvalidArgument, match="pipeline (outer|inner): would hold itself"):
            outer.append(step)
    with pytest.raises(InvalidArgument, match="pipeline outer: would hold itself"):
        outer.insert_after("inner", outer)


def test_a_pipeline_run_by_itself_has_what_it_requires():
    with pytest.raises(InvalidArgument, match="pass sequential, required: there is no pass 'nope'"):
        Sequential([Mark()], required=["nope"])(small())


def test_a_callable_without_a_name_is_a_pass():
    class Adder:
        def __call__(self, mod: IRModule, ctx: PassContext) -> IRModule:
            return mod

    assert module_pass(Adder(), opt_level=1).name == "Adder"


def test_values_are_shown_on_one_line():
    class Rude:
        def __repr__(self) -> str:
            raise ValueError("no")

    with pytest.raises(InvalidArgument, match=r"^model: array\(\[\[\[0., 0.,.*\.\.\. is no module") as raised:
        relay.build(any_of(np.zeros((40, 40, 40))))
    assert "\n" not in str(raised.value)
    with pytest.raises(InvalidArgument, match="model: of type Rude is no module"):
        relay.build(any_of(Rude()))
