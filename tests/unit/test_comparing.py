"""`relay.compare`: planted changes are found and their operators named; what is equal is called equal."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

import relay
from relay import signature
from relay.dialects import qnn
from relay.dialects.attributes import Array, elements, to_numpy
from relay.errors import InvalidArgument, Unsupported
from relay.exploration.comparing import Comparison, row_of
from relay.exploration.references import LiteRt
from relay.module import IRModule
from relay.runtime import Executable
from relay.runtime.specification import random_array
from relay.transforms.location import node_of
from relay.viewer.comparison import page
from tests.unit.explore_modules import in_a_notebook

pytest.importorskip("ai_edge_litert", reason="needs the extra litert")

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
FLOAT = ROOT / "examples" / "digits" / "digits_float.tflite"
MODELS = ROOT / ".." / "shared" / "models"
QUICK: dict[str, Any] = {"opt_level": 0}
"""A build takes half of the time, and what is compared is the same."""


def channel(op: Operation, tensor: Array) -> None:
    """One channel rounds to half of what it should: that with most different codes."""
    spread = [len(np.unique(tensor[..., c])) for c in range(tensor.shape[-1])]
    multipliers = np.array(to_numpy(op.properties["multiplier"]))
    multipliers[int(np.argmax(spread))] //= 2
    op.properties["multiplier"] = elements(multipliers, label="multiplier")


def saturation(op: Operation, tensor: Array) -> None:
    """The largest code that occurs is beyond the bound."""
    op.properties["max"] = IntegerAttr(int(tensor.max()) - 1, i32)


Change = Callable[[Operation, Array], None]


@cache
def built() -> Executable:
    return relay.build(DIGITS, **QUICK)


def requantizations(module: IRModule) -> list[Operation]:
    """Those of convolutions with a multiplier for each channel."""
    return [
        op
        for op in module["main"].body.block.ops
        if isinstance(op, qnn.RequantizeOp)
        and str(op.properties.get("rounding")) == '"tflite"'
        and to_numpy(op.properties["multiplier"]).ndim == 1
    ]


def planted(path: Path, place: int, change: Change) -> tuple[Comparison, int]:
    """What is found where one operator of a model is changed, and the operator's number."""
    module = relay.frontend.from_tflite(path)
    ops = requantizations(module)
    op = ops[place % len(ops)]
    number = node_of(op)
    random = np.random.default_rng(0)
    inputs = {i.name: random_array(i.shape, i.dtype, random) for i in signature.read(module["main"])[0]}
    change(op, LiteRt(path).run(inputs, True).tensors[number][0][1])
    return relay.compare(module, f"litert:{path}", inputs, layers=True, **QUICK), number


@pytest.mark.parametrize(("change", "place"), [(channel, 0), pytest.param(saturation, 3, marks=pytest.mark.ci)])
def test_planted_changes_are_found_and_named(change: Change, place: int):
    found, number = planted(DIGITS, place, change)
    assert not found.equal and found.first is not None
    assert found.first.operator.startswith(f"operator {number} ")
    assert f"first difference: operator {number} " in found.verdict


@pytest.mark.ci
def test_a_change_that_the_outputs_hide_is_found():
    found, number = planted(DIGITS, 4, saturation)
    assert all(row.equal for row in found.outputs) and not found.equal
    assert found.first is not None and found.first.operator.startswith(f"operator {number} ")
    assert found.verdict.endswith("the outputs are equal all the same")


@pytest.mark.slow
def test_twenty_of_twenty():
    names = ("kws_int8", "resnet8_int8", "vww_96_int8", "tf2_mobilenet_v2_1.0_224_ptq", "resnet50_224_int8")
    if not MODELS.is_dir():
        pytest.skip("the models are not there")
    hidden = 0
    for name in names:
        for place, change in ((0, saturation), (1, channel), (4, saturation), (7, channel)):
            found, number = planted(MODELS / f"{name}.tflite", place, change)
            assert found.first is not None, (name, place, change)
            assert found.first.operator.startswith(f"operator {number} "), (name, place, change, found.verdict)
            hidden += all(row.equal for row in found.outputs)
    assert hidden, "one at least is not seen in an output"


@pytest.mark.parametrize("reference", [pytest.param("litert", marks=pytest.mark.ci), "interpreter"])
def test_what_is_equal(reference: str):
    found = relay.compare(DIGITS, reference, layers=True)
    assert found.equal and found.first is None
    assert found.verdict == "equal: 1 outputs and 11 tensors"
    assert "11 tensors were added to the outputs of a second build" in found.how
    assert [row.snr for row in found.rows] == [None] * 12
    json.dumps(found.to_json())


@pytest.mark.ci
def test_floats_within_a_tolerance():
    found = relay.compare(FLOAT, layers=True)
    assert found.equal and all(row.snr is None or row.snr > 100 for row in found.rows)
    assert not relay.compare(FLOAT, layers=True, tolerance=0).equal


