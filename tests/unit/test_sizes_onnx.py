"""ONNX models that leave sizes open: small ones, built for the sizes that are seen, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads ONNX")
pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")

import onnx
import onnxruntime

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.frontend import from_onnx
from relay.runtime import DynamicExecutable

FLOAT, LONG = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
node = onnx.helper.make_node
Shape = list[int | str]


def made(
    nodes: list[Any], inputs: dict[str, tuple[int, Shape]], constants: dict[str, Array], dtype: int = FLOAT
) -> bytes:
    """A model whose output is `y`."""
    infos = [onnx.helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()]
    held = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    out = onnx.helper.make_tensor_value_info("y", dtype, None)
    graph = onnx.helper.make_graph(nodes, "g", infos, [out], held)
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()


def agrees(model: bytes, exe: DynamicExecutable, *given: Array) -> None:
    """The result is that of ONNX Runtime."""
    session = onnxruntime.InferenceSession(model)
    names = [each.name for each in session.get_inputs()]
    found, (wanted,) = exe.run(*given), session.run(None, dict(zip(names, given, strict=True)))
    assert isinstance(found, np.ndarray) and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def normal(*dims: int) -> Array:
    return np.random.default_rng(dims).standard_normal(dims).astype(np.float32)


def recurrent() -> bytes:
    """Steps of an RNN, as many as there are, whose outputs stand there once or twice: a number says."""
    weights = {"w": normal(1, 2, 3), "r": normal(1, 2, 2), "one": np.array(1)}
    branches: dict[str, Any] = {
        key: onnx.helper.make_graph(
            [node("RNN", ["x", "w", "r"], ["h"], hidden_size=2), node("Concat", ["h"] * count, ["z"], axis=3)],
            key,
            [],
            [onnx.helper.make_tensor_value_info("z", FLOAT, None)],
        )
        for key, count in (("then_branch", 1), ("else_branch", 2))
    }
    nodes = [node("Equal", ["k", "one"], ["c"]), node("If", ["c"], ["y"], **branches)]
    inputs: dict[str, tuple[int, Shape]] = {"x": (FLOAT, ["steps", "n", 3]), "k": (LONG, [])}
    return made(nodes, inputs, weights)


def test_an_importer_that_must_know_sizes_is_asked_again_for_each():
    model = recurrent()
    with pytest.raises(InvalidArgument, match=r"input 'x': is of unknown size \[-1, -1, 3\], which must be known"):
        from_onnx(model)
    exe = build(model, opt_level=0)
    assert isinstance(exe, DynamicExecutable) and [each.name for each in exe.sizes] == ["steps", "n"]
    for steps, k in ((2, 1), (1, 5)):
        agrees(model, exe, normal(steps, 1, 3), np.array(k))
    assert [row["k"].item() for row in exe.variants] == [1, 5]
    named = build(model, opt_level=0, shapes={"x": ("t", 2, 3)})
    assert isinstance(named, DynamicExecutable) and [each.name for each in named.sizes] == ["t"]
    with pytest.raises(InvalidArgument, match="input 'x'.*shape"):
        named.run(normal(1, 3, 3), np.array(1))
