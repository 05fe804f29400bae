"""Grouped convolutions: several convolutions of one image, one after the other.

A group of few channels fills its vectors badly. Neighbouring groups can be joined into one, whose kernel has zeros
where an output of one group would read another group. Joining costs nothing until 16 lanes are full, and may pay
beyond.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from xdsl.ir import Operation

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.bias import concatenated
from relay.lowering.scheduling.contraction import Groups
from relay.lowering.scheduling.contractions import OfWeights, emit_data, pick_padding, weighted_of
from relay.lowering.scheduling.epilogue import pick_masks
from relay.lowering.scheduling.matmul import MatmulEmitter, Place
from relay.lowering.scheduling.packed import Packed, pack_constants
from relay.lowering.scheduling.packing import blocks_of
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import TileSchedule, decide_tiles, dot_of, problem_of, steps_of
from relay.lowering.scheduling.strategy import Emission, Kernel
from relay.lowering.scheduling.tiles import choose
from relay.target import LANES, CpuTarget


@dataclass(frozen=True, kw_only=True)
class GroupsSchedule(TileSchedule):
    """A micro-kernel that is applied to each of `groups` groups, which are the operation's groups or several of them
    joined; `pad_in_copy`: the copy of the data also pads it; `masks`: fewer than 16 channels are loaded and stored by
    one masked instruction, not in parts of powers of two."""

    strategy = "groups"
    groups: int
    pad_in_copy: bool
    masks: bool


@dataclass(frozen=True)
class GroupsInTurn(OfWeights[GroupsSchedule]):
    """A grouped convolution: one group after the other."""

    record = GroupsSchedule
    split: Groups

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found = weighted_of(op, kernel)
        return cls(found.op, found, found.groups) if found and found.groups else None

    def decide(self, kernel: Kernel, pick: Picks) -> GroupsSchedule:
        found, split = self.found, self.split
        flat = found.flat(split.conv)[0]
        counts = [split.count // size for size in range(1, split.count + 1) if split.count % size == 0]
        best = min(counts, key=lambda count: cycles(joined_to(split, count), kernel.target, flat))
        joined = joined_to(split, pick("groups", counts, best))
        conv, padding = joined.conv, kernel.waiting.get(split.conv.data.value)
        kernels = [one for array in self.kernels(joined) for one in array]
        chosen = decide_tiles(pick, conv, kernels, kernel.target, found.around(conv, kernel.target, padding))
        pick_padding(pick, conv, chosen, padding)
        pick_masks(pick, kernel.target, conv.outputs)
        why = f"{joined.count} groups of channels, each: {chosen.why}"
        return pick.schedule(GroupsSchedule, chosen.cycles * joined.count, why)

    def kernels(self, joined: Groups) -> list[Array]:
        """Return the weights that each call of the function passes, as arrays [group, output channel, kernel row,
        kernel column, input channel] of the groups `joined`, which consist of several groups of the convolution
        each."""
        size, zero_point = self.split.count // joined.count, joined.conv.kernel.zero_point
        return [joined_kernel(self.split.kernel_of(kernel), size, zero_point) for kernel in self.found.kernels]

    def emit(self, emission: Emission, schedule: GroupsSchedule) -> None:
        b, found, joined = emission.builder, self.found, joined_to(self.split, schedule.groups)
        epilogue = found.start(emission, schedule.masks)
        if schedule.flat:
            epilogue.flatten_points()
        data = emit_data(emission, joined.conv, schedule, pads=schedule.pad_in_copy)
        given = zip(self.kernels(joined), found.biases, strict=True)
        arguments = found.give(emission, [pack_groups(joined, schedule, *one) for one in given])
        with b.loop(0, joined.count, independent=True) as (number, _):
            place = place_of(b, joined, schedule, number)
            MatmulEmitter(b, joined.conv, schedule, data, arguments, epilogue, place).emit()


def place_of(b: LoopBuilder, groups: Groups, schedule: TileSchedule, number: Index) -> Place:
    """Return where group number `number` starts: in the packed constants (see `pack_groups`), in the channels of the
    data, and in those of the result."""
    conv, blocks, group = groups.conv, len(blocks_of(groups.conv.outputs, schedule.vectors)), schedule.codes_per_step
    lanes = -(-conv.outputs // LANES) * LANES
    return Place(
        weights=b.times(number, lanes * steps_of(conv, group) * group),
        initial=b.times(number, lanes),
        data=b.times(number, conv.channels),
        channel=b.times(number, conv.outputs),
        block=b.times(number, blocks),
    )


def joined_to(groups: Groups, count: int) -> Groups:
    """Join neighbouring groups so that `count` groups remain."""
    conv, size = groups.conv, groups.count // count
    channels = conv.channels * size
    new = replace(conv, channels=channels, outputs=conv.outputs * size, others=conv.pitch - channels)
    return replace(groups, conv=new, count=count)


def cycles(groups: Groups, target: CpuTarget, flat: bool) -> float:
    """Return the estimated cycles of computing all groups of a grouped convolution; `flat`: all pixels of an image are
    processed as one row."""
    conv, costs = groups.conv, target.costs
    last = conv.outputs % LANES
    finish = conv.outputs // LANES * costs.vector_store + (costs.partial_store if last else 0.0)
    pixels = conv.images * conv.out_rows * conv.out_columns
    dot = dot_of(conv, target)
    tiles = choose(problem_of(conv, target, dot.group if dot else 1, flat=flat), costs)
    return groups.count * (tiles.cycles + pixels * finish)


def joined_kernel(kernel: Array, size: int, zero_point: int) -> Array:
    """Join each `size` neighbouring groups of a kernel [g, o, i, j, c]: [g / size, size * o, i, j, size * c]."""
    count, outputs, rows, columns, channels = kernel.shape
    shape = (count // size, size, outputs, rows, columns, size, channels)
    result = np.full(shape, zero_point, kernel.dtype)
    for n, one in enumerate(kernel.reshape(count // size, size, outputs, rows, columns, channels).swapaxes(0, 1)):
        result[:, n, :, :, :, n] = one
    return result.reshape(count // size, size * outputs, rows, columns, size * channels)


def pack_groups(groups: Groups, schedule: TileSchedule, kernel: Array, bias: Array | None) -> Packed:
    """Pack the kernel of each group, from [g, o, i, j, c], with its part of the bias; return the packed constants of
    all groups, concatenated."""
    every = [pack_constants(groups.conv, schedule, one) for one in kernel]
    return concatenated(every, None if bias is None else [*bias.reshape(groups.count, -1)])
