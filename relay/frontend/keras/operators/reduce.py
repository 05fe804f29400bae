"""Reductions, and operations along one axis. Source: keras/src/ops/numpy.py."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar, logsumexp, named, truths
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer
from relay.frontend.keras.table import TABLE, op

_REDUCED = named("Sum Prod Mean Max Min Any All", Amax=relay.MaxOp, Amin=relay.MinOp)


def _kept(importer: Importer, node: Layer, x: SSAValue) -> dict[str, list[int] | bool]:
    axes = node.axes(node.config.get("axis"), importer.rank(x))
    return {"axis": axes, "keepdims": node.flag("keepdims")}


@op(*_REDUCED)
def reduction(importer: Importer, node: Layer) -> SSAValue:
    """Means are of floats; any and all of truths."""
    x, name = node.x, node.kind.removeprefix("ops.")
    x = importer.real(x) if name == "Mean" else truths(importer, x) if name in ("Any", "All") else x
    if importer.dtype(x) == np.bool_ and name in ("Sum", "Prod"):
        x = importer.cast(x, i32)
    return importer.call(_REDUCED[name], x, **_kept(importer, node, x)) if importer.rank(x) else x


@op("Var", "Std")
def variance(importer: Importer, node: Layer) -> SSAValue:
    x = importer.real(node.x)
    kept = _kept(importer, node, x)
    mean = importer.call(relay.MeanOp, x, axis=kept["axis"], keepdims=True)
    found = importer.call(relay.VarianceOp, x, mean, **kept)
    return importer.call(relay.SqrtOp, found) if node.kind == "ops.Std" else found


@op("Logsumexp")
def log_sum(importer: Importer, node: Layer) -> SSAValue:
    x = importer.real(node.x)
    return logsumexp(importer, x, node.axes(node.config.get("axis"), importer.rank(x)), node.flag("keepdims"))


@op("Norm")
def norm(importer: Importer, node: Layer) -> SSAValue:
    """The root of the sum of squares."""
    node.refuse({"ord": 2})
    x = Scalar(importer, importer.real(node.x))
    total = importer.call(relay.SumOp, (x * x).value, **_kept(importer, node, x.value))
    return importer.call(relay.SqrtOp, total)


@op("Argmax", "Argmin")
def position(importer: Importer, node: Layer) -> SSAValue:
    """The first of equal ones; of the flat tensor without an axis."""
    x = node.x
    kind = relay.ArgmaxOp if node.kind == "ops.Argmax" else relay.ArgminOp
    if node.config.get("axis") is None:
        node.refuse({"keepdims": False})
        return importer.call(kind, importer.reshape(x, [int(np.prod(node.static(x)))]), axis=[0], dtype=i32)
    return importer.call(kind, x, dtype=i32, **_kept(importer, node, x))


@op("Cumsum", "Cumprod")
def cumulative(importer: Importer, node: Layer) -> SSAValue:
    node.refuse({"dtype": None})
    x = node.x
    axis = node.axis(node.integer("axis"), importer.rank(x))
    return importer.call(relay.CumsumOp if node.kind == "ops.Cumsum" else relay.CumprodOp, x, axis=axis)


def _along(importer: Importer, node: Layer) -> int:
    return node.axis(node.integer("axis", -1), importer.rank(node.x))


TABLE.update({
    "ops.Argsort": lambda importer, node: importer.call(
        relay.ArgsortOp, node.x, axis=_along(importer, node), dtype=i32
    ),
    "ops.Sort": lambda importer, node: importer.call(relay.SortOp, node.x, axis=_along(importer, node)),
    "ops.TopK": lambda importer, node: importer.several(
        relay.TopkOp, node.x, k=node.integer("k"), axis=importer.rank(node.x) - 1, dtype=i32
    ),
})  # fmt: skip
