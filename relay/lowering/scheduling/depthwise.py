"""Depthwise convolution: 16 channels in the lanes, all taps of a pixel in registers.

Where the target has dot products of pairs of 16-bit integers, taps are taken two at a time: the widened codes of two
taps are interleaved, and multiplied by weights in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import i8, i16, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.arith import ExtSIOp
from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling import sharing
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.contractions import OfWeights, weighted_of
from relay.lowering.scheduling.epilogue import Epilogue, pick_masks
from relay.lowering.scheduling.loops import parts
from relay.lowering.scheduling.packed import Packed
from relay.lowering.scheduling.packing import initial_accumulator, padded
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import extension_of
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel, estimate
from relay.lowering.shaped import vector_of
from relay.target import LANES, CpuTarget

HALF = LANES // 2


@dataclass(frozen=True, kw_only=True)
class DepthwiseSchedule(OpSchedule):
    """The decisions about a depthwise convolution. `pairs`: taps are taken two at a time, by dot products of 16-bit
    integers; `unrolled_taps`: there are no loops over taps; `masks`: fewer than 16 channels are loaded and stored by
    one masked instruction, not in parts of powers of two."""

    strategy = "depthwise"
    pairs: bool
    unrolled_taps: bool
    masks: bool


@dataclass(frozen=True)
class Depthwise(OfWeights[DepthwiseSchedule]):
    """A depthwise convolution of the padded image, 16 channels at a time."""

    record = DepthwiseSchedule

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found = weighted_of(op, kernel)
        return cls(found.op, found) if found and found.conv.depthwise else None

    def decide(self, kernel: Kernel, pick: Picks) -> DepthwiseSchedule:
        conv = self.found.conv
        pairs = pick.may("pairs", takes_pairs(conv, kernel.target))
        few = conv.kernel_rows * conv.kernel_columns <= kernel.target.costs.unrolled_taps
        pick("unrolled_taps", (True,) if pairs else (True, False), pairs or few)
        cycles = depthwise_cycles(kernel, self.op, conv, 2 if pairs else 1)
        why = f"16 channels{' of two taps' if pairs else ''} at a time"
        pick_masks(pick, kernel.target, conv.outputs)
        return pick.schedule(DepthwiseSchedule, cycles, why)

    def emit(self, emission: Emission, schedule: DepthwiseSchedule) -> None:
        found, conv = self.found, self.found.conv
        epilogue = found.start(emission, schedule.masks)
        emission.write(conv.data.value)
        group = 2 if schedule.pairs else 1
        arguments = found.give(emission, found.biased([pack_depthwise(conv, array, group) for array in found.kernels]))
        DepthwiseEmitter(emission.builder, conv, arguments, epilogue, schedule).emit()


def depthwise_cycles(kernel: Kernel, op: linalg.GenericOp, conv: Convolution, group: int) -> int:
    """Return the cycles of a depthwise convolution of whole vectors of channels that adds the products of `group` taps
    at once."""
    points = conv.images * conv.out_rows * conv.out_columns * -(-conv.outputs // LANES) * LANES
    return estimate(kernel, op, points * conv.kernel_rows * conv.kernel_columns, group * LANES, 4 // group)


def takes_pairs(conv: Convolution, target: CpuTarget) -> bool:
    """Whether taps are multiplied in pairs: 8-bit codes, and a target with dot products of pairs."""
    codes = conv.data.element == conv.kernel.element == i8
    return codes and conv.kernel_rows * conv.kernel_columns > 1 and target.dot(2) is not None


def pack_depthwise(conv: Convolution, kernel: Array, group: int = 1) -> Packed:
    """Pack weights [i, j, c] as [16-channel block][group of taps][16][tap of the group], with the zero point subtracted
    (9 bits in i16)."""
    wide = kernel if conv.is_float else kernel.astype(np.int16) - np.int16(conv.kernel.zero_point)
    taps = wide.reshape(-1, conv.outputs)
    taps = np.pad(taps, ((0, -taps.shape[0] % group), (0, -conv.outputs % LANES)))
    weights = taps.reshape(-1, group, taps.shape[1] // LANES, LANES).transpose(2, 0, 3, 1).reshape(-1)
    if conv.is_float:
        return Packed(weights, padded(np.zeros(conv.outputs, np.float32)))
    return Packed(weights, initial_accumulator(conv, kernel, conv.data.zero_point))


class DepthwiseEmitter:
    """Emits one depthwise convolution with its epilogue."""

    def __init__(
        self,
        builder: LoopBuilder,
        conv: Convolution,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
        schedule: DepthwiseSchedule,
    ):
        self.b, self.conv, self.epilogue, self.schedule = builder, conv, epilogue, schedule
        self.data = builder.flatten(conv.data.value)
        self.weights, self.initial = constants[0], constants[1]

    def emit(self) -> None:
        conv, b = self.conv, self.b
        apart = sharing.of_blocks(conv, LANES, self.epilogue.itemsize)
        for start, count, lanes in parts(conv.outputs, LANES):
            with (
                b.loop(0, conv.images, independent=True) as (image, _),
                b.loop(start, start + count * LANES, LANES, independent=True, apart=apart) as (channel, _),
                b.loop(0, conv.out_rows, independent=True) as (y, _),
                b.loop(0, conv.out_columns) as (x, _),
            ):
                self.pixel(image, y, x, channel, lanes)

    def pixel(self, image: Index, y: Index, x: Index, channel: Index, lanes: int) -> None:
        """Emit all taps of one output pixel for 16 channels."""
        conv, b = self.conv, self.b
        total = b.vector_load(self.initial, [channel], LANES)
        row = b.plus(b.times(image, conv.rows), b.times(y, conv.strides[0]))
        column = b.times(x, conv.strides[1])
        taps = conv.kernel_rows * conv.kernel_columns
        block = b.times(channel, taps)
        if self.schedule.unrolled_taps:
            base = b.plus(b.times(b.plus(b.times(row, conv.columns), column), conv.channels), channel)
            if self.schedule.pairs:
                total = self.by_pairs(total, base, b.times(channel, taps + taps % 2), lanes)
            else:
                for number, ahead in enumerate(self.places):
                    total = self.multiply_add(total, b.plus(base, ahead), b.plus(block, number * LANES), lanes)
        else:
            with b.loop(0, conv.kernel_rows, carried=[total]) as (i, rows):
                with b.loop(0, conv.kernel_columns, carried=rows.args) as (j, taps_of_row):
                    line = b.times(b.plus(row, b.times(i, conv.dilation[0])), conv.columns)
                    pixel = b.plus(line, b.plus(column, b.times(j, conv.dilation[1])))
                    at = b.plus(b.times(pixel, conv.channels), channel)
                    tap = b.plus(b.times(i, conv.kernel_columns), j)
                    weight = b.plus(block, b.times(tap, LANES))
                    taps_of_row.next = [self.multiply_add(taps_of_row.args[0], at, weight, lanes)]
                rows.next = taps_of_row.results
            total = rows.results[0]
        self.epilogue.apply(total, [image, y, x], channel, lanes)

    @property
    def places(self) -> list[int]:
        """The offsets in the image of the taps of a pixel, from its first tap."""
        conv = self.conv
        return [
            (i * conv.dilation[0] * conv.columns + j * conv.dilation[1]) * conv.channels
            for i in range(conv.kernel_rows)
            for j in range(conv.kernel_columns)
        ]

    def by_pairs(self, total: SSAValue, base: Index, block: Index, lanes: int) -> SSAValue:
        """Emit all taps of one output pixel, two at a time; return the accumulators, which start from `total`."""
        b, conv, places = self.b, self.conv, self.places
        halves = (range(HALF), range(HALF, LANES))
        totals = [b.shuffle(total, total, half) for half in halves]
        for first in range(0, len(places), 2):
            codes = [self.epilogue.load(self.data, [b.plus(base, at)], lanes) for at in places[first : first + 2]]
            for n, half in enumerate(halves):
                mixed = b.shuffle(codes[0], codes[-1], [lane for k in half for lane in (k, LANES + k)])
                wide = b.add(extension_of(conv)(mixed, vector_of(i16, 2 * HALF))).result
                weights = b.vector_load(self.weights, [b.plus(block, (first + n) * LANES)], 2 * HALF)
                totals[n] = b.dot(totals[n], wide, weights, False)
        return b.shuffle(totals[0], totals[1], range(LANES))

    def multiply_add(self, total: SSAValue, at: Index, weight: Index, lanes: int) -> SSAValue:
        b, conv = self.b, self.conv
        data = self.epilogue.load(self.data, [at], lanes)
        weights = b.vector_load(self.weights, [weight], LANES)
        if conv.is_float:
            return b.add(vector.FMAOp(data, weights, total)).results[0]
        wide = vector_of(i32, LANES)
        product = arith.MuliOp(b.add(extension_of(conv)(data, wide)).result, b.add(ExtSIOp(weights, wide)).result)
        return b.add(arith.AddiOp(total, b.add(product).result)).result
