"""What changes shapes, makes tensors, reads and writes by indices, against TensorFlow's documentation."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, f32, i32, i64

from relay.dialects import relay
from relay.dialects.attributes import ints, scalar_attr
from relay.interpreters import compute


def number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


def test_splits_are_several_results() -> None:
    x = np.arange(6)
    parts = compute(relay.SplitOp, [x], {"indices_or_sections": ints([1, 4])})
    assert [part.tolist() for part in parts] == [[0], [1, 2, 3], [4, 5]]
    assert len(compute(relay.SplitOp, [x], {"indices_or_sections": number(3)})) == 3


def test_layouts() -> None:
    x = np.arange(2 * 3 * 4).reshape(1, 2, 3, 4)
    forth = {"src_layout": StringAttr("NHWC"), "dst_layout": StringAttr("NCHW2c")}
    (packed,) = compute(relay.LayoutTransformOp, [x], forth)
    assert packed.shape == (1, 2, 2, 3, 2) and packed[0, 1, 1, 2, 1] == x[0, 1, 2, 3]
    back = {"src_layout": StringAttr("NCHW2c"), "dst_layout": StringAttr("NHWC")}
    assert np.array_equal(compute(relay.LayoutTransformOp, [packed], back)[0], x)


def test_ranges() -> None:
    properties = {name: scalar_attr(value, i32) for name, value in (("start", 7), ("stop", 0), ("step", -3))}
    assert compute(relay.ArangeOp, [], properties)[0].tolist() == [7, 4, 1]
    properties = {name: scalar_attr(value, f32) for name, value in (("start", 0.0), ("stop", 1.0), ("step", 0.25))}
    assert compute(relay.ArangeOp, [], properties)[0].tolist() == [0, 0.25, 0.5, 0.75]


def test_cumulative_sums() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]])
    assert compute(relay.CumsumOp, [x], {"axis": number(1)})[0].tolist() == [[1, 3, 6], [4, 9, 15]]
    exclusive = {"axis": number(0), "exclusive": BoolAttr.from_bool(True)}
    assert compute(relay.CumprodOp, [x], exclusive)[0].tolist() == [[1, 1, 1], [1, 2, 3]]


def test_diagonals_as_tensorflow_documents_them() -> None:
    """MatrixSetDiagV3's own example, `k=(-1, 2)` aligned LEFT_RIGHT, and the main diagonal."""
    x = np.full((2, 3, 4), 7)
    (result,) = compute(relay.MatrixSetDiagOp, [x, np.array([[1, 2, 3], [4, 5, 6]])])
    assert result.tolist() == [[[1, 7, 7, 7], [7, 2, 7, 7], [7, 7, 3, 7]], [[4, 7, 7, 7], [7, 5, 7, 7], [7, 7, 6, 7]]]
    rows = np.array([[9, 1, 0], [6, 5, 8], [1, 2, 3], [0, 4, 5]])
    properties = {"k": ints([-1, 2]), "align": StringAttr("LEFT_RIGHT")}
    (result,) = compute(relay.MatrixSetDiagOp, [x[0], rows], properties)
    assert result.tolist() == [[1, 6, 9, 7], [4, 2, 5, 1], [7, 5, 3, 8]]


def test_masks() -> None:
    lengths = np.array([1, 2], np.int32)
    properties = {"mask_value": scalar_attr(-1, i64)}
    (result,) = compute(relay.SequenceMaskOp, [np.arange(6).reshape(3, 2), lengths], properties)
    assert result.tolist() == [[0, 1], [-1, 3], [-1, -1]]


def test_scatters() -> None:
    """Later updates win or add up; what is not there is left out; `scatter` counts negative ones from the end."""
    x, indices = np.zeros(4, np.int32), np.array([1, -1, 1, 9], np.int32)
    updates = np.array([5, 6, 7, 8], np.int32)
    assert compute(relay.ScatterOp, [x, indices, updates])[0].tolist() == [0, 7, 0, 6]
    assert compute(relay.ScatterAddOp, [x, indices, updates])[0].tolist() == [0, 12, 0, 6]
    add = {"mode": StringAttr("add")}
    assert compute(relay.ScatterNdOp, [x, indices[:, None], updates], add)[0].tolist() == [0, 12, 0, 0]


def test_places() -> None:
    x = np.arange(6).reshape(2, 3)
    (result,) = compute(relay.GatherOp, [x, np.array([[2, 0], [9, 1]])], {"axis": number(1)})
    assert result.tolist() == [[2, 0], [5, 4]]
    assert compute(relay.AdvIndexOp, [x, np.array([1, 0]), np.array([2, 1])])[0].tolist() == [5, 1]
    wrap = {"axis": number(1), "mode": StringAttr("wrap")}
    assert compute(relay.TakeOp, [x, np.array([-1, 4])], wrap)[0].tolist() == [[2, 1], [5, 4]]
    assert compute(relay.UnravelIndexOp, [np.array([5, 2])], {"shape": ints([2, 3])})[0].tolist() == [[1, 0], [2, 2]]
    assert compute(relay.InvertPermutationOp, [np.array([2, 0, 1])])[0].tolist() == [1, 2, 0]
    (result,) = compute(relay.ReverseSequenceOp, [x, np.array([3, 2])])
    assert result.tolist() == [[2, 1, 0], [4, 3, 5]]
