"""Small ONNX models, and what `from_onnx` says of each: a row per message."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from google.protobuf.message import EncodeError
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from relay.errors import RelayError
from relay.frontend import from_onnx
from relay.frontend.importing import conversion
from relay.frontend.onnx import model as reading
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.operators import control

FLOAT, BYTES, LONG, INT, BOOL, STRING = 1, 2, 7, 6, 9, 8
MS = "com.microsoft"


class Given(NamedTuple):
    """An input of the graph."""

    dims: tuple[int | str, ...]
    dtype: int = FLOAT


Value = Given | onnx.TensorProto | str
"""An input of a node: one of the graph, a constant, or the name of a value."""


def f(*dims: int | str) -> Given:
    return Given(dims)


def u8(*dims: int | str) -> Given:
    return Given(dims, BYTES)


def const(value: object, dtype: str = "float32") -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value, dtype))


def ints(*numbers: int) -> onnx.TensorProto:
    return const(numbers, "int64")


def model(
    kind: str,
    *values: Value,
    outputs: Sequence[str] = ("y",),
    opset: int = 18,
    domain: str = "",
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node."""
    names: list[str] = []
    inputs: list[onnx.ValueInfoProto] = []
    constants: list[onnx.TensorProto] = []
    for number, value in enumerate(values):
        names.append(value if isinstance(value, str) else f"i{number}")
        if isinstance(value, Given):
            inputs.append(helper.make_tensor_value_info(names[-1], value.dtype, value.dims))
        elif isinstance(value, onnx.TensorProto):
            constants.append(onnx.TensorProto())
            constants[-1].CopyFrom(value)
            constants[-1].name = names[-1]
    node = helper.make_node(kind, names, outputs, domain=domain, **attributes)
    results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs if name]
    graph = helper.make_graph([node], "g", inputs, results, constants)
    domains = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def body(nodes: Sequence[onnx.NodeProto], inputs: Sequence[str], outputs: Sequence[str]) -> onnx.GraphProto:
    """A subgraph, of which only the names count."""
    given, results = ([helper.make_tensor_value_info(n, FLOAT, None) for n in each] for each in (inputs, outputs))
    return helper.make_graph(nodes, "inner", given, results)


def same(value: str, result: str) -> onnx.NodeProto:
    return helper.make_node("Identity", [value], [result])


def plain(**changes: Any) -> onnx.ModelProto:
    """Relu of a constant of two floats, whose tensor is changed."""
    tensor = const([1, 2])
    for name, value in changes.items():
        tensor.ClearField(name)
        if isinstance(value, list):
            getattr(tensor, name).extend(value)
        else:
            setattr(tensor, name, value)
    return model("Relu", tensor)


def outside(**entries: str) -> onnx.ModelProto:
    """The same of a constant that lies elsewhere."""
    rows = [onnx.StringStringEntryProto(key=key, value=value) for key, value in entries.items()]
    found = plain(raw_data=b"", external_data=rows)
    found.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    return found


def giving(*names: str) -> onnx.ModelProto:
    """A model with these outputs, of which it has none."""
    found = model("Relu", f(2))
    del found.graph.output[:]
    found.graph.output.extend(helper.make_tensor_value_info(name, FLOAT, None) for name in names)
    return found


def recursive() -> onnx.ModelProto:
    found = model("F", f(2), domain="own")
    inner = helper.make_node("F", ["a"], ["b"], domain="own")
    found.functions.append(helper.make_function("own", "F", ["a"], ["b"], [inner], [helper.make_opsetid("own", 1)]))
    return found


def heads(mask: Value = "", past: Value = "", **attributes: Any) -> onnx.ModelProto:
    """ONNX Runtime's attention."""
    values = f(1, 2, 4), f(4, 12), f(12), mask, past
    return model("Attention", *values, domain=MS, num_heads=2, **attributes)


