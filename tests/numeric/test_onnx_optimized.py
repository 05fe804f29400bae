"""Files that ONNX Runtime has optimised: each fused operator by itself, and models at each level, against itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the importer needs it")
onnxruntime = pytest.importorskip("onnxruntime", reason="it optimises the files")

import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

from relay.compile.entry import build  # noqa: E402
from relay.errors import Unsupported  # noqa: E402
from relay.frontend import from_onnx  # noqa: E402
from relay.interpreters import run  # noqa: E402
from relay.transform import FoldConstant, FoldScaleAxis, SimplifyInference  # noqa: E402
from tests.numeric.onnx_quantised import SATURATES  # noqa: E402
from tests.numeric.test_onnx_models import FLOATS, MODELS  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]
MS = "com.microsoft"
LEVELS = {"basic": 1, "extended": 2, "all": 99}
QUANTISED = (
    "bert_tiny_dynamic_int8",
    "bert_tiny_qdq",
    "bert_tiny_nbits4",
    "shufflenet_randomw_qoperator",
    "ultraface_slim_qdq_u8s8",
    "ultraface_slim_qoperator_u8u8",
)
"""Not the one of 16 bits, which ONNX Runtime computes in floats."""
SIGNED = {"bert_tiny_dynamic_int8", "bert_tiny_qdq", "shufflenet_randomw_qoperator", "ultraface_slim_qdq_u8s8"}
"""Those with weights of int8, by which ONNX Runtime's products saturate on some processors."""
LAYOUTS_OF_THE_MACHINE = ("com.microsoft.nchwc",)


def r(*dims: int, scale: float = 1.0) -> Array:
    """Numbers that differ from each other, the same in each run."""
    return (scale * np.random.default_rng(sum(dims) + len(dims)).standard_normal(dims)).astype(np.float32)


def u8(*dims: int) -> Array:
    return np.random.default_rng(sum(dims)).integers(0, 256, dims, np.uint8)


def i32(*numbers: Any) -> Array:
    return np.array(numbers, np.int32)


def s(value: float) -> Array:
    return np.full((), value, np.float32)


Z = np.array(128, np.uint8)
Q, K, V = r(2, 5, 12), r(2, 7, 12, scale=0.9), r(2, 7, 8)
MASK = i32([1, 1, 1, 1, 0], [1, 1, 1, 0, 0])
PAIRS = np.tril(np.ones((2, 5, 5), np.int32))
CODES = (u8(1, 6, 7, 4), s(0.05), Z)
EMBEDDING = (i32([1, 4, 2], [0, 3, 5]), i32([0, 1, 0], [1, 1, 0]), r(6, 8), r(4, 8), r(2, 8), r(8), 2 * r(8))

