"""Ops that move data, and reductions, against numpy spelled another way."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, i8, i64

from relay.dialects import relay
from relay.dialects.attributes import Array, ints
from relay.dialects.op import TensorOp
from relay.interpreters import compute

X = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
KEEP = BoolAttr.from_bool(True)


def axis(number: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(number, i64)


def test_reshape() -> None:
    (result,) = compute(relay.ReshapeOp, [X], {"newshape": ints([4, -1])})
    assert result.tolist() == [list(range(6 * i, 6 * i + 6)) for i in range(4)]


def test_transpose() -> None:
    (result,) = compute(relay.TransposeOp, [X], {"axes": ints([2, 0, 1])})
    assert result.tolist() == [[[12 * n + 4 * i + j for i in range(3)] for n in range(2)] for j in range(4)]


def test_broadcast_to() -> None:
    (result,) = compute(relay.BroadcastToOp, [np.array([[1], [2]], np.int8)], {"shape": ints([2, 2, 3])})
    assert result.tolist() == [[[1, 1, 1], [2, 2, 2]]] * 2


def test_concatenate() -> None:
    (result,) = compute(relay.ConcatenateOp, [X[:, :, :1], X[:, :, 2:]], {"axis": axis(-1)})
    assert result.tolist() == X[:, :, [0, 2, 3]].tolist()


def test_strided_slice_backwards_to_the_first() -> None:
    (result,) = compute(
        relay.StridedSliceOp,
        [X],
        {"begin": ints([1, 2, 1]), "end": ints([2, -1, 4]), "strides": ints([1, -2, 2])},
    )
    assert result.tolist() == [[[21, 23], [13, 15]]]


def test_take_clamps() -> None:
    indices = np.array([[0, -5], [9, 1]], np.int32)
    (row,) = compute(relay.TakeOp, [X, indices])
    assert np.array_equal(row, X.take(indices, mode="clip"))
    (result,) = compute(relay.TakeOp, [X, indices], {"axis": axis(1)})
    assert result.shape == (2, 2, 2, 4)
    assert result[1].tolist() == [[X[1, 0].tolist(), X[1, 0].tolist()], [X[1, 2].tolist(), X[1, 1].tolist()]]


def test_gather_nd_clamps() -> None:
    indices = np.array([[1, 2], [0, 9], [-3, 0]], np.int64)
    (result,) = compute(relay.GatherNdOp, [X, indices])
    assert result.tolist() == [X[1, 2].tolist(), X[0, 2].tolist(), X[0, 0].tolist()]


def test_gather_nd_of_elements() -> None:
    (result,) = compute(relay.GatherNdOp, [X, np.array([[[1, 2, 3]], [[0, 0, 1]]], np.int32)])
    assert result.tolist() == [[23], [1]]


def test_pad() -> None:
    properties = {"pad_width": ints([0, 0, 1, 0, 2, 1]), "pad_value": IntegerAttr(-7, i8)}
    (result,) = compute(relay.PadOp, [X[:1, :1, :2]], properties)
    assert result.dtype == np.int8 and result.tolist() == [[[-7] * 5, [-7, -7, 0, 1, -7]]]


def test_sum_wraps_in_its_type() -> None:
    x = np.full((2, 3), 100, np.int8)
    (result,) = compute(relay.SumOp, [x], {"axis": ints([1])})
    assert result.dtype == np.int8 and result.tolist() == [44, 44]
    assert compute(relay.SumOp, [x], {"axis": ints([])})[0].tolist() == 88


def test_sum_keeps_axes() -> None:
    x = X.astype(np.int32)
    (result,) = compute(relay.SumOp, [x], {"axis": ints([-1, 0]), "keepdims": KEEP})
    assert result.shape == (1, 3, 1)
    assert result.ravel().tolist() == [sum(int(v) for v in x[:, i].ravel()) for i in range(3)]


@pytest.mark.parametrize(("op", "expected"), [(relay.MaxOp, [[9, 7], [-2, 4]]), (relay.MinOp, [[1, 3], [-9, 4]])])
def test_extremes(op: type[TensorOp], expected: list[list[int]]) -> None:
    x = np.array([[[1, 9], [7, 3]], [[-9, -2], [4, 4]]], np.int16)
    assert compute(op, [x], {"axis": ints([2])})[0].tolist() == expected


@pytest.mark.parametrize(("op", "expected"), [(relay.ArgmaxOp, [1, 0]), (relay.ArgminOp, [0, 2])])
def test_positions_are_of_the_first(op: type[TensorOp], expected: list[int]) -> None:
    x = np.array([[1, 9, 9], [5, 5, 4]], np.float32)
    for dtype in (i64, IntegerType(32)):
        result: Array = compute(op, [x], {"axis": ints([1]), "dtype": dtype, "keepdims": KEEP})[0]
        assert result.dtype.itemsize * 8 == dtype.width.data and result.tolist() == [[e] for e in expected]
