"""The micro-kernel of convolutions and products: tiles of pixels x 16-channel vectors, accumulators in registers.

Per step of the reduction it loads a few vectors of packed weights and, per pixel, broadcasts what the pixel needs:
4 codes for a dot-product instruction, or one element for multiply-add.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, llvm, memref, vector
from xdsl.dialects.builtin import VectorType, i8, i32
from xdsl.ir import SSAValue

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.packing import (
    LANES,
    as_matrix,
    blocks_of,
    initial_accumulator,
    pack,
    padded,
    run_length,
    runs,
)

VPDPBUSD = "llvm.x86.avx512.vpdpbusd.512"


@dataclass(frozen=True)
class Plan:
    """How a contraction runs: `dot` multiplies 4 codes per lane; `pixels[v]` rows of a tile of v vectors."""

    dot: bool
    vectors: int
    pixels: tuple[int, ...]

    @property
    def reason(self) -> str:
        """What was chosen, and why, in a few words."""
        kind = "dot products of 4 codes" if self.dot else "multiply-adds"
        return f"tile of {self.pixels[-1]} pixels x {self.vectors * LANES} channels, {kind}"

    @property
    def group(self) -> int:
        """Reduction elements per step."""
        return 4 if self.dot else 1


def plan(conv: Convolution, features: frozenset[str]) -> Plan:
    """Tile sizes that keep accumulators, weights and broadcasts in the vector registers."""
    wide = "avx512f" in features
    codes = not conv.is_float and all(s.element == i8 for s in (conv.data, conv.kernel))
    if codes and {"avx512vnni", "avx512f"} <= features:
        return Plan(True, 4, (0, 9, 7, 5, 4) if needs_sums(conv) else (0, 12, 10, 8, 6))
    if wide:
        return Plan(False, 4, (0, 12, 10, 8, 6))
    return Plan(False, 1, (0, 3))


def kernel_offset(conv: Convolution) -> int:
    """What the dot product's signed kernel codes lack: 128 for unsigned weights."""
    return 128 if conv.kernel.unsigned else 0


def data_offset(conv: Convolution) -> int:
    """What the dot product's unsigned data codes have too much: 128 for signed data."""
    return 0 if conv.data.unsigned else 128


def needs_sums(conv: Convolution) -> bool:
    """Whether the kernel's zero point asks for the sums of the data."""
    return not conv.is_float and conv.kernel.zero_point != kernel_offset(conv)


@dataclass(frozen=True)
class Packed:
    """The constants of one call of a kernel: weights, initial accumulators, and what else the schedule reads: which
    of 4 codes count in the sums, or where the initial accumulators of each row start, and an order of bytes."""

    weights: Array
    initial: Array
    more: tuple[Array, ...] = ()

    @property
    def columns(self) -> tuple[Array, ...]:
        return (self.weights, self.initial, *self.more)


def pack_constants(conv: Convolution, plan: Plan, kernel: Array) -> Packed:
    """Numbers of the micro-kernel for the weights of one call."""
    if conv.is_float:
        matrix = as_matrix(conv, kernel, 1)
        return Packed(pack(matrix, plan.vectors, 1), padded(np.zeros(conv.outputs, np.float32)))
    if not plan.dot:
        matrix = as_matrix(conv, kernel, 1)
        initial = initial_accumulator(conv, kernel, conv.data.zero_point)
        return Packed(pack(matrix, plan.vectors, 1).astype(np.int16), initial)
    signed = kernel.astype(np.int16) - kernel_offset(conv)
    matrix = runs(conv, signed, plan.group)
    initial = initial_accumulator(conv, kernel, conv.data.zero_point + data_offset(conv))
    more: tuple[Array, ...] = ()
    if needs_sums(conv):
        more = (runs(conv, np.ones_like(kernel[:1], np.int8), plan.group).reshape(-1),)
    return Packed(pack(matrix, plan.vectors, plan.group).astype(np.int8), initial, more)