NODES: dict[str, tuple[str, Sequence[Array | None], Mapping[str, Any]]] = {
    "FusedConv": ("FusedConv", [r(1, 3, 8, 8), r(4, 3, 3, 3), r(4)], {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    "FusedConv with a summand": (
        "FusedConv", [r(1, 3, 6, 6), r(4, 3, 3, 3), r(4), r(1, 4, 4, 4)],
        {"activation": "LeakyRelu", "activation_params": [0.2]},
    ),
    "FusedConv HardSigmoid": (
        "FusedConv", [r(1, 3, 6, 6), r(4, 3, 3, 3), None],
        {"activation": "HardSigmoid", "activation_params": [0.1, 0.4]},
    ),
    "FusedConv Clip": (
        "FusedConv", [r(1, 3, 6, 6), r(4, 3, 3, 3), r(4)], {"activation": "Clip", "activation_params": [-1.0, 2.0]},
    ),
    "FusedGemm": (
        "FusedGemm", [r(4, 6), r(5, 6), r(5)],
        {"activation": "LeakyRelu", "activation_alpha": 0.3, "transB": 1, "alpha": 0.5, "beta": 2.0},
    ),
    "FusedMatMul": ("FusedMatMul", [r(2, 6, 4), r(2, 5, 6)], {"alpha": 0.125, "transA": 1, "transB": 1}),
    "FusedMatMul of batches": (
        "FusedMatMul", [r(5, 2, 6), r(6, 2, 4)], {"transBatchA": 1, "transBatchB": 1},
    ),
    "Gelu": ("Gelu", [r(3, 7, scale=3)], {}),
    "BiasGelu": ("BiasGelu", [r(3, 7), r(7)], {}),
    "FastGelu": ("FastGelu", [r(3, 7, scale=3), r(7)], {}),
    "QuickGelu": ("QuickGelu", [r(3, 7, scale=3)], {"alpha": 1.5}),
    "SkipLayerNormalization": ("SkipLayerNormalization", [r(2, 3, 8), r(1, 3, 8), r(8), None, 3 * r(8)], {}),
    "SkipLayerNormalization epsilon": (
        "SkipLayerNormalization", [r(2, 3, 8), r(2, 3, 8), r(8), r(8)], {"epsilon": 0.1},
    ),
    "SkipSimplifiedLayerNormalization": (
        "SkipSimplifiedLayerNormalization", [r(2, 3, 8), r(2, 3, 8), r(8)], {"epsilon": 1e-3},
    ),
    "EmbedLayerNormalization": ("EmbedLayerNormalization", [*EMBEDDING, i32([1, 1, 0], [1, 0, 0])], {}),
    "EmbedLayerNormalization without segments": (
        "EmbedLayerNormalization",
        [EMBEDDING[0], None, *EMBEDDING[2:4], None, *EMBEDDING[5:], None, i32([3, 1, 2], [0, 1, 3])],
        {"epsilon": 0.01},
    ),
    "Attention": ("Attention", [r(2, 5, 12), r(12, 36), r(36), MASK], {"num_heads": 3}),
    "Attention of lengths": ("Attention", [r(2, 5, 12), r(12, 36), r(36), i32(5, 3)], {"num_heads": 3}),
    "Attention of ends and starts": (
        "Attention", [r(2, 5, 12), r(12, 36), r(36), i32(5, 3, 2, 0)], {"num_heads": 3, "unidirectional": 1},
    ),
    "Attention of pairs": ("Attention", [r(2, 5, 12), r(12, 36), r(36), PAIRS], {"num_heads": 2, "scale": 0.3}),
    "Attention of what came before": (
        "Attention", [r(2, 5, 12), r(12, 32), r(32), None, None, r(1, 2, 5, 5)],
        {"num_heads": 2, "unidirectional": 1, "qkv_hidden_sizes": [12, 12, 8]},
    ),
    "MultiHeadAttention": ("MultiHeadAttention", [Q, K, V, r(32)], {"num_heads": 2}),
    "MultiHeadAttention of heads": (
        "MultiHeadAttention", [Q, r(2, 2, 7, 6), 2 * r(2, 2, 7, 6)], {"num_heads": 2},
    ),
    "NhwcMaxPool": ("NhwcMaxPool", [u8(1, 6, 7, 4)], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}),
    "QLinearConv channels last": (
        "QLinearConv",
        [*CODES, u8(5, 4, 3, 3), s(0.01), Z, s(0.2), Z, i32(*range(-200, 300, 100))],
        {"channels_last": 1, "pads": [1, 1, 1, 1]},
    ),
    "QLinearAveragePool channels last": (
        "QLinearAveragePool", [*CODES, s(0.04), Z], {"channels_last": 1, "kernel_shape": [2, 2]},
    ),
    "QLinearGlobalAveragePool channels last": ("QLinearGlobalAveragePool", [*CODES, s(0.03), Z], {"channels_last": 1}),
    "SimplifiedLayerNormalization": ("SimplifiedLayerNormalization", [r(2, 3, 8), r(8)], {"epsilon": 1e-3}),
    "LayerNormalization before version 17": ("LayerNormalization", [r(2, 3, 8), r(8), 2 * r(8)], {"axis": -1}),
    "LayerNormalization of equal numbers": (
        "LayerNormalization", [np.full((2, 3, 16), 1234.567, np.float32), r(16), 2 * r(16)], {"axis": -1},
    ),
    "LayerNormalization of two axes": (
        "LayerNormalization", [np.float32(4096) + r(2, 3, 8), r(3, 8), 2 * r(3, 8)], {"axis": 1},
    ),
}  # fmt: skip
STANDARD = tuple(name for name in NODES if name.startswith(("SimplifiedLayerNormalization", "LayerNormalization")))
"""Of the standard domain."""
OUTPUTS: Mapping[str, Mapping[str, int]] = {
    "EmbedLayerNormalization": {"y": 1, "lengths": 6},
    "SkipSimplifiedLayerNormalization": {"y": 1, "sum": 1},
}
"""Names and types where it is not one of floats; what stands between is left out."""


def one_node(name: str) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model, and its inputs: the first operands; others are constants, as files have them."""
    kind, values, attributes = NODES[name]
    names = ["" if each is None else f"x{number}" for number, each in enumerate(values)]
    given = {name: each for name, each in zip(names, values, strict=True) if each is not None}
    data = {name: given.pop(name) for name in [*given][: 3 if kind == "MultiHeadAttention" else 1]}
    first = 2 if next(iter(data.values())).dtype == np.uint8 else 1
    outputs = OUTPUTS.get(kind, {"y": first})
    places = ["y", "", "", "sum"] if "sum" in outputs else [*outputs]
    node = helper.make_node(kind, names, places, domain="" if name in STANDARD else MS, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in data.items()
    ]
    results = [helper.make_tensor_value_info(name, type, None) for name, type in outputs.items()]
    initializers = [numpy_helper.from_array(each, name) for name, each in given.items()]
    graph = helper.make_graph([node], "one", infos, results, initializers)
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets), data


def by_runtime(model: Any, inputs: Mapping[str, Array], level: int = 0, save: Path | None = None) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(level)
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    if save is not None:
        options.optimized_model_filepath = str(save)
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return [] if save is not None else session.run(None, dict(inputs))


def agree(found: Any, wanted: Sequence[Array], tolerance: float = 1e-5) -> None:
    """Codes are equal, floats within 1e-5 of the largest."""
    results = cast(Sequence[Array], [found] if isinstance(found, np.ndarray) else found)
    for result, each in zip(results, wanted, strict=True):
        assert result.shape == each.shape and result.dtype == each.dtype
        bound = tolerance * float(np.abs(each).max()) if each.dtype.kind == "f" else 0
        assert np.unique(each).size > 10 or each.size <= 20
        assert float(np.abs(result.astype(np.float64) - each.astype(np.float64)).max()) <= bound


@pytest.mark.parametrize("name", NODES)
def test_one_node(name: str) -> None:
    model, inputs = one_node(name)
    agree(run(from_onnx(model), [*inputs.values()]), by_runtime(model, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("name", NODES)
def test_one_node_compiled(name: str) -> None:
    model, inputs = one_node(name)
    # the mean of numbers near 4096 is as far off as their last place, by either order of the sum
    tolerance = 5e-4 if name == "LayerNormalization of two axes" else 1e-5
    agree(build(from_onnx(model)).run(*inputs.values()), by_runtime(model, inputs), tolerance)


def written_out(opset: int = 14) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A network as exports of that version have it: layer norms and GELU of simple operators."""
    held: dict[str, Array] = {"half": s(0.5), "one": s(1), "two": s(2), "root": s(np.sqrt(2)), "least": s(1e-5)}
    held |= {
        "first": np.zeros(1, np.int64),
        "g": r(8),
        "b": 2 * r(8),
        "w": r(8, 16),
        "c": r(16),
        "v": r(16, 8),
        "k": r(3, 2, 3, 3),
        "d": r(3),
    }
    nodes: list[onnx.NodeProto] = []

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], **attributes))
        return f"v{len(nodes) - 1}"

    def norm(x: str) -> str:
        centred = node("Sub", x, node("ReduceMean", x, axes=[-1]))
        variance = node("ReduceMean", node("Pow", centred, "two"), axes=[-1])
        quotient = node("Div", centred, node("Sqrt", node("Add", variance, "least")))
        return node("Add", node("Mul", quotient, "g"), "b")

    x = norm("x")
    y = node("Add", node("MatMul", x, "w"), "c")
    y = node("Mul", node("Mul", y, node("Add", node("Erf", node("Div", y, "root")), "one")), "half")
    x = norm(node("Add", node("MatMul", y, "v"), x))
    scores = node("Mul", node("MatMul", x, node("Transpose", x, perm=[0, 2, 1])), "half")
    image = node("Relu", node("Conv", node("Unsqueeze", scores, "first"), "k", "d", pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Softmax", [image], ["y"], axis=-1))
    given, result = (helper.make_tensor_value_info(name, 1, dims) for name, dims in (("x", [2, 5, 8]), ("y", None)))
    initializers = [numpy_helper.from_array(np.asarray(each), name) for name, each in held.items()]
    graph = helper.make_graph(nodes, "written out", [given], [result], initializers)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)]), {"x": r(2, 5, 8)}


