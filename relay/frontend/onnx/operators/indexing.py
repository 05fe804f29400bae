"""Imports operators that read or write at indices."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op


@op("Gather")
def gather(importer: Importer, node: Node) -> SSAValue:
    return importer.taken(node.input(0), node.input(1), node.axis(node.integer("axis", 0), node.rank(0)))


@op("GatherElements")
def gather_elements(importer: Importer, node: Node) -> SSAValue:
    rank = len(node.static(0))
    node.shape(1, rank)
    return importer.gathered(node.input(0), node.input(1), node.axis(node.integer("axis", 0), rank))


@op("GatherND")
def gather_nd(importer: Importer, node: Node) -> SSAValue:
    """Import GatherND; positions along the first `batch_dims` axes, which data and indices share, become
    coordinates."""
    batch, index = node.integer("batch_dims", 0), node.static(1) if node.integer("batch_dims", 0) else node.shape(1)
    count = index[-1]
    limits = importer.slice(importer.sizes(node.input(0)), {0: (batch, batch + count)})
    indices = importer.from_start(importer.cast(node.input(1), i64), limits)
    if batch:
        grid = np.moveaxis(np.indices(index[:batch]), 0, -1).reshape(
            *index[:batch], *[1] * (len(index) - 1 - batch), batch
        )
        outer = importer.unnamed(np.broadcast_to(grid, (*index[:-1], batch)).astype(np.int64))
        indices = importer.concatenate([outer, indices], len(index) - 1)
    return importer.call(relay.GatherNdOp, node.input(0), indices)


_MODES = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


@op("ScatterElements", "Scatter")
def scatter_elements(importer: Importer, node: Node) -> SSAValue:
    """Import ScatterElements: as `relay.scatter` or `relay.scatter_add` if the indices extend over the whole of each
    other axis, and otherwise as `relay.scatter_nd` with the coordinates of each update."""
    mode = (
        _MODES[node.one_of("reduction", [*_MODES])]
        if node.kind == "ScatterElements" and node.version >= 16
        else "update"
    )
    dims, index, rank = node.static(0), node.static(1), node.rank(0)
    axis = node.axis(node.integer("axis", 0), rank)
    whole = all(a == axis or index[a] == dims[a] for a in range(rank))
    if whole and mode in ("update", "add"):
        kind = relay.ScatterOp if mode == "update" else relay.ScatterAddOp
        return importer.call(kind, node.input(0), node.input(1), node.input(2), axis=axis)
    indices = importer.cast(importer.from_start(node.input(1), dims[axis]), i64)
    return importer.call(
        relay.ScatterNdOp, node.input(0), importer.coordinates(indices, axis), node.input(2), mode=mode
    )


@op("ScatterND")
def scatter_nd(importer: Importer, node: Node) -> SSAValue:
    mode = _MODES[node.one_of("reduction", [*_MODES])] if node.version >= 16 else "update"
    limits = importer.unnamed(np.asarray(node.static(0)[: node.static(1)[-1]], np.int64))
    indices = importer.from_start(importer.cast(node.input(1), i64), limits)
    return importer.call(relay.ScatterNdOp, node.input(0), indices, node.input(2), mode=mode)


@op("TensorScatter")
def tensor_scatter(importer: Importer, node: Node) -> SSAValue:
    """Import TensorScatter: write an update into a cache, for each batch entry from a given position on; in the mode
    `circular`, what exceeds the end is written at the start."""
    cache, update = node.static(0), node.static(1)
    axis, mode = node.axis(node.integer("axis", -2), len(cache)), node.one_of("mode", ("linear", "circular"))
    count, size = update[axis], cache[axis]
    starts = importer.unnamed(np.zeros(cache[0], np.int64)) if node.optional(2) is None else node.input(2)
    if cache[0] == 1 and (mode == "linear" or count == 1):
        start = importer.cast(starts, i64)
        if mode == "circular":
            start = importer.call(relay.FloorModOp, start, importer.like(size, start))
        zeros = [importer.unnamed(np.zeros(n, np.int64)) for n in (axis, len(cache) - axis - 1)]
        place = importer.concatenate([part for part in (zeros[0], start, zeros[1]) if importer.shape(part)[0]], 0)
        return importer.call(relay.DynamicUpdateSliceOp, node.input(0), node.input(1), place)
    starts = importer.reshape(importer.cast(starts, i64), [cache[0], *[1] * (len(cache) - 1)])
    steps = importer.unnamed(np.arange(count).reshape([count if a == axis else 1 for a in range(len(cache))]))
    places = importer.call(relay.AddOp, starts, steps)
    if mode == "circular":
        places = importer.call(relay.FloorModOp, places, importer.like(size, places))
    indices = importer.broadcast(places, update)
    return importer.call(relay.ScatterOp, node.input(0), indices, node.input(1), axis=axis)
