"""Convolutions of groups of channels: several convolutions of one image, one after the other.

A group of few channels fills its vectors badly. Groups that are neighbours can be one, whose kernel has zeros where an
output of one group would read another: that costs nothing until 16 lanes are full, and may pay beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.affine import dims_of
from relay.lowering.scheduling.bias import add_bias
from relay.lowering.scheduling.contraction import Convolution, Operand, kinds_of, operands_of, window_of
from relay.lowering.scheduling.epilogue import epilogue_of
from relay.lowering.scheduling.matmul import Place
from relay.lowering.scheduling.packed import Packed, pack_constants
from relay.lowering.scheduling.packing import LANES, blocks_of
from relay.lowering.scheduling.plan import Plan, steps_of, tiles_of
from relay.lowering.shaped import shape_of

WHOLE, PARTIAL = 5.0, 10.0
"""Cycles to finish 16 results, or fewer."""


@dataclass(frozen=True)
class Groups:
    """`count` convolutions, each of neighbouring channels of the data. `conv`: one of them, with the image and the
    result of all. `view`: what shows the result with channels as one dimension; None where a buffer of that shape is
    what the result is in. Kernels are [g, o, i, j, c], or, where `by_taps`, [i, j, g, o] of one channel each."""

    conv: Convolution
    count: int
    view: memref.CollapseShapeOp | None
    by_taps: bool

    @property
    def epilogue(self) -> linalg.GenericOp | None:
        """The one elementwise operation that reads the result."""
        return None if self.view is None else epilogue_of(self.view.result)

    def kernel_of(self, array: Array) -> Array:
        """The kernel as [g, o, i, j, c]."""
        return array.transpose(2, 3, 0, 1)[..., None] if self.by_taps else array

    def place(self, b: LoopBuilder, plan: Plan, number: Index) -> Place:
        """Where group `number` is, of constants that `pack_groups` made."""
        conv, blocks = self.conv, len(blocks_of(self.conv.outputs, plan.vectors))
        lanes = -(-conv.outputs // LANES) * LANES
        return Place(
            weights=b.times(number, lanes * steps_of(conv, plan.group) * plan.group),
            initial=b.times(number, lanes),
            data=b.times(number, conv.channels),
            channel=b.times(number, conv.outputs),
            block=b.times(number, blocks),
        )


def recognise_groups(op: linalg.GenericOp) -> Groups | None:
    """The convolution of groups that the operation is, its result used as one of all channels; None if it is none."""
    found = operands_of(op)
    if found is None:
        return None
    data, kernel, out, accumulator = found
    kinds, maps = kinds_of(op), [m.data for m in op.indexing_maps]
    views = [use.operation for use in out.uses if isinstance(use.operation, memref.CollapseShapeOp)]
    held = out.owner.src if isinstance(out.owner, memref.ExpandShapeOp) else None
    if len(views) != (held is None) or len({use.operation for use in out.uses}) != 2 + len(views):
        return None
    if kinds not in ("ppppprrr", "ppppprr") or dims_of(maps[2]) != [0, 1, 2, 3, 4]:
        return None
    by_taps, view = kinds == "ppppprr", views[0] if views else None
    whole = held if view is None else view.result
    assert whole is not None
    window = window_of(maps[0], (5, 6), [3] if by_taps else [3, 7])
    if window is None or dims_of(maps[1]) != ([5, 6, 3, 4] if by_taps else [3, 4, 5, 6, 7]):
        return None
    if not by_taps:
        split = data.value.owner
        if not isinstance(split, memref.ExpandShapeOp) or not split.result.has_one_use():
            return None
        data = Operand(split.src, data.unsigned, data.zero_point)
    shape, results = shape_of(data.value), shape_of(out)
    if len(shape) != 4 or shape_of(whole) != (*results[:3], results[3] * results[4]):
        return None
    count, outputs = results[3:]
    channels, kshape = shape[3] // count, shape_of(kernel.value)
    image, result = (shape[0], shape[1], shape[2], channels), (results[1], results[2], outputs)
    taps = (kshape[0], kshape[1]) if by_taps else (kshape[2], kshape[3])
    others = shape[3] - channels
    conv = Convolution(data, kernel, whole, *image, *result, *taps, *window, False, accumulator, others)
    return Groups(conv, count, view, by_taps)


def join(groups: Groups, features: frozenset[str], flat: bool) -> Groups:
    """As many neighbours as one as cost least."""
    sizes = [size for size in range(1, groups.count + 1) if groups.count % size == 0]
    joined = [joined_by(groups, size) for size in sizes]
    return min(joined, key=lambda one: cycles(one, features, flat))


def joined_by(groups: Groups, size: int) -> Groups:
    """`size` neighbours as one."""
    conv = groups.conv
    channels = conv.channels * size
    new = replace(conv, channels=channels, outputs=conv.outputs * size, others=conv.pitch - channels)
    return replace(groups, conv=new, count=groups.count // size)


def cycles(groups: Groups, features: frozenset[str], flat: bool) -> float:
    """What all groups cost."""
    conv = groups.conv
    last = conv.outputs % LANES
    finish = conv.outputs // LANES * WHOLE + (PARTIAL if last else 0.0)
    pixels = conv.images * conv.out_rows * conv.out_columns
    return groups.count * (tiles_of(conv, features, flat=flat).cycles + pixels * finish)


def joined_kernel(kernel: Array, size: int, zero_point: int) -> Array:
    """[g, o, i, j, c] of `size` neighbours as one each, [g / size, size * o, i, j, size * c]."""
    count, outputs, rows, columns, channels = kernel.shape
    shape = (count // size, size, outputs, rows, columns, size, channels)
    result = np.full(shape, zero_point, kernel.dtype)
    for n, one in enumerate(kernel.reshape(count // size, size, outputs, rows, columns, channels).swapaxes(0, 1)):
        result[:, n, :, :, :, n] = one
    return result.reshape(count // size, size * outputs, rows, columns, size * channels)


def pack_groups(groups: Groups, plan: Plan, kernel: Array, bias: Array | None) -> Packed:
    """The numbers of all groups, [g, o, i, j, c], one behind the other."""
    every = [pack_constants(groups.conv, plan, one) for one in kernel]
    if bias is not None:
        parts = bias.reshape(groups.count, -1)
        every = [add_bias(one, part) for one, part in zip(every, parts, strict=True)]
    columns: Sequence[Array] = [np.concatenate(column) for column in zip(*(p.columns for p in every), strict=True)]
    return Packed(columns[0], columns[1], tuple(columns[2:]))