class MatmulEmitter:
    """Emits one contraction with its epilogue."""

    def __init__(
        self,
        builder: LoopBuilder,
        conv: Convolution,
        plan: Plan,
        data: SSAValue,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
    ):
        self.b, self.conv, self.plan, self.epilogue = builder, conv, plan, epilogue
        self.data = builder.flatten(data)
        self.weights, self.initial = constants[0], constants[1]
        self.ones = constants[2] if len(constants) > 2 else None
        self.run = -(-run_length(conv) // plan.group)
        joined = conv.dilation[1] == 1 or conv.kernel_columns == 1
        self.taps = conv.kernel_rows * (1 if joined else conv.kernel_columns)
        self.tap_columns = 1 if joined else conv.kernel_columns
        self.depth = self.taps * self.run
        tile = max(pixels * vectors for vectors, pixels in enumerate(plan.pixels))
        self.scratch = builder.add(memref.AllocOp.get(conv.accumulator, 64, [tile * LANES])).memref

    def emit(self) -> None:
        conv, b = self.conv, self.b
        flat = conv.pointwise and (self.epilogue.flatten_points() or self.epilogue.rank == 2)
        outer = [] if flat else [conv.images, conv.out_rows]
        width = conv.images * conv.out_rows * conv.out_columns if flat else conv.out_columns
        blocks = blocks_of(conv.outputs, self.plan.vectors)
        whole = [first for first, count in blocks if count == self.plan.vectors]
        partial = conv.outputs % LANES != 0
        uniform = whole[:-1] if partial and whole and len(whole) == len(blocks) else whole
        step = self.plan.vectors * LANES
        groups: list[tuple[int, int, int]] = []
        if uniform:
            groups.append((0, len(uniform) * step, self.plan.vectors))
        groups += [(first, first + 1, count) for first, count in blocks if first not in uniform]
        for start, stop, vectors in groups:
            with b.loop(start, stop, step) as (channel, _), ExitStack() as stack:
                point = [stack.enter_context(b.loop(0, d))[0] for d in outer]
                pixels = min(self.plan.pixels[vectors], width)
                pixels = -(-width // -(-width // pixels))
                with b.loop(0, width // pixels * pixels, pixels) as (x, _):
                    self.tile(point, x, channel, pixels, vectors)
                if width % pixels:
                    self.tile(point, width // pixels * pixels, channel, width % pixels, vectors)

    def tile(self, point: Sequence[Index], x: Index, channel: Index, pixels: int, vectors: int) -> None:
        """`pixels` neighbours in a row times `vectors` x 16 channels."""
        b, conv = self.b, self.conv
        start = [b.vector_load(self.initial, [b.plus(channel, v * LANES)], LANES) for v in range(vectors)]
        accumulators = [start[v] for _ in range(pixels) for v in range(vectors)]
        sums: list[SSAValue] = []
        if self.ones is not None:
            sums = [vector_constant(b, 0, i32, LANES)] * pixels
        block = b.times(channel, self.depth * self.plan.group)
        row = b.plus(b.times(point[0], conv.rows), b.times(point[1], conv.strides[0])) if point else 0
        carried = accumulators + sums
        with b.loop(0, conv.kernel_rows, carried=carried) as (i, rows):
            line = b.times(b.plus(row, b.times(i, conv.dilation[0])), conv.columns)
            line = b.plus(line, b.times(x, conv.strides[1]))
            with b.loop(0, self.tap_columns, carried=rows.args) as (j, taps):
                base = b.times(b.plus(line, b.times(j, conv.dilation[1])), conv.channels)
                tap = b.times(b.plus(b.times(i, self.tap_columns), j), self.run)
                with b.loop(0, self.run, carried=taps.args) as (k, steps):
                    step = b.plus(tap, k)
                    at = b.plus(block, b.times(step, vectors * LANES * self.plan.group))
                    start_of_data = b.plus(base, b.times(k, self.plan.group))
                    steps.next = self.step(steps.args, start_of_data, at, step, pixels, vectors)
                taps.next = steps.results
            rows.next = taps.results
        self.finish(rows.results, point, x, channel, pixels, vectors)

    def finish(
        self,
        accumulators: Sequence[SSAValue],
        point: Sequence[Index],
        x: Index,
        channel: Index,
        pixels: int,
        vectors: int,
    ) -> None:
        """The epilogue, as a loop over the tile: accumulators go through a few lines of scratch, the code is small."""
        b, conv = self.b, self.conv
        for m in range(pixels):
            for v in range(vectors):
                value = accumulators[m * vectors + v]
                if self.ones is not None:
                    value = self.correct(value, accumulators[pixels * vectors + m])
                b.vector_store(value, self.scratch, [(m * vectors + v) * LANES])
        last = LANES
        if isinstance(channel, int):
            last = min(LANES, conv.outputs - channel - (vectors - 1) * LANES)
        whole = vectors if last == LANES else vectors - 1
        with b.loop(0, pixels) as (m, _):
            row = [*point, b.plus(x, m)]
            line = b.times(m, vectors * LANES)
            if whole:
                with b.loop(0, whole * LANES, LANES) as (ahead, _):
                    value = b.vector_load(self.scratch, [b.plus(line, ahead)], LANES)
                    self.epilogue.apply(value, row, b.plus(channel, ahead), LANES)
            if last != LANES:
                ahead = whole * LANES
                value = b.vector_load(self.scratch, [b.plus(line, ahead)], LANES)
                self.epilogue.apply(value, row, b.plus(channel, ahead), last)

    def correct(self, value: SSAValue, total: SSAValue) -> SSAValue:
        """Take the kernel's zero point times the sum of the data off."""
        factor = vector_constant(self.b, kernel_offset(self.conv) - self.conv.kernel.zero_point, i32, LANES)
        product = self.b.add(arith.MuliOp(total, factor)).result
        return self.b.add(arith.AddiOp(value, product)).result

    def step(
        self, carried: Sequence[SSAValue], data: Index, weights: Index, step: Index, pixels: int, vectors: int
    ) -> list[SSAValue]:
        """One step of the reduction for the whole tile."""
        b, conv, plan = self.b, self.conv, self.plan
        width = LANES * plan.group
        columns = [self.weight(b.plus(weights, v * width)) for v in range(vectors)]
        pitch = conv.strides[1] * conv.channels
        ones = None
        if self.ones is not None:
            ones = self.spread(b.vector_load(self.ones, [b.times(step, 4)], 4))
        result: list[SSAValue] = []
        totals: list[SSAValue] = []
        for m in range(pixels):
            at = b.plus(data, m * pitch)
            value = self.broadcast(at)
            result += [self.multiply_add(carried[m * vectors + v], value, columns[v]) for v in range(vectors)]
            if ones is not None:
                totals.append(self.multiply_add(carried[pixels * vectors + m], value, ones))
        return result + totals

    def weight(self, at: Index) -> SSAValue:
        b = self.b
        vec = b.vector_load(self.weights, [at], LANES * self.plan.group)
        if self.plan.dot or self.conv.is_float:
            return vec
        return b.add(ExtSIOp(vec, VectorType(i32, [LANES]))).result

    def spread(self, four: SSAValue) -> SSAValue:
        """Four codes in each of 16 lanes."""
        b = self.b
        return b.bitcast(b.broadcast(b.bitcast(four, i32, 1), LANES), i8, 4 * LANES)

    def broadcast(self, at: Index) -> SSAValue:
        """What one pixel gives to a step, in every lane; for a dot product as unsigned codes."""
        b, conv = self.b, self.conv
        if conv.is_float:
            return b.broadcast(b.load(self.data, [at]), LANES)
        if not self.plan.dot:
            scalar = b.load(self.data, [at])
            extend = ExtUIOp if conv.data.unsigned else ExtSIOp
            return b.broadcast(b.add(extend(scalar, i32)).result, LANES)
        words = b.broadcast(b.bitcast(b.vector_load(self.data, [at], 4), i32, 1), LANES)
        if not conv.data.unsigned:
            flip = vector_constant(b, -0x7F7F7F80, i32, LANES)
            words = b.add(arith.XOrIOp(words, flip)).result
        return b.bitcast(words, i8, 4 * LANES)

    def multiply_add(self, accumulator: SSAValue, data: SSAValue, weights: SSAValue) -> SSAValue:
        b = self.b
        if self.plan.dot:
            return b.add(llvm.CallIntrinsicOp(VPDPBUSD, [accumulator, data, weights], [accumulator.type])).results[0]
        if self.conv.is_float:
            return b.add(vector.FMAOp(data, weights, accumulator)).results[0]
        return b.add(arith.AddiOp(accumulator, b.add(arith.MuliOp(data, weights)).result)).result


def slack(conv: Convolution, plan: Plan) -> int:
    """Bytes that the last step may read behind the data."""
    return -run_length(conv) % plan.group
