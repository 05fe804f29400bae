"""Layers and operations that move elements. Source: keras/src/layers/reshaping, keras/src/ops/numpy.py."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.paddings import padded
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_list, is_value
from relay.frontend.keras.operators.convolution import spatial_axes
from relay.frontend.keras.operators.elementwise import constant_or_value
from relay.frontend.keras.table import TABLE, layer, op


@layer("Flatten")
def flatten(importer: Importer, node: Layer) -> SSAValue:
    """All but the batch as one axis, channels last."""
    x = node.value()
    rank = importer.rank(x)
    if not node.last and rank > 2:
        x = importer.transpose(x, [0, *range(2, rank), 1])
    return importer.rows(x, rank - 1) if rank > 1 else importer.call(relay.ExpandDimsOp, x, axis=1)


@layer("Reshape")
def reshape(importer: Importer, node: Layer) -> SSAValue:
    """Each index of the first axis by itself."""
    x, target = node.value(), node.integers("target_shape")
    first, *dims = importer.shape(x)
    if -1 in target:
        if DYNAMIC in dims:
            raise node.unsupported(f"reshapes {x.type}", "give its shapes")
        rest = prod(size for size in target if size != -1)
        target[target.index(-1)] = prod(dims) // rest if rest else 0
    return importer.shaped(x, [-1 if first == DYNAMIC else first, *target])


@op("Reshape")
def reshape_operation(importer: Importer, node: Layer) -> SSAValue:
    given = node.config.get("newshape")
    sizes = [-1 if each is None else each for each in given] if is_list(given) else given
    return importer.shaped(node.x, node.integers_of(sizes, "newshape"))


def _transposed(importer: Importer, node: Layer, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    if sorted(axes) != list(range(importer.rank(x))):
        raise node.malformed(f"orders the axes of {x.type} as {list(axes)}")
    return importer.transpose(x, axes)


@op("Transpose")
def transpose(importer: Importer, node: Layer) -> SSAValue:
    x = node.x
    axes = node.axes(node.config.get("axes"), importer.rank(x))
    return _transposed(importer, node, x, axes if node.config.get("axes") is not None else axes[::-1])


@op("Swapaxes", "Moveaxis")
def exchanged(importer: Importer, node: Layer) -> SSAValue:
    x = node.x
    order = list(range(importer.rank(x)))
    if node.kind == "ops.Swapaxes":
        a, b = (node.axis(node.integer(name), len(order)) for name in ("axis1", "axis2"))
        order[a], order[b] = b, a
        return importer.transpose(x, order)
    sources, targets = (node.axes(node.config[name], len(order)) for name in ("source", "destination"))
    order = [axis for axis in order if axis not in sources]
    for target, source in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source)
    return importer.transpose(x, order)


@layer("RepeatVector")
def repeat_vector(importer: Importer, node: Layer) -> SSAValue:
    row = importer.call(relay.ExpandDimsOp, node.value(), axis=1)
    return importer.call(relay.RepeatOp, row, repeats=node.integer("n"), axis=1)


def _widths(importer: Importer, node: Layer, x: SSAValue, name: str) -> dict[int, tuple[int, int]]:
    """A number before and after each spatial axis."""
    axes, given = spatial_axes(importer, node, x), node.config.get(name)
    rows = [given] if len(axes) == 1 else given
    if isinstance(given, int):
        rows = [[given, given]] * len(axes)
    if not is_list(rows) or len(rows) != len(axes):
        raise node.malformed(f"{name} is {str(given)[:80]}")
    found: dict[int, tuple[int, int]] = {}
    for axis, row in zip(axes, rows, strict=True):
        numbers = node.integers_of(row, name)
        before, after = numbers * 2 if len(numbers) == 1 else numbers
        if min(before, after) < 0:
            raise node.malformed(f"{name} is {numbers}")
        found[axis] = (before, after)
    return found


@layer("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def zero_padding(importer: Importer, node: Layer) -> SSAValue:
    return padded(importer, node.value(), _widths(importer, node, node.value(), "padding"))


@op("Pad")
def pad(importer: Importer, node: Layer) -> SSAValue:
    x, given = node.x, node.config.get("pad_width")
    rows = given if is_list(given) and given and is_list(given[0]) else [given]
    rows = rows * importer.rank(x) if len(rows) == 1 else rows
    pairs = [node.integers_of(row, "pad_width") for row in rows]
    if len(rows) != importer.rank(x) or any(number < 0 for pair in pairs for number in pair):
        raise node.malformed(f"pad_width is {str(given)[:80]}")
    number, mode = node.argument(1, "constant_values"), node.word("mode", "constant")
    widths = {axis: (pair[0], pair[-1]) for axis, pair in enumerate(pairs)}
    if mode in ("reflect", "symmetric", "edge"):
        flat = [each for pair in widths.values() for each in pair]
        return importer.call(relay.MirrorPadOp, x, pad_width=flat, mode=mode.upper())
    if mode != "constant" or not isinstance(number, int | float | None):
        raise node.unsupported(f"pads by the mode {mode[:40]!r}")
    return padded(importer, x, widths, fill=number or 0)


@layer("Cropping1D", "Cropping2D", "Cropping3D")
def cropping(importer: Importer, node: Layer) -> SSAValue:
    x = node.value()
    widths = _widths(importer, node, x, "cropping")
    for axis, (before, after) in widths.items():
        if importer.shape(x)[axis] == DYNAMIC or before + after >= importer.shape(x)[axis]:
            raise node.unsupported(f"crops {before + after} elements of {x.type}", "give its shapes")
    return padded(importer, x, {axis: (-before, -after) for axis, (before, after) in widths.items()})


def _joined(importer: Importer, node: Layer, values: Sequence[SSAValue]) -> SSAValue:
    return importer.concatenate(values, node.axis(node.integer("axis", -1), importer.rank(values[0])))


def _operands(importer: Importer, node: Layer, name: str = "xs") -> list[SSAValue]:
    """A list of tensors, among them perhaps constants."""
    given = node.argument(0, name)
    if not is_list(given) or not given:
        raise node.malformed("has no list of tensors")
    return importer.promoted(*(constant_or_value(importer, node, each) for each in given))


TABLE.update({
    "Concatenate": lambda importer, node: _joined(importer, node, importer.promoted(*node.values())),
    "Permute": lambda importer, node: _transposed(importer, node, node.value(), [0, *node.integers("dims")]),
    "ops.Concatenate": lambda importer, node: _joined(importer, node, _operands(importer, node)),
    "ops.Ravel": lambda importer, node: importer.shaped(node.x, [-1]),
})  # fmt: skip


@op("Stack")
def stack(importer: Importer, node: Layer) -> SSAValue:
    values = _operands(importer, node, "x")
    return importer.stack(values, node.axis(node.integer("axis", 0), importer.rank(values[0]) + 1))


@op("Unstack")
def unstack(importer: Importer, node: Layer) -> list[SSAValue]:
    x = node.x
    axis = node.axis(node.integer("axis", 0), importer.rank(x))
    return [importer.row(x, index, axis) for index in range(node.static(x)[axis])]


@op("Split")
def split(importer: Importer, node: Layer) -> list[SSAValue]:
    """At places, or into equal parts."""
    x, given = node.x, node.config.get("indices_or_sections")
    axis = node.axis(node.integer("axis", 0), importer.rank(x))
    size = importer.shape(x)[axis]
    if size == DYNAMIC:
        raise node.unsupported(f"splits {x.type}", "give its shapes")
    if isinstance(given, int):
        if given < 1 or size % given:
            raise node.malformed(f"splits {size} elements into {given} parts")
        places = list(range(size // given, size, size // given))
    else:
        places = node.integers("indices_or_sections")
    sizes = [end - begin for begin, end in zip([0, *places], [*places, size], strict=True)]
    return importer.parts(x, sizes, axis)


@op("ExpandDims")
def expand_dims(importer: Importer, node: Layer) -> SSAValue:
    x, given = node.x, node.integers("axis")
    for axis in sorted(node.axes(given, importer.rank(x) + len(given))):
        x = importer.call(relay.ExpandDimsOp, x, axis=axis)
    return x


@op("Squeeze")
def squeeze(importer: Importer, node: Layer) -> SSAValue:
    x, given = node.x, node.config.get("axis")
    ones = [axis for axis, size in enumerate(importer.shape(x)) if size == 1]
    axes = ones if given is None else node.axes(given, importer.rank(x))
    return importer.call(relay.SqueezeOp, x, axis=axes) if axes else x


@op("Tile")
def tile(importer: Importer, node: Layer) -> SSAValue:
    x, times = node.x, node.integers("repeats")
    rank = max(importer.rank(x), len(times))
    while importer.rank(x) < rank:
        x = importer.call(relay.ExpandDimsOp, x, axis=0)
    return importer.call(relay.TileOp, x, reps=[1] * (rank - len(times)) + times)


@op("Repeat")
def repeat(importer: Importer, node: Layer) -> SSAValue:
    x = node.x
    if node.config.get("axis") is None:
        x = importer.shaped(x, [-1])
    axis = node.axis(node.integer("axis", 0), importer.rank(x))
    return importer.call(relay.RepeatOp, x, repeats=node.integer("repeats"), axis=axis)


@op("BroadcastTo")
def broadcast_to(importer: Importer, node: Layer) -> SSAValue:
    x = node.x
    node.static(x)
    return importer.broadcast(x, node.integers("shape"))


@op("Flip")
def flip(importer: Importer, node: Layer) -> SSAValue:
    x = node.x
    for axis in node.axes(node.config.get("axis"), importer.rank(x)):
        x = importer.call(relay.ReverseOp, x, axis=[axis])
    return x


@op("Take")
def take(importer: Importer, node: Layer) -> SSAValue:
    x = constant_or_value(importer, node, node.argument(0, "x"))
    indices = constant_or_value(importer, node, node.argument(1, "indices"))
    if node.config.get("axis") is None:
        x = importer.shaped(x, [-1])
    axis = node.axis(node.integer("axis", 0), importer.rank(x))
    return importer.call(relay.TakeOp, x, importer.from_start(indices, importer.shape(x)[axis]), axis=axis, mode="clip")


@op("OneHot")
def one_hot(importer: Importer, node: Layer) -> SSAValue:
    x = node.x
    axis, dtype = node.integer("axis", -1), node.word("dtype", "float32")
    node.refuse({"sparse": False})
    on, off = (importer.unnamed(np.asarray(number, np.dtype(dtype))) for number in (1, 0))
    axis = node.axis(axis, importer.rank(x) + 1)
    return importer.call(relay.OneHotOp, x, on, off, depth=node.integer("num_classes"), axis=axis)


@op("GetItem")
def get_item(importer: Importer, node: Layer) -> SSAValue:
    """Basic indexing: numbers, slices, new axes and dots."""
    x, given = node.x, node.argument(1, "key")
    keys = list(given) if is_list(given) else [given]
    taken = sum(each is not None and each is not ... for each in keys)
    rank = importer.rank(x)
    if any(is_value(each) or is_list(each) or isinstance(each, bool | np.ndarray) for each in keys):
        raise node.unsupported("takes elements by an index that is a tensor", "use keras.ops.take")
    if ... not in keys:
        keys.append(...)
    if keys.count(...) > 1 or taken > rank:
        raise node.malformed(f"has the index {str(given)[:80]} of {x.type}")
    at = keys.index(...)
    keys[at : at + 1] = [slice(None)] * (rank - taken)
    axis = 0
    bounds: dict[int, tuple[int, int, int]] = {}
    gone, new = list[int](), list[int]()
    for place, key in enumerate(keys):
        if key is None:
            new.append(place - len(gone))
            continue
        if key != slice(None):
            bounds[axis] = _bound(importer, node, x, axis, key)
        if isinstance(key, int):
            gone.append(axis)
        axis += 1
    x = importer.slice(x, bounds)
    x = importer.call(relay.SqueezeOp, x, axis=gone) if gone else x
    for place in new:
        x = importer.call(relay.ExpandDimsOp, x, axis=place)
    return x


def _bound(importer: Importer, node: Layer, x: SSAValue, axis: int, key: object) -> tuple[int, int, int]:
    """Begin, end and step along an axis."""
    size = importer.shape(x)[axis]
    if size == DYNAMIC:
        raise node.unsupported(f"takes {key} of an axis of unknown size, of {x.type}", "give its shapes")
    if isinstance(key, slice):
        begin, end, step = key.indices(size)
        if step < 0:
            return begin, min(begin, end), step
        return begin, max(begin, end), step
    if not isinstance(key, int) or not -size <= key < size:
        raise node.malformed(f"has the index {str(key)[:80]} along an axis of {size}")
    return key % size, key % size + 1, 1


@op("FullLike")
def full_like(importer: Importer, node: Layer) -> SSAValue:
    x, number = node.x, node.argument(1, "fill_value")
    if not isinstance(number, int | float):
        raise node.malformed(f"has the fill value {str(number)[:40]}")
    dtype = node.config.get("dtype")
    element = importer.element(x) if dtype is None else element_type(np.dtype(str(dtype)))
    zeros = importer.cast(importer.call(relay.ZerosLikeOp, x), element)
    return importer.call(relay.AddOp, zeros, importer.like(number, zeros))
