"""Imports operators that split, slice, gather and concatenate tensors."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, elements
from relay.frontend.importing.builder import parameters
from relay.frontend.importing.rows import Rows, rows_of
from relay.frontend.importing.tensors import Property
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import ALL_CODES, INDICES, Node
from relay.frontend.tflite.table import ANY, EVERYWHERE, operator


@operator("CONCATENATION", versions=(1, 7), inputs=(1, ANY), known={"tflm": "INT8"})
def concatenation(importer: Importer, node: Node) -> list[SSAValue]:
    """Import CONCATENATION; uint8 inputs whose scale differs from the result's are rescaled in float32; inputs of other
    quantized types must have the result's scale and zero point."""
    tensors, out = node.inputs(), node.output()
    node.no_activation()
    if any(tensor.type != out.type for tensor in tensors):
        raise node.refuse_types(*tensors, out)
    axis = node.axis(node.integer("axis"), len(tensors[0].shape))
    values = [importer.value(tensor) for tensor in tensors]
    if out.type in ALL_CODES and out.quantization is not None:
        target, sources = node.codes(out), [node.codes(tensor) for tensor in tensors]
        if any(source != target for source in sources):
            if out.type != "UINT8":
                raise node.unsupported("the scales and zero points of inputs and output differ")
            properties: dict[str, Property] = {
                "axis": axis,
                "input_scales": elements([source.scale for source in sources], np.float32, label="scale"),
                "input_zero_points": elements([source.zero_point for source in sources], np.int32, label="zero_point"),
                **parameters(output=target),
            }
            return [importer.call(qnn.ConcatenateOp, *values, **properties)]
    return [importer.call(relay.ConcatenateOp, *values, axis=axis)]


@operator("PACK", versions=(1, 5), inputs=(1, ANY), known=EVERYWHERE)
def pack(importer: Importer, node: Node) -> list[SSAValue]:
    """Import PACK: stack tensors of one shape along a new axis."""
    tensors = node.inputs()
    shape = tensors[0].shape
    axis = node.axis(node.integer("axis"), len(shape) + 1)
    if any(tensor.shape != shape or tensor.type != tensors[0].type for tensor in tensors):
        raise node.malformed("the inputs differ in shape or type")
    if tensors[0].type in ALL_CODES:
        node.same_codes(*tensors, node.output())
    layers = importer.layers([importer.value(tensor) for tensor in tensors], axis)
    return [importer.call(relay.ConcatenateOp, *layers, axis=axis)]


@operator("UNPACK", versions=(1, 6), inputs=(1, 1), outputs=(1, ANY), known=EVERYWHERE)
def unpack(importer: Importer, node: Node) -> list[SSAValue]:
    """Import UNPACK: the slices along an axis, which is removed."""
    shape = node.input(0).shape
    axis = node.axis(node.integer("axis"), len(shape))
    if len(node.operator.outputs) != shape[axis]:
        raise node.malformed(f"has {len(node.operator.outputs)} outputs, but dimension {axis} of {shape}")
    return importer.unstack(importer.value(node.input(0)), axis)


