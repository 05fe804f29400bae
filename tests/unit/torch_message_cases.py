"""Small programs of PyTorch, and what `from_pytorch` says of each: a row per message."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.frontend import from_pytorch
from relay.frontend.importing import archives as reading
from relay.frontend.importing import conversion
from relay.frontend.torch.node import Node
from tests.numeric.torch_programs import Json, archive, invoke, tensor

MODEL, WEIGHTS = "m/models/model.json", "m/data/weights/model_weights_config.json"


class Given(NamedTuple):
    """An input of the program."""

    dims: tuple[int | str, ...]
    dtype: str = "float32"


def f(*dims: int | str) -> Given:
    return Given(dims)


def i(*dims: int | str) -> Given:
    return Given(dims, "int64")


def call(target: str, *outputs: str, **arguments: Any) -> bytes:
    """A program of one call; inputs and constants are tensors, a dictionary is an argument as archives have it."""
    inputs: dict[str, Any] = {}
    weights: dict[str, Array] = {}

    def serialized(value: Any) -> Json:
        match value:
            case Given():
                inputs[name := f"i{len(inputs)}"] = value
                return tensor(name)
            case np.ndarray():
                weights[name := f"w{len(weights)}"] = value
                return tensor(name)
            case dict():
                return cast(Json, value)
            case [Given() | np.ndarray(), *_]:
                return {"as_tensors": [serialized(each)["as_tensor"] for each in value]}
            case list():
                kind = "strings" if isinstance(value[0], str) else "ints"
                return {f"as_{kind}": value}
            case _:
                kinds = {bool: "bool", int: "int", float: "float", str: "string"}
                return {f"as_{kinds[type(value)]}": value}

    given = {name: serialized(value) for name, value in arguments.items()}
    names = outputs or ("y",)
    return archive([invoke(target, given, *names)], inputs, names[:1], weights=weights)


def flow(kind: str, *arguments: Any, **inputs: Given) -> bytes:
    """A program of one call of control flow, whose arguments have no names."""
    node = invoke(f"higher_order.{kind}", {}, "y")
    node["inputs"] = [{"name": "", "arg": each, "kind": 1} for each in arguments]
    return archive([node], dict(inputs), ["y"])


def body(*nodes: Json, inputs: Sequence[str] = (), output: Json | None = None) -> Json:
    """An argument that is a graph; without nodes it gives its first input."""
    last: Json = output or (nodes[-1]["outputs"][0] if nodes else tensor(inputs[0]))
    graph: Json = {"inputs": [tensor(name) for name in inputs], "outputs": [last], "nodes": nodes, "tensor_values": {}}
    return {"as_graph": {"name": "body", "graph": graph}}


def zeros(*sizes: int) -> Json:
    return invoke("aten.zeros.default", {"size": {"as_ints": list(sizes)}}, "z")


def tensors(*names: str) -> Json:
    return {"as_tensors": [{"name": name} for name in names]}


def edited(change: Callable[[Json], object], entry: str = MODEL) -> bytes:
    """A program that adds a weight, with a part of its JSON changed."""
    add = invoke("aten.add.Tensor", {"self": tensor("x"), "other": tensor("w")}, "y")
    return rewritten(
        archive([add], {"x": ((2,), "float32")}, ["y"], weights={"w": np.ones(2, np.float32)}), entry, change
    )


def rewritten(data: bytes, entry: str, change: Callable[[Json], object]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == entry:
                tree = json.loads(content)
                found = change(tree)
                content = found if isinstance(found, bytes) else json.dumps(tree).encode()
            new.writestr(name, content)
    return stream.getvalue()


def zipped(method: int = zipfile.ZIP_STORED, /, **entries: str) -> bytes:
    """An archive of these entries; two underscores stand for a slash."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        for name, content in entries.items():
            file.writestr(name.replace("__", "/"), content)
    return stream.getvalue()


def spoilt() -> bytes:
    """A compressed graph whose first bytes are others."""
    data = bytearray(
        zipped(zipfile.ZIP_DEFLATED, m__archive_format="pt2", **{"m__models__model.json": "{}" + " " * 99})
    )
    start = data.index(MODEL.encode()) + len(MODEL)
    data[start : start + 4] = b"\xff" * 4
    return bytes(data)


def inputs_of(graph: Json) -> list[Json]:
    specs: list[Json] = graph["graph_module"]["signature"]["input_specs"]
    return specs


