"""Sizes that decide what is computed: a model is built for each, however alike those are that were looked at."""

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
from relay.runtime import DynamicExecutable
from tests.unit.test_sizes_onnx import FLOAT, made, node

NUMBERS: dict[str, Array] = {
    **{"zero": np.array(0), "one": np.array(1), "eight": np.array(8), "zeros": np.array([0]), "ones": np.array([1])},
    **{
        "minuses": np.array([-1]),
        "eights": np.array([8]),
        "many": np.array([1 << 40]),
        "minus": np.array([-8]),
        "float": np.array(8, np.float32),
    },
}
SIZE = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "axis"], ["n"])]
ONES = [
    node("Shape", ["x"], ["s"]),
    node("Gather", ["s", "axes"], ["ns"]),
    node("ConstantOfShape", ["ns"], ["full"], value=onnx.numpy_helper.from_array(np.array([1]))),
]
SPANS = {
    "a constant end": [node("Slice", ["x", "zeros", "eights", "axes"], ["y"])],
    "an end from behind": [node("Slice", ["x", "minus", "many", "axes"], ["y"])],
    "a quotient": [
        *SIZE,
        node("Div", ["n", "eight"], ["q"]),
        node("Reshape", ["q", "ones"], ["qs"]),
        node("Slice", ["x", "qs", "many", "axes"], ["y"]),
    ],
    "a difference": [
        *SIZE,
        node("Sub", ["n", "eight"], ["q"]),
        node("Reshape", ["q", "ones"], ["qs"]),
        node("Slice", ["x", "qs", "many", "axes"], ["y"]),
    ],
}
COUNTS = {
    "a size": SIZE,
    "the number of elements": [node("Size", ["x"], ["all"]), node("Div", ["all", "width"], ["n"])],
    "a sum of ones": [*ONES, node("ReduceSum", ["full"], ["n"], keepdims=0)],
    "the last of a running sum": [*ONES, node("CumSum", ["full", "zero"], ["run"]),
                                  node("ReduceMax", ["run"], ["n"], keepdims=0)],
    "the end of a range": [*SIZE[:1], node("Gather", ["s", "axis"], ["stop"]),
                           node("Range", ["zero", "stop", "one"], ["range"]),
                           node("ReduceMax", ["range"], ["last"], keepdims=0), node("Add", ["last", "one"], ["n"])],
    "as many as are not zero": [*ONES, node("NonZero", ["full"], ["places"]), node("Shape", ["places"], ["ps"]),
                                node("Gather", ["ps", "one"], ["n"])],
}  # fmt: skip


def branches(counted: list[Any], compared: str) -> list[Any]:
    """What is computed with the number `n`, and then one of two formulas by it."""
    graphs: dict[str, Any] = {
        key: onnx.helper.make_graph(
            [node(kind, ["x", "float"], [key])], key, [], [onnx.helper.make_tensor_value_info(key, FLOAT, None)]
        )
        for key, kind in (("then_branch", "Mul"), ("else_branch", "Add"))
    }
    return [*counted, node(compared, ["n", "eight"], ["c"]), node("If", ["c"], ["y"], **graphs)]


def agrees_for_all(nodes: list[Any], axis: int) -> DynamicExecutable:
    """One executable against ONNX Runtime for sizes below, at and above 8, along one of two axes; a maximum is given
    for the last one."""
    shape: list[int | str] = ["n", 4] if not axis else [1, "n"]
    held = {**NUMBERS, "axis": np.array(axis), "axes": np.array([axis]), "width": np.array(4 if not axis else 1)}
    model = made(nodes, {"x": (FLOAT, shape)}, held)
    exe = build(model, maximum={"n": 32}) if axis else build(model)
    assert isinstance(exe, DynamicExecutable)
    session = onnxruntime.InferenceSession(model)
    for size in (1, 3, 8, 9, 32):
        x = np.random.default_rng(size).standard_normal((size, 4) if not axis else (1, size)).astype(np.float32)
        (wanted,), found = session.run(None, {"x": x}), exe.run(x)
        assert isinstance(found, np.ndarray) and found.shape == wanted.shape and np.array_equal(found, wanted), size
    return exe


@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "length"])
@pytest.mark.parametrize("span", [pytest.param(n, marks=pytest.mark.ci if n == "a quotient" else ()) for n in SPANS])
def test_a_part_of_an_open_axis(span: str, axis: int):
    exe = agrees_for_all(SPANS[span], axis)
    assert not exe.interface.blocks and exe.interface.length is None


