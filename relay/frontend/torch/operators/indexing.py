"""Imports operators that read or write at indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import DYNAMIC
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node, is_value
from relay.frontend.torch.operators.elementwise import given, name_of
from relay.frontend.torch.table import aten, of_vectors
from relay.interpreters.arithmetic import extremes


@aten("embedding")
def embedding(importer: Importer, node: Node) -> SSAValue:
    return importer.call(relay.TakeOp, node.value("weight"), node.value("indices"), axis=0, mode="clip")


@aten("index_select")
@of_vectors
def index_select(importer: Importer, node: Node) -> SSAValue:
    return importer.call(relay.TakeOp, node.value("self"), node.value("index"), axis=node.along("dim"), mode="clip")


@aten("gather", "take_along_dim")
@of_vectors
def gather(importer: Importer, node: Node) -> SSAValue:
    x, index = node.value("self"), node.value("index" if node.has("index") else "indices")
    if 0 in importer.shape(index):
        return importer.filled(importer.like(0, x), importer.shape(index))
    return importer.gathered(x, index, node.along("dim"))


def _indices(importer: Importer, node: Node) -> list[SSAValue | None]:
    """The indices by axis; boolean indices, which must be known, are converted to positions."""
    found: list[SSAValue | None] = []
    for each in node.sequence("indices"):
        if each is None:
            found.append(None)
            continue
        if not is_value(each):
            raise node.malformed(f"the argument indices has {each!r}, no tensor")
        if importer.element(each) == i1 or importer.dtype(each) == np.uint8:
            known = importer.known(each)
            if known is None:
                what = "the size of its result depends on values: it takes elements by a mask"
                raise node.unsupported(what, "keep the size: torch.where(mask, x, 0)")
            found += [importer.unnamed(places.astype(np.int64)) for places in np.nonzero(known)]
        else:
            found.append(importer.cast(each, i64))
    if len(found) > node.rank("self") or not any(found):
        raise node.malformed(f"the argument indices has {len(found)} for {node.value('self').type}")
    return found


def _placed(importer: Importer, node: Node, indices: Sequence[SSAValue | None]) -> tuple[list[int], int, SSAValue]:
    """Returns three things: the axes that are indexed; the position in the result of the axes that come from the
    indices; and the coordinates [..., indexed axes], counted from 0."""
    dims = node.shape("self")
    axes = [axis for axis, each in enumerate(indices) if each is not None]
    together = axes == list(range(axes[0], axes[-1] + 1))
    tensors = [each for each in indices if each is not None]
    shapes = [importer.shape(each) for each in tensors]
    if any(DYNAMIC in shape for shape in shapes) and len(tensors) > 1:
        what = f"the argument indices has {', '.join(str(each.type) for each in tensors)}, of unknown sizes"
        raise node.unsupported(what, "give its shapes")
    shape = np.broadcast_shapes(*shapes) if len(tensors) > 1 else shapes[0]
    columns: list[SSAValue] = []
    for axis, each in zip(axes, tensors, strict=True):
        size = importer.size(node.value("self"), axis) if dims[axis] == DYNAMIC else dims[axis]
        each = importer.broadcast(importer.from_start(each, size), shape)
        columns.append(importer.call(relay.ExpandDimsOp, each, axis=len(shape)))
    return axes, axes[0] if together else 0, importer.concatenate(columns, len(shape))


@aten("index", "_unsafe_index")
def index(importer: Importer, node: Node) -> SSAValue:
    """Import index. As in numpy, the axes of the indices replace the indexed axes if these are adjacent; otherwise they
    are the first axes of the result."""
    x, indices = node.value("self"), _indices(importer, node)
    tensors = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    if len(tensors) == 1:
        axis, one = tensors[0]
        return importer.taken(x, one, axis)
    axes, place, coordinates = _placed(importer, node, indices)
    rest = [axis for axis in range(importer.rank(x)) if axis not in axes]
    found = importer.call(relay.GatherNdOp, importer.transpose(x, [*axes, *rest]), coordinates)
    count = importer.rank(coordinates) - 1
    order = list(range(count, count + place)) + list(range(count)) + list(range(count + place, importer.rank(found)))
    return importer.transpose(found, order)


@aten("index_put", "_unsafe_index_put")
def index_put(importer: Importer, node: Node) -> SSAValue:
    """Import index_put: write the values at these coordinates, or add them."""
    x, indices = node.value("self"), _indices(importer, node)
    dims = node.static("self")
    axes, place, coordinates = _placed(importer, node, indices)
    rest = [axis for axis in range(len(dims)) if axis not in axes]
    shape = list(importer.shape(coordinates)[:-1])
    wanted = [dims[axis] for axis in rest]
    given = importer.cast(node.value("values"), importer.element(x))
    given = importer.broadcast(given, [*wanted[:place], *shape, *wanted[place:]])
    count = len(shape)
    order = [*range(place, place + count), *range(place), *range(place + count, count + len(rest))]
    given = importer.transpose(given, order)
    moved = importer.transpose(x, [*axes, *rest])
    mode = "add" if node.flag("accumulate") else "update"
    found = importer.call(relay.ScatterNdOp, moved, coordinates, given, mode=mode)
    back = np.argsort([*axes, *rest]).tolist()
    return importer.transpose(found, back)


_REDUCED = {"": "update", "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min"}
"""The mode by which `relay.scatter_nd` combines updates at the same index, by reduction."""


@aten("scatter", "scatter_add", "scatter_reduce")
@of_vectors
def scatter(importer: Importer, node: Node) -> SSAValue:
    """Import scatter and the like: the target of an update has the coordinates of the update's own position, except
    along the axis `dim`, where the index is used."""
    x, index = node.value("self"), node.value("index")
    reduce = "sum" if "scatter_add" in node.packet else node.one_of("reduce", [*_REDUCED, "mean"])
    mean, own = reduce == "mean", "scatter_reduce" not in node.packet or node.flag("include_self", True)
    mode = "add" if mean else _REDUCED[reduce]
    axis, dims, shape = node.along("dim"), node.static("self"), importer.shape(index)
    if 0 in shape:
        return x
    if is_value(node.arguments.get("src")):
        source = importer.slice(node.value("src"), {a: (0, size) for a, size in enumerate(shape)})
    else:
        number = importer.operand(given(node, "value" if node.has("value") else "src"), importer.element(x))
        source = importer.filled(number, shape)
    source = importer.cast(source, importer.element(x))
    places = importer.coordinates(importer.cast(importer.from_start(index, dims[axis]), i64), axis)
    if own and not mean:
        return importer.call(relay.ScatterNdOp, x, places, source, mode=mode)
    zeros, ones = importer.filled(importer.unnamed(np.asarray(0)), dims), importer.unnamed(np.asarray(1))
    counts = importer.call(relay.ScatterNdOp, zeros, places, importer.filled(ones, shape), mode="add")
    if not own:
        written = importer.call(relay.GreaterOp, counts, importer.like(0, counts))
        x = importer.call(relay.WhereOp, written, importer.like(_neutral(mode, importer.dtype(x)), x), x)
    found = importer.call(relay.ScatterNdOp, x, places, source, mode=mode)
    if not mean:
        return found
    counts = importer.call(relay.AddOp, counts, importer.like(1, counts)) if own else counts
    counts = importer.call(relay.MaximumOp, counts, importer.like(1, counts))
    whole = relay.DivideOp if importer.is_float(x) else relay.FloorDivideOp
    return importer.call(whole, found, importer.cast(counts, importer.element(x)))


def _neutral(mode: str, dtype: np.dtype[np.generic]) -> float:
    """The neutral element of a reduction."""
    if mode not in ("max", "min"):
        return float(mode == "mul")
    return extremes(dtype)[mode == "min"]


@aten("index_add", "index_copy", "index_fill")
@of_vectors
def index_add(importer: Importer, node: Node) -> SSAValue:
    """Import index_add, index_copy and index_fill, which update whole slices along an axis."""
    x, dims = node.value("self"), node.static("self")
    axis, index, name = node.along("dim"), node.value("index"), name_of(node)
    (count,) = importer.shape(index)
    index = importer.from_start(importer.reshape(index, [count, 1]), dims[axis])
    order = [axis, *(a for a in range(len(dims)) if a != axis)]
    moved = importer.transpose(x, order)
    if name == "index_fill":
        number = importer.operand(given(node, "value"), importer.element(x))
        source = importer.filled(number, [count, *importer.shape(moved)[1:]])
    else:
        source = importer.transpose(node.value("source"), order)
        if (alpha := node.number_of("alpha", 1)) != 1:
            source = importer.call(relay.MultiplyOp, source, importer.like(alpha, source))
    mode = "add" if name == "index_add" else "update"
    found = importer.call(relay.ScatterNdOp, moved, importer.cast(index, i64), source, mode=mode)
    return importer.transpose(found, np.argsort(order).tolist())


@aten("bucketize", "searchsorted")
def bucketize(importer: Importer, node: Node) -> SSAValue:
    """Import bucketize and searchsorted: for each value, the number of bounds that are less than it, or, if `right` is
    set, not greater."""
    first, second = ("self", "boundaries") if node.packet == "aten.bucketize" else ("self", "sorted_sequence")
    bounds = node.value(second)
    if importer.rank(bounds) != 1 or node.has("sorter"):
        what = "sorter is given" if node.has("sorter") else f"{second} is {bounds.type}"
        raise node.unsupported(f"the argument {what}", "give one sorted row of bounds")
    x = node.value(first)
    spread = importer.call(relay.ExpandDimsOp, x, axis=importer.rank(x))
    right = node.flag("right") or node.word("side") == "right"
    below = importer.call(relay.LessEqualOp if right else relay.LessOp, bounds, spread)
    return importer.call(relay.SumOp, importer.cast(below, i64), axis=[importer.rank(x)])
