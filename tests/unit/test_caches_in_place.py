"""Caches that grow by concatenation: forms of models that are written in place, and errors of those that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="makes the models")
pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")

import onnx
import onnxruntime

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, RelayError, Unsupported
from relay.frontend import from_onnx
from relay.runtime import DynamicExecutable
from relay.transforms.caches_in_place import CachesInPlace

FLOAT, LONG = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
node = onnx.helper.make_node
MAXIMUM = 24
TABLE = np.random.default_rng(0).standard_normal((MAXIMUM, MAXIMUM)).astype(np.float32)
CONSTANTS: dict[str, Array] = {
    **{f"v{n}".replace("-", "m"): np.array([n]) for n in (-1, 0, 1, 2, 9, 1 << 40)},
    **{f"s{n}": np.array(n) for n in (0, 1, 2)},
    **{"table": TABLE, "low": np.array(-1e4, np.float32), "never": np.array(0, np.float32)},
}
JOIN = [node("Concat", ["past", "x"], ["present"], axis=1)]
SCORES = [node("Transpose", ["present"], ["k"], perm=[0, 2, 1]), node("MatMul", ["x", "k"], ["scores"])]
SUM = [node("Softmax", ["masked"], ["weights"], axis=-1), node("MatMul", ["weights", "present"], ["y"])]
SIZES = [
    node("Shape", ["past"], ["dims"]), node("Gather", ["dims", "s1"], ["p"], axis=0),
    node("Shape", ["present"], ["all"]), node("Gather", ["all", "s1"], ["t"], axis=0),
    node("Unsqueeze", ["p", "v0"], ["pv"]), node("Unsqueeze", ["t", "v0"], ["tv"]),
    node("Range", ["s0", "t", "s1"], ["columns"]),
]  # fmt: skip
PLAIN = [node("Identity", ["scores"], ["masked"])]
ATTENTIONS: dict[str, list[Any]] = {
    "no mask": PLAIN,
    "a mask of the caller's": [
        node("Cast", ["mask"], ["seen"], to=onnx.TensorProto.BOOL),
        node("Where", ["seen", "scores", "low"], ["masked"]),
    ],
    "rows of a table from the past's end on": [
        *SIZES,
        node("Slice", ["table", "pv", "tv", "v0"], ["rows"]),
        node("Slice", ["rows", "v0", "tv", "v1"], ["part"]),
        node("Add", ["scores", "part"], ["masked"]),
    ],
    "distances": [
        *SIZES,
        node("Sub", ["columns", "p"], ["distance"]),
        node("Cast", ["distance"], ["far"], to=FLOAT),
        node("Add", ["scores", "far"], ["masked"]),
    ],
    "positions counted by the mask": [
        *SIZES,
        node("CumSum", ["mask", "s1"], ["counts"]),
        node("Slice", ["counts", "pv", "tv", "v1"], ["places"]),
        node("Cast", ["places"], ["real"], to=FLOAT),
        node("Unsqueeze", ["real", "v2"], ["column"]),
        node("Mul", ["scores", "column"], ["masked"]),
    ],
    "a product of sizes": [
        *SIZES,
        node("Mul", ["t", "s2"], ["twice"]),
        node("Cast", ["twice"], ["real"], to=FLOAT),
        node("Div", ["scores", "real"], ["masked"]),
    ],
    "elements at coordinates": [
        *SIZES,
        node("Unsqueeze", ["columns", "v1"], ["column"]),
        node("Mul", ["column", "v0"], ["zeros"]),
        node("Concat", ["zeros", "column"], ["places"], axis=1),
        node("GatherND", ["mask", "places"], ["own"]),
        node("Cast", ["own"], ["real"], to=FLOAT),
        node("Mul", ["scores", "real"], ["masked"]),
    ],
    "elements at indices": [
        *SIZES,
        node("Gather", ["mask", "columns"], ["own"], axis=1),
        node("Cast", ["own"], ["real"], to=FLOAT),
        node("Mul", ["scores", "real"], ["masked"]),
    ],
}
MASK = onnx.helper.make_tensor_value_info("mask", LONG, [1, "past + n"])


def model(nodes: list[Any], outputs: tuple[str, ...] = ("y", "present"), mask: Any = MASK) -> bytes:
    """Rows of 4 numbers are joined with those of the past."""
    infos = [
        onnx.helper.make_tensor_value_info(name, FLOAT, [1, size, 4]) for name, size in (("x", "n"), ("past", "past"))
    ]
    used = {name for each in nodes for name in each.input}
    infos += [mask] if "mask" in used else []
    held = [onnx.numpy_helper.from_array(array, name) for name, array in CONSTANTS.items() if name in used]
    outs = [onnx.helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    graph = onnx.helper.make_graph(nodes, "g", infos, outs, held)
    versions = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString()


def attention(name: str) -> bytes:
    return model([*JOIN, *SCORES, *ATTENTIONS[name], *SUM])


DEFAULT = ("a mask of the caller's", "rows of a table from the past's end on", "positions counted by the mask")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in DEFAULT else pytest.mark.ci) for n in ATTENTIONS])
def test_what_keeps_positions_apart(name: str):
    """Every step from an empty cache to a full one is ONNX Runtime's."""
    found = attention(name)
    exe = build(found, maximum={"past": MAXIMUM})
    assert isinstance(exe, DynamicExecutable) and len(exe.variant(n=1).graph["in_place"]) == 1
    stream, session = exe.stream(), onnxruntime.InferenceSession(found)
    past, random = np.zeros((1, 0, 4), np.float32), np.random.default_rng(1)
    for count in (3, 1, 1, 3, *[1] * 13, 3):
        given: dict[str, Array] = {"x": random.standard_normal((1, count, 4)).astype(np.float32)}
        if any(spec.name == "mask" for spec in exe.inputs):
            given["mask"] = random.integers(0, 2, (1, past.shape[1] + count)) | (np.arange(past.shape[1] + count) == 0)
        wanted, past = session.run(None, {**given, "past": past})
        result = stream.run(**given)
        assert not isinstance(result, tuple)
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
    assert past.shape[1] == MAXIMUM
    np.testing.assert_allclose(stream.states["past"], past, rtol=1e-6)


