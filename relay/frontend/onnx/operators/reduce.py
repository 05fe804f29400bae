"""Imports reductions, and operators along one axis: extremes, cumulative sums, top k."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import f64, i1, i32, i64
from xdsl.ir import Block, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of
from relay.dialects.op import TensorOp
from relay.frontend.importing.formulas import logsumexp
from relay.frontend.onnx.builder import Counted, Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op
from relay.interpreters.arithmetic import extremes

_PLAIN: dict[str, type[TensorOp]] = {
    "ReduceMax": relay.MaxOp, "ReduceMean": relay.MeanOp, "ReduceMin": relay.MinOp, "ReduceProd": relay.ProdOp,
    "ReduceSum": relay.SumOp,
}  # fmt: skip
_EMPTY_RESULTS: dict[str, Callable[[Array], Array]] = {
    "ReduceLogSum": np.log, "ReduceLogSumExp": np.log, "ReduceProd": np.exp,
}  # fmt: skip
"""Functions that are applied to 0 to give the result of a reduction over no elements: log(0) = -infinity, exp(0) = 1.
Kinds without an entry give 0, except ReduceMax, ReduceMin and ReduceMean."""


@op(*_PLAIN, "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def reduce(importer: Importer, node: Node) -> SSAValue:
    value, element = node.input(0), importer.element(node.input(0))
    if node.kind not in _PLAIN and not importer.is_float(value):
        value = importer.cast(value, f64)  # as ONNX Runtime does, which saturates what comes out
    elif node.kind == "ReduceMean" and element == i32:
        value = importer.cast(value, i64)
    result = _reduction(importer, node, value)
    if importer.element(result) == f64 and element != f64:
        low, high = extremes(dtype_of(element))
        result = importer.clip(result, float(low), float(high))
    return importer.cast(result, element)


def _reduction(importer: Importer, node: Node, value: SSAValue) -> SSAValue:
    """Import a reduction: reduce `value`, the operator's input 0 or a copy of it in another element type, over the axes
    that the node names, by default all."""
    given, rank = node.listed("axes", 1), node.rank(0)
    if not given:
        if node.flag("noop_with_empty_axes"):
            return _before(importer, node.kind, value) if node.kind not in _PLAIN else value
        given = range(rank)
    axes, keep = node.axes_of(given, rank), bool(node.integer("keepdims", 1))
    if not axes:
        return value
    if 0 in [node.shape(0)[axis] for axis in axes]:
        return _empty_reduction(importer, node, value, axes, keep)
    return _reduced(importer, node.kind, value, axes, keep)


def _before(importer: Importer, kind: str, value: SSAValue) -> SSAValue:
    """The result of a reduction over no axes: the operator's function of single elements, such as the magnitude for
    ReduceL1."""
    if kind in ("ReduceL1", "ReduceL2"):
        return importer.call(relay.AbsOp, value)
    if kind == "ReduceLogSum":
        return importer.call(relay.LogOp, value)
    return importer.call(relay.MultiplyOp, value, value) if kind == "ReduceSumSquare" else value


def _reduced(importer: Importer, kind: str, value: SSAValue, axes: list[int], keep: bool) -> SSAValue:
    def sums(of: SSAValue) -> SSAValue:
        return importer.call(relay.SumOp, of, axis=axes, keepdims=keep)

    if kind in _PLAIN:
        if importer.element(value) == i1:
            return importer.call(relay.AnyOp if kind == "ReduceMax" else relay.AllOp, value, axis=axes, keepdims=keep)
        return importer.call(_PLAIN[kind], value, axis=axes, keepdims=keep)
    if kind == "ReduceLogSumExp":
        return logsumexp(importer, value, axes, keep)
    if kind == "ReduceL1":
        return sums(importer.call(relay.AbsOp, value))
    if kind == "ReduceLogSum":
        return importer.call(relay.LogOp, sums(value))
    squares = sums(importer.call(relay.MultiplyOp, value, value))
    return importer.call(relay.SqrtOp, squares) if kind == "ReduceL2" else squares


def _empty_reduction(importer: Importer, node: Node, value: SSAValue, axes: list[int], keep: bool) -> SSAValue:
    """The result of a reduction over an axis of size 0: the neutral element everywhere."""
    dtype = importer.dtype(value)
    dims = [1 if axis in axes else size for axis, size in enumerate(node.static(0)) if keep or axis not in axes]
    if node.kind in ("ReduceMax", "ReduceMin"):
        number = ((False, True) if dtype == np.bool_ else extremes(dtype))[node.kind == "ReduceMin"]
    elif node.kind == "ReduceMean":
        number = float("nan")
    else:
        number = float(_EMPTY_RESULTS.get(node.kind, np.asarray)(np.zeros(())))
    return importer.call(relay.FullOp, importer.unnamed(np.asarray(number).astype(dtype)), shape=dims)


@op("ArgMax", "ArgMin")
def extreme(importer: Importer, node: Node) -> SSAValue:
    """Import ArgMax and ArgMin: the index of the largest or smallest element; of equal ones that of the first, or of
    the last if `select_last_index` is set."""
    value, size = node.input(0), node.static(0)
    axis = node.axis(node.integer("axis", 0), len(size))
    last = bool(node.integer("select_last_index", 0)) if node.version >= 12 else False
    kind = relay.ArgmaxOp if node.kind == "ArgMax" else relay.ArgminOp
    if last:
        value = importer.call(relay.ReverseOp, value, axis=[axis])
    found = importer.call(kind, value, axis=[axis], keepdims=bool(node.integer("keepdims", 1)), dtype=i64)
    return importer.call(relay.SubtractOp, importer.like(size[axis] - 1, found), found) if last else found


@op("CumSum", "CumProd")
def cumulative(importer: Importer, node: Node) -> SSAValue:
    value = node.input(0)
    axis = node.axis(int(node.scalar(1)), node.rank(0))
    kind = relay.CumsumOp if node.kind == "CumSum" else relay.CumprodOp
    turned = node.flag("reverse")
    value = importer.call(relay.ReverseOp, value, axis=[axis]) if turned else value
    value = importer.call(kind, value, axis=axis, exclusive=node.flag("exclusive"))
    return importer.call(relay.ReverseOp, value, axis=[axis]) if turned else value


@op("TopK")
def top(importer: Importer, node: Node) -> list[SSAValue]:
    axis = node.axis(node.integer("axis", -1), node.rank(0))
    smallest = node.version >= 11 and not node.integer("largest", 1)
    if node.version >= 10 and node.computed(1) and not isinstance(node.input(1).owner, Block):
        size = node.static(0)[axis]
        k = importer.clip(importer.reshape(importer.cast(node.input(1), i64), ()), 0, size)
        found = [*importer.several(relay.TopkOp, node.input(0), k=size, axis=axis, is_ascend=smallest, dtype=i64)]
        importer.counted |= dict.fromkeys(found, Counted(axis, k))
        return found
    count = node.integer("k") if node.version < 10 else int(node.scalar(1))
    return [*importer.several(relay.TopkOp, node.input(0), k=count, axis=axis, is_ascend=smallest, dtype=i64)]