@operator("SPLIT", versions=(1, 5), inputs=(2, 2), outputs=(1, ANY), known=EVERYWHERE)
def split(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SPLIT: equal parts along an axis, which is the first input."""
    data, count = node.input(1), len(node.operator.outputs)
    axes = node.axes(node.input(0), len(data.shape))
    if len(axes) != 1 or data.shape[axes[0]] % count:
        raise node.malformed(f"cannot split axes {axes} of shape {data.shape} in {count}")
    parts = [data.shape[axes[0]] // count] * count
    return importer.parts(importer.value(data), parts, axes[0])


@operator("SPLIT_V", versions=(1, 3), inputs=(3, 3), outputs=(1, ANY), known=EVERYWHERE)
def split_v(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SPLIT_V: parts of given sizes, one of which may be -1, the remainder."""
    data, sizes = node.input(0), list(node.numbers(node.input(1)))
    axes = node.axes(node.input(2), len(data.shape))
    if len(axes) == 1 and sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = data.shape[axes[0]] - sum(sizes) - 1
    if len(axes) != 1 or min(sizes, default=0) < 0 or sum(sizes) != data.shape[axes[0]]:
        raise node.malformed(f"cannot split axes {axes} of shape {data.shape} in {sizes}")
    return importer.parts(importer.value(data), sizes, axes[0])


@operator("SLICE", versions=(1, 8), inputs=(3, 3), known=EVERYWHERE)
def slice_(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SLICE with constant begins and sizes; size -1 extends to the end."""
    shape = node.input(0).shape
    begin, sizes = node.numbers(node.input(1)), node.numbers(node.input(2))
    if not len(begin) == len(sizes) == len(shape):
        raise node.malformed(f"{len(begin)} begins and {len(sizes)} sizes for shape {shape}")
    end = [d if size == -1 else b + size for b, size, d in zip(begin, sizes, shape, strict=True)]
    if any(not 0 <= b <= e <= d for b, e, d in zip(begin, end, shape, strict=True)):
        raise node.malformed(f"the slice from {begin} of sizes {sizes} is outside shape {shape}")
    bounds = dict(enumerate(zip(begin, end, strict=True)))
    return [importer.slice(importer.value(node.input(0)), bounds)]


@operator("STRIDED_SLICE", versions=(1, 8), inputs=(4, 4), known=EVERYWHERE)
def strided_slice(importer: Importer, node: Node) -> list[SSAValue]:
    """Import STRIDED_SLICE: Python's slice per axis. `begin_mask` also applies to axes that `shrink_axis_mask`
    drops."""
    shape = node.input(0).shape
    if node.flag("offset"):
        raise node.unsupported("its ends are offsets from its begins", "give the ends themselves: offset false")
    bounds, result = dict[int, tuple[int, int, int]](), list[int]()
    for bound in _bounds(node, len(shape)):
        if bound is None:
            result.append(1)
            continue
        axis = len(bounds)
        size = shape[axis]
        part, shrinks = bound
        if part.step == 0 or (shrinks and part.step < 0):
            raise node.malformed(f"the stride of axis {axis} is {part.step}")
        if shrinks:
            first = 0 if part.start is None else part.start + (size if part.start < 0 else 0)
            if not 0 <= first < size:
                raise node.malformed(f"index {part.start} is outside dimension {axis} of {shape}")
            bounds[axis] = first, first + 1, 1
        else:
            span = range(*part.indices(size))
            bounds[axis] = (span.start, span.stop, span.step) if span else (0, 0, 1)
            result.append(len(span))
    return [importer.reshape(importer.slice(importer.value(node.input(0)), bounds), result)]


_Bound = tuple[slice, bool]
"""The slice of one axis, with None for a masked begin or end, and whether the axis is dropped."""


def _bounds(node: Node, rank: int) -> list[_Bound | None]:
    """The slice of each axis, in order, with None where an axis is added (new_axis_mask). An ellipsis stands for the
    remaining axes, at least one; axes for which the operator has no entry are taken whole."""
    given = [node.numbers(node.input(i)) for i in (1, 2, 3)]
    count = len(given[0])
    names = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask", "begin_mask", "end_mask")
    ellipsis, added, shrunk, *masked = ({i for i in range(count) if node.integer(n) >> i & 1} for n in names)
    rank += len(added - ellipsis)
    if len(ellipsis) > 1:
        raise node.malformed(f"{len(ellipsis)} ellipses")
    if count > rank + len(ellipsis) or any(len(numbers) != count for numbers in given):
        raise node.malformed(f"{[len(numbers) for numbers in given]} numbers for shape {node.input(0).shape}")
    whole: _Bound = slice(None, None, 1), False
    bounds: list[_Bound | None] = []
    for i, (begin, end, stride) in enumerate(zip(*given, strict=True)):
        if i in ellipsis:
            bounds += [whole] * max(rank - count + 1, 1)
        elif i in added:
            bounds.append(None)
        else:
            first, last = (None if i in mask else n for mask, n in zip(masked, (begin, end), strict=True))
            bounds.append((slice(first, last, stride), i in shrunk))
    bounds = bounds[:rank] + [whole] * (rank - len(bounds))
    if sum(bound is not None for bound in bounds) != len(node.input(0).shape):
        raise node.malformed(f"an ellipsis of no axis for shape {node.input(0).shape}")
    return bounds


@operator("GATHER", versions=(1, 8), inputs=(2, 2), known=EVERYWHERE)
def gather(importer: Importer, node: Node) -> list[SSAValue]:
    """Import GATHER: `data.take(indices, axis)`, separately for each index of the batch dimensions."""
    data, indices = node.input(0), node.input(1)
    if indices.type not in (*INDICES, "INT16"):
        raise node.unsupported(f"indices of {indices.type}")
    axis = node.axis(node.integer("axis"), len(data.shape))
    batches = node.integer("batch_dims")
    batches += len(indices.shape) if batches < 0 else 0
    values = [importer.value(data), importer.value(indices)]
    if not batches:
        return [importer.call(relay.TakeOp, *values, axis=axis)]
    if not 0 < batches <= min(axis, len(indices.shape)) or data.shape[:batches] != indices.shape[:batches]:
        raise node.malformed(f"{batches} batch dimensions of {data.shape} and {indices.shape} with axis {axis}")
    return [_gather_batches(importer, values, axis, batches)]


def _gather_batches(importer: Importer, values: list[SSAValue], axis: int, batches: int) -> SSAValue:
    """Import a gather with batch dimensions as one gather along the axis, for which the indices are repeated along the
    data's other axes."""
    data, indices = values
    dims, index = importer.shape(data), importer.shape(indices)
    between, behind, count = dims[batches:axis], dims[axis + 1 :], prod(index[batches:])
    places = importer.reshape(indices, [*dims[:batches], *[1] * len(between), count, *[1] * len(behind)])
    places = importer.broadcast(places, [*dims[:axis], count, *behind])
    taken = importer.call(relay.GatherOp, data, places, axis=axis)
    return importer.reshape(taken, [*dims[:axis], *index[batches:], *behind])


@operator("EMBEDDING_LOOKUP", versions=(1, 5), inputs=(2, 2))
def embedding_lookup(importer: Importer, node: Node) -> list[SSAValue]:
    """Import EMBEDDING_LOOKUP: rows of a table by index. The rows of a quantized table are copied if the result has the
    table's type; for a float result they are dequantized with one scale for the table, one per row, or one per block of
    a row."""
    places, data, out = node.input(0), node.input(1), node.output()
    if places.type == "INT32" and (data.type, out.type) == ("INT8", "FLOAT32"):
        if not data.shape or 0 in data.shape:
            raise node.malformed(f"{data} has no rows, or empty ones")
        count = prod(data.shape[1:])
        codes = node.array(data).reshape(data.shape[0], count)
        scales = _scales_of_rows(node, data)
        largest = int(np.abs(2 * codes.astype(np.int16) + 1).max(initial=0))
        bits = next(bits for bits in (2, 4, 8) if largest < 1 << bits)
        table = Rows(data.name, codes, scales, np.zeros(scales.shape, np.int8), bits)
        indices = importer.value(places)
        rows = rows_of(importer, table, indices, "clip")
        return [importer.reshape(rows, [*importer.shape(indices), *data.shape[1:]])]
    if places.type != "INT32" or data.type != out.type:
        raise node.refuse_types(places, data, out)
    values = [importer.value(data), importer.value(places)]
    return [importer.call(relay.TakeOp, *values, axis=0)]


def _scales_of_rows(node: Node, data: Tensor) -> Array:
    """The scales [row, block] of a quantized table without zero points."""
    rows = data.shape[0]
    if data.blocks is not None:
        return node.block_scales(data, (rows, prod(data.shape[1:])))
    found = node.quantization(data)
    if found.zero_point.any() or (len(found.scale) > 1 and (found.axis, len(found.scale)) != (0, rows)):
        raise node.unsupported(f"{data} has zero points, or scales along axis {found.axis}", "give a scale to each row")
    return np.broadcast_to(found.scale[:, None], (rows, 1))


@operator("GATHER_ND", versions=(1, 6), inputs=(2, 2), known=EVERYWHERE)
def gather_nd(importer: Importer, node: Node) -> list[SSAValue]:
    data, indices = node.input(0), node.input(1)
    if indices.type not in (*INDICES, "INT16"):
        raise node.unsupported(f"indices of {indices.type}")
    return [importer.call(relay.GatherNdOp, importer.value(data), importer.value(indices))]
