"""Imports operators that move elements: reshapes, slices, concatenations, paddings."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.formulas import channels_from_pixels
from relay.frontend.importing.paddings import Mode, padded
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node, Size, is_list
from relay.frontend.torch.operators.elementwise import name_of
from relay.frontend.torch.table import VIEWS, aten

MOST_PLACES = 1 << 26
"""The maximum number of elements of a tensor whose positions are enumerated at import."""
MOST_PARTS = 1 << 16
"""The maximum number of results of an operator that splits a tensor."""
VIEWS.update(
    f"aten.{name}"
    for name in (
        "view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "expand", "permute", "transpose", "t", "movedim",
        "slice", "select", "split", "split_with_sizes", "chunk", "unbind", "flatten", "unflatten", "diagonal", "narrow",
        "alias", "contiguous", "detach", "to", "view_as", "expand_as", "as_strided", "swapaxes", "mT", "numpy_T",
    )
)  # fmt: skip


@aten("view", "reshape", "_unsafe_view", "_reshape_alias")
def view(importer: Importer, node: Node) -> SSAValue:
    if node.target == "aten.view.dtype":
        what = f"gives the bits of {node.value('self').type} as {node.dtype()}"
        raise node.unsupported(what, "if values are meant, write x.to(dtype)")
    return importer.viewed(node.value("self"), node.sizes("shape" if node.has("shape") else "size"))


@aten("flatten")
def flatten(importer: Importer, node: Node) -> SSAValue:
    x, rank = node.value("self"), node.rank("self")
    first, last = (node.axis(node.integer(n, d), rank) for n, d in (("start_dim", 0), ("end_dim", -1)))
    if rank == 0:
        return importer.reshape(x, [1])
    dims = node.shape("self")
    inner: Size = -1 if DYNAMIC in dims[first : last + 1] else prod(dims[first : last + 1])
    sizes = importer.lengths(x)
    return importer.viewed(x, [*sizes[:first], inner, *sizes[last + 1 :]])


@aten("permute", "transpose", "t", "mT", "numpy_T", "swapaxes", "movedim")
def transpose(importer: Importer, node: Node) -> SSAValue:
    x, rank, name = node.value("self"), node.rank("self"), name_of(node)
    if name == "permute":
        return importer.transpose(x, node.axes_of(node.integers("dims"), rank))
    if name == "movedim":
        moves = node.integers("source"), node.integers("destination")
        return importer.reordered(x, lambda array: np.moveaxis(array, *moves))
    names = ("axis0", "axis1") if name == "swapaxes" else ("dim0", "dim1")
    pair = [node.axis(node.integer(n, d), rank) for n, d in zip(names, (-2, -1), strict=True)] if rank > 1 else [0, 0]
    return importer.reordered(x, lambda array: array.swapaxes(*pair)) if rank else x


@aten("squeeze")
def squeeze(importer: Importer, node: Node) -> SSAValue:
    """Import squeeze: of the given axes, or of all axes, those of size 1 are removed."""
    x, dims = node.value("self"), node.shape("self")
    given = node.axes_of(node.integers("dim", range(len(dims))), len(dims)) if dims else []
    if any(dims[axis] == DYNAMIC for axis in given) and not node.has("dim"):
        raise node.unsupported(f"drops axes of 1 of {x.type}", "name the axis, or give its shapes")
    axes = [axis for axis in given if dims[axis] == 1]
    return importer.call(relay.SqueezeOp, x, axis=axes) if axes else x


@aten("repeat", "tile")
def repeat(importer: Importer, node: Node) -> SSAValue:
    """Import repeat and tile; the repetitions are aligned with the last axes."""
    x = node.value("self")
    times = node.sizes("repeats" if node.has("repeats") else "dims")
    rank = node.rank("self")
    if len(times) > rank:
        x = importer.viewed(x, [*[1] * (len(times) - rank), *importer.lengths(x)])
    known = [each for each in times if isinstance(each, int)]
    if len(known) < len(times):
        return importer.call(relay.DynTileOp, x, importer.vector(times))
    return importer.call(relay.TileOp, x, reps=[1] * (rank - len(known)) + known)


def _clamped(bound: int, size: int) -> int:
    return min(max(bound + size if bound < 0 else bound, 0), size)


@aten("slice", "narrow")
def slice_(importer: Importer, node: Node) -> SSAValue:
    x, dims = node.value("self"), node.shape("self")
    axis, step = node.axis(node.integer("dim", 0), len(dims)), node.size("step", 1)
    start, end = node.size("start", 0), node.size("end", 1 << 62)
    if node.has("length"):
        start = _clamped(node.integer("start"), node.static("self")[axis])
        end = start + node.integer("length")
    if step == 1 and isinstance(start, int) and not start and isinstance(end, int) and end >= 1 << 40:
        return x
    if DYNAMIC not in dims and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        begin, stop = _clamped(start, dims[axis]), _clamped(end, dims[axis])
        return importer.slice(x, {axis: (begin, max(stop, begin), step) if stop > begin else (0, 0, 1)})
    numbers = (importer.vector([each]) for each in (start, end, step, axis))
    return importer.call(relay.DynStridedSliceOp, x, *numbers)


@aten("select")
def select(importer: Importer, node: Node) -> SSAValue:
    """Import select: the slice at one index of an axis, which is removed."""
    x, dims = node.value("self"), node.shape("self")
    axis, index = node.axis(node.integer("dim"), len(dims)), node.size("index")
    if isinstance(index, int) and dims[axis] != DYNAMIC:
        index = node.axis(index, dims[axis])
        if DYNAMIC not in dims:
            return importer.row(x, index, axis)
    place = importer.reshape(importer.vector([index]), [])
    return importer.call(relay.TakeOp, x, place, axis=axis, mode="wrap")


def _counted(node: Node, parts: int) -> int:
    if parts > MOST_PARTS:
        raise node.unsupported(f"gives {parts} parts", f"up to {MOST_PARTS} are supported")
    return parts


@aten("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk", "split_copy",
      "split_with_sizes_copy")  # fmt: skip
def split(importer: Importer, node: Node) -> list[SSAValue]:
    """Import splits: parts of one size, the last one smaller; parts of given sizes; or a given number of parts."""
    x, rank = node.value("self"), node.rank("self")
    axis = node.axis(node.integer("dim", 0), rank)
    size = node.shape("self")[axis]
    if size == DYNAMIC:
        raise node.unsupported(f"splits an axis of unknown size, of {x.type}", "give its shapes")
    if node.packet == "aten.tensor_split":
        if node.has("sections"):
            count = _counted(node, node.integer("sections"))
            sizes = [size // count + (number < size % count) for number in range(count)]
        else:
            ends = [_clamped(each, size) for each in node.integers("indices")]
            sizes = [end - begin for begin, end in zip([0, *ends], [*ends, size], strict=True)]
    elif node.has("split_sizes") or is_list(node.arguments.get("split_size")):
        sizes = node.integers("split_sizes" if node.has("split_sizes") else "split_size")
    else:
        chunks = "chunk" in node.packet
        part = max(-(-size // node.integer("chunks")) if chunks else node.integer("split_size"), 1)
        sizes = [min(part, size - part * number) for number in range(_counted(node, max(-(-size // part), 1)))]
    return importer.parts(x, sizes, axis)


@aten("cat", "concat", "concatenate", "stack")
def cat(importer: Importer, node: Node) -> SSAValue:
    """Import cat and stack: along an axis, or along a new one. Empty vectors are allowed beside tensors of any rank."""
    element = importer.promoted(*node.values("tensors"))
    values = [importer.cast(each, element) for each in node.values("tensors")]
    if name_of(node) == "stack":
        return importer.stack(values, node.axis(node.integer("dim", 0), importer.rank(values[0]) + 1))
    filled = [each for each in values if importer.shape(each) != (0,)] or values[:1]
    return importer.concatenate(filled, node.axis(node.integer("dim", 0), importer.rank(filled[0])))


_PADDINGS: dict[str, Mode] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@aten("pad", "constant_pad_nd",
      *(f"{kind}_pad{count}d" for kind in ("reflection", "replication") for count in (1, 2, 3)))  # fmt: skip
def pad(importer: Importer, node: Node) -> SSAValue:
    """Import paddings; negative widths crop. The file lists the widths (before, after) of the last axis first, then
    those of the axis before it, and so on."""
    mode = {"refl": "reflect", "repl": "replicate"}.get(name_of(node)[:4]) or node.one_of(
        "mode", ["constant", *_PADDINGS]
    )
    pads, dims = node.integers("padding" if node.has("padding") else "pad"), node.shape("self")
    if len(pads) % 2 or len(pads) > 2 * len(dims):
        raise node.malformed(f"its pads are {pads} for the sizes {list(dims)}")
    widths = {len(dims) - 1 - i: (pads[2 * i], pads[2 * i + 1]) for i in range(len(pads) // 2)}
    if mode == "constant":
        return padded(importer, node.value("self"), widths, fill=node.number_of("value", 0))
    if mode == "circular" and min(pads) < 0:
        raise node.unsupported(f"repeats an axis and cuts it: its pads are {pads}", "cut it by a slice, then pad")
    if mode == "reflect" and any(max(each) >= node.static("self")[axis] for axis, each in widths.items()):
        raise node.malformed(f"its pads are {pads} for the sizes {list(dims)}", "mirrored axes must be longer")
    return padded(importer, node.value("self"), widths, _PADDINGS[mode])


@aten("roll")
def roll(importer: Importer, node: Node) -> SSAValue:
    """Import roll: elements that leave at one end enter at the other; without axes, the tensor is rolled as if it were
    flattened."""
    x, dims = node.value("self"), node.static("self")
    shifts, axes = node.integers("shifts"), node.integers("dims", [])
    if not axes:
        x, axes = importer.reshape(x, [prod(dims)]), [0]
    for shift, axis in zip(shifts, node.axes_of(axes, importer.rank(x)), strict=True):
        places = np.roll(np.arange(importer.shape(x)[axis]), shift)
        x = importer.take(x, places, axis)
    return importer.reshape(x, dims)


def _strided(numbers: Array, node: Node) -> Array:
    sizes, strides = node.integers("size"), node.integers("stride")
    if prod(sizes) > MOST_PLACES:
        raise node.unsupported(f"gives {prod(sizes)} elements", f"up to {MOST_PLACES} are supported")
    found = np.asarray(node.integer("storage_offset", 0))
    for size, stride in zip(sizes, strides, strict=True):
        found = found[..., None] + np.arange(size) * stride
    if found.size and not 0 <= found.min() <= found.max() < numbers.size:
        raise node.malformed(f"the sizes {sizes} and strides {strides} reach outside of {list(numbers.shape)}")
    return found


def _windows(numbers: Array, node: Node) -> Array:
    flat = np.atleast_1d(numbers)
    axis = node.axis(node.integer("dimension"), flat.ndim)
    found = np.lib.stride_tricks.sliding_window_view(flat, node.integer("size"), axis)
    found = found[(*[slice(None)] * axis, slice(None, None, node.integer("step")))]
    return found if numbers.ndim else found[0]


_PLACES: dict[str, Callable[[Array, Node], Array]] = {
    "as_strided": _strided,
    "diagonal": lambda x, n: x.diagonal(n.integer("offset", 0), n.integer("dim1", 0), n.integer("dim2", 1)),
    "repeat_interleave": lambda x, n: x.repeat(n.integer("repeats"), n.integer("dim") if n.has("dim") else None),
    "rot90": lambda x, n: np.rot90(
        x, n.integer("k", 1), (n.integers("dims", [0, 1])[0], n.integers("dims", [0, 1])[1])
    ),
    "unfold": _windows,
}


@aten("as_strided", "diagonal", "repeat_interleave.self_int", "rot90", "unfold")
def moved(importer: Importer, node: Node) -> SSAValue:
    """Import an operator that rearranges elements: numpy's function is applied to positions at import, and the elements
    are taken from these positions."""
    dims = node.static("self")
    if prod(dims) > MOST_PLACES:
        raise node.unsupported(f"takes some of {prod(dims)} elements", f"up to {MOST_PLACES} are supported")
    places = _PLACES[name_of(node)](np.arange(prod(dims)).reshape(dims), node)
    return importer.take(importer.reshape(node.value("self"), [prod(dims)]), places, 0)


@aten("slice_scatter", "select_scatter")
def slice_scatter(importer: Importer, node: Node) -> SSAValue:
    """Import slice_scatter and select_scatter: a copy of the tensor in which a slice along one axis is replaced."""
    x, source, dims = node.value("self"), node.value("src"), node.static("self")
    axis = node.axis(node.integer("dim", 0), len(dims))
    part = slice(node.integer("start", 0), node.integer("end", 1 << 62), node.integer("step", 1))
    if node.packet == "aten.select_scatter":
        first = node.axis(node.integer("index"), dims[axis])
        part, source = slice(first, first + 1), importer.call(relay.ExpandDimsOp, source, axis=axis)
    rows = np.full(dims[axis], -1)
    rows[part] = np.arange(count := len(rows[part]))
    if not count:
        return x
    source = importer.broadcast(source, [*dims[:axis], count, *dims[axis + 1 :]])
    if count == dims[axis]:
        return source
    mask = (rows >= 0).reshape([-1 if a == axis else 1 for a in range(len(dims))])
    spread = importer.take(source, np.maximum(rows, 0), axis)
    return importer.call(relay.WhereOp, importer.unnamed(mask), spread, x)


@aten("pixel_shuffle", "pixel_unshuffle")
def subpixels(importer: Importer, node: Node) -> SSAValue:
    *outer, c, h, w = node.static("self")
    image = importer.reshape(node.value("self"), [prod(outer), c, h, w])
    if node.packet == "aten.pixel_shuffle":
        r = node.integer("upscale_factor")
        found = importer.call(relay.DepthToSpaceOp, image, block_size=r, layout="NCHW", mode="CRD")
    else:
        found = channels_from_pixels(importer, image, node.integer("downscale_factor"))
    return importer.reshape(found, [*outer, *importer.shape(found)[1:]])


@aten("meshgrid")
def meshgrid(importer: Importer, node: Node) -> list[SSAValue]:
    values = node.values("tensors")
    sizes = [prod(importer.shape(each)) for each in values]
    columns = node.word("indexing", "ij") == "xy" and len(values) > 1
    order = [1, 0, *range(2, len(values))] if columns else list(range(len(values)))
    found: list[SSAValue] = []
    for axis, value in enumerate(values):
        place = order.index(axis)
        x = importer.reshape(value, [sizes[axis] if a == place else 1 for a in range(len(values))])
        found.append(importer.broadcast(x, [sizes[a] for a in order]))
    return found


@aten("view_as", "reshape_as", "expand_as")
def view_as(importer: Importer, node: Node) -> SSAValue:
    change = importer.expanded if "expand" in node.packet else importer.viewed
    return change(node.value("self"), importer.lengths(node.value("other")))


@aten("unflatten")
def unflatten(importer: Importer, node: Node) -> SSAValue:
    x, axis, sizes = node.value("self"), node.along("dim"), importer.lengths(node.value("self"))
    return importer.viewed(x, [*sizes[:axis], *node.sizes("sizes"), *sizes[axis + 1 :]])


@aten("unsqueeze")
def unsqueeze(importer: Importer, node: Node) -> SSAValue:
    return importer.call(relay.ExpandDimsOp, node.value("self"), axis=node.along("dim", more=1))


@aten("expand", "broadcast_to")
def expand(importer: Importer, node: Node) -> SSAValue:
    return importer.expanded(node.value("self"), node.sizes("size"))


@aten("unbind")
def unbind(importer: Importer, node: Node) -> list[SSAValue]:
    axis = node.along("dim", 0)
    return [importer.row(node.value("self"), index, axis) for index in range(_counted(node, node.static("self")[axis]))]


@aten("flip")
def flip(importer: Importer, node: Node) -> SSAValue:
    x = node.value("self")
    for axis in node.axes_of(node.integers("dims"), node.rank("self")) if node.rank("self") else ():
        x = importer.call(relay.ReverseOp, x, axis=[axis])
    return x


@aten("tril", "triu")
def triangle(importer: Importer, node: Node) -> SSAValue:
    x, ones = node.value("self"), np.ones(node.static("self")[-2:], np.bool_)
    kept = (np.tril if name_of(node) == "tril" else np.triu)(ones, node.integer("diagonal", 0))
    return importer.call(relay.WhereOp, importer.unnamed(kept), x, importer.like(0, x))
