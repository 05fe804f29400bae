"""ONNX models of every version of the operators, and what importing costs: weights are not copied, those of other files
are mapped, 2 GiB are no limit."""

from __future__ import annotations

import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads ONNX")

import onnx
from onnx import helper, numpy_helper, version_converter

import relay
from relay.frontend import from_onnx
from relay.interpreters import run
from relay.module import IRModule

VERSIONS = range(7, 29)
WIDTH = 1024
FLOAT, LONG = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def rows_of(weight: onnx.TensorProto) -> onnx.ModelProto:
    """Rows of a weight."""
    inputs = [helper.make_tensor_value_info("i", LONG, [2])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, [2, WIDTH])]
    graph = helper.make_graph([helper.make_node("Gather", ["w", "i"], ["y"])], "g", inputs, outputs, [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def lead(number: int, size: int) -> bytes:
    """The beginning of a field of protobuf: its tag, and its length in seven bits a byte."""
    groups = [size >> shift & 127 for shift in range(0, max(size.bit_length(), 1), 7)]
    return bytes([number << 3 | 2, *(each | 128 for each in groups[:-1]), groups[-1]])


def imported(model: Path | bytes) -> tuple[IRModule, int]:
    """The module, and the most memory that importing it took, of which the importer's own modules are none."""
    small = rows_of(onnx.numpy_helper.from_array(np.zeros((1, WIDTH), np.float32), "w"))
    from_onnx(small.SerializeToString())
    tracemalloc.start()
    try:
        return from_onnx(model), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_weights_are_not_copied():
    weight = np.arange(2048 * WIDTH, dtype=np.float32).reshape(2048, WIDTH)
    model = rows_of(onnx.numpy_helper.from_array(weight, "w")).SerializeToString()
    module, memory = imported(model)
    assert len(model) > 8 << 20 > 2 * memory
    (found,) = run(module, [np.array([0, -1])])
    assert np.array_equal(found, weight[[0, -1]])


def sparse(path: Path, before: bytes, size: int) -> None:
    """A file of some bytes and zeros behind them, which take no space, the last row but one of ones."""
    with path.open("wb") as file:
        file.write(before)
        file.seek(len(before) + size - 8 * WIDTH)
        file.write(np.ones(WIDTH, np.float32).tobytes())
        file.truncate(len(before) + size)


@pytest.mark.slow
def test_models_of_more_than_2_gib(tmp_path: Path):
    rows = (9 << 28) // (4 * WIDTH)
    size = rows * 4 * WIDTH
    tensor = onnx.TensorProto(name="w", data_type=FLOAT, dims=[rows, WIDTH])
    model = rows_of(tensor)
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    held = tensor.SerializeToString() + lead(9, size)
    graph += lead(5, len(held) + size) + held
    sparse(tmp_path / "own.onnx", model.SerializeToString() + lead(7, len(graph) + size) + graph, size)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    sparse(tmp_path / "w.bin", b"", size)
    (tmp_path / "other.onnx").write_bytes(rows_of(tensor).SerializeToString())
    for name, most in (("own", size + (8 << 20)), ("other", 8 << 20)):
        module, memory = imported(tmp_path / f"{name}.onnx")
        assert memory < most
        (found,) = run(module, [np.array([-2, -1])])
        assert np.array_equal(found, np.repeat([[1], [0]], WIDTH, 1))


@cache
def old_model() -> onnx.ModelProto:
    """A model of version 7: nodes say by attributes what are inputs later; initializers are among the inputs."""
    random, node = np.random.default_rng(0), helper.make_node
    dims = {"k": (4, 3, 3, 3), "scale": (4,), "shift": (4,), "mean": (4,), "var": (4,), "m": (8, 6), "c": (6,)}
    weights = [numpy_helper.from_array(random.uniform(0.1, 1, d).astype(np.float32), name) for name, d in dims.items()]
    nodes = [
        node("Conv", ["x", "k"], ["conv"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["conv", "scale", "shift", "mean", "var"], ["norm"]),
        node("Clip", ["norm"], ["clip"], min=-1.5, max=1.5),
        node("Slice", ["clip"], ["cut"], starts=[0, 1], ends=[9, 3], axes=[2, 3]),
        node("Pad", ["cut"], ["pad"], pads=[0, 0, 0, 1, 0, 0, 0, 1], value=0.25),
        node("MaxPool", ["pad"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
        node("ReduceMean", ["pool"], ["mean_"], axes=[3], keepdims=0),
        node("Flatten", ["mean_"], ["flat"], axis=1),
        node("Gemm", ["flat", "m", "c"], ["gemm"]),
        node("Dropout", ["gemm"], ["drop"]),
        node("Unsqueeze", ["drop"], ["wide"], axes=[1]),
        node("Softmax", ["wide"], ["soft"], axis=2),
        node("Squeeze", ["soft"], ["thin"], axes=[1]),
        node("Split", ["thin"], ["left", "right"], axis=1, split=[2, 4]),
        node("ReduceSum", ["right"], ["sum"], axes=[1], keepdims=1),
        node("Concat", ["left", "sum"], ["y"], axis=1),
    ]
    given = {"x": (2, 3, 4, 4), **dims}
    inputs = [helper.make_tensor_value_info(name, FLOAT, each) for name, each in given.items()]
    outputs = [helper.make_tensor_value_info("y", FLOAT, [2, 3])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=3)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_of_the_operators(version: int):
    """ONNX's own converter writes the model in each version; ONNX Runtime knows the results of the first."""
    runtime = pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 4)).astype(np.float32)
    (wanted,) = runtime.InferenceSession(old_model().SerializeToString()).run(None, {"x": x})
    model = version_converter.convert_version(old_model(), version)
    assert [each.version for each in model.opset_import] == [version]
    (found,) = run(from_onnx(model), [x])
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_activations_without_parameters_consume_none():
    """One step of RNN, whose sums are x: Tanh has no alpha, so the only one is the second direction's LeakyRelu's."""
    weights = {"w": np.ones((2, 1, 1), np.float32), "r": np.zeros((2, 1, 1), np.float32)}
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], direction="bidirectional", activation_alpha=[0.25])
    node.attribute.append(helper.make_attribute("activations", ["Tanh", "LeakyRelu"]))
    x = helper.make_tensor_value_info("x", FLOAT, [1, 2, 1])
    y = helper.make_tensor_value_info("y", FLOAT, [1, 2, 2, 1])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    (found,) = run(from_onnx(model), [np.array([[[-2], [0.5]]], np.float32)])
    np.testing.assert_allclose(found[0, 0, :, 0], np.tanh([-2, 0.5]), rtol=1e-6)
    np.testing.assert_array_equal(found[0, 1, :, 0], [-0.5, 0.5])


def test_group_normalization_of_version_18():
    """ONNX withdrew it, because scale and bias are per group, but defines its body; files have it."""
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)
    infos = [helper.make_tensor_value_info(name, FLOAT, [1, 4, 2]) for name in "xy"]
    held = [numpy_helper.from_array(np.array(v, np.float32), name) for name, v in (("s", [2, 3]), ("b", [1, 0]))]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = np.arange(8, dtype=np.float32).reshape(1, 4, 2) ** 2
    (found,) = run(from_onnx(model), [x])
    groups = x.reshape(2, 4)
    normal = (groups - groups.mean(1, keepdims=True)) / np.sqrt(groups.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found.reshape(2, 4), normal * [[2], [3]] + [[1], [0]], rtol=1e-4)


