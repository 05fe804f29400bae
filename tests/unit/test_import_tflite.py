"""`from_tflite`: what the module looks like, what it shares with the file, and what each bad file is told."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FileLineColLoc, NameLoc
from xdsl.ir import SSAValue

from relay import IRModule, signature
from relay.compile.entry import build
from relay.dialects.relay import MultiplyOp
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.frontend import from_tflite, supported_operators
from relay.frontend.tflite import table
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import read_model
from relay.frontend.tflite.node import Node
from relay.interpreters import run
from tests.numeric.litert_models import Case, T, pack, schema
from tests.numeric.litert_shape_cases import CASES

DIGITS = Path(__file__).parents[2] / "examples/digits"
INT8, FLOAT = DIGITS / "digits_int8.tflite", DIGITS / "digits_float.tflite"
MODELS = Path(__file__).parents[2] / "../shared/models"
REAL = sorted(MODELS.glob("*.tflite"))
EACH = [
    pytest.param(path, marks=() if path.stat().st_size < 200_000 else pytest.mark.ci, id=path.stem)
    for path in (INT8, *REAL)
]
LOCATION = re.compile(r"operator (\d+) ([A-Z_0-9]+) '.*'")


@cache
def imported(path: Path) -> IRModule:
    return from_tflite(path)


def body(mod: IRModule) -> list[Any]:
    return list(mod["main"].body.block.ops)


@pytest.mark.parametrize("path", [*EACH, pytest.param(FLOAT, id=FLOAT.stem)])
def test_module_has_the_names_of_the_file(path: Path) -> None:
    mod = imported(path)
    mod.verify()
    graph = read_model(path.read_bytes()).subgraphs[0]
    inputs, outputs = signature.read(mod["main"])
    kinds = [info.kind for info in inputs]
    assert kinds == ["input"] * len(graph.inputs) + ["state"] * (len(kinds) - len(graph.inputs))
    assert [info.name for info in inputs if info.kind == "input"] == [graph.tensors[i].name for i in graph.inputs]
    assert [info.name for info in outputs if info.kind == "output"] == [graph.tensors[i].name for i in graph.outputs]
    assert [info.name for info in outputs if info.kind == "state"] == [i.name for i in inputs if i.kind == "state"]
    for info, index in zip(inputs, graph.inputs, strict=False):
        tensor = graph.tensors[index]
        assert (info.shape, info.scale) == (tensor.shape, tensor.quantization and float(tensor.quantization.scale[0]))
    labels = [label for label, _ in mod.constants()]
    assert labels and len(set(labels)) == len(labels)
    names = {tensor.name for tensor in graph.tensors}
    assert all(label in names or "lstm" in label for label in labels)


@pytest.mark.parametrize("path", EACH)
def test_every_op_says_where_it_is_from(path: Path) -> None:
    mod = imported(path)
    operators = read_model(path.read_bytes()).subgraphs[0].operators
    for op in body(mod)[:-1]:
        location = op.location
        assert isinstance(location, NameLoc) and isinstance(location.location, FileLineColLoc)
        assert location.location.filename.data == path.name
        found = LOCATION.fullmatch(location.desc.data)
        assert found, location.desc.data
        number = int(found[1])
        assert found[2] == operators[number].kind and number == location.location.line.data


def test_weights_share_the_memory_of_the_file() -> None:
    data = INT8.read_bytes()
    mod = from_tflite(data)
    assert mod.weights
    assert all(np.shares_memory(array, np.frombuffer(data, np.uint8)) for array in mod.weights.values())


def test_text_holds_all_of_the_module() -> None:
    mod = from_tflite(INT8)
    again = IRModule.parse(mod.to_text(weights=True, locations=True))
    shape = signature.read(mod["main"])[0][0].shape
    image = np.arange(np.prod(shape)).reshape(shape).astype(np.int8)
    assert np.array_equal(run(again, [image])[0], run(mod, [image])[0])
    first, second = (signature.read(each["main"])[1][0] for each in (mod, again))
    assert (first.name, first.scale, first.zero_point) == (second.name, second.scale, second.zero_point)
    places = [(str(new.location), str(old.location)) for new, old in zip(body(again), body(mod), strict=True)]
    assert all(new == old or "unknown" in old for new, old in places) and places[0][1] != "loc(unknown)"


def test_bytes_and_path_make_one_module() -> None:
    assert from_tflite(INT8.read_bytes()).to_text() == from_tflite(INT8).to_text() == from_tflite(str(INT8)).to_text()


def test_outputs_cut_the_graph() -> None:
    graph = read_model(INT8.read_bytes()).subgraphs[0]
    first = graph.tensors[graph.operators[0].outputs[0]]
    mod = from_tflite(INT8, outputs=[first.name])
    assert from_tflite(INT8, outputs=[first.index]).to_text() == mod.to_text()
    assert [info.name for info in signature.read(mod["main"])[1]] == [first.name]
    assert {op.location.location.line.data for op in body(mod)[:-1]} == {0}


@pytest.mark.parametrize("outputs", [["nothing"], [], "text"])
def test_outputs_must_be_computed_tensors(outputs: Any) -> None:
    with pytest.raises(InvalidArgument, match="outputs"):
        from_tflite(INT8, outputs=outputs)


def test_all_problems_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = read_model(INT8.read_bytes()).subgraphs[0].operators
    kinds = {"CONV_2D", "SOFTMAX"}
    for kind in kinds:
        monkeypatch.delitem(table.TABLE, kind)
    with pytest.raises(Unsupported) as raised:
        from_tflite(INT8)
    expected = [operator for operator in operators if operator.kind in kinds]
    lines = str(raised.value).splitlines()
    assert lines[0] == f"digits_int8.tflite: {len(expected)} problems:"
    for line, operator in zip(lines[1:], expected, strict=True):
        assert line.strip().startswith(f"operator {operator.index} {operator.kind} '")
        assert line.endswith(": the operator is not supported")


@pytest.mark.parametrize("keywords", [{"batch": 0}, {"numerics": "best"}])
def test_wrong_arguments(keywords: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        from_tflite(INT8, **keywords)


def test_stored_batch_is_accepted() -> None:
    assert from_tflite(INT8, batch=1).to_text() == from_tflite(INT8).to_text()


def test_missing_file_and_empty_bytes() -> None:
    with pytest.raises(InvalidArgument, match="cannot read"):
        from_tflite("no/such/file.tflite")
    with pytest.raises(Malformed):
        from_tflite(b"")


def test_supported_operators_lists_the_table() -> None:
    supported = supported_operators()
    assert {*supported} > {*table.TABLE} and len(table.TABLE) > 45
    assert all(1 <= first <= last for first, last in supported.values())


def codes(*shape: int) -> T:
    return T(shape, "int8", 0.5, 3)


IMAGE, KERNEL = codes(1, 4, 4, 2), T(np.ones((2, 3, 3, 2)), "int8", 0.1)
BIAS = T(np.ones(2), "int32", 0.05)
CONV = {"padding": 1, "strideH": 1, "strideW": 1}
POOL = {**CONV, "filterHeight": 2, "filterWidth": 2}
AXES = T(np.array([7]), "int32")
LAST = T(np.array([-1]), "int32")
CONV_IN, CONV_OUT = [IMAGE, KERNEL, BIAS], [codes(1, 2, 2, 2)]


def conv(inputs: Sequence[T | None] = CONV_IN, outputs: Sequence[T] = CONV_OUT, **values: Any) -> Case:
    return Case("CONV_2D", inputs, outputs, "Conv2DOptions", CONV | values)


@pytest.mark.parametrize(
    ("case", "error", "message"),
    [
        (conv(strideH=0), Malformed, "stride_h is 0"),
        (conv(dilationWFactor=-1), Malformed, "dilation_w_factor is -1"),
        (conv(fusedActivationFunction=4), Unsupported, "fused activation is TANH"),
        (conv([IMAGE]), Malformed, "has 1 inputs"),
        (conv([IMAGE, None, BIAS]), Malformed, "input 1 is missing"),
        (
            Case("RESHAPE", [T([8], "float32")], [T([8], "int32")], "ReshapeOptions", {"newShape": [2, 4]}),
            Malformed,
            "out0' is tensor<8xi32>, but tensor<2x4xf32> follows from the inputs",
        ),
        (conv(outputs=[T([1, 2, 2, 2], "int8")]), Malformed, "has no scale"),
        (conv([codes(1, 4, 4, 3), KERNEL, BIAS]), Malformed, "3"),
        (conv([codes(4, 4, 2), KERNEL, BIAS]), Malformed, "rank 3, not 4"),
        (conv([codes(1, 2, 2, 2), KERNEL, BIAS]), Malformed, "does not fit"),
        (conv([IMAGE, KERNEL, T(np.ones(3), "int32", 0.05)]), Malformed, "bias"),
        (conv([IMAGE, KERNEL, T(np.ones(2), "int64", 0.05)]), Unsupported, "takes no INT8, INT8, INT64"),
        (
            conv([IMAGE, T(np.ones((2, 3, 3, 2)), "int8", [0.1, 0.2], axis=3), BIAS]),
            Unsupported,
            "2 scales along axis 3",
        ),
        (conv([IMAGE, T(np.ones((2, 3, 3, 2)), "int8", 1e30), BIAS]), Malformed, "shift"),
        (
            conv([T([1, 4, 4, 2], "int16", 0.5), KERNEL, BIAS], [T([1, 2, 2, 2], "int8", 0.5)]),
            Unsupported,
            "takes no INT16",
        ),
        (Case("ADD", [IMAGE, codes(1, 4, 4, 3)], [IMAGE], "AddOptions"), Malformed, "do not broadcast"),
        (Case("ADD", [IMAGE, T([2], "float32")], [IMAGE], "AddOptions"), Unsupported, "takes no INT8, FLOAT32"),
        (Case("ADD", [IMAGE], [IMAGE], "AddOptions"), Malformed, "has 1 inputs"),
        (Case("MEAN", [IMAGE, AXES], [IMAGE], "ReducerOptions"), Malformed, "axis 7 is outside"),
        (Case("MEAN", [IMAGE, T([1], "int32")], [IMAGE], "ReducerOptions"), Unsupported, "must be a constant"),
        (
            Case("SUM", [IMAGE, LAST], [T([1, 4, 4], "float32")], "ReducerOptions"),
            Unsupported,
            "takes no INT8, FLOAT32",
        ),
        (Case("ARG_MAX", [IMAGE, AXES], [T([1], "int32")], "ArgMaxOptions"), Malformed, "axis 7"),
        (Case("AVERAGE_POOL_2D", [IMAGE], [IMAGE], "Pool2DOptions", POOL | {"filterWidth": 0}), Malformed, "is 0"),
        (
            Case("AVERAGE_POOL_2D", [IMAGE], [T([1, 3, 3, 2], "int8", 1.0)], "Pool2DOptions", POOL),
            Unsupported,
            "differ",
        ),
        (Case("SOFTMAX", [IMAGE], [T([1, 4, 4, 2], "int8", 0.1)], "SoftmaxOptions", {"beta": 1}), Malformed, "scale"),
        (Case("RESHAPE", [IMAGE], [codes(5)], "ReshapeOptions", {"newShape": [5]}), Malformed, "elements"),
        (Case("TRANSPOSE", [IMAGE, T(np.zeros(4), "int32")], [IMAGE]), Malformed, "no permutation"),
        (Case("PAD", [IMAGE, T(np.full((4, 2), -1), "int32")], [IMAGE]), Malformed, "negative"),
        (Case("PAD", [IMAGE, T(np.zeros((3, 2)), "int32")], [IMAGE]), Malformed, "two numbers per axis"),
        (Case("CONCATENATION", [IMAGE], [IMAGE], "ConcatenationOptions", {"axis": 4}), Malformed, "axis 4"),
        (
            Case("RANGE", [T(np.array(n, np.float32), "float32") for n in (0, -1e38, 1e-38)], [T([1], "float32")]),
            Unsupported,
            "a range of",
        ),
        (
            Case(
                "ONE_HOT",
                [T([1], "int32"), T(np.array(1 << 30, np.int32), "int32"), T([], "bool"), T([], "bool")],
                [T([1], "bool")],
            ),
            Unsupported,
            "a depth of",
        ),
        (Case("BROADCAST_ARGS", [T([1 << 25], "int32")] * 2, [T([1 << 25], "int32")]), Unsupported, "dimensions"),
        (Case("UNIQUE", [T([1], "float32")], [T([1], "float32")]), Unsupported, "operator is not supported"),
        (Case("CONV_2D", CONV_IN, CONV_OUT, "Conv2DOptions", CONV, 99), Unsupported, "version 99"),
        (Case("SQRT", [T([1], "int4")], [T([1], "float32")]), Unsupported, "the type is INT4"),
        (Case("SQRT", [T([1], "float64")], [T([1], "float64")]), Unsupported, "the type is FLOAT64"),
        (Case("SQRT", [T([1], "float32")], [T([1], "float32")] * 2), Malformed, "has 2 outputs"),
    ],
)
def test_bad_operators_are_told(case: Case, error: type[RelayError], message: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")
    with pytest.raises(error, match=re.escape(message)) as raised:
        from_tflite(case.model())
    assert type(raised.value) is error
    if "the type is" not in message:
        assert f"<bytes>: operator 0 {case.kind} 'out0'" in str(raised.value)


def test_custom_operators_are_given_by_the_caller() -> None:
    def same(importer: Importer, node: Node) -> list[SSAValue]:
        return [importer.value(node.input(0))]

    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds this file")
    model = Case("CUSTOM", [T([3], "float32")], [T([3], "float32")], custom_code="Same").model()
    mod = from_tflite(model, custom_ops={"Same": same})
    x = np.ones(3, np.float32)
    assert np.array_equal(run(mod, [x])[0], x)
    with pytest.raises(Unsupported, match="CUSTOM:Same.*custom_ops"):
        from_tflite(model)


def test_custom_operators_read_their_options() -> None:
    """The bytes of the file say the factor; what the function builds is compiled like anything else."""

    def scaled(importer: Importer, node: Node) -> list[SSAValue]:
        (factor,) = struct.unpack("<f", node.operator.custom_options)
        x = importer.value(node.input(0))
        return [importer.emit(MultiplyOp, [x, importer.scalar(factor, x)]).result]

    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds this file")
    case = Case("CUSTOM", [T([3], "float32")], [T([3], "float32")], custom_code="Scaled")
    case.custom_options = struct.pack("<f", 2.5)
    executable = build(case.model(), frontend={"custom_ops": {"Scaled": scaled}})
    assert np.array_equal(np.asarray(executable.run(np.arange(3, dtype=np.float32))), [0, 2.5, 5])


def test_a_cut_drops_what_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = read_model(INT8.read_bytes()).subgraphs[0]
    assert graph.operators[-1].kind == "SOFTMAX"
    monkeypatch.delitem(table.TABLE, "SOFTMAX")
    with pytest.raises(Unsupported, match="SOFTMAX"):
        from_tflite(INT8)
    before = graph.tensors[graph.operators[-1].inputs[0]]
    (info,) = signature.read(from_tflite(INT8, outputs=[before.name])["main"])[1]
    assert (info.name, info.shape) == (before.name, before.shape)


@pytest.mark.parametrize(
    ("slot", "tensor", "values", "message"),
    [
        (9, T(np.ones(2), "int16", 0.1), {}, "peephole"),
        (16, T(np.ones((2, 2)), "int8", 0.1), {}, "projection"),
        (20, T(np.ones(2), "int16", 0.1), {}, "layer norms"),
        (19, T([2, 2], "int16", 0.1, variable=True), {}, "not a power of two"),
        (18, T([2, 2], "int8", 0.1), {}, "is no variable"),
        (5, T(np.ones((2, 2)), "float32"), {}, "takes no"),
        (18, None, {"fusedActivationFunction": 1}, "RELU, not TANH"),
    ],
)
def test_lstms_that_are_not_built(slot: int, tensor: T | None, values: Mapping[str, Any], message: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")
    case = CASES["UNIDIRECTIONAL_SEQUENCE_LSTM"](np.random.default_rng(0), "UNIDIRECTIONAL_SEQUENCE_LSTM")
    if tensor is not None:
        case.inputs = [*case.inputs[:slot], tensor, *case.inputs[slot + 1 :]]
    case.values = {**case.values, **values}
    with pytest.raises(Unsupported, match=message):
        from_tflite(case.model())


def test_states_are_arguments_and_results() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds this file")
    mod = from_tflite(CASES["SVDF"](np.random.default_rng(0), "SVDF").model())
    inputs, outputs = signature.read(mod["main"])
    assert [(i.name, i.kind) for i in inputs] == [("in0", "input"), ("in4", "state")]
    assert [(o.name, o.kind) for o in outputs] == [("out0", "output"), ("in4", "state")]
    assert inputs[1].initial is not None and not inputs[1].initial.any()


def test_several_subgraphs_are_unsupported() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds this file")
    s: Any = schema()
    model = s.ModelT.InitFromObj(s.Model.GetRootAs(bytearray(conv().model()), 0))
    model.subgraphs.append(model.subgraphs[0])
    with pytest.raises(Unsupported, match="has 1 subgraphs beside the main one: 'main'"):
        from_tflite(pack(model))


def test_bias_is_optional() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")
    image = np.arange(32).reshape(1, 4, 4, 2).astype(np.int8)
    without, zero = conv([IMAGE, KERNEL]), conv([IMAGE, KERNEL, T(np.zeros(2), "int32", 0.05)])
    first, second = (run(from_tflite(case.model()), [image])[0] for case in (without, zero))
    assert np.array_equal(first, second) and first.any()
