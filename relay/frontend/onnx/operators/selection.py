"""Imports operators whose results have a size that depends on run-time values: they have the maximum size, and a count
(see `counted`)."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.frontend.importing.formulas import Scalar, truths
from relay.frontend.onnx.builder import Counted, Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op


class Selection:
    """The positions at which a vector of flags is true, in order, followed by the others."""

    def __init__(self, importer: Importer, flags: SSAValue):
        self.importer = importer
        found = importer.cast(flags, i32)
        last = importer.call(relay.SubtractOp, importer.like(1, found), found)
        self.places = importer.call(relay.ArgsortOp, last, dtype=i64)
        self.count = importer.call(relay.SumOp, importer.cast(flags, i64), axis=ints([0]))

    def of(self, value: SSAValue, axis: int = 0) -> SSAValue:
        """The slices of a value along an axis, reordered: first those at positions where the flag is true, then the
        others, which are recorded as invalid."""
        return self.noted(self.importer.taken(value, self.places, axis), axis)

    def noted(self, value: SSAValue, axis: int = 0) -> SSAValue:
        """Record in the importer that only the first `self.count` elements of a value along the axis are valid, where
        `self.count` is the number of true flags, known at run time. Returns the value, which must be in the order of
        `self.places`."""
        self.importer.counted[value] = Counted(axis, self.count)
        return value


@op("NonZero")
def non_zero(importer: Importer, node: Node) -> SSAValue:
    """Import NonZero: the coordinates [rank, count]."""
    if not node.computed(0):
        return importer.unnamed(np.stack(np.nonzero(np.atleast_1d(node.array(0)))).astype(np.int64))
    dims = node.static(0) or (1,)
    flags = truths(importer, importer.reshape(node.input(0), [prod(dims)]))
    selection = Selection(importer, flags)
    coordinates = importer.call(relay.UnravelIndexOp, selection.places, shape=ints(dims))
    return selection.noted(coordinates, 1)


@op("Compress")
def compress(importer: Importer, node: Node) -> SSAValue:
    """Import Compress: the slices along an axis, or without one the elements of the flattened tensor, at which the
    condition is true; the condition may be shorter than the axis."""
    axis, value = node.integer("axis") if node.has("axis") else None, node.input(0)
    dims = node.static(0)
    if axis is None:
        value, dims, axis = importer.reshape(value, [prod(dims)]), (prod(dims),), 0
    axis = node.axis(axis, len(dims))
    if not node.computed(1):
        places = np.flatnonzero(node.array(1))
        return importer.take(value, places[places < dims[axis]], axis)
    flags, most = node.input(1), min(node.shape(1, 1)[0], dims[axis])
    return Selection(importer, importer.slice(flags, {0: (0, most)})).of(value, axis)


@op("NonMaxSuppression")
def non_max_suppression(importer: Importer, node: Node) -> SSAValue:
    """Import NonMaxSuppression: [count, 3] with image, class and box, ordered by class."""
    (batch, boxes, _), (_, classes, _) = (node.static(number) for number in range(2))
    given = [None if node.optional(number) is None else node.scalar(number) for number in (2, 3, 4)]
    most = min(max(int(given[0] or 0), 0), boxes)
    corners = node.input(0)
    if node.integer("center_point_box", 0):
        x, y, w, h = (Scalar(importer, importer.slice(corners, {2: (n, n + 1)})) for n in range(4))
        ends = (y - h / 2, x - w / 2, y + h / 2, x + w / 2)
        corners = importer.concatenate([end.value for end in ends], 2)
    indices, counts = importer.several(
        relay.NonMaxSuppressionOp, corners, node.input(1), max_output_size=most, iou_threshold=float(given[1] or 0.0),
        score_threshold=-np.inf if given[2] is None else float(given[2]),
    )  # fmt: skip
    total = batch * classes * most
    slots = importer.unnamed(np.arange(most, dtype=np.int32))
    counts = importer.reshape(counts, [batch, classes, 1])
    flags = importer.reshape(importer.call(relay.LessOp, slots, counts), [total])
    of_which = np.stack([each.reshape(-1) for each in np.indices((batch, classes, most))[:2]], axis=1)
    chosen = importer.reshape(importer.cast(indices, i64), [total, 1])
    rows = importer.concatenate([importer.unnamed(of_which.astype(np.int64)), chosen], 1)
    return Selection(importer, flags).of(rows)


@op("Unique")
def unique(importer: Importer, node: Node) -> list[SSAValue]:
    """Import Unique of a vector, or of all elements: the distinct values, the index at which each occurs first, the
    index of each element's value among them, and the number of occurrences."""
    if node.has("axis") and node.rank(0) != 1:
        raise node.unsupported("compares slices along an axis", "elements, without an axis, are supported")
    size = prod(node.static(0))
    value = importer.reshape(node.input(0), [size])
    order = importer.call(relay.ArgsortOp, value, dtype=i64)
    ordered = importer.taken(value, order, 0)
    before, behind = (importer.slice(ordered, {0: bounds}) for bounds in ((0, size - 1), (1, size)))
    changes = importer.call(relay.NotEqualOp, behind, before)
    flags = importer.concatenate([importer.unnamed(np.ones(1, bool)), changes], 0)
    selection = Selection(importer, flags)
    number = (Scalar(importer, importer.cast(flags, i64)).of(relay.CumsumOp, axis=0) - 1).value
    inverse = importer.call(relay.ScatterOp, number, order, number, axis=0)
    here = importer.unnamed(np.arange(size))
    next_start = importer.concatenate(
        [importer.slice(selection.places, {0: (1, size)}), importer.unnamed(np.array([size]))], 0
    )
    following = importer.call(relay.AddOp, here, importer.like(1, here))
    there = importer.call(relay.LessOp, following, selection.count)
    ends = importer.call(relay.WhereOp, there, next_start, importer.like(size, next_start))
    counts = importer.call(relay.SubtractOp, ends, selection.places)
    first = importer.taken(order, selection.places, 0)
    values = importer.taken(ordered, selection.places, 0)
    if not node.integer("sorted", 1):
        valid = importer.call(relay.LessOp, here, selection.count)
        by_first = importer.call(
            relay.ArgsortOp, importer.call(relay.WhereOp, valid, first, importer.like(size, first)), dtype=i64
        )
        values, first, counts = (importer.taken(each, by_first, 0) for each in (values, first, counts))
        inverse = importer.taken(importer.call(relay.ArgsortOp, by_first, dtype=i64), inverse, 0)
    return [selection.noted(values), selection.noted(first), inverse, selection.noted(counts)]