PAIRS = [
    pytest.param(counted, compared, marks=() if (number + (compared == "Equal")) % 3 == 0 else pytest.mark.ci)
    for number, counted in enumerate(COUNTS)
    for compared in ("Greater", "Equal")
]
"""By default each comparison of two numbers, and four of the six numbers."""


@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "length"])
@pytest.mark.parametrize(("counted", "compared"), PAIRS)
def test_a_branch_by_a_size(counted: str, compared: str, axis: int):
    exe = agrees_for_all(branches(COUNTS[counted], compared), axis)
    assert not exe.interface.blocks and exe.interface.length is None


@pytest.mark.parametrize(("counted", "compared"), PAIRS)
def test_a_value_chosen_by_a_size(counted: str, compared: str):
    """No shape and no branch follows from it: it is folded by a pass later on."""
    chosen = [node(compared, ["n", "eight"], ["c"]), node("Neg", ["x"], ["m"]), node("Where", ["c", "x", "m"], ["y"])]
    for axis in (0, 1):
        exe = agrees_for_all([*COUNTS[counted], *chosen], axis)
        assert not exe.interface.blocks and exe.interface.length is None


def test_sizes_that_are_linear_are_left_to_run_time():
    """Zeros are appended to the length and cut off again: every number is one of its size, and none of them a limit."""
    nodes = [
        *SIZE,
        node("Mul", ["x", "float"], ["m"]),
        node("Reshape", ["n", "ones"], ["ns"]),
        node("Slice", ["m", "zeros", "ns", "axes"], ["y"]),
    ]
    assert agrees_for_all(nodes, 1).interface.length is not None
    assert agrees_for_all(nodes, 0).interface.blocks


def test_sizes_that_are_compared_with_one_that_none_has():
    """Exporters of torch write targets of Expand so: -1 stands for a size that stays."""
    nodes = [
        *SIZE,
        node("Mul", ["x", "float"], ["m"]),
        node("Equal", ["s", "minuses"], ["stays"]),
        node("Where", ["stays", "ones", "s"], ["to"]),
        node("Expand", ["m", "to"], ["y"]),
    ]
    assert agrees_for_all(nodes, 1).interface.length is not None
    assert agrees_for_all(nodes, 0).interface.blocks


@pytest.mark.parametrize(
    "nodes",
    [
        [node("MaxPool", ["x"], ["y"], kernel_shape=[1], strides=[24])],
        [node("Slice", ["x", "zeros", "many", "axes", "steps"], ["y"])],
    ],
    ids=["windows", "steps"],
)
def test_sizes_that_grow_by_steps(nodes: list[Any]):
    """Of 32 and 31 elements, and of 1, as many are left as a constant or a line through two sizes would say."""
    held = {"zeros": np.array([0]), "many": np.array([1 << 40]), "axes": np.array([2]), "steps": np.array([24])}
    model = made(nodes, {"x": (FLOAT, [1, 1, "n"])}, held)
    exe = build(model, maximum={"n": 32})
    assert isinstance(exe, DynamicExecutable)
    for size in (1, 23, 24, 25, 32):
        x = np.random.default_rng(size).standard_normal((1, 1, size)).astype(np.float32)
        assert np.array_equal(np.asarray(exe.run(x)), x[:, :, ::24])


def test_a_file_that_is_imported_for_each_size():
    """The importer needs the size, and leaves the Expand out where it repeats nothing."""
    nodes = [
        *COUNTS["as many as are not zero"],
        node("Reshape", ["n", "ones"], ["count"]),
        node("Concat", ["ones", "count"], ["to"], axis=0),
        node("Expand", ["eights", "to"], ["wide"]),
        node("Cast", ["wide"], ["floats"], to=FLOAT),
        node("Add", ["x", "floats"], ["y"]),
    ]
    exe = agrees_for_all(nodes, 1)
    assert exe.interface.length is not None and "the importer needs the sizes" in exe.interface.why


def test_a_maximum_of_two():
    """There are two sizes in all, and positions that grow with them."""
    nodes = [*SIZE, node("Range", ["zero", "n", "one"], ["r"]), node("Cast", ["r"], ["f"], to=FLOAT),
             node("Add", ["x", "f"], ["y"])]  # fmt: skip
    exe = build(made(nodes, {"x": (FLOAT, [1, "n"])}, {**NUMBERS, "axis": np.array(1)}), maximum={"n": 2})
    assert isinstance(exe, DynamicExecutable) and exe.interface.length is not None
    for size in (1, 2):
        assert np.array_equal(np.asarray(exe.run(np.zeros((1, size), np.float32))), [np.arange(size)])