def optimized(model: Any, inputs: Mapping[str, Array], level: str, folder: Path) -> set[str]:
    """The model saved at a level, compared; the operators that are not ONNX's."""
    path = folder / "optimized.onnx"
    by_runtime(model, inputs, LEVELS[level], path)
    nodes = onnx.ModelProto.FromString(path.read_bytes()).graph.node
    if any(node.domain in LAYOUTS_OF_THE_MACHINE for node in nodes):
        with pytest.raises(
            Unsupported, match='nchwc.*the machine on which ONNX Runtime .* at level "extended" at most'
        ):
            from_onnx(path)
    else:
        shapes = {name: each.shape for name, each in inputs.items() if each.ndim}
        fixed = {name: each for name, each in inputs.items() if not each.ndim}
        module = from_onnx(path, shapes=shapes, constants=fixed)
        agree(run(module, [each for each in inputs.values() if each.ndim]), by_runtime(path, inputs), 2e-5)
    return {node.op_type for node in nodes if node.domain}


@pytest.mark.parametrize("level", LEVELS)
def test_an_export_at_each_level(level: str, tmp_path: Path) -> None:
    model, inputs = written_out()
    found = optimized(model, inputs, level, tmp_path)
    assert level != "extended" or found >= {"FusedConv", "FusedMatMul", "SkipLayerNormalization"}


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [*FLOATS, *QUANTISED])
def test_models_at_each_level(name: str, level: str, tmp_path: Path) -> None:
    if not MODELS.is_dir():
        pytest.skip("the models are not here")
    if name in SIGNED and SATURATES:
        pytest.skip("ONNX Runtime's sums of products by int8 saturate on this processor")
    graph = onnx.ModelProto.FromString((MODELS / f"{name}.onnx").read_bytes()).graph
    held = {each.name for each in graph.initializer}
    with np.load(MODELS / f"golden/{name}.npz") as golden:
        names = [each.name for each in graph.input if each.name not in held]
        inputs = {each: golden[f"r0_in{number}"] for number, each in enumerate(names)}
    optimized(MODELS / f"{name}.onnx", inputs, level, tmp_path)


