"""Float products with weights of few bits, in blocks that each have a scale and a zero point: the choice of the kernel
and its tile, and the packing of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from xdsl.dialects.builtin import ReducedPrecisionFloatType, f32, i8
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.lowering.linalg.contraction import CODES, DATA_BITS
from relay.lowering.scheduling.affine import coefficients, dims_of
from relay.lowering.scheduling.code_types import code_type
from relay.lowering.scheduling.epilogue import Epilogue, epilogue_of, pick_masks
from relay.lowering.scheduling.given_constants import argument_of
from relay.lowering.scheduling.picks import Picks, Tuples
from relay.lowering.scheduling.strategy import Emission, Kernel, Started, summed_from
from relay.lowering.scheduling.weight_only_kernels import (
    GROUP,
    PRECISE,
    STRIP,
    CodesEmitter,
    NibblesEmitter,
    PanelEmitter,
    WeightOnlyEmitter,
    WeightOnlySchedule,
)
from relay.lowering.shaped import is_buffer, shape_of
from relay.mapping import spilled, used
from relay.target import LANES
from relay.target.dots import Dot

MAPS = [[1, 2, 3], [1, 2], [1, 2], [0, 1]]
"""The dimensions (row, channel, block, position in the block) that index codes, scales, zero points and sums."""
LARGEST = (16, 8)
"""The most rows and the most vectors of a tile."""
FEW_ROWS = 2
"""The largest number of rows of the data for which products of bytes are faster than products of floats, on targets
that multiply bytes only by 4-bit weights. For products of bytes, each value of the data is quantized to 24 bits and
split into three bytes."""
PANEL = 256
"""The most inputs whose weights are converted to floats at once: the converted weights of a tile take half of a
first-level cache of 32 KiB."""


@dataclass(frozen=True)
class WeightOnly(Started[WeightOnlySchedule]):
    """A product with weights of few bits, and the elementwise operation after it. Every call of the kernel passes
    constant weights.

    `given`: for each call of the kernel, the weights' codes [channel, block, position], and their scales and zero
    points [channel, block]; `type`: the type of the codes; `dot`: the target's dot product of bytes, if any; `nibbles`:
    whether the target multiplies 4-bit numbers by bytes.
    """

    record = WeightOnlySchedule
    op: linalg.GenericOp
    arguments: Sequence[BlockArgument]
    given: Sequence[tuple[Array, Array, Array]]
    type: Attribute
    dot: Dot | None
    nibbles: bool

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        product = summed_from(op, kernel)
        if product is None or (type := codes_of(product)) is None:
            return None
        found = [argument_of(value) for value in product.inputs[1:]]
        arguments = [each for each in found if each is not None and kernel.given.constant(each)]
        if len(arguments) < 3:
            return None
        codes, scales, zeros = (
            [array.reshape(shape_of(value)) for array in kernel.given.arrays_of(argument)]
            for argument, value in zip(arguments, product.inputs[1:], strict=True)
        )
        given = [(c.view(np.uint8), s, z.view(np.uint8)) for c, s, z in zip(codes, scales, zeros, strict=True)]
        epilogue = epilogue_of(product.outputs[0], op, product)
        nibbles = kernel.target.nibble_dot is not None
        found = cls(product, op, epilogue, arguments, given, type, kernel.target.dot(GROUP), nibbles)
        return found if found.block % (32 // found.bits) == 0 else None

    @property
    def block(self) -> int:
        """The number of weights that share a scale."""
        return self.given[0][0].shape[2]

    @property
    def bits(self) -> int:
        """The number of bits of a packed weight: 4 or 8 if weights are floats of few bits; for integers, the fewest
        bits that hold the codes of the weights of all calls of the kernel."""
        if isinstance(self.type, ReducedPrecisionFloatType):
            return 4 if self.type.bitwidth == 4 else 8
        largest = 0
        for codes, _, _ in self.given:
            largest = max(largest, int(codes.max(initial=0)))
            used(codes.nbytes)
        return relay.WeightOnlyDenseOp.bits_of(largest)

    def decide(self, kernel: Kernel, pick: Picks) -> WeightOnlySchedule:
        rows, channels = shape_of(self.op.outputs[0])
        vectors, wide = -(-channels // LANES), kernel.target.whole_vectors
        choices = (*self.by_bytes, 0)
        best = 0 if choices[0] == PRECISE and self.dot is None and rows > FEW_ROWS else choices[0]
        parts = pick("parts", choices, best)
        whole = (8, 2) if wide else (kernel.target.vector_registers - 2, 1)
        inputs = self.given[0][0].shape[1] * self.block
        panels = tuple(range(self.block, min(PANEL, inputs) + 1, self.block))
        panel = pick("panel", (0, *panels), 0 if parts or not panels or rows < 2 * whole[0] else panels[-1])
        many = (8, 2) if parts == 1 else (4, 2) if parts else (8, 1)
        one = (1, 4) if self.dot is not None or not parts else (1, 2) if parts == 1 else (1, 1)
        tile = one if rows == 1 else whole if panel else many if wide else (4, 1)
        best = min(tile[0], rows), min(tile[1], vectors)
        tile = pick("tile", Tuples(*(range(1, 1 + most) for most in LARGEST)), best)
        table = pick.may("table", wide and self.bits <= 4 and not parts)
        pick.only("fused", kernel.target.fuses)
        soon = kernel.target.costs.streams_ahead
        pick("ahead", tuple(dict.fromkeys((8, 16, 32, 64, soon))), soon)
        pick_masks(pick, kernel.target, channels)
        steps = rows * channels * self.block * self.given[0][0].shape[1] / LANES
        shared = min(rows, STRIP) if panel else tile[0]
        each = parts / GROUP + 0.4 / tile[0] if parts else 1 + (1.5 if table else 3) / shared
        cycles = round(steps * each / (1 if wide else 0.5))
        found = f"{8 * parts} bits of data are multiplied" if parts else "become floats in registers,"
        found = f"become floats for {shared} rows," if panel else found
        why = f"codes of {self.bits} bits {'and ' if parts else ''}{found} for {tile[0]} rows at once"
        return pick.schedule(WeightOnlySchedule, cycles, why)

    @property
    def by_bytes(self) -> tuple[int, ...]:
        """The numbers of bytes into which data may be split for dot products of bytes, the best first."""
        dots = self.nibbles and self.bits <= 4 if self.dot is None else self.dot.unsigned or self.bits < 8
        if not dots or self.block % LANES or self.type != CODES:
            return ()
        return (1, PRECISE) if DATA_BITS in self.op.attributes else (PRECISE,)

    def emit(self, emission: Emission, schedule: WeightOnlySchedule) -> None:
        data = self.op.inputs[0]
        emission.write(data)
        middle = 1 << (self.bits - 1) if schedule.table and self.type == CODES else 0
        zeros = np.unique(np.concatenate([each[2].reshape(-1) for each in self.given]))
        if schedule.parts and len(zeros) == 1:
            middle = int(zeros[0])
        packed = [pack(*each, self.bits, middle, bool(schedule.parts)) for each in self.given]
        shifted = any(shifts.any() for *_, shifts in packed)
        buffers: list[SSAValue] = []
        for number, argument in enumerate(self.arguments):
            columns = [each[number : number + 1] if number < 2 or shifted else () for each in packed]
            buffers += emission.given.replace(argument, columns)
        for value, argument in zip(self.op.inputs[1:], self.arguments, strict=True):
            emission.remove_views(value, argument)
        out = self.op.outputs[0]
        epilogue = Epilogue(emission.builder, out, self.epilogue, shape_of(out)[1], schedule.masks)
        unsigned, emitter = self.dot is None or self.dot.unsigned, WeightOnlyEmitter
        if schedule.parts:
            emitter = NibblesEmitter if self.dot is None else CodesEmitter
        elif schedule.panel:
            emitter = PanelEmitter
        emitter(emission.builder, data, buffers, epilogue, schedule, self.bits, self.type, middle, unsigned).emit()


def codes_of(op: linalg.GenericOp) -> Attribute | None:
    """Return the type of the codes, if an operation is a lowered `relay.nn.weight_only_dense`; else None."""
    types = [getattr(value.type, "element_type", None) for value in op.operands]
    if types != [f32, i8, f32, i8, f32]:
        return None
    first, *maps = [map.data for map in op.indexing_maps]
    if [dims_of(map) for map in maps] != MAPS or not all(is_buffer(value.type) for value in op.operands):
        return None
    block = shape_of(op.inputs[1])[2]
    columns = [coefficients(result) for result in first.results]
    return code_type(op.body.block) if columns == [({0: 1}, 0), ({2: block, 3: 1}, 0)] else None


def pack(
    codes: Array, scales: Array, zeros: Array, bits: int, middle: int, by_bytes: bool
) -> tuple[Array, Array, Array]:
    """Pack codes as words [vector of channels, word of a channel, lane], a channel's codes in order from the lowest
    bits on; `by_bytes`: four neighbours in the lowest bits of the four bytes, the next four above them. `middle`: the
    number that kernels subtract from each code. Return the words, the scales, and the factors of the sums of a block's
    data, `-scale * (zero point - middle)`, both [vector, block, lane]."""
    channels, blocks, _ = codes.shape
    vectors, per = -(-channels // LANES), 32 // bits
    room = (0, vectors * LANES - channels)
    shifts = np.arange(per, dtype=np.uint32) * bits
    if by_bytes:
        shifts = np.arange(per, dtype=np.uint32) % GROUP * 8 + np.arange(per, dtype=np.uint32) // GROUP * bits
    words = np.zeros((vectors * LANES, codes.size // channels // per), np.uint32)
    for number, shift in enumerate(shifts):  # one by one: all at once would take 32 times the packed size
        words[:channels] |= codes.reshape(channels, -1, per)[..., number].astype(np.uint32) << shift
    used(codes.nbytes)
    lanes = words.reshape(vectors, LANES, -1).swapaxes(1, 2)

    def by_lane(numbers: Array) -> Array:
        wide = np.pad(numbers.astype(np.float32), (room, (0, 0)))
        return np.ascontiguousarray(wide.reshape(vectors, LANES, blocks).swapaxes(1, 2)).reshape(-1)

    offsets = -scales * (zeros.astype(np.float32) - middle)
    return spilled(lanes).reshape(-1).view(np.int32), by_lane(scales), by_lane(offsets)
