"""Depthwise convolution by dot products of 4 codes: up to 4 rows of a column of the image, byte by byte, per channel.

A column of 16 channels is read once per tile of neighbouring pixels and interleaved to [row 0, row 1, row 2, row 3] in
each of 16 lanes; every pixel that the column meets takes one dot product of it. Borders are not padded: rows outside
are masked to zeros, columns outside are left out, and the initial accumulators of each kind of border make up for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, llvm, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, i8, i32, i64
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array
from relay.lowering.builder import INDEX, Index, LoopBuilder
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.matmul import VPDPBUSD, Packed, data_offset, kernel_offset, needs_sums
from relay.lowering.scheduling.packing import LANES, padded, wrap_i32
from relay.lowering.scheduling.padding import Padding, spans
from relay.lowering.shaped import is_vector, shape_of

GROUP = 4
TILE = 8
PERMUTE_WORDS = "llvm.x86.avx512.permvar.si.512"
PERMUTE_BYTES = "llvm.x86.avx512.pshuf.b.512"
NEEDED = frozenset({"avx512f", "avx512bw", "avx512vnni"})


@dataclass(frozen=True)
class Image:
    """What the convolution reads, without its padding."""

    value: SSAValue
    rows: int
    columns: int
    top: int
    left: int


def image_of(conv: Convolution, padding: Padding | None) -> Image:
    """The unpadded image, if the padding is one of height and width by the zero point."""
    if padding is None:
        return Image(conv.data.value, conv.rows, conv.columns, 0, 0)
    _, rows, columns, _ = shape_of(padding.source)
    return Image(padding.source, rows, columns, padding.low[1], padding.low[2])


def rows_of(conv: Convolution, image: Image) -> list[tuple[int, int, int, int]]:
    return spans(image.rows, conv.kernel_rows, conv.strides[0], conv.dilation[0], image.top, conv.out_rows)


def columns_of(conv: Convolution, image: Image) -> list[tuple[int, int, int, int]]:
    return spans(image.columns, conv.kernel_columns, conv.strides[1], conv.dilation[1], image.left, conv.out_columns)


def fits(conv: Convolution, image: Image, features: frozenset[str]) -> bool:
    """Whether this schedule can be used: 8-bit codes, the instruction, few kinds of border."""
    codes = not conv.is_float and conv.data.element == conv.kernel.element == i8
    if not codes or not features >= NEEDED or conv.kernel_rows > 8 or conv.kernel_columns > 8:
        return False
    if not conv.kernel.unsigned and conv.kernel.zero_point != 0:
        return False
    rows, columns = rows_of(conv, image), columns_of(conv, image)
    return len(rows) <= 5 and len(columns) <= 5 and all(end > first for _, _, first, end in rows + columns)


def pack_depthwise_dot(conv: Convolution, image: Image, kernel: Array) -> Packed:
    """Weights [block of 16 channels][group of rows][column][channel][row]; initial accumulators per kind of border;
    and where those of each row start."""
    rows, columns, channels = kernel.shape
    signed = (kernel.astype(np.int16) - kernel_offset(conv)).astype(np.int8)
    groups = -(-rows // GROUP)
    wide = np.pad(signed, ((0, groups * GROUP - rows), (0, 0), (0, -channels % LANES)))
    weights = wide.reshape(groups, GROUP, columns, -1, LANES).transpose(3, 0, 2, 4, 1).reshape(-1)
    true = kernel.astype(np.int64) - conv.kernel.zero_point
    initial: list[Array] = []
    zero_point = conv.data.zero_point + data_offset(conv)
    for _, _, first, end in rows_of(conv, image):
        for _, _, left, right in columns_of(conv, image):
            inside = true[first:end, left:right].sum(axis=(0, 1))
            outside = true[:first, left:right].sum(axis=(0, 1)) + true[end:, left:right].sum(axis=(0, 1))
            initial.append(padded(wrap_i32(-zero_point * inside - data_offset(conv) * outside)))
    kinds = np.concatenate(
        [np.full(end - first, n, np.int32) for n, (first, end, _, _) in enumerate(rows_of(conv, image))]
    )
    starts = kinds * np.int32(len(columns_of(conv, image)) * initial[0].size)
    return Packed(weights, np.concatenate(initial), (starts, interleave()))


def interleave() -> Array:
    """How 4 rows of 16 codes, one per 128 bits, become 4 codes in each of 16 lanes: first words across the 128 bits,
    then bytes inside. Read from memory, since LLVM would merge known orders into a slower one."""
    words = [GROUP * row + lane for lane in range(4) for row in range(GROUP)]
    inside = [GROUP * row + code for code in range(4) for row in range(GROUP)] * 4
    return np.concatenate([np.array(words, np.int32), np.array(inside, np.int8).view(np.int32)])


def tile_of(width: int) -> int:
    """Pixels per tile: a divisor of the width, if a good one exists."""
    return next((t for t in range(min(TILE, width), 3, -1) if width % t == 0), min(TILE, width))


class DepthwiseDotEmitter:
    """Emits one depthwise convolution with its epilogue."""

    def __init__(
        self,
        builder: LoopBuilder,
        conv: Convolution,
        image: Image,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
    ):
        self.b, self.conv, self.image, self.epilogue = builder, conv, image, epilogue
        self.data = builder.flatten(image.value)
        self.weights, self.initial, self.kinds, self.order = constants
        self.groups = -(-conv.kernel_rows // GROUP)
        self.scratch = builder.add(memref.AllocOp.get(i32, 64, [conv.out_columns * LANES])).memref
        self.masks: list[SSAValue | None] = []
        self.padded_channels = -(-conv.outputs // LANES) * LANES

    def emit(self) -> None:
        conv, b = self.conv, self.b
        whole = conv.outputs // LANES * LANES
        parts = [(0, whole, LANES)] if whole else []
        if conv.outputs % LANES:
            parts.append((whole, whole + 1, conv.outputs % LANES))
        columns = columns_of(conv, self.image)
        for start, stop, lanes in parts:
            with ExitStack() as stack:
                n, _ = stack.enter_context(b.loop(0, conv.images))
                channel, _ = stack.enter_context(b.loop(start, stop, LANES))
                y, _ = stack.enter_context(b.loop(0, conv.out_rows))
                kind = b.add(arith.IndexCastOp(b.load(self.kinds, [y]), INDEX)).result
                self.masks = [self.row_mask(y, i, lanes) for i in range(conv.kernel_rows)]
                for number, (left, right, *across) in enumerate(columns):
                    at = b.plus(b.plus(channel, kind), number * self.padded_channels)
                    tile = tile_of(right - left)
                    cut = left + (right - left) // tile * tile
                    with b.loop(left, cut, tile) as (x, _):
                        self.tile((n, y, x), channel, at, tile, (across[0], across[1]))
                    if cut < right:
                        self.tile((n, y, cut), channel, at, right - cut, (across[0], across[1]))
                self.finish(n, y, channel, lanes)

    def row_mask(self, y: Index, i: int, lanes: int) -> SSAValue | None:
        """The lanes to read of one row of taps: none where it lies outside the image. None: all 16, always."""
        conv, b, image = self.conv, self.b, self.image
        row = i * conv.dilation[0] - image.top
        last = (conv.out_rows - 1) * conv.strides[0] + row
        channels = self.epilogue.mask(lanes)
        if row >= 0 and last < image.rows:
            return None if lanes == LANES else channels
        position = b.index(b.plus(b.times(y, conv.strides[0]), row))
        inside = b.add(arith.CmpiOp(position, b.constant(image.rows, INDEX), "ult")).result
        rows = b.broadcast(inside, LANES)
        return rows if lanes == LANES else b.add(arith.AndIOp(rows, channels)).result

    def tile(
        self,
        point: tuple[Index, Index, Index],
        channel: Index,
        initial: Index,
        pixels: int,
        taps: tuple[int, int],
    ) -> None:
        """`pixels` neighbours of 16 channels, all with the same columns of taps inside the image."""
        conv, b, image = self.conv, self.b, self.image
        n, y, x = point
        left, right = taps
        row = b.plus(b.times(n, image.rows), b.times(y, conv.strides[0]))
        base = b.plus(b.times(row, image.columns), b.times(x, conv.strides[1]))
        base = b.plus(b.times(base, conv.channels), channel)
        start = b.vector_load(self.initial, [initial], LANES)
        totals = [start] * pixels
        sums = [vector_constant(b, 0, i32, LANES)] * pixels if needs_sums(conv) else []
        ones = vector_constant(b, 1, i8, GROUP * LANES)
        block = b.times(channel, self.groups * conv.kernel_columns * GROUP)
        for group in range(self.groups):
            weights = {
                j: b.vector_load(
                    self.weights,
                    [b.plus(block, (group * conv.kernel_columns + j) * GROUP * LANES)],
                    GROUP * LANES,
                )
                for j in range(left, right)
            }
            known: dict[int, SSAValue] = {}
            for m in range(pixels):
                for j in range(left, right):
                    offset = m * conv.strides[1] + j * conv.dilation[1]
                    if offset not in known:
                        known[offset] = self.column(base, offset, group)
                    totals[m] = self.dot(totals[m], known[offset], weights[j])
                    if sums:
                        sums[m] = self.dot(sums[m], known[offset], ones)
        for m, total in enumerate(totals):
            if sums:
                factor = vector_constant(b, kernel_offset(conv) - conv.kernel.zero_point, i32, LANES)
                total = b.add(arith.AddiOp(total, b.add(arith.MuliOp(sums[m], factor)).result)).result
            b.vector_store(total, self.scratch, [b.times(b.plus(x, m), LANES)])

    def finish(self, n: Index, y: Index, channel: Index, lanes: int) -> None:
        """The epilogue of one row of 16 channels; its accumulators are in scratch."""
        b, conv = self.b, self.conv
        with b.loop(0, conv.out_columns) as (x, _):
            value = b.vector_load(self.scratch, [b.times(x, LANES)], LANES)
            self.epilogue.apply(value, [n, y, x], channel, lanes)

    def column(self, base: Index, offset: int, group: int) -> SSAValue:
        """Up to 4 rows of one column, a byte of each per lane; rows outside are zeros."""
        conv, b, image = self.conv, self.b, self.image
        zeros = vector_constant(b, 0, i8, LANES)
        rows: list[SSAValue] = []
        for i in range(group * GROUP, (group + 1) * GROUP):
            if i >= conv.kernel_rows:
                rows.append(zeros)
                continue
            line = i * conv.dilation[0] - image.top
            at = b.plus(base, (line * image.columns + offset - image.left) * conv.channels)
            mask = self.masks[i]
            if mask is None:
                rows.append(b.vector_load(self.data, [at], LANES))
            else:
                rows.append(b.add(vector.MaskedLoadOp(self.data, [b.index(at)], mask, zeros)).result)
        halves = [self.join(rows[k], rows[k + 1]) for k in (0, 2)]
        words = b.bitcast(self.join(halves[0], halves[1]), i32, LANES)
        words = self.call(PERMUTE_WORDS, words, b.vector_load(self.order, [0], LANES))
        inner = b.bitcast(b.vector_load(self.order, [LANES], LANES), i8, GROUP * LANES)
        codes = self.call(PERMUTE_BYTES, b.bitcast(words, i8, GROUP * LANES), inner)
        if conv.data.unsigned:
            return codes
        flip = vector_constant(b, -0x7F7F7F80, i32, LANES)
        words = b.add(arith.XOrIOp(b.bitcast(codes, i32, LANES), flip)).result
        return b.bitcast(words, i8, GROUP * LANES)

    def join(self, first: SSAValue, second: SSAValue) -> SSAValue:
        """Two vectors of codes, one behind the other."""
        size = 2 * first.type.get_shape()[0] if is_vector(first.type) else 0
        mask = DenseArrayBase.from_list(i64, list(range(size)))
        return self.b.add(
            vector.ShuffleOp.create(
                operands=[first, second], result_types=[VectorType(i8, [size])], properties={"mask": mask}
            )
        ).result

    def call(self, name: str, *operands: SSAValue) -> SSAValue:
        """An intrinsic whose result has its first operand's type."""
        return self.b.add(llvm.CallIntrinsicOp(name, operands, [operands[0].type])).results[0]

    def dot(self, total: SSAValue, codes: SSAValue, weights: SSAValue) -> SSAValue:
        return self.call(VPDPBUSD, total, codes, weights)