def old() -> onnx.ModelProto:
    """A function in version 0 of the standard operators."""
    codes = const(1), const(0, "uint8")
    found = model("F", u8(1, 1, 2, 2), *codes, *codes, domain="own")
    inner = helper.make_node("QLinearAveragePool", [*"abcde"], ["y"], domain=MS, kernel_shape=[1, 1])
    domains = [helper.make_opsetid("", 0), helper.make_opsetid(MS, 1)]
    found.functions.append(helper.make_function("own", "F", [*"abcde"], ["y"], [inner], domains))
    return found


def pool(*dims: int | str, kind: str = "AveragePool", **attributes: Any) -> onnx.ModelProto:
    given: dict[str, Any] = {"kernel_shape": [2, 2]} | attributes
    return model(kind, f(*dims), **given)


def conv(
    *dims: int | str, kernel: tuple[int, ...] = (1, 1, 2, 2), domain: str = "", **attributes: Any
) -> onnx.ModelProto:
    scale, zero = const(1), const(0, "uint8")
    weights = const(np.zeros(kernel), "uint8")
    return model("QLinearConv", u8(*dims), scale, zero, weights, scale, zero, scale, zero, domain=domain, **attributes)


def mean(data: Given, scale: object, **attributes: Any) -> onnx.ModelProto:
    rest = const(0, "uint8"), const(1), const(0, "uint8")
    return model("QLinearGlobalAveragePool", data, const(scale), *rest, domain=MS, **attributes)


def few_bits(columns: int = 2, *more: Value, bits: int = 4) -> onnx.ModelProto:
    values = f(1, 16), const(np.zeros((columns, 1, 8)), "uint8"), const([1, 1])
    return model("MatMulNBits", *values, *more, domain=MS, K=16, N=2, block_size=16, bits=bits)


def lstm(*, first: Given | None = None, rows: Sequence[int] = (1, 8, 2), **attributes: Any) -> onnx.ModelProto:
    weights = const(np.zeros((1, 8, 3))), const(np.zeros(rows))
    return model("LSTM", first or f(2, 1, 3), *weights, hidden_size=2, **attributes)


def looped(
    limit: Value, nodes: Sequence[onnx.NodeProto], *collected: str, state: Value | None = None
) -> onnx.ModelProto:
    inputs, outputs = ["t", "c", *(["s"] if state else [])], ["d", *(["z"] if state else []), *collected]
    graph = body([same("c", "d"), *nodes], inputs, outputs)
    results = [f"r{number}" for number in range(len(outputs) - 1)]
    return model("Loop", limit, "", *([state] if state else []), outputs=results, body=graph)


def chosen(condition: Value, nodes: Sequence[onnx.NodeProto], *inputs: str, other: str = "e") -> onnx.ModelProto:
    one, two = (helper.make_node("Constant", [], ["e"], value=const(np.zeros(size))) for size in (1, 2))
    then, orelse = body([one, *nodes], inputs, [other]), body([two], inputs, ["e"])
    return model("If", condition, then_branch=then, else_branch=orelse)


def scanned() -> onnx.ModelProto:
    graph = body([helper.make_node("Add", ["a", "b"], ["c"])], ["a", "b"], ["c"])
    return model("Scan", f(2, 1), f(3, 1), num_scan_inputs=2, body=graph)


def sparse() -> onnx.ModelProto:
    return model("Constant", sparse_value=helper.make_sparse_tensor(const([1]), ints(7), [3]))


