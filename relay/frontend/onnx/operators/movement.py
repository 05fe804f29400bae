"""Imports operators that move elements: reshapes, slices, concatenations, paddings, masks, ranges."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np
from xdsl.dialects.builtin import BoolAttr, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.formulas import channels_from_pixels
from relay.frontend.importing.paddings import Mode, padded
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Kind, Node
from relay.frontend.onnx.table import op


@op("Reshape")
def reshape(importer: Importer, node: Node) -> SSAValue:
    """Import Reshape; a size of 0 keeps the input's size, unless `allowzero` is set; -1 is inferred."""
    dims = node.shape(0)
    if node.version >= 5 and node.computed(1):
        zero = BoolAttr.from_bool(node.flag("allowzero"))
        return importer.call(relay.DynReshapeOp, node.input(0), node.vector(1), allowzero=zero)
    wanted = list(node.numbers(1) if node.version >= 5 else node.integers("shape") or ())
    if not node.flag("allowzero"):
        for axis, size in enumerate(wanted):
            if size == 0 and axis >= len(dims):
                raise node.malformed(f"keeps axis {axis} of a tensor of rank {len(dims)}")
            wanted[axis] = dims[axis] if size == 0 else size
    if wanted.count(-1) == 1 and DYNAMIC not in dims:
        rest = prod(size for size in wanted if size != -1)
        wanted[wanted.index(-1)] = prod(dims) // rest if rest else 0
    return importer.reshape(node.input(0), wanted)


@op("Flatten")
def flatten(importer: Importer, node: Node) -> SSAValue:
    dims = node.shape(0)
    axis = node.integer("axis")
    if not -len(dims) <= axis <= len(dims):
        raise node.malformed(f"axis {axis} is outside a tensor of rank {len(dims)}")
    axis = axis + len(dims) if axis < 0 else axis
    return importer.reshape(
        node.input(0), [DYNAMIC if DYNAMIC in part else prod(part) for part in (dims[:axis], dims[axis:])]
    )


@op("Transpose")
def transpose(importer: Importer, node: Node) -> SSAValue:
    data, axes = node.input(0), node.integers("perm")
    axes = [*range(node.rank(0))[::-1]] if axes is None else [*axes]
    result, read = importer.transpose(data, axes), importer.narrow.get(data)
    if read is not None and axes == [1, 0]:
        importer.narrow[result] = lambda turned: read(not turned)
    return result


@op("Squeeze")
def squeeze(importer: Importer, node: Node) -> SSAValue:
    dims, given = node.shape(0), node.listed("axes", 1)
    axes = [a for a, d in enumerate(dims) if d == 1] if given is None else [*node.axes_of(given, len(dims))]
    return importer.call(relay.SqueezeOp, node.input(0), axis=axes) if axes else node.input(0)


@op("Unsqueeze")
def unsqueeze(importer: Importer, node: Node) -> SSAValue:
    given = node.listed("axes", 1)
    if given is None:
        raise node.malformed("has no axes")
    return importer.expand_dims(node.input(0), node.axes_of(given, node.rank(0) + len(given)))


@op("Concat")
def concat(importer: Importer, node: Node) -> SSAValue:
    """Import Concat; empty vectors are allowed beside tensors of any rank."""
    values = node.inputs()
    return importer.concatenate(values, node.axis(node.integer("axis", 1), node.rank(0)))