def test_quantised_beside_float_compares_real_numbers():
    found = relay.compare(DIGITS, FLOAT, **QUICK)
    assert not found.equal and found.rows[0].snr is not None and found.rows[0].snr > 20
    assert relay.compare(built(), FLOAT, tolerance=0.1, **QUICK).equal


def test_executables_and_saved_files(tmp_path: Path):
    executable = built()
    executable.save(tmp_path / "digits.relay")
    assert relay.compare(DIGITS, tmp_path / "digits.relay", **QUICK).equal
    assert relay.compare(tmp_path / "digits.relay", f"litert:{DIGITS}").equal
    assert relay.compare(executable, relay.frontend.from_tflite(DIGITS), **QUICK).equal
    with pytest.raises(InvalidArgument, match="layers: a compiled model does not have them; give the model's file"):
        relay.compare(executable, f"litert:{DIGITS}", layers=True)
    with pytest.raises(InvalidArgument, match="litert: needs the model's file; write litert:FILE"):
        relay.compare(tmp_path / "digits.relay")
    with pytest.raises(InvalidArgument, match="litert: needs the model's file; write litert:FILE"):
        relay.compare(executable)
    with pytest.raises(InvalidArgument, match="layers: the other executable keeps no tensors between operators"):
        relay.compare(DIGITS, executable, layers=True, **QUICK)


def test_options_of_the_importer_are_those_of_build():
    """For the model, and for another one that it is compared with."""
    first = relay.build(DIGITS, **QUICK).inputs[0].name
    for options, size in (({"batch": 2}, 20), ({"shapes": {first: (1, 8, 8, 1)}}, 10)):
        found = relay.compare(DIGITS, "interpreter", **options, **QUICK)
        assert [(row.size, row.equal) for row in found.outputs] == [(size, True)]
        assert relay.compare(DIGITS, DIGITS, **options, **QUICK).outputs[0].size == size


def test_external_compilers_are_compared():
    assert relay.compare(DIGITS, external="c", layers=True, **QUICK).equal


def test_refusals(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidArgument, match="onnxruntime: .*: is tflite and not onnx; write onnxruntime:FILE"):
        relay.compare(DIGITS, "onnxruntime", **QUICK)
    with pytest.raises(InvalidArgument, match="tolerance: is -1"):
        relay.compare(DIGITS, tolerance=-1)
    monkeypatch.setitem(__import__("sys").modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(Unsupported, match=r"ai-edge-litert is not installed; pip install 'relay-mlir\[litert\]'"):
        relay.compare(DIGITS, **QUICK)


def test_onnx_models(tmp_path: Path):
    onnx = pytest.importorskip("onnx", reason="needs the extra onnxruntime")
    pytest.importorskip("onnxruntime", reason="needs the extra onnxruntime")
    path = tmp_path / "m.onnx"
    make, float32 = onnx.helper, onnx.TensorProto.FLOAT
    ends = [make.make_tensor_value_info(name, float32, [2, 3]) for name in ("x", "z")]
    nodes = [make.make_node("Mul", ["x", "x"], ["y"]), make.make_node("Add", ["y", "x"], ["z"])]
    graph = make.make_graph(nodes, "g", ends[:1], ends[1:])
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9), path)
    found = relay.compare(path, "onnxruntime", layers=True)
    assert found.equal and [row.name for row in found.tensors] == ["y", "z"]


def test_snr_and_largest():
    row = row_of("x", "tensor", "", np.array([3, 4], np.int8), np.array([3, 5], np.int8), 0.0)
    assert (row.equal, row.largest, row.count, row.size) == (False, 1.0, 1, 2)
    assert row.snr == pytest.approx(10 * np.log10(34))
    assert row.first == "[1] 4 instead of 5"


def test_the_page_shows_names_as_text():
    rows = (row_of("<b>x", "output", "", np.array([1], np.int8), np.array([2], np.int8), 0.0),)
    text = page(Comparison("LiteRT", "", rows), "<i>m")
    assert "&lt;b&gt;x" in text and "<b>x" not in text and "<i>m" not in text
    assert in_a_notebook(Comparison("LiteRT", "", rows)).count("<rect") == 1
    assert text.count("<rect") == 1 and 'class="differs"' in text


@pytest.mark.ci
def test_the_page_runs(tmp_path: Path):
    text = (ROOT / "docs" / "comparing.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(program.replace("examples/", f"{ROOT}/examples/"), {})
    (line,) = re.findall(r"^```sh\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
    pytest.importorskip("rich_click", reason="needs the extra cli")
    main = importlib.import_module("relay.__main__").main
    words = line.replace("examples/", f"{ROOT}/examples/").replace("digits.html", f"{tmp_path}/digits.html").split()
    assert main(words[1:]) == 0
    assert "equal: 1 outputs and 11 tensors" in (tmp_path / "digits.html").read_text()
