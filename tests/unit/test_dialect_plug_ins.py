"""What a plug-in says of a dialect is known wherever ours are: text, passes, interpreter, importers, builds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter

import relay
from relay import IRModule, interpreters
from relay.compile import cache
from relay.compile.request import Request
from relay.dialects import plug_in
from relay.dialects.plug_in import DIALECTS, DialectPlugIn
from relay.errors import RelayError, Unsupported
from relay.exploration.bisection import find_culprit
from relay.passes import PassContext, Pipeline, registry
from relay.passes.runner import fresh_context
from relay.target import resolve
from relay.transforms.attach_target import AttachTarget
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.legalization import patterns_of
from relay.transforms.legalize import Legalize
from tests.numeric.litert_models import Case, T
from tests.unit.third_dialect import PLUG_IN, DoubleOp, TurnOp, double_scalar

MODEL = """func.func @main(%x: tensor<2x3xi32>) -> tensor<3x2xi32> {
  %0 = third.double %x {kind = !third.kind<plain>} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  %1 = third.turn %0 : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %2 = relay.negative %1 : (tensor<3x2xi32>) -> tensor<3x2xi32>
  func.return %2 : tensor<3x2xi32>
}
"""
LOOSE = MODEL.replace("third.turn", "third.loose").replace("3x2", "2x3")
X = np.arange(6, dtype=np.int32).reshape(2, 3)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DIALECTS, "registered", {"third": PLUG_IN})


def with_changes(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    monkeypatch.setitem(DIALECTS.registered, "third", replace(PLUG_IN, **changes))


def names(mod: IRModule | ModuleOp) -> set[str]:
    return {op.name for op in (mod.op if isinstance(mod, IRModule) else mod).walk()}


def test_text_is_read_and_printed_as_it_was() -> None:
    mod = IRModule.parse(MODEL)
    assert all(line in str(mod) for line in MODEL.splitlines())
    assert str(IRModule.parse(mod.to_text(generic=True))) == str(mod)
    with pytest.raises(RelayError, match="third.turn: takes a matrix"):
        IRModule.parse(MODEL.replace("2x3x", "6x").replace("3x2x", "6x"))
    assert fresh_context().get_optional_dialect("third") is not None
    assert fresh_context().get_optional_dialect("fourth") is None


def test_the_interpreter_means_and_constants_fold() -> None:
    assert np.array_equal(interpreters.run(IRModule.parse(MODEL), [X])[0], -2 * X.T)
    text = MODEL.replace("%x: tensor<2x3xi32>", "").replace(
        "  %0", "  %x = relay.constant dense<3> : tensor<2x3xi32>\n  %0", 1
    )
    assert "third.double" not in names(folded := FoldConstant()(IRModule.parse(text)))
    assert np.array_equal(interpreters.run(folded, [])[0], np.full((3, 2), -6))
    kept = text.replace("third.turn", "third.loose").replace("3x2", "2x3")
    assert "third.loose" in names(FoldConstant()(IRModule.parse(kept)))
    with pytest.raises(Unsupported, match="third.loose: has no meaning"):
        interpreters.run(IRModule.parse(LOOSE), [X])


def test_xdsls_interpreter_means_the_same() -> None:
    interpreter = Interpreter(IRModule.parse(MODEL).op)
    interpreters.register(interpreter)
    assert np.array_equal(interpreter.call_op("main", (X,))[0], -2 * X.T)


def test_expansions_choose_by_the_target() -> None:
    plain, target = Legalize(), AttachTarget("llvm -mcpu=skylake-avx512")
    assert "relay.add" in names(plain(IRModule.parse(MODEL)))
    assert "relay.multiply" in names(plain(target(IRModule.parse(MODEL))))
    listed = patterns_of(resolve("llvm"), ["third"])
    assert [(row.name, row.summary) for row in listed] == [
        ("Undo", "third.turn (third.turn %x) => %x"),
        ("Expand", "third.* %x => the ops of its row in the expansions of its plug-in"),
    ]


def test_an_op_of_unknown_sizes_expands_if_it_is_elementwise() -> None:
    assert "third.double" not in names(
        Legalize()(IRModule.parse(MODEL.replace("2x3x", "?x3x").replace("3x2x", "3x?x")))
    )


def test_patterns_see_several_ops() -> None:
    twice = (
        MODEL.replace(
            "%2 = relay.negative %1 : (tensor<3x2xi32>) -> tensor<3x2xi32>",
            "%2 = third.turn %1 : (tensor<3x2xi32>) -> tensor<2x3xi32>",
        )
        .replace("-> tensor<3x2xi32> {", "-> tensor<2x3xi32> {")
        .replace("%2 : tensor<3x2xi32>", "%2 : tensor<2x3xi32>")
    )
    assert str(Legalize()(IRModule.parse(twice))).count("third.turn") == 1  # the first, which nothing uses


@pytest.mark.parametrize("opt_level", [0, 2])
def test_it_is_built(opt_level: int) -> None:
    with PassContext(opt_level=opt_level):
        executable = relay.build(IRModule.parse(MODEL))
    assert np.array_equal(np.asarray(executable.run(X)), -2 * X.T)
    assert cache.plug_ins() is None and cache.keyed(Request(MODEL.encode(), "llvm")) is None


@pytest.mark.parametrize("name", ["cached_package/__init__.py", "cached_module.py"])
def test_builds_are_cached_by_the_files_of_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    file, module = tmp_path / name, name.partition("/")[0].removesuffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text("PLUG_IN = 1")
    point = EntryPoint("cached", f"{module}:PLUG_IN", "relay.dialect")

    def installed(group: str) -> list[EntryPoint]:
        return [point] if group == point.group else []

    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(cache, "installed", installed)
    monkeypatch.setattr(DIALECTS, "registered", {})
    before = cache.plug_ins()
    assert before is not None and before == cache.plug_ins()
    file.write_text("PLUG_IN = None")
    assert before != cache.plug_ins() and module not in sys.modules


FIXED = """func.func @main(%x: tensor<2x3x!third.fixed<4 : i32>>) -> tensor<6xi16> {
  %0 = third.double %x : (tensor<2x3x!third.fixed<4 : i32>>) -> tensor<2x3x!third.fixed<4 : i32>>
  %1 = relay.reinterpret %0 {dtype = i16} : (tensor<2x3x!third.fixed<4 : i32>>) -> tensor<2x3xi16>
  %2 = relay.negative %1 : (tensor<2x3xi16>) -> tensor<2x3xi16>
  %3 = relay.reshape %2 {newshape = array<i64: 6>} : (tensor<2x3xi16>) -> tensor<6xi16>
  func.return %3 : tensor<6xi16>
}
"""
"""A chain of elementwise ops, on numbers of a type of the plug-in's own."""