@op("Split")
def split(importer: Importer, node: Node) -> list[SSAValue]:
    """Import Split: into parts of the given sizes, or else into one equal part for each output; the last parts are
    smaller if the size is not divisible."""
    axis = node.axis(node.integer("axis", 0), node.rank(0))
    sizes = node.listed("split", 1)
    size = node.shape(0)[axis]
    if size == DYNAMIC:
        raise node.unsupported(f"splits an axis of unknown size, of {node.type(0)}", "give its shapes")
    if sizes is None:
        count = node.integer("num_outputs", len(node.outputs))
        if count != len(node.outputs):
            raise node.malformed(f"has {len(node.outputs)} outputs, and num_outputs is {count}")
        part = -(-size // count)
        sizes = [min(part, max(size - i * part, 0)) for i in range(count)]
    return importer.parts(node.input(0), sizes, axis)


@op("Slice")
def slice_by_attributes(importer: Importer, node: Node) -> SSAValue:
    starts, ends = node.integers("starts") or (), node.integers("ends") or ()
    if node.computed():
        axes = node.integers("axes") or range(len(starts))
        rows = (starts, ends, (1,) * len(starts), axes)
        numbers = (importer.unnamed(np.asarray(each, np.int64)) for each in rows)
        return importer.call(relay.DynStridedSliceOp, node.input(0), *numbers)
    return _sliced(importer, node, starts, ends, node.integers("axes"), None)


@op("Slice", since=10)
def slice_(importer: Importer, node: Node) -> SSAValue:
    if node.computed(1, 2, 3, 4):
        return _sliced_by_values(importer, node)
    axes, steps = (None if node.optional(number) is None else node.numbers(number) for number in (3, 4))
    return _sliced(importer, node, node.numbers(1), node.numbers(2), axes, steps)


def _sliced(
    importer: Importer,
    node: Node,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: Sequence[int] | None,
    steps: tuple[int, ...] | None,
) -> SSAValue:
    dims = node.shape(0)
    axes = node.axes_of(range(len(starts)) if axes is None else axes, len(dims))
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise node.malformed(f"has starts {starts}, ends {ends}, axes {axes}, steps {steps}")
    bounds: dict[int, tuple[int, int, int]] = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = dims[axis]
        begin, stop, step = slice(start, end if end >= -size or step > 0 else None, step).indices(size)
        bounds[axis] = (begin, stop, step) if len(range(begin, stop, step)) else (0, 0, 1)
    return importer.slice(node.input(0), bounds)


def _sliced_by_values(importer: Importer, node: Node) -> SSAValue:
    """Import Slice with bounds computed at run time, which are clamped as in Python."""
    begin, end = (node.vector(number) for number in (1, 2))
    (count,) = node.shape(1, 1)
    steps = importer.unnamed(np.ones(count, np.int64)) if node.optional(4) is None else node.vector(4)
    axes = importer.unnamed(np.arange(count)) if node.optional(3) is None else node.vector(3)
    return importer.call(relay.DynStridedSliceOp, node.input(0), begin, end, steps, axes)


@op("Expand")
def expand(importer: Importer, node: Node) -> SSAValue:
    """Import Expand, which broadcasts in both directions: axes of size 1 of the data or of the shape are expanded."""
    if node.computed(1):
        return importer.call(relay.DynBroadcastToOp, node.input(0), node.vector(1))
    dims, wanted = node.static(0), node.numbers(1)
    try:
        return importer.broadcast(node.input(0), np.broadcast_shapes(dims, wanted))
    except ValueError:
        raise node.malformed(f"expands {list(dims)} to {list(wanted)}") from None


@op("Tile")
def tile(importer: Importer, node: Node) -> SSAValue:
    if node.computed(1):
        return importer.call(relay.DynTileOp, node.input(0), node.vector(1))
    return importer.call(relay.TileOp, node.input(0), reps=node.numbers(1))


_PADDINGS: dict[str, Mode] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@op("Pad")
def pad_by_attributes(importer: Importer, node: Node) -> SSAValue:
    widths = node.integers("pads" if node.version >= 2 else "paddings") or ()
    return _padded(importer, node, widths, range(node.rank(0)), node.real("value", 0.0))


@op("Pad", since=11)
def pad(importer: Importer, node: Node) -> SSAValue:
    rank = node.rank(0)
    axes = range(rank) if node.optional(3) is None else node.axes_of(node.numbers(3), rank)
    fill = 0 if node.optional(2) is None else node.scalar(2)
    return _padded(importer, node, node.numbers(1), axes, fill)


def _padded(importer: Importer, node: Node, widths: tuple[int, ...], axes: Sequence[int], fill: float) -> SSAValue:
    """The padded input; negative widths crop, all modes but `constant` take elements of the data along each axis."""
    mode = node.one_of("mode", ("constant", *_PADDINGS))
    if len(widths) != 2 * len(axes):
        raise node.malformed(f"has {len(widths)} pads for {len(axes)} axes")
    pairs = zip(widths[: len(axes)], widths[len(axes) :], strict=True)
    return padded(importer, node.input(0), dict(zip(axes, pairs, strict=True)), _PADDINGS.get(mode), fill)


@op("DepthToSpace", "SpaceToDepth")
def subpixels(importer: Importer, node: Node) -> SSAValue:
    block = node.integer("blocksize")
    node.shape(0, 4)
    mode = node.one_of("mode", ("DCR", "CRD")) if node.attribute("mode", Kind.STRING) is not None else "DCR"
    if node.kind == "SpaceToDepth" and mode == "DCR":
        return importer.call(relay.SpaceToDepthOp, node.input(0), block_size=block, layout="NCHW")
    if node.kind == "SpaceToDepth":
        node.static(0)
        return channels_from_pixels(importer, node.input(0), block)
    return importer.call(relay.DepthToSpaceOp, node.input(0), block_size=block, layout="NCHW", mode=mode)


@op("Trilu")
def triangle(importer: Importer, node: Node) -> SSAValue:
    rows, columns = node.static(0)[-2:]
    k = 0 if node.optional(1) is None else int(node.scalar(1))
    x, ones = node.input(0), np.ones((rows, columns), np.bool_)
    mask = np.triu(ones, k) if node.integer("upper", 1) else np.tril(ones, k)
    return importer.call(relay.WhereOp, importer.unnamed(mask), x, importer.like(0, x))


@op("EyeLike")
def eye(importer: Importer, node: Node) -> SSAValue:
    dims = node.static(0)
    node.shape(0, 2)
    element = importer.element_of(node.integer("dtype"), node) if node.has("dtype") else importer.element(node.input(0))
    return importer.unnamed(np.eye(*dims, k=node.integer("k", 0)).astype(dtype_of(element)))


@op("ConstantOfShape")
def constant_of_shape(importer: Importer, node: Node) -> SSAValue:
    value: Array = np.zeros(1, np.float32)
    if "value" in node.attributes:
        value = importer.model.array(node.attributes["value"].t)
    if value.size != 1:
        raise node.malformed(f"its value has {value.size} numbers, not one")
    number = importer.unnamed(value.reshape(()))
    if node.known(node.input(0)) is None:
        return importer.call(relay.DynFullOp, number, node.vector(0))
    return importer.call(relay.FullOp, number, shape=node.numbers(0))


@op("Range")
def range_(importer: Importer, node: Node) -> SSAValue:
    if any(node.known(value) is None for value in node.inputs()):
        return importer.call(relay.DynArangeOp, *(importer.reshape(value, ()) for value in node.inputs()))
    start, limit, step = (node.array(number).reshape(-1) for number in range(3))
    if not start.size == limit.size == step.size == 1 or not step[0]:
        raise node.malformed("start, limit and step are no numbers, or the step is 0")
    a, b, c = (
        each[0].astype(np.float64) if start.dtype.kind not in "iu" else int(each[0]) for each in (start, limit, step)
    )
    count = max(ceil((b - a) / c), 0)
    return importer.unnamed((a + np.arange(count) * c).astype(start.dtype))


@op("OneHot")
def one_hot(importer: Importer, node: Node) -> SSAValue:
    """Import OneHot; negative indices count from the end; for indices out of range all elements are `off`."""
    depth, values = int(node.scalar(1)), node.input(2)
    indices = importer.from_start(importer.cast(node.input(0), i64), depth)
    off, on = (importer.reshape(importer.slice(values, {0: (i, i + 1)}), ()) for i in range(2))
    axis = node.axis(node.integer("axis", -1), node.rank(0) + 1)
    return importer.call(relay.OneHotOp, indices, on, off, depth=depth, axis=axis)


@op("ReverseSequence")
def reverse_sequence(importer: Importer, node: Node) -> SSAValue:
    return importer.call(
        relay.ReverseSequenceOp,
        node.input(0),
        node.input(1),
        seq_axis=node.integer("time_axis", 0),
        batch_axis=node.integer("batch_axis", 1),
    )
