"""ONNX operators whose results are as large as values say, against ONNX Runtime: interpreted, compiled, and saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relay
from relay.errors import RelayError, Unsupported
from relay.interpreters import run

onnx: Any = pytest.importorskip("onnx", reason="the models are written with onnx")
runtime: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime gives the results to compare with")

Array = npt.NDArray[Any]
Node = tuple[str, list[str], list[str], dict[str, Any]]
TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9}


def model(
    nodes: Sequence[Node],
    inputs: Mapping[str, tuple[str, list[int]]],
    outputs: Mapping[str, tuple[str, int]],
    **constants: Any,
) -> bytes:
    """A graph; outputs by type and rank."""
    of = onnx.helper.make_tensor_value_info
    made = [onnx.helper.make_node(kind, given, found, **rest) for kind, given, found, rest in nodes]
    graph = onnx.helper.make_graph(
        made,
        "g",
        [of(name, TYPES[dtype], dims) for name, (dtype, dims) in inputs.items()],
        [of(name, TYPES[dtype], [None] * rank) for name, (dtype, rank) in outputs.items()],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]).SerializeToString()


def sparse(rng: np.random.Generator, dtype: str, dims: Sequence[int]) -> Array:
    """Numbers of which many are equal, and many 0; sometimes all."""
    share = rng.choice([0.0, 0.3, 0.7, 1.0])
    return (rng.integers(-2, 3, dims) * (rng.random(dims) < share)).astype(dtype)


def boxes(rng: np.random.Generator) -> dict[str, Array]:
    corners = rng.random((2, 12, 2), np.float32) * 2
    whole = np.concatenate([corners, corners + rng.random((2, 12, 2), np.float32) * 2], axis=2)
    return {"boxes": whole, "scores": rng.permutation(2 * 3 * 12).reshape(2, 3, 12).astype(np.float32) / 72}


def nms(center: int) -> bytes:
    nodes: list[Node] = [
        ("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["y"], {"center_point_box": center}),
        ("Gather", ["y", "last"], ["n"], {"axis": 1}),
        ("Squeeze", ["n", "one"], ["i"], {}),
        ("Gather", ["table", "i"], ["z"], {"axis": 0}),
        ("Mul", ["z", "two"], ["w"], {}),
    ]
    thresholds = {"most": [4], "iou": np.array([0.05], np.float32), "least": np.array([0.5], np.float32)}
    table = np.arange(36, dtype=np.float32).reshape(12, 3)
    inputs = {"boxes": ("float32", [2, 12, 4]), "scores": ("float32", [2, 3, 12])}
    outputs = {"y": ("int64", 2), "w": ("float32", 2)}
    more = {"last": [2], "one": [1], "table": table, "two": np.float32(2)}
    return model(nodes, inputs, outputs, **thresholds, **more)


def unique(ordered: int) -> bytes:
    outputs = {"y": ("int64", 1), "first": ("int64", 1), "inverse": ("int64", 1), "counts": ("int64", 1)}
    nodes: list[Node] = [("Unique", ["x"], [*outputs], {"sorted": ordered})]
    return model(nodes, {"x": ("int64", [3, 5])}, outputs)


ROWS: list[Node] = [
    ("NonZero", ["x"], ["y"], {}),
    ("Transpose", ["y"], ["t"], {"perm": [1, 0]}),
    ("GatherND", ["x", "t"], ["z"], {}),
    ("Unsqueeze", ["z", "zero"], ["u"], {}),
    ("Neg", ["u"], ["v"], {}),
]
TOP: list[Node] = [
    ("Cast", ["f"], ["b"], {"to": 7}),
    ("ReduceSum", ["b"], ["k"], {"keepdims": 1}),
    ("TopK", ["x", "k"], ["v", "i"], {"axis": 1}),
]
Draw = Callable[[np.random.Generator], dict[str, Array]]
CASES: dict[str, tuple[bytes, Draw]] = {
    "non-zero": (
        model(ROWS, {"x": ("float32", [3, 4])}, {"y": ("int64", 2), "v": ("float32", 2)}, zero=[0]),
        lambda rng: {"x": sparse(rng, "float32", [3, 4])},
    ),
    "non-zero of booleans": (
        model([("NonZero", ["x"], ["y"], {})], {"x": ("bool", [2, 3, 2])}, {"y": ("int64", 2)}),
        lambda rng: {"x": sparse(rng, "bool", [2, 3, 2])},
    ),
    "compress": (
        model(
            [("Compress", ["x", "c"], ["y"], {"axis": -1})],
            {"x": ("int8", [2, 3, 5]), "c": ("bool", [4])},
            {"y": ("int8", 3)},
        ),
        lambda rng: {"x": sparse(rng, "int8", [2, 3, 5]), "c": sparse(rng, "bool", [4])},
    ),
    "compress all": (
        model(
            [("Compress", ["x", "c"], ["y"], {})],
            {"x": ("float32", [2, 3]), "c": ("bool", [6])},
            {"y": ("float32", 1)},
        ),
        lambda rng: {"x": sparse(rng, "float32", [2, 3]), "c": sparse(rng, "bool", [6])},
    ),
    "suppression": (nms(0), boxes),
    "suppression of centres": (nms(1), boxes),
    "unique": (unique(1), lambda rng: {"x": sparse(rng, "int64", [3, 5])}),
    "unique as they come": (unique(0), lambda rng: {"x": sparse(rng, "int64", [3, 5])}),
    "top-k": (
        model(TOP, {"x": ("float32", [2, 7]), "f": ("bool", [7])}, {"v": ("float32", 2), "i": ("int64", 2)}),
        lambda rng: {"x": rng.permutation(14).reshape(2, 7).astype(np.float32), "f": sparse(rng, "bool", [7])},
    ),
}  # fmt: skip


ALIKE = ("suppression of centres", "unique as they come", "non-zero of booleans", "compress all")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.ci if n in ALIKE else ()) for n in CASES])
def test_results_are_those_of_onnx_runtime(name: str, tmp_path: Path):
    data, draw = CASES[name]
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    executable, module = relay.build(data), relay.frontend.from_onnx(data)
    executable.save(tmp_path / "x.relay")
    loaded, rng, sizes = relay.runtime.load(tmp_path / "x.relay"), np.random.default_rng(0), set[Any]()
    for number in range(25):
        given = draw(rng)
        wanted: list[Array] = session.run(None, given)
        sizes.add(wanted[0].shape)
        ways: list[Callable[[], Any]] = [partial(executable.run, **given), partial(run, module, given)]
        for way in ways if number else [*ways, partial(loaded.run, **given)]:
            found: Any = way()
            results: list[Array] = [*found] if len(wanted) > 1 or way is ways[1] else [found]
            for ours, theirs in zip(results, wanted, strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_array_equal(ours, theirs)
    assert len(sizes) > 3, "sizes follow from values"


def test_bound_outputs_and_counts():
    data, draw = CASES["compress all"]
    executable, given = relay.build(data), draw(np.random.default_rng(3))
    assert [(spec.name, spec.kind) for spec in executable.outputs] == [("y", "output"), ("y.count", "count")]
    for name, value in given.items():
        executable.set_input(name, value)
    executable.run()
    np.testing.assert_array_equal(executable.get_output(0), executable.run(**given))
    assert executable.get_output("y.count") == given["c"].sum()
    with pytest.raises(Unsupported, match="sizes of outputs follow from values"):
        executable.stream({"y": "x"})


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "input 0 has a size that follows from values": ("ReduceSum", {"keepdims": 1}),
    "the operator would need": ("Shape", {}),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_needs_the_size_is_refused(words: str):
    kind, attributes = REFUSED[words]
    nodes: list[Node] = [("NonZero", ["x"], ["n"], {}), (kind, ["n"], ["y"], attributes)]
    data = model(nodes, {"x": ("float32", [4])}, {"y": ("int64", 1)})
    with pytest.raises(RelayError, match=words):
        relay.frontend.from_onnx(data)


@pytest.mark.parametrize(("axis", "refused"), [(0, False), (1, True)])
def test_an_order_that_is_reversed(axis: int, refused: bool):
    """The undefined elements, which are the last, would come first."""
    nodes: list[Node] = [("NonZero", ["x"], ["n"], {}), ("Slice", ["n", "begin", "end", "axes", "steps"], ["y"], {})]
    bounds = {"begin": [-1], "end": [-(2**31)], "axes": [axis], "steps": [-1]}
    data = model(nodes, {"x": ("float32", [4, 3])}, {"y": ("int64", 2)}, **bounds)
    if refused:
        with pytest.raises(RelayError, match=r"Slice.* size that follows from values"):
            relay.frontend.from_onnx(data)
        return
    given = sparse(np.random.default_rng(2), "float32", [4, 3])
    (wanted,) = runtime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": given})
    np.testing.assert_array_equal(np.asarray(relay.build(data).run(given)), wanted)


def test_two_counts_do_not_meet():
    nodes: list[Node] = [("NonZero", ["x"], ["n"], {}), ("NonZero", ["z"], ["m"], {}), ("Add", ["n", "m"], ["y"], {})]
    data = model(nodes, {"x": ("float32", [4]), "z": ("float32", [4])}, {"y": ("int64", 2)})
    with pytest.raises(RelayError, match=r"Add.* size that follows from values"):
        relay.frontend.from_onnx(data)