@pytest.mark.parametrize("opt_level", [0, 2])
def test_numbers_of_its_types_are_computed_by_its_scalar_code(monkeypatch: pytest.MonkeyPatch, opt_level: int) -> None:
    with_changes(monkeypatch, expansions={}, scalars={DoubleOp: double_scalar})
    mod, x = IRModule.parse(FIXED), X.astype(np.int16)
    assert all(line in str(mod) for line in FIXED.splitlines())
    assert str(IRModule.parse(mod.to_text(generic=True))) == str(mod)
    assert np.array_equal(interpreters.run(mod, [x])[0], -2 * x.flatten())
    with PassContext(opt_level=opt_level):
        executable = relay.build(mod)
    assert executable.inputs[0].dtype == np.int16
    assert np.array_equal(np.asarray(executable.run(x)), -2 * x.flatten())


def test_scalar_code_is_fused_with_ops_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with_changes(monkeypatch, expansions={}, scalars={DoubleOp: double_scalar})
    lowered = Pipeline.parse("legalize,fuse-ops,relay-to-linalg")(IRModule.parse(FIXED))
    assert str(lowered).count("linalg.generic {") == 1 and str(lowered).count("arith.") == 3  # 0, addi, subi


def test_constants_become_no_numbers_of_its_types(monkeypatch: pytest.MonkeyPatch) -> None:
    first = """func.func @main() -> tensor<6xi16> {
  %c = relay.constant dense<3> : tensor<2x3xi16>
  %x = relay.reinterpret %c {dtype = !third.fixed<4 : i32>} : (tensor<2x3xi16>) -> tensor<2x3x!third.fixed<4 : i32>>
"""
    folded = FoldConstant()(IRModule.parse(first + FIXED.partition("\n")[2]))
    assert {"relay.reinterpret", "third.double"} < names(folded)
    assert np.array_equal(interpreters.run(folded, [])[0], [-6] * 6)


@pytest.mark.parametrize("op", ["negative", "abs"])
def test_ops_of_ours_do_not_compute_with_its_types(op: str) -> None:
    text = FIXED.replace("third.double", f"relay.{op}")
    with pytest.raises(RelayError, match=f"relay.{op}: has no meaning for !third.fixed<4 : i32>; relay.reinterpret it"):
        IRModule.parse(text)


def test_a_search_for_a_culprit_runs_it() -> None:
    assert find_culprit(IRModule.parse(MODEL), "legalize,fuse-ops,relay-to-linalg", [X]).equal


def test_what_nothing_is_made_of_is_told() -> None:
    with pytest.raises(Unsupported, match=r"<text>:3:.*no legalization pattern takes it"):
        relay.build(IRModule.parse(LOOSE))