def test_resize_to_one_element_by_pytorch_half_pixel():
    """The coordinate of the only element is 0, for a cubic resize as for the others; ONNX Runtime says so, too."""
    runtime = pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")
    how = {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"}
    x = np.array([[[[1, 5, 2, 7, 3]]]], np.float32)
    for place, name, values in ((2, "scales", [1, 1, 1, 0.3]), (3, "sizes", [1, 1, 1, 1])):
        node = helper.make_node("Resize", ["x", *[""] * (place - 1), name], ["y"])
        node.attribute.extend(helper.make_attribute(key, value) for key, value in how.items())
        infos = [helper.make_tensor_value_info(each, FLOAT, [1, 1, 1, size]) for each, size in (("x", 5), ("y", 1))]
        held = np.array(values, np.float32 if name == "scales" else np.int64)
        graph = helper.make_graph([node], "g", infos[:1], infos[1:], [numpy_helper.from_array(held, name)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        (wanted,) = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        assert wanted == 1
        np.testing.assert_array_equal(run(from_onnx(model), [x])[0], wanted)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    {
        "ReduceMean": [1431655765, -2],
        "ReduceL1": [2**31 - 1, 7],
        "ReduceL2": [2**31 - 1, 5],
        "ReduceSumSquare": [2**31 - 1, 25],
        "ReduceLogSumExp": [2**31 - 1, 0],
        "ReduceLogSum": [22, -(2**31)],
    }.items(),
)
def test_reductions_of_integers(kind: str, wanted: list[int]):
    """As ONNX Runtime's: in double precision, what leaves the type's range is saturated; the log of -7 is no number."""
    node = helper.make_node(kind, ["x"], ["y"], axes=[1], keepdims=0)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.INT32, [2, 3])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [2])
    graph = helper.make_graph([node], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (found,) = run(from_onnx(model), [np.array([[2**31 - 1, 2**31 - 1, 2], [-3, -4, 0]], np.int32)])
    assert found.tolist() == wanted


def test_a_model_in_memory_is_built():
    """As `onnx.load` returns it."""
    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, FLOAT, ["n", 2]) for name in "xy")
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), ir_version=8)
    found = np.asarray(relay.build(model, batch=1).run(np.array([[-1, 1]], np.float32)))
    assert found.tolist() == [[0, 1]]