MODELS: dict[str, onnx.ModelProto | bytes] = {
    "computes with the element type 99": model("Cast", f(2), to=99),
    "takes 'q', which no node before it gives": model("Relu", "q"),
    "cannot be read: ZeroDivisionError": model("SpaceToDepth", f(1, 1, 2, 2), blocksize=0, mode="CRD"),
    "has 1 outputs, and num_outputs is 0": model("Split", f(4), num_outputs=0),
    "zeros; give it states of up to": model("LSTM", f(1, 1 << 31, 2), f(1, 16, 2), f(1, 16, 4), hidden_size=4),
    "output 1 is not supported": model(
        "BatchNormalization", f(1, 2, 3, 3), *[const([1, 1])] * 4, outputs=["y", "m"], opset=9
    ),
    "a result would have the shape [2199023255552]": model("Expand", f(1), ints(1 << 41)),
    "was removed from the operators in version 10": model("Upsample", f(1, 1, 2, 2), const([1, 1, 2, 2])),
    "has 2 inputs": model("Relu", f(2), f(2)),
    "the attribute axis is missing": model("Concat", f(2), f(2)),
    "gives its subgraph 0 inputs, and it takes 1": chosen(const(True, "bool"), [], "a"),
    "functions and subgraphs are more than 24 deep": recursive(),
    "its body does not give 'q'": chosen(const(True, "bool"), [], other="q"),
    "has no outputs": giving(),
    "its output 'q' is given by no node": giving("q"),
    "the type is STRING": plain(data_type=STRING, raw_data=b"", string_data=[b"a", b"b"]),
    "has the shape [-1]": plain(dims=[-1]),
    "its numbers cannot be read": plain(raw_data=b"abc"),
    "has 5 bytes for float32 of shape [2]": outside(offset="0", length="5"),
    "its place in the file is no number": outside(offset="x"),
    "lies at 1000000 to 1000008 of": outside(offset="1000000", length="8"),
    "its numbers are in the file 'w'": outside(location="w"),
    "is empty": b"",
    "is not an ONNX model: ": bytes([0x3A, 3, 0x5A, 1, 0xFF]),
    "has no graph": b"\x08\x0a",
    "version 99 of the operators is not supported": model("Relu", f(2), opset=99),
    "is not UTF-8": model("Relu", f(2), name="qqqq").SerializeToString().replace(b"qqqq", b"\xff" * 4),
    "input 0 is missing": model("Relu", ""),
    "input 2 has rank 2, not 3": lstm(rows=(8, 2)),
    "input 0 is of unknown size": model("Trilu", f("n", 4)),
    "its result has several sizes that follow from": model("Flatten", f("n", "m"), axis=1),
    "slices an axis of unknown size": model("Conv", f(1, 1, "h", 4), f(1, 1, 1, 1), pads=(-1, 0, 0, 0)),
    "splits an axis of unknown size": model("Split", f("n"), num_outputs=1),
    "cuts or mirrors an axis of unknown size": model("Pad", f("n"), ints(1, 1), mode="reflect"),
    "is tensor<?xf32>, no list of integers": model("Reshape", f(2), f("n")),
    "is computed at run time": model("Pad", f(2), Given((2,), LONG)),
    "no list of integers": model("Reshape", f(2), const([2])),
    "input 1 has 2 numbers, not one": model("Trilu", f(2, 2), ints(1, 1)),
    "the attribute axis is FLOAT, not INT": model("Flatten", f(2, 2), axis=1.0),
    "the attribute mode is 'odd'": model("Pad", f(2), ints(1, 1), mode="odd"),
    "axis 5 is outside a tensor of rank 1": model("Concat", f(2), f(2), axis=5),
    "the axes [0, 0] name one twice": model("Squeeze", f(1), ints(0, 0)),
    "holds value_string": model("Constant", value_string="a"),
    "its sparse value cannot be read": sparse(),
    "Dropout 'y': is in training mode": model("Dropout", f(2), const(0.5), const(True, "bool")),
    "casts to strings": model("Cast", f(2), to=STRING),
    "its condition is tensor<1xf32>, not one boolean": chosen(f(1), []),
    "its branches give": chosen(Given((1,), BOOL), []),
    "turns that depend on values; if an input decides it, fix": looped(Given((), LONG), [same("t", "u")], "u"),
    "takes no turn and collects results": looped(const(0, "int64"), [same("t", "u")], "u"),
    "gives a tensor whose size follows from values": chosen(
        Given((1,), BOOL), [helper.make_node("NonZero", ["i0"], ["v"])], other="v"
    ),
    "compares slices along an axis": model("Unique", f(2, 2), axis=1),
    "its states change their types from turn to turn": looped(
        Given((), LONG), [helper.make_node("Concat", ["s", "s"], ["z"], axis=0)], state=f(2)
    ),
    "scans -1 positions": scanned(),
    "keeps axis 1 of a tensor of rank 1": model("Reshape", f(2), ints(2, 0)),
    "axis 5 is outside a tensor of rank 2": model("Flatten", f(2, 2), axis=5),
    "has no axes": model("Unsqueeze", f(2), ""),
    "splits 4 elements in parts of [1, 1]": model("Split", f(4), ints(1, 1), outputs=["y", "z"]),
    "has starts (0, 0), ends (1,)": model("Slice", f(4, 4), ints(0, 0), ints(1)),
    "expands [2, 3] to [4]": model("Expand", f(2, 3), ints(4)),
    "has 3 pads for 1 axes": model("Pad", f(2), ints(1, 1, 1)),
    "its value has 2 numbers, not one": model("ConstantOfShape", ints(2), value=const([1, 2])),
    "or the step is 0": model("Range", const(0), const(1), const(0)),
    "has 0 spatial axes": pool(2, 2),
    "the attribute kernel_shape is [2] for 2 spatial axes": pool(1, 1, 4, 4, kernel_shape=[2]),
    "pads an axis of unknown size": pool(1, 1, "h", 4, auto_pad="SAME_UPPER", strides=[2, 2]),
    "has auto_pad 'odd'": pool(1, 1, 4, 4, auto_pad="odd"),
    "gives indices": pool(1, 1, 4, 4, kind="MaxPool", outputs=["y", "z"]),
    "BatchNormalization 'y': is in training mode": model(
        "BatchNormalization", f(1, 2, 3, 3), *[const([1, 1])] * 4, training_mode=1
    ),
    "has 2 operands, not 1": model("Einsum", f(2, 2), equation="ij,jk"),
    "the operand 'i' is of rank 2": model("Einsum", f(2, 2), equation="i->i"),
    "weights of 3 bits": few_bits(bits=3),
    "has an order of groups (g_idx)": few_bits(2, "", const(np.zeros(16), "int32")),
    "has 24 bytes of weights and 2 scales": few_bits(3),
    "the size of its images is not known": mean(u8(1, 1, "h", 2), 1),
    "the scale of input 1 is not positive": mean(u8(1, 1, 2, 2), -1),
    "input 1 has 2 scales": mean(u8(1, 1, 2, 2), [1, 1]),
    "input 0 is of float32, which is no type of codes": mean(f(1, 1, 2, 2), 1),
    "AveragePool is not supported": old(),
    "the scale of blocks has rank 1, not 2": model(
        "QuantizeLinear", f(2, 4), const([1, 1]), block_size=2, output_dtype=BYTES, opset=21
    ),
    "its scale is i32": model("QuantizeLinear", f(2), Given((), INT), opset=21),
    "data of rank 2 and a kernel of rank 4": conv(1, 1),
    "2 channels and a kernel of shape [1, 1, 2, 2] in 1 groups": conv(1, 2, 4, 4),
    "is that of the machine on which ONNX Runtime optimised": model("Conv", f(1, 1), domain="com.microsoft.nchwc"),
    "normalizes rows of a size that is not known": model("RMSNormalization", f(2, "n"), f("n"), opset=23),
    "the attribute num_heads is 3 for rows of 8": model(
        "RotaryEmbedding", f(1, 2, 8), f(1, 2, 2), f(1, 2, 2), opset=23, num_heads=3
    ),
    "has 3 heads for rows of 8": model(
        "Attention", *[f(1, 2, 8)] * 3, opset=23, q_num_heads=3, kv_num_heads=3
    ),
    "normalizes more than the last axis": model("SimplifiedLayerNormalization", f(2, 2), f(2), axis=0),
    "which only training needs": model(
        "SkipLayerNormalization", f(2, 2), f(2, 2), f(2), domain=MS, outputs=("y", "mean")
    ),
    "Attention 'y': input 4 is not supported": heads(past=f(2)),
    "its mask has the shape [4]": heads(const(np.zeros(4), "int32")),
    "turns queries and keys by their position": heads(do_rotary=1),
    "packs queries, keys and values in one tensor": model(
        "MultiHeadAttention", f(1, 2, 1, 3, 4), f(1, 2, 4), f(1, 2, 4), domain=MS, num_heads=1
    ),
    "it has a scale per row": model(
        "QLinearMatMul", u8(2, 2), const([1, 1]), const([0, 0], "uint8"),
        const(np.zeros((2, 2)), "uint8"), *[const(1), const(0, "uint8")] * 2,
    ),
    "the activation Odd": lstm(activations=["Odd", "Tanh", "Tanh"]),
    "has 1 activations": lstm(activations=["Tanh"]),
    "its sizes must be known": lstm(first=f("n", 1, 3)),
    "the direction 'bidirectional' and (1, 8, 3) do not fit": lstm(direction="bidirectional"),
    "has 1 scales for 4 axes": model("Resize", f(1, 1, 2, 2), "", const([2])),
    "resizes to [1, 1, 0, 2]": model("Resize", f(1, 1, 2, 2), "", "", ints(1, 1, 0, 2)),
    "the attribute mode is 'bad'": model("GridSample", f(1, 1, 2, 2), f(1, 2, 2, 2), mode="bad"),
    "is not an ONNX model: the field at byte": b"\x3a\x05\x00",
}  # fmt: skip
WITH: dict[str, tuple[onnx.ModelProto, Mapping[str, Any]]] = {
    "shape_dict: is given, and so is shapes": (
        model("Relu", f(2)),
        {"shapes": {"i0": (2,)}, "shape_dict": {"i0": (2,)}},
    ),
    "numerics 'odd' is unknown": (model("Relu", f(2)), {"numerics": "odd"}),
    "names no input of": (model("Relu", f(2)), {"constants": {"q": np.zeros(2)}}),
}