def outputs_of(graph: Json) -> list[Json]:
    specs: list[Json] = graph["graph_module"]["signature"]["output_specs"]
    return specs


def weight(**changes: Any) -> bytes:
    """A program whose weight is described otherwise."""
    return edited(lambda tree: tree["config"]["w"]["tensor_meta"].update(changes), WEIGHTS)


def lstm(x: Given, *params: Given) -> bytes:
    rest = {"has_biases": False, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
    return call("aten.lstm.input", input=x, hx=[f(1, 1, 2), f(1, 1, 2)], params=list(params), **rest, batch_first=False)


KNOWN: Json = {"as_bool": True}
X, FLAG = f(2, 3), Given((1,), "bool")
SHAPES: Mapping[str, Any] = {"as_sym_ints": [{"as_name": "i0"}]}
BLOCKS: dict[str, Any] = {"scale": f(1), "quant_min": -8, "quant_max": 7}
PROGRAMS: dict[str, bytes] = {
    "is no zip archive": b"PK",
    "was written by a PyTorch before 2.8": zipped(**{"m__serialized_exported_program.json": "{}"}),
    "is a pickle of torch.save, which is never loaded": zipped(**{"m__data.pkl": "x"}),
    "has no entry archive_format": zipped(m="x"),
    "holds 0 programs": zipped(m__archive_format="pt2"),
    "its byte order is b'big'": zipped(m__archive_format="pt2", m__byteorder="big", **{"m__models__a.json": "{}"}),
    "the graph's schema is of version None": zipped(m__archive_format="pt2", **{"m__models__a.json": "{}"}),
    "model_weights_config.json has no config": edited(lambda tree: tree.pop("config"), WEIGHTS),
    "model.json is no JSON": edited(lambda tree: b"{"),
    "model.json is no object": edited(lambda tree: b"[]"),
    "is not inside the file": call("aten.relu.default", self=X).replace(b"PK\x03\x04", b"PK\x03\x05"),
    "the entry 'm/models/model.json' cannot be read": spoilt(),
    "weight 'w': is not in the archive": edited(lambda tree: tree["config"].clear(), WEIGHTS),
    "is stored as a pickle, which is never loaded": edited(
        lambda tree: tree["config"]["w"].update(use_pickle=True), WEIGHTS
    ),
    "weight 'w': is not described: KeyError": edited(lambda tree: tree["config"]["w"].pop("tensor_meta"), WEIGHTS),
    "has the shape [2], strides [] and offset 0": weight(strides=[]),
    "of shape [9] is longer than its 8 bytes": weight(sizes=[{"as_int": 9}]),
    "has the element type complex64; booleans, integers and floats are supported": weight(dtype=10),
    "the shape [-1, 0] does not follow from tensor<?x3xf32>": call("aten.view.default", self=f("n", 3), size=[-1, 0]),
    "gives tensor<2x3xf32> the shape [4]": call("aten.view.default", self=X, size=[4]),
    "writes to a part of a buffer": archive(
        [
            invoke("aten.view.default", {"self": tensor("b"), "size": {"as_ints": [6]}}, "v"),
            invoke("aten.add_.Tensor", {"self": tensor("v"), "other": {"as_int": 1}}, "w"),
        ],
        {},
        ["b"],
        weights={"b": np.ones((2, 3), np.float32)},
        buffers=["b"],
    ),
    "cannot be read: ValueError": call("aten.relu.default", self={}),
    "takes 'q', which no node before it gives": call("aten.relu.default", self=tensor("q")),
    "takes 'z', which is not computed": archive(
        [
            invoke(
                "aten.max_pool2d_with_indices.default", {"self": tensor("x"), "kernel_size": {"as_ints": [1]}}, "a", "z"
            ),
            invoke("aten.neg.default", {"self": tensor("z")}, "y"),
        ],
        {"x": ((1, 1, 2, 2), "float32")},
        ["y"],
    ),
    "the argument self is of the kind custom_obj; export the program with tensors and numbers only": call(
        "aten.relu.default", self={"as_custom_obj": {}}
    ),
    "draws random numbers; pass it in custom_ops, or cut it off with outputs": call(
        "aten.rand_like.default", self=f("n", 3)
    ),
    "depends on values; pass it in custom_ops": call("aten.where.default", condition=X),
    "makes a Python number of a tensor": call("aten.item.default", self=f(1)),
    "_add_batch_dim.default 'y': the operator is not supported; program.run_decompositions() may": call(
        "torch._functorch.predispatch._add_batch_dim.default", x=X
    ),
    "node 0 aten.relu.default 'y': its result 'y': has the element type complex64": edited(
        lambda tree: (
            tree["graph_module"]["graph"]["nodes"][0].update(target="torch.ops.aten.relu.default"),
            tree["graph_module"]["graph"]["tensor_values"].update(y={"dtype": 10, "sizes": []}),
        )
    ),
    "aten.relu.default 'y': output 1 is not supported; export the program without it": call(
        "aten.relu.default", "y", "z", self=X
    ),
    "cannot be read: IndexError": flow("cond"),
    "a result would have the shape [2199023255552]": call("aten.full.default", size=[1 << 41], fill_value=1),
    "gives tensor<f32>, which is tensor<2x3xf32> in the file": archive(
        [invoke("aten.sum.default", {"self": tensor("x")}, "y")], {"x": X}, ["y"], {"y": X}
    ),
    "gives 'body' 1 inputs, and it takes 0": flow("cond", KNOWN, body(zeros(1)), body(zeros(1)), tensors("x"), x=X),
    "its body gives a number, not a tensor; let it give torch.tensor(number)": flow(
        "cond",
        KNOWN,
        body(invoke("aten.sym_size.int", {"self": tensor("a"), "dim": {"as_int": 0}}, "s"), inputs=["a"]),
        body(inputs=["a"]),
        tensors("x"),
        x=X,
    ),
    "its body cannot be imported": flow(
        "cond", KNOWN, body(invoke("aten.odd.default", {}, "o")), body(zeros(1)), tensors()
    ),
    "the graph cannot be read: KeyError": edited(lambda tree: tree.pop("graph_module")),
    "input 0 is int, no tensor": edited(lambda tree: inputs_of(tree)[1]["user_input"].update(arg={"as_int": 1})),
    "has an input of the kind token; export it with tensors only": edited(
        lambda tree: inputs_of(tree).append({"token": {}})
    ),
    "output 0 is int, no tensor": edited(lambda tree: outputs_of(tree)[0]["user_output"].update(arg={"as_int": 1})),
    "writes to its input 'x'; write to x.clone(), or make it a buffer": edited(
        lambda tree: outputs_of(tree).append({"user_input_mutation": {"arg": {"name": "y"}, "user_input_name": "x"}})
    ),
    "has an output of the kind loss_output": edited(lambda tree: outputs_of(tree).append({"loss_output": {}})),
    "its output 'q' is given by no node": edited(
        lambda tree: outputs_of(tree)[0]["user_output"].update(arg=tensor("q"))
    ),
    "is in training mode": call("aten.dropout.default", input=X, p=0.5, train=True),
    "the argument self is missing": call("aten.relu.default"),
    "the argument self is 1, no tensor": call("aten.relu.default", self=1),
    "the argument tensors is [1], no list of tensors": call("aten.cat.default", tensors=[1]),
    "the argument tensors is 1, no list": call("aten.cat.default", tensors=1),
    "the argument dim follows from sizes": call("aten.cumsum.default", self=X, dim=i()),
    "the argument dim is 'a', no integer": call("aten.cumsum.default", self=X, dim="a"),
    "the argument size has 'a', no integer": call("aten.view.default", self=X, size=["a"]),
    "the argument dims follows from sizes": call("aten.permute.default", self=i(), dims=SHAPES),
    "the argument kernel_size is [2, 2, 2] for 2 axes": call(
        "aten.avg_pool2d.default", self=f(1, 2, 4, 4), kernel_size=[2] * 3
    ),
    "the argument alpha is 'a', no number": call("aten.add.Tensor", self=X, other=X, alpha="a"),
    "the argument keepdim is 3, no boolean": call("aten.sum.dim_IntList", self=X, dim=[0], keepdim=3),
    "the argument self has rank 1, not 2": call("aten._pdist_forward.default", self=f(2)),
    "self is of unknown size": call("aten.roll.default", self=f("n"), shifts=[1]),
    "the axes [0, 0] name one twice": call("aten.permute.default", self=X, dims=[0, 0]),
    "argument 1 is no graph": flow("cond", KNOWN, {"as_int": 1}, {"as_int": 1}, tensors()),
    "argument 3 has [1], no tensors; pass torch.tensor(number)": flow(
        "cond", KNOWN, body(zeros(1)), body(zeros(1)), {"as_ints": [1]}
    ),
    "its condition is None, no boolean": flow("cond", {"as_none": True}, body(zeros(1)), body(zeros(1)), tensors()),
    "its branches give": flow("cond", tensor("x"), body(zeros(1)), body(zeros(2)), tensors(), x=FLAG),
    "its condition is tensor<2x3xf32>, not one boolean": flow(
        "cond", tensor("x"), body(zeros(1)), body(zeros(1)), tensors(), x=X
    ),
    "a turn makes tensor<1xf32> of tensor<2x3xf32>; states must keep their types": flow(
        "while_loop",
        body(invoke("aten.any.default", {"self": tensor("a")}, "g"), inputs=["a"]),
        body(zeros(1), inputs=["a"]),
        tensors("x"),
        tensors(),
        x=X,
    ),
    "maps [0] rows; 1 to 4096 are supported": flow("map_impl", body(inputs=["a"]), tensors("x"), tensors(), x=f(0, 2)),
    "gives 1073741824 numbers; up to 268435456 are supported": call("aten.arange.default", end=1 << 30),
    "gives 32768 x 32768 numbers; up to 268435456": call("aten.eye.default", n=1 << 15),
    "the argument steps is -1; 0 to 268435456": call("aten.linspace.default", start=0.0, end=1.0, steps=-1),
    "the argument num_classes is -1: values decide how many": call("aten.one_hot.default", self=i(2)),
    "the argument sorter is given": call("aten.searchsorted.Tensor", sorted_sequence=f(3), self=X, sorter=i(3)),
    "maps [2, 3] rows": flow("map_impl", body(inputs=["a"]), tensors("x", "y"), tensors(), x=f(2), y=f(3)),
    "takes tensor<?xf32>, of unknown size": flow("map_impl", body(inputs=["a"]), tensors("x"), tensors(), x=f("n")),
    "the argument decimals is -1 for tensor<2xi64>; cast self to float": call(
        "aten.round.decimals", self=i(2), decimals=-1
    ),
    "the argument indices has 1, no tensor": call("aten.index.Tensor", self=X, indices=[1]),
    "it takes elements by a mask; keep the size: torch.where(mask, x, 0)": call(
        "aten.index.Tensor", self=X, indices=[FLAG]
    ),
    "the argument indices has 3 for tensor<2x3xf32>": call("aten.index.Tensor", self=X, indices=[i(1), i(1), i(1)]),
    "the argument indices has tensor<?xi64>, tensor<?xi64>, of unknown sizes": call(
        "aten.index.Tensor", self=X, indices=[i("n"), i("n")]
    ),
    "the argument reduce is 'odd'; it may be add, sum, multiply, prod, amax, amin, mean": call(
        "aten.scatter_reduce.two", self=X, dim=0, index=i(1, 3), src=f(1, 3), reduce="odd"
    ),
    "the argument sorted_sequence is tensor<2x3xf32>; give one sorted row": call(
        "aten.searchsorted.Tensor", sorted_sequence=X, self=X
    ),
    "gives the bits of tensor<2x3xf32> as int32; if values are meant, write x.to(dtype)": call(
        "aten.view.dtype", self=X, dtype={"as_scalar_type": 4}
    ),
    "drops axes of 1 of tensor<?x1xf32>; name the axis": call("aten.squeeze.default", self=f("n", 1)),
    "splits an axis of unknown size": call("aten.split.Tensor", self=f("n"), split_size=1),
    "gives 1099511627776 parts": call("aten.split.Tensor", self=f(1 << 40), split_size=1),
    "splits 2 elements in parts of [1]": call("aten.split_with_sizes.default", self=X, split_sizes=[1]),
    "its pads are [1, 1, 1] for the sizes [2, 3]": call("aten.constant_pad_nd.default", self=X, pad=[1, 1, 1]),
    "cuts or mirrors an axis of unknown size": call("aten.constant_pad_nd.default", self=f("n"), pad=[-1, 0]),
    "its pads are [-1, 1]; cut it by a slice, then pad": call("aten.pad.default", self=X, pad=[-1, 1], mode="circular"),
    "its pads are [3, 0] for the sizes [2, 3]; mirrored axes must be longer": call(
        "aten.pad.default", self=X, pad=[3, 0], mode="reflect"
    ),
    "the argument mode is 'odd'; it may be constant, reflect, replicate, circular": call(
        "aten.pad.default", self=X, pad=[1, 1], mode="odd"
    ),
    "gives 1073741824 elements; up to": call("aten.as_strided.default", self=X, size=[1 << 30], stride=[1]),
    "takes some of 1073741824 elements; up to": call("aten.diagonal.default", self=f(1 << 15, 1 << 15)),
    "the sizes [9] and strides [1] reach outside of [2, 3]": call(
        "aten.as_strided.default", self=X, size=[9], stride=[1]
    ),
    "takes tensor<?x2xf32>, of unknown size": call("aten.einsum.default", equation="ab->a", tensors=[f("n", 2)]),
    "has 0 spatial axes": call("aten.convolution.default", input=X, weight=X),
    "averages int64": call("aten.avg_pool2d.default", self=i(1, 2, 4, 4), kernel_size=[2]),
    "divisor_override is 3 and ceil_mode True; leave one of them out": call(
        "aten.avg_pool2d.default", self=f(1, 2, 4, 4), kernel_size=[2], ceil_mode=True, divisor_override=3
    ),
    "input is of unknown size tensor<1x2x?x4xf32>": call(
        "aten.upsample_nearest2d.vec", input=f(1, 2, "n", 4), output_size=[4, 4]
    ),
    "compares tensor<2x3xf32> with tensor<3xf32>; give both one shape": call(
        "aten.cosine_similarity.default", x1=X, x2=f(3)
    ),
    "the argument dtype is None, no type of integers": call(
        "quantized_decomposed.quantize_per_tensor.default", input=X, scale=1.0, zero_point=0
    ),
    "the argument input is of unknown size tensor<?x3xf32>": call(
        "torchao.dequantize_affine.default", input=f("n", 3), block_size=[1, 3], **BLOCKS
    ),
    "the argument block_size is [1, 2] for the sizes [2, 3]": call(
        "torchao.dequantize_affine.default", input=X, block_size=[1, 2], **BLOCKS
    ),
    "the argument mapping_type is 'ODD'; it may be SYMMETRIC, ASYMMETRIC": call(
        "torchao.choose_qparams_affine.default", "s", "z", input=X, mapping_type="ODD", block_size=[1, 3]
    ),
    "input is of unknown size tensor<?x1x3xf32>": lstm(f("n", 1, 3), f(8, 3), f(8, 2)),
    "the argument params has 1 weights for 1 layers; projections": lstm(f(4, 1, 3), f(8, 3)),
}


def told(words: str, data: bytes, **keywords: Any) -> None:
    with pytest.raises(RelayError) as found:
        from_pytorch(data, **keywords)
    assert words in str(found.value), (words, str(found.value))


def every() -> None:
    """All cases."""
    for words, data in PROGRAMS.items():
        told(words, data)
    relu = call("aten.relu.default", self=X)
    told("numerics 'odd' is unknown", relu, numerics="odd")
    pooled = call("aten.max_pool1d_with_indices.default", "y", "places", self=f(1, 2, 4), kernel_size=[2])
    told("its output 'places', of aten.max_pool1d_with_indices.default, is not computed", pooled, outputs=["places"])
    module = type("Net", (type("Module", (), {"__module__": "torch.nn.modules.module"}),), {})()
    with pytest.raises(RelayError, match="Net is a module, whose call is Python code"):
        from_pytorch(module)

    def save(*_: object) -> None:
        raise ValueError("failed serializing\nTraceback\nunsupported argument")

    unsaved: Any = type("ExportedProgram", (), {"__module__": "torch.export"})()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", SimpleNamespace(export=SimpleNamespace(save=save)))
        told(
            "ExportedProgram: torch.export.save raises ValueError: unsupported argument; export what PyTorch can save",
            unsaved,
        )
    packed = zipped(zipfile.ZIP_DEFLATED, m__archive_format="pt2", **{"m__models__model.json": " " * 99})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MOST_EXPANDED", 10)
        told("its compressed entries come to more than 10 bytes", packed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MOST_JSON", 98)
        told("m/models/model.json has 99 bytes; at most 98 are read", packed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "MOST_NODES", 0)
        told("come to more than 0 nodes", relu)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "DEEPEST", 0)
        told(
            "functions and subgraphs are more than 0 deep",
            flow("cond", KNOWN, body(zeros(1)), body(zeros(1)), tensors()),
        )
    node = Node("file", "aten.relu.default", 0, "", {}, [], [])
    with pytest.raises(RelayError, match="the argument self is index, no tensor"):
        replace(node, arguments={"self": Block(arg_types=[IndexType()]).args[0]}).shape("self")