def test_its_passes_have_names_and_options() -> None:
    assert registry.find("third-halve") is registry.find("HalveThird")
    assert PassContext.list_configs()["third-halve.most"].default == 8
    for most, left in ((0, True), (8, False)):
        with PassContext(config={"third-halve.most": most}):
            assert ("third.double" in names(Pipeline.parse("third-halve")(IRModule.parse(MODEL)))) == left
    with pytest.raises(RelayError, match="did you mean third-halve.most"):
        PassContext(config={"third-halve.mots": 0})


def test_its_operators_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(importer: Any, node: Any) -> list[Any]:
        return [importer.emit(DoubleOp, [importer.value(node.input(0))]).result]

    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds this file")
    model = Case("CUSTOM", [T([3], "float32")], [T([3], "float32")], custom_code="Double").model()
    with pytest.raises(Unsupported, match="CUSTOM:Double.*custom_ops"):
        relay.frontend.from_tflite(model)
    with_changes(monkeypatch, tflite={"Double": double})
    assert "third.double" in names(relay.frontend.from_tflite(model))
    monkeypatch.setitem(DIALECTS.registered, "fourth", replace(PLUG_IN, tflite={"Double": double}))
    with pytest.raises(Unsupported, match="dialect third: imports the tflite operator Double.*dialect fourth"):
        relay.frontend.from_tflite(model)
    assert "third.double" in names(relay.frontend.from_tflite(model, custom_ops={"Double": double}))


def test_its_nodes_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    onnx: Any = pytest.importorskip("onnx", reason="the package onnx is not installed")

    def turn(importer: Any, node: Any) -> list[Any]:
        return [importer.emit(TurnOp, [node.values[0]]).result]

    make = onnx.helper
    types = [make.make_tensor_value_info(name, 1, dims) for name, dims in (("x", [2, 3]), ("y", [3, 2]))]
    graph = make.make_graph([make.make_node("Turn", ["x"], ["y"], domain="org.third")], "g", types[:1], types[1:])
    opsets = [make.make_opsetid("", 17), make.make_opsetid("org.third", 1)]
    model = make.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    with pytest.raises(Unsupported, match="org.third.Turn.*custom_ops"):
        relay.frontend.from_onnx(model)
    with_changes(monkeypatch, onnx={"org.third.Turn": turn})
    assert "third.turn" in names(relay.frontend.from_onnx(model))
    with_changes(monkeypatch, onnx={"org.third.Turn": fails_to_import})
    with pytest.raises(Unsupported, match="Turn 'y': its import by dialect third fails: KeyError"):
        relay.frontend.from_onnx(model)


def fails_to_import(importer: object, node: object) -> object:
    raise KeyError("no such attribute")


def fails(*given: Any) -> Any:
    raise KeyError("two\nlines")


def interpreted(text: str) -> object:
    return interpreters.run(IRModule.parse(text), [X])


def built(text: str) -> object:
    return relay.build(IRModule.parse(text))


def found(text: str) -> object:
    return registry.find("third-x")


@pytest.mark.parametrize(
    ("changes", "does", "message"),
    [
        ({"dialect": "tests.absent:Third"}, IRModule.parse, "its dialect, tests.absent:Third, cannot be loaded: Modul"),
        ({"dialect": "relay.dialects.qnn:Qnn"}, IRModule.parse, "its dialect is the dialect qnn; name an xdsl"),
        ({"meanings": "json:loads"}, interpreted, "its meanings is function"),
        ({"meanings": {DoubleOp: fails}}, interpreted, "its meaning of third.double fails: KeyError: 'two"),
        ({"expansions": {DoubleOp: fails}}, built, "its pattern Expand fails on third.double: KeyError"),
        ({"lowerings": {TurnOp: fails}}, built, "its lowering of third.turn fails: KeyError"),
        ({"expansions": {}, "scalars": {DoubleOp: fails}}, built, "its scalar code of third.double fails: KeyError"),
        ({"passes": {"third-x": "tests.absent:X"}}, found, "its pass third-x cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_faulty_one_is_named(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], does: Callable[[str], object], message: str
) -> None:
    with_changes(monkeypatch, **changes)
    with pytest.raises(Unsupported) as caught:
        does(MODEL)
    assert str(caught.value).startswith(f"dialect third: {message}") and "\n" not in str(caught.value)


def test_the_fields_are_all_used() -> None:
    assert {*DialectPlugIn.__dataclass_fields__} - {"examples"} == {
        "dialect", "meanings", "expansions", "patterns", "lowerings", "scalars", "passes", "tflite", "onnx"
    }  # fmt: skip
    assert plug_in.part("fourth", "meanings") == {} and plug_in.dialect_plug_in("fourth") is None