class Huge:
    """A model that protobuf does not serialise."""

    def SerializeToString(self) -> bytes:
        raise EncodeError("too large")


def told(words: str, model: Any, **keywords: Any) -> None:
    with pytest.raises(RelayError) as found:
        from_onnx(model, **keywords)
    assert words in str(found.value), (words, str(found.value))


def every(folder: Path) -> None:
    """All cases."""
    for words, given in MODELS.items():
        told(words, given)
    for words, (given, keywords) in WITH.items():
        told(words, given, **keywords)
    for words, location in (("outside the model's folder", "../w"), ("cannot be read from 'w'", "w")):
        path = folder / "model.onnx"
        path.write_bytes(outside(location=location).SerializeToString())
        told(words, path)
    relu = model("Relu", f(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "MOST_NODES", 0)
        told("come to more than 0 nodes", relu)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control, "MOST_TURNS", 3)
        told("has more than 3 turns that collect", looped(const(9, "int64"), [same("t", "u")], "u"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "onnx", SimpleNamespace(ModelProto=Huge))
        told("the model cannot be serialised: too large", Huge())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "onnx", None)
        patch.delitem(sys.modules, "relay.frontend.onnx.main_graph")
        told("the package onnx is not installed", b"")
    node = Node("file", relu.graph.node[0], 0, "", 18, {}, (), lambda value: None, "")
    with pytest.raises(RelayError, match="input 0 is index, no tensor"):
        replace(node, values=tuple(Block(arg_types=[IndexType()]).args)).type(0)
