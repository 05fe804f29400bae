"""ONNX models that leave sizes open: small ones, built for the sizes that are seen, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads ONNX")
pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")

import onnx
import onnxruntime

from relay.compile.dynamic import with_sizes
from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.frontend import from_onnx
from relay.interpreters import run
from relay.runtime import DynamicExecutable, load

FLOAT, LONG = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
node = onnx.helper.make_node
Shape = list[int | str]


def made(
    nodes: list[Any],
    inputs: dict[str, tuple[int, Shape]],
    constants: dict[str, Array],
    dtype: int = FLOAT,
    version: int = 17,
) -> bytes:
    """A model whose output is `y`."""
    infos = [onnx.helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()]
    held = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    out = onnx.helper.make_tensor_value_info("y", dtype, None)
    graph = onnx.helper.make_graph(nodes, "g", infos, [out], held)
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", version)], ir_version=8
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


@pytest.mark.ci
def test_an_importer_that_must_know_sizes_is_asked_again_for_each(tmp_path: Path):
    model = recurrent()
    with pytest.raises(InvalidArgument, match=r"input 'x': is of unknown size \[-1, -1, 3\], which must be known"):
        from_onnx(model)
    exe = build(model, opt_level=0)
    assert isinstance(exe, DynamicExecutable) and [each.name for each in exe.sizes] == ["steps", "n"]
    agrees(model, exe, normal(1, 1, 3), np.array(5))
    assert [(row["steps"], row["k"].item()) for row in exe.variants] == [(1, 5)]
    exe.save(tmp_path / "a.relay")
    loaded = load(tmp_path / "a.relay")
    assert isinstance(loaded, DynamicExecutable)
    agrees(model, loaded, normal(1, 1, 3), np.array(5))
    with pytest.raises(
        InvalidArgument, match="sizes steps=1, n=1, k=4: are not prepared; prepared are steps=1, n=1, k=5"
    ):
        loaded.run(normal(1, 1, 3), np.array(4))
    named = build(model, opt_level=0, shapes={"x": ("t", 2, 3)})
    assert isinstance(named, DynamicExecutable) and [each.name for each in named.sizes] == ["t"]
    with pytest.raises(InvalidArgument, match="input 'x'.*shape"):
        named.run(normal(1, 3, 3), np.array(1))


CONSTANTS: dict[str, Array] = {
    "zero": np.array(0),
    "one": np.array(1),
    "two": np.array(2),
    "first": np.array([0]),
    "second": np.array([1]),
    "minus": np.array([-1]),
    "keep": np.array([0, 2, -1]),
    "places": np.array([[0, 1], [-1, 0]]),
    "both": np.array([0, 1]),
    "ones": np.array([1, 1]),
    "from": np.array([-2, 1]),
    "to": np.array([9, -1]),
    "pads": np.array([0, 1, 2, 0]),
}
NUMBERS = {"Range": LONG}
OPERATORS: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "reshape by sizes": ("Reshape", ["x", "wanted"], {}),
    "reshape that keeps a size": ("Reshape", ["x", "keep"], {}),
    "flatten": ("Flatten", ["x"], {"axis": 1}),
    "slice to a size": ("Slice", ["x", "first", "m", "first"], {}),
    "slice by constants": ("Slice", ["x", "from", "to", "both", "ones"], {}),
    "range of a size": ("Range", ["zero", "n", "one"], {}),
    "expand to sizes": ("Expand", ["x", "higher"], {}),
    "full of a size": ("ConstantOfShape", ["m"], {}),
    "tile by a size": ("Tile", ["x", "pair"], {}),
    "places": ("GatherND", ["x", "places"], {}),
    "pad": ("Pad", ["x", "pads"], {}),
    "split": ("Split", ["x"], {"axis": 1}),
}


@pytest.mark.parametrize("case", OPERATORS)
def test_operators_whose_shapes_follow_from_sizes(case: str):
    kind, names, attributes = OPERATORS[case]
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Div", ["n", "two"], ["half"]),
        node("Unsqueeze", ["half", "first"], ["m"]),
        node("Concat", ["m", "minus"], ["wanted"], axis=0),
        node("Concat", ["second", "s"], ["higher"], axis=0),
        node("Concat", ["second", "m"], ["pair"], axis=0),
        node(kind, names, ["y", "z"] if kind == "Split" else ["y"], **attributes),
    ]
    model = made(nodes, {"x": (FLOAT, ["n", 4])}, CONSTANTS, NUMBERS.get(kind, FLOAT))
    module, session = from_onnx(model), onnxruntime.InferenceSession(model)
    for n in (2, 6):
        x = normal(n, 4)
        (found,), (wanted,) = run(with_sizes(module, shapes={"n": n}), [x]), session.run(None, {"x": x})
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted)


def test_numbers_of_an_input_are_a_shape():
    inputs: dict[str, tuple[int, Shape]] = {"x": (FLOAT, [2, 6]), "to": (LONG, [2])}
    model = made([node("Reshape", ["x", "to"], ["y"])], inputs, {})
    (found,) = run(from_onnx(model), [normal(2, 6), np.array([4, 3])])
    assert np.array_equal(found, normal(2, 6).reshape(4, 3))
    exe = build(model, opt_level=0)
    assert isinstance(exe, DynamicExecutable) and exe.interface.deciding == [1]


def test_sizes_called_by_a_question_mark_are_not_one():
    model = made([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["?", "?"])}, {})
    assert "relay.symbols" not in from_onnx(model)["main"].attributes


def test_a_slice_whose_bounds_are_attributes():
    step = node("Slice", ["x"], ["y"], starts=[1, -3], ends=[9, 4], axes=[0, 1])
    model = made([step], {"x": (FLOAT, ["n", 4])}, {}, version=9)
    (found,) = run(with_sizes(from_onnx(model), shapes={"n": 5}), [normal(5, 4)])
    assert np.array_equal(found, normal(5, 4)[1:, 1:])


def test_weights_of_other_files_are_read_at_each_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "cache"))
    weight = onnx.TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="w.bin")
    model = onnx.ModelProto.FromString(made([node("Add", ["x", "w"], ["y"])], {"x": (FLOAT, [2])}, {}))
    model.graph.initializer.append(weight)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    for number in (1, 2):
        (tmp_path / "w.bin").write_bytes(np.full(2, number, np.float32).tobytes())
        found = build(tmp_path / "m.onnx", opt_level=0).run(np.zeros(2, np.float32))
        assert isinstance(found, np.ndarray) and found.tolist() == [number, number]


def test_products_of_open_rows_have_the_kernels_of_known_ones():
    """What follows a product joins its kernel, for any length too, so that no sums of all rows lie in memory."""
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("Add", ["p", "b"], ["a"]),
        node("Relu", ["a"], ["r"]),
        node("MatMul", ["r", "v"], ["y"]),
    ]
    held = {"w": normal(32, 64) / 9, "b": normal(64), "v": normal(64, 32) / 90}
    model = made(nodes, {"x": (FLOAT, [1, "n", 32])}, held)
    exe, fixed = build(model, maximum={"n": 40}), build(model, shapes={"x": (1, 40, 32)})
    assert isinstance(exe, DynamicExecutable) and exe.interface.length is not None
    assert exe.variant(n=40).graph["arena_bytes"] == fixed.graph["arena_bytes"]
    for length in (1, 7, 40):
        agrees(model, exe, normal(1, length, 32))


def test_a_known_size_is_taken_by_a_scalar():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["width"]),
        node("Unsqueeze", ["width", "zero"], ["widths"]),
        node("Concat", ["minus", "widths"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["y"]),
    ]
    numbers = {"one": np.array(1), "zero": np.array([0]), "minus": np.array([-1])}
    model = made(nodes, {"x": (FLOAT, ["n", 4, 2])}, numbers)
    assert from_onnx(model)["main"].attributes["relay.symbols"]
    exe = build(model)
    assert isinstance(exe, DynamicExecutable)
    agrees(model, exe, normal(3, 4, 2))


def gathered(first: str) -> bytes:
    """`y[b, s] = x[f(b), s] + 1`, indices being computed of the sizes of x; `first` is f(b) of every b."""
    constants = {
        "zero": np.array(0, np.int64), "one": np.array(1, np.int64), "columns": np.array([-1, 1, 1], np.int64),
        "rows": np.array([1, -1, 1], np.int64), "bias": np.array([1], np.float32), "one1": np.array([1], np.int64),
    }  # fmt: skip
    nodes = [
        node("Shape", ["x"], ["shape"]), node("Split", ["shape"], ["n1", "s1"], axis=0), node("Squeeze", ["n1"], ["n"]),
        node("Squeeze", ["s1"], ["s"]), node("Range", ["zero", "n", "one"], ["own"]),
        node("Range", ["zero", "s", "one"], ["every"]), node("Mul", ["own", "zero"], ["none"]),
        node("Sub", ["n", "one"], ["most"]), node("Sub", ["most", "own"], ["back"]),
        node("Reshape", [first, "columns"], ["a"]), node("Reshape", ["every", "rows"], ["b"]),
        node("Concat", ["shape", "one1"], ["wide"], axis=0), node("Expand", ["a", "wide"], ["c"]),
        node("Expand", ["b", "wide"], ["d"]), node("Concat", ["c", "d"], ["indices"], axis=-1),
        node("GatherND", ["x", "indices"], ["g"]), node("Add", ["g", "bias"], ["y"]),
    ]  # fmt: skip
    return made(nodes, {"x": (FLOAT, ["n", "s"])}, constants)


@pytest.mark.parametrize(("first", "apart"), [("own", True), ("none", False), ("back", False)])
def test_rows_that_take_of_their_own_row_keep_apart(first: str, apart: bool):
    """Exported masks of sequences are gathered so."""
    model = gathered(first)
    exe = build(model, maximum={"s": 12}, opt_level=1)
    assert isinstance(exe, DynamicExecutable)
    assert exe.to_json()["how"]["n"] == ("at run time, row by row" if apart else "1 with any s; a build for each other")
    for rows, length in ((1, 5), (3, 12), (2, 1)):
        agrees(model, exe, normal(rows, length))
    assert (len(exe.variants) == 1) == apart