def test_a_layout_of_the_machine_is_told_where_sizes_are_open_too() -> None:
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], domain=LAYOUTS_OF_THE_MACHINE[0])],
        "open",
        [helper.make_tensor_value_info("x", 1, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(r(8, 3, 3, 3), "w")],
    )
    with pytest.raises(Unsupported, match="is that of the machine on which ONNX Runtime optimised the file"):
        from_onnx(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)]))


def test_what_exports_write_out_are_whole_ops() -> None:
    """A batch norm becomes part of the weights, hard swish has no division, and a softmax is one op."""
    held = {"w": r(8, 3, 3, 3), "b": r(8), "g": r(8), "m": 2 * r(8), "v": np.abs(r(8)) + s(0.5)}
    held |= {"three": s(3), "six": s(6), "zero": s(0), "ax": np.ones(1, np.int64)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "g", "b", "m", "v"], ["n"]),
        helper.make_node("Add", ["n", "three"], ["p"]),
        helper.make_node("Clip", ["p", "zero", "six"], ["q"]),
        helper.make_node("Mul", ["n", "q"], ["r"]),
        helper.make_node("Div", ["r", "six"], ["h"]),
        helper.make_node("Exp", ["h"], ["e"]),
        helper.make_node("ReduceSum", ["e", "ax"], ["t"], keepdims=1),
        helper.make_node("Div", ["e", "t"], ["y"]),
    ]
    given, result = (helper.make_tensor_value_info(name, 1, dims) for name, dims in (("x", [1, 3, 9, 9]), ("y", None)))
    initializers = [numpy_helper.from_array(np.asarray(each), name) for name, each in held.items()]
    graph = helper.make_graph(nodes, "whole", [given], [result], initializers)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)])
    inputs, module = {"x": r(1, 3, 9, 9)}, from_onnx(model)
    agree(build(module).run(*inputs.values()), by_runtime(model, inputs))
    folded = FoldScaleAxis()(SimplifyInference()(module))
    names = {op.name for op in FoldConstant()(folded).op.walk()}
    assert "relay.nn.softmax" in names and not names & {"relay.divide", "relay.exp", "relay.sqrt"}
