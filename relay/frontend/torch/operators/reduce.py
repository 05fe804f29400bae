"""Imports reductions, and operators along one axis: extremes, cumulative sums, top k."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1, i8, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import DYNAMIC, TensorOp
from relay.frontend.importing.formulas import logsumexp, named, norm, truths
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node
from relay.frontend.torch.operators.elementwise import computed, name_of
from relay.frontend.torch.table import Result, aten, of_vectors


def _axes(node: Node) -> list[int]:
    """The axes that are reduced; all if none is named."""
    rank = node.rank("self")
    given = node.integers("dim", [])
    return node.axes_of(given, rank)[: rank or 0] if given else list(range(rank))


_REDUCED = named("sum prod mean any all", amax=relay.MaxOp, amin=relay.MinOp, max=relay.MaxOp, min=relay.MinOp)


def _reduced(importer: Importer, node: Node, kind: type[TensorOp], value: SSAValue) -> SSAValue:
    axes = _axes(node)
    return computed(importer, kind, value, axis=axes, keepdims=node.flag("keepdim")) if axes else value


def _summand(importer: Importer, node: Node) -> SSAValue:
    """The operand of a sum; integers and booleans are cast to 64 bits."""
    x = importer.typed(node.value("self"), node.dtype())
    return x if node.has("dtype") or importer.is_float(x) else importer.cast(x, i64)


@aten("sum", "prod", "mean", "any", "all", "amax", "amin", "max.default", "min.default")
def reduction(importer: Importer, node: Node) -> SSAValue:
    """Import a reduction; `any` and `all` of uint8 tensors have uint8 results."""
    x, name = node.value("self"), name_of(node)
    if name in ("any", "all"):
        found = _reduced(importer, node, _REDUCED[name], truths(importer, x))
        return importer.cast(found, importer.element(x)) if importer.dtype(x) == np.uint8 else found
    x = _summand(importer, node) if name in ("sum", "prod") else importer.typed(x, node.dtype())
    return _reduced(importer, node, _REDUCED[name], x)


@aten("argmax", "argmin")
@of_vectors
def position(importer: Importer, node: Node) -> SSAValue:
    """Import argmax and argmin: the index of the first largest or smallest element; without an axis, the index in the
    flattened tensor."""
    x, dims = node.value("self"), node.shape("self")
    kind = relay.ArgmaxOp if name_of(node) == "argmax" else relay.ArgminOp
    if not node.has("dim"):
        x = importer.viewed(x, [-1 if DYNAMIC in dims else prod(dims)])
        found = _place(importer, kind, x, axis=[0], keepdims=False)
        return importer.reshape(found, [1] * len(dims)) if node.flag("keepdim") else found
    return _place(importer, kind, x, axis=[node.along("dim")], keepdims=node.flag("keepdim"))


def _place(importer: Importer, kind: type[TensorOp], x: SSAValue, **kept: Any) -> SSAValue:
    """The index of the largest or smallest element for an op of class `kind`; that of the first NaN if there is one, as
    in PyTorch."""
    found = importer.call(kind, x, dtype=i64, **kept)
    if not importer.is_float(x):
        return found
    holes = importer.cast(importer.call(relay.IsnanOp, x), i8)
    some, first = importer.call(relay.MaxOp, holes, **kept), importer.call(relay.ArgmaxOp, holes, dtype=i64, **kept)
    return importer.call(relay.WhereOp, importer.call(relay.GreaterOp, some, importer.like(0, some)), first, found)


@aten("max.dim", "min.dim")
@of_vectors
def extreme_with_place(importer: Importer, node: Node) -> list[SSAValue]:
    kind, place = (relay.MaxOp, relay.ArgmaxOp) if name_of(node) == "max" else (relay.MinOp, relay.ArgminOp)
    x, kept = node.value("self"), {"axis": [node.along("dim")], "keepdims": node.flag("keepdim")}
    return [computed(importer, kind, x, **kept), _place(importer, place, x, **kept)]


@aten("var", "std", "var_mean", "std_mean")
def variance(importer: Importer, node: Node) -> list[Result]:
    """Import var and std, and the mean with them; `correction` is subtracted from the number of elements."""
    x, axes, dims = node.value("self"), _axes(node), node.static("self")
    correction = node.number_of("correction", float(node.flag("unbiased", True)))
    keep = node.flag("keepdim")
    average = importer.call(relay.MeanOp, x, axis=axes, keepdims=True) if axes else x
    rest = importer.call(relay.SubtractOp, x, average)
    total = _reduced(importer, node, relay.SumOp, importer.call(relay.MultiplyOp, rest, rest))
    count = max(prod(dims[axis] for axis in axes) - correction, 0)
    found = importer.call(relay.DivideOp, total, importer.like(count, total))
    if "std" in node.packet:
        found = importer.call(relay.SqrtOp, found)
    return [found, average if keep or not axes else importer.call(relay.SqueezeOp, average, axis=axes)]


@aten("logsumexp")
def log_sum(importer: Importer, node: Node) -> SSAValue:
    x, axes = importer.real(node.value("self")), _axes(node)
    return logsumexp(importer, x, axes, node.flag("keepdim")) if axes else x


@aten("norm", "linalg_vector_norm")
def vector_norm(importer: Importer, node: Node) -> SSAValue:
    power = node.real("p" if node.has("p") else "ord", 2.0)
    return norm(importer, node.value("self"), power, lambda kind, value: _reduced(importer, node, kind, value))


@aten("cumsum", "cumprod")
@of_vectors
def cumulative(importer: Importer, node: Node) -> SSAValue:
    kind = relay.CumsumOp if name_of(node) == "cumsum" else relay.CumprodOp
    return importer.call(kind, _summand(importer, node), axis=node.along("dim"))


@aten("topk")
@of_vectors
def topk(importer: Importer, node: Node) -> list[SSAValue]:
    axis, up = node.along("dim", -1), not node.flag("largest", True)
    found = importer.several(relay.TopkOp, node.value("self"), k=node.integer("k"), axis=axis, is_ascend=up, dtype=i64)
    return [*found]


@aten("sort", "argsort")
@of_vectors
def sort(importer: Importer, node: Node) -> list[SSAValue]:
    """Import sort and argsort; equal elements keep their order, which `stable` requires."""
    x, axis = node.value("self"), node.along("dim", -1)
    order = importer.call(relay.ArgsortOp, x, axis=axis, is_ascend=not node.flag("descending"), dtype=i64)
    if name_of(node) == "argsort":
        return [order]
    return [importer.call(relay.GatherOp, x, order, axis=axis), order]


@aten("diff")
def diff(importer: Importer, node: Node) -> SSAValue:
    """Import diff: the differences of neighbours along an axis, with two optional tensors joined at its ends."""
    given = [node.value(name) for name in ("prepend", "self", "append") if node.has(name)]
    axis = node.along("dim", -1)
    x = importer.concatenate(given, axis)
    for _ in range(node.integer("n", 1)):
        size = importer.shape(x)[axis]
        late, early = importer.slice(x, {axis: (1, size)}), importer.slice(x, {axis: (0, size - 1)})
        x = importer.call(relay.NotEqualOp if importer.element(x) == i1 else relay.SubtractOp, late, early)
    return x