BEFORE = [*JOIN, *SCORES]
REFUSED: dict[str, tuple[list[Any], tuple[str, ...], str]] = {
    "a mean of all positions": (
        [*JOIN, node("ReduceMean", ["present"], ["y"], axes=[1])], ("y", "present"),
        "ReduceMean.*: positions of the past meet in it, and of the maximum not all are there yet; without a maximum"),
    "a sum that is not weighed": (
        [*BEFORE, node("MatMul", ["scores", "present"], ["y"])], ("y", "present"), "MatMul.*: positions of the past"),
    "a softmax along another axis": (
        [*BEFORE, node("Transpose", ["scores"], ["turned"], perm=[0, 2, 1]), node("Softmax", ["turned"], ["w"], axis=1),
         node("Transpose", ["w"], ["weights"], perm=[0, 2, 1]), SUM[1]], ("y", "present"),
        "Softmax.*: positions of the past meet"),
    "scores that are given back": (
        [*BEFORE, *PLAIN, *SUM], ("y", "present", "scores"), "output 'scores': is as long as all positions so far"),
    "the last position from behind": (
        [*JOIN, *SIZES, node("Neg", ["pv"], ["back"]), node("Gather", ["present", "back"], ["y"], axis=1)],
        ("y", "present"), "Gather.*: positions of the past meet"),
    "a size that decides": (
        [*JOIN, *SIZES, node("Div", ["pv", "v2"], ["half"]), node("Slice", ["table", "half", "v9", "v0"], ["part"]),
         node("ReduceSum", ["part"], ["y"])], ("y", "present"), "size past: a size decides which values are computed"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str):
    nodes, outputs, said = REFUSED[name]
    with pytest.raises(Unsupported, match=said):
        build(model(nodes, outputs), maximum={"past": MAXIMUM})


def test_an_input_that_is_read_otherwise_is_no_cache():
    more = [
        node("MatMul", ["weights", "present"], ["z"]),
        node("ReduceMax", ["past"], ["m"]),
        node("Add", ["z", "m"], ["y"]),
    ]
    exe = build(model([*BEFORE, *PLAIN, SUM[0], *more]), maximum={"past": MAXIMUM})
    assert isinstance(exe, DynamicExecutable) and exe.interface.caches is None


def test_sizes_that_are_refused():
    found = attention("a mask of the caller's")
    with pytest.raises(
        InvalidArgument, match="maximum.'past'.: 4 positions are too few for 1 new ones; it is at least 5"
    ):
        build(found, maximum={"past": 4})
    other = onnx.helper.make_tensor_value_info("mask", LONG, [1, "total"])
    unnamed = model([*JOIN, *SCORES, *ATTENTIONS["a mask of the caller's"], *SUM], mask=other)
    with pytest.raises(Unsupported, match="n and total are open beside past; name sums as such: shapes="):
        build(unnamed, maximum={"past": MAXIMUM})
    exe = build(unnamed, frontend={"shapes": {"mask": (1, "past + n")}}, maximum={"past": MAXIMUM})
    assert isinstance(exe, DynamicExecutable) and exe.interface.caches is not None
    module = from_onnx(found)
    for size, sizes in (("n", 1), ("m", 1), ("past", (1, 2)), ("past", (0,))):
        with pytest.raises(RelayError, match="caches-in-place|input 'x': is not joined"):
            CachesInPlace(size=size, maximum=MAXIMUM, sizes=sizes)(module)
