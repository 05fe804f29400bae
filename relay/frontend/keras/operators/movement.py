"""Imports layers and operations that move elements. Source: keras/src/layers/reshaping, keras/src/ops/numpy.py."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.paddings import padded
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_array, is_list, is_value
from relay.frontend.keras.table import TABLE, layer, op


@layer("Flatten")
def flatten(importer: Importer, node: Layer) -> SSAValue:
    """Import Flatten: all axes except the batch become one, with channels last."""
    x, last = node.value(), node.last
    rank = importer.rank(x)
    x = x if last or rank < 3 else importer.reordered(x, lambda array: np.moveaxis(array, 1, -1))
    return importer.rows(x, rank - 1) if rank > 1 else importer.call(relay.ExpandDimsOp, x, axis=1)


@layer("Reshape")
def reshape(importer: Importer, node: Layer) -> SSAValue:
    """Import Reshape, which keeps the first axis."""
    x, target = node.value(), node.integers("target_shape")
    first, *dims = importer.shape(x)
    if -1 in target:
        rest = prod(size for size in target if size != -1)
        target[target.index(-1)] = prod(importer.static(x, range(1, len(dims) + 1))) // rest if rest else 0
    return importer.shaped(x, [-1 if first == DYNAMIC else first, *target])


@op("Reshape")
def reshape_operation(importer: Importer, node: Layer) -> SSAValue:
    given = node.entry("newshape")
    sizes = [-1 if each is None else each for each in given] if is_list(given) else given
    return importer.shaped(node.x, node.integers_of(sizes, "newshape"))


@op("Transpose", "Swapaxes", "Moveaxis")
def transpose(importer: Importer, node: Layer) -> SSAValue:
    x, name = node.x, node.operation
    if name == "Transpose":
        axes = None if node.entry("axes") is None else node.axes(x, name="axes")
        return importer.reordered(x, lambda array: array.transpose(axes))
    names = ("axis1", "axis2") if name == "Swapaxes" else ("source", "destination")
    pair = [node.integers(each) for each in names]
    if name == "Swapaxes":
        return importer.reordered(x, lambda array: array.swapaxes(pair[0][0], pair[1][0]))
    return importer.reordered(x, lambda array: np.moveaxis(array, *pair))


@op("Pad")
def pad(importer: Importer, node: Layer) -> SSAValue:
    x, given = node.x, node.entry("pad_width")
    rows = given if is_list(given) and given and is_list(given[0]) else [given]
    rows = rows * importer.rank(x) if len(rows) == 1 else rows
    pairs = [node.integers_of(row, "pad_width") for row in rows]
    if len(rows) != importer.rank(x) or any(number < 0 for pair in pairs for number in pair):
        raise node.malformed(f"pad_width is {str(given)[:80]}")
    number, mode = (
        node.argument(1, "constant_values"),
        node.one_of("mode", ("constant", "reflect", "symmetric", "edge")),
    )
    widths = {axis: (pair[0], pair[-1]) for axis, pair in enumerate(pairs)}
    if mode != "constant":
        flat = [each for pair in widths.values() for each in pair]
        return importer.call(relay.MirrorPadOp, x, pad_width=flat, mode=mode.upper())
    if not isinstance(number, int | float | None):
        raise node.unsupported("pads by a tensor", "pad by a number")
    return padded(importer, x, widths, fill=number or 0)


def _operands(importer: Importer, node: Layer, name: str = "xs") -> list[SSAValue]:
    """The tensors in the list that is the first argument (`name`), cast to their common type; constants among them
    become ops."""
    given = node.argument(0, name)
    if not is_list(given) or not given:
        raise node.malformed("has no list of tensors")
    return importer.promoted(*given)


def _joined(importer: Importer, node: Layer, values: Sequence[SSAValue]) -> SSAValue:
    return importer.concatenate(values, node.along(values[0], -1))


@op("Stack")
def stack(importer: Importer, node: Layer) -> SSAValue:
    values = _operands(importer, node, "x")
    return importer.stack(values, node.along(values[0], 0, more=1))


@op("Split")
def split(importer: Importer, node: Layer) -> list[SSAValue]:
    """Import Split: at given indices, or into equal parts."""
    x, given, axis = node.x, node.entry("indices_or_sections"), node.along(node.x, 0)
    (size,) = importer.static(x, [axis])
    if isinstance(given, int) and (given < 1 or size % given):
        raise node.malformed(f"splits {size} elements into {given} parts")
    places = range(0, size, size // given)[1:] if isinstance(given, int) else node.integers("indices_or_sections")
    return importer.parts(x, np.diff([0, *places, size]).tolist(), axis)


@op("Squeeze")
def squeeze(importer: Importer, node: Layer) -> SSAValue:
    x = node.x
    ones = [axis for axis, size in enumerate(importer.shape(x)) if size == 1]
    axes = ones if node.entry("axis") is None else node.axes(x)
    return importer.call(relay.SqueezeOp, x, axis=axes) if axes else x


@op("Tile")
def tile(importer: Importer, node: Layer) -> SSAValue:
    x, times = node.x, node.integers("repeats")
    x = importer.expand_dims(x, range(len(times) - importer.rank(x)))
    return importer.call(relay.TileOp, x, reps=[1] * (importer.rank(x) - len(times)) + times)


def or_flat(importer: Importer, node: Layer, x: SSAValue) -> tuple[SSAValue, int]:
    """A tensor and the axis that the operation names; without an axis, the flattened tensor and axis 0."""
    x = importer.shaped(x, [-1]) if node.entry("axis") is None else x
    return x, node.along(x, 0)


@op("Repeat")
def repeat(importer: Importer, node: Layer) -> SSAValue:
    x, axis = or_flat(importer, node, node.x)
    return importer.call(relay.RepeatOp, x, repeats=node.integer("repeats"), axis=axis)


@op("Take")
def take(importer: Importer, node: Layer) -> SSAValue:
    given, indices = (importer.promoted(node.argument(i, name))[0] for i, name in enumerate(("x", "indices")))
    x, axis = or_flat(importer, node, given)
    return importer.call(relay.TakeOp, x, importer.from_start(indices, importer.shape(x)[axis]), axis=axis, mode="clip")


@op("BroadcastTo")
def broadcast_to(importer: Importer, node: Layer) -> SSAValue:
    importer.static(node.x)
    return importer.broadcast(node.x, node.integers("shape"))


@op("OneHot")
def one_hot(importer: Importer, node: Layer) -> SSAValue:
    node.refuse({"sparse": False})
    x, dtype = node.x, node.dtype(np.dtype(np.float32))
    on, off = (importer.unnamed(np.asarray(number, dtype)) for number in (1, 0))
    axis = node.along(x, -1, more=1)
    x = x if importer.dtype(x).kind in "iu" else importer.cast(x, i32)
    return importer.call(relay.OneHotOp, x, on, off, depth=node.integer("num_classes"), axis=axis)


@op("GetItem")
def get_item(importer: Importer, node: Layer) -> SSAValue:
    """Import GetItem: basic indexing with integers, slices, new axes and ellipses."""
    x, given = node.x, node.argument(1, "key")
    keys = list(given) if is_list(given) else [given]
    if any(is_value(each) or is_list(each) or is_array(each) or isinstance(each, bool) for each in keys):
        raise node.unsupported("takes elements by an index that is a tensor", "use keras.ops.take")
    if ... not in keys:
        keys.append(...)
    missing = importer.rank(x) - sum(each is not None and each is not ... for each in keys)
    if keys.count(...) > 1 or missing < 0:
        raise node.malformed(f"has the index {str(given)[:80]} of {x.type}")
    at = keys.index(...)
    keys[at : at + 1] = [slice(None)] * missing
    old = [key for key in keys if key is not None]
    bounds = {axis: _bound(importer, node, x, axis, key) for axis, key in enumerate(old) if key != slice(None)}
    gone = [axis for axis, key in enumerate(old) if isinstance(key, int)]
    x = importer.slice(x, bounds)
    x = importer.call(relay.SqueezeOp, x, axis=gone) if gone else x
    kept = [key for key in keys if not isinstance(key, int)]
    return importer.expand_dims(x, [place for place, key in enumerate(kept) if key is None])


def _bound(importer: Importer, node: Layer, x: SSAValue, axis: int, key: object) -> tuple[int, int, int]:
    """The begin, end and step of a slice along an axis."""
    (size,) = importer.static(x, [axis])
    if isinstance(key, slice):
        begin, end, step = key.indices(size)
        return begin, min(begin, end) if step < 0 else max(begin, end), step
    if not isinstance(key, int) or not -size <= key < size:
        raise node.malformed(f"has the index {str(key)[:80]} along an axis of {size}")
    return key % size, key % size + 1, 1


def like(importer: Importer, node: Layer) -> SSAValue:
    """The first argument, cast to the `dtype` of the operation if it has one. Operators such as FullLike use only the
    shape and element type of the returned value."""
    return importer.cast(node.x, element_type(node.dtype(importer.dtype(node.x))))


@op("FullLike")
def full_like(importer: Importer, node: Layer) -> SSAValue:
    number = node.argument(1, "fill_value")
    if not isinstance(number, int | float):
        raise node.malformed(f"has the fill value {str(number)[:40]}")
    x = like(importer, node)
    return importer.call(relay.FullLikeOp, x, importer.like(number, x))


TABLE.update({
    "Concatenate": lambda i, node: _joined(i, node, i.promoted(*node.values())),
    "Permute": lambda i, node: i.reordered(node.value(), lambda array: array.transpose([0, *node.integers("dims")])),
    "RepeatVector": lambda i, node: i.call(
        relay.RepeatOp, i.stack([node.value()], 1), repeats=node.integer("n"), axis=1
    ),
    "ops.Concatenate": lambda i, node: _joined(i, node, _operands(i, node)),
    "ops.ExpandDims": lambda i, node: i.expand_dims(
        node.x, node.axes_of(node.integers("axis"), i.rank(node.x) + len(node.integers("axis")))
    ),
    "ops.Flip": lambda i, node: i.call(relay.ReverseOp, node.x, axis=node.axes(node.x)),
    "ops.Ravel": lambda i, node: i.shaped(node.x, [-1]),
    "ops.Unstack": lambda i, node: [
        i.row(node.x, index, axis) for axis in [node.along(node.x, 0)] for index in range(i.static(node.x)[axis])
    ],
})  # fmt: skip
