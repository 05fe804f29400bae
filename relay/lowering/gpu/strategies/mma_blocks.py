"""`mma-blocks`: products with weights of few bits in blocks, by the matrix units of single warps: codes are converted
to rounded floats while they are copied to shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.block_weights import BlockReader, BlockWeights, block_weights_of
from relay.lowering.gpu.matrix import Matrix, Product
from relay.lowering.gpu.pair_kernel import Pair, PairCopies, PairKernel, Part
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.strategies.mma import TILES
from relay.lowering.gpu.strategies.mma_pairs import STAGES, format_of
from relay.lowering.gpu.strategies.products import Products, ProductSchedule
from relay.lowering.gpu.strategies.strategy import Emission, Kernel
from relay.lowering.gpu.tiles import CHUNK, Tile
from relay.lowering.gpu.warp_products import float_words
from relay.lowering.indices import below, binary, both
from relay.lowering.scheduling.contraction import Convolution, Operand


@dataclass(frozen=True, kw_only=True)
class MmaBlocksSchedule(ProductSchedule):
    strategy = "mma-blocks"


@dataclass(frozen=True)
class MmaBlocks(Products):
    """Products of floats that may be rounded, by weights of few bits in blocks."""

    record = MmaBlocksSchedule
    kind = Tile
    weights: BlockWeights

    @classmethod
    def match_nest(cls, nest: Nest, kernel: Kernel) -> Self | None:
        format, costs = format_of({f32}, kernel.target), kernel.target.costs
        if not kernel.target.matrix_units or format is None:
            return None
        weights = block_weights_of(nest, kernel.fused.producers, kernel.given)
        if weights is None or weights.rows < costs.matrix_rows or weights.channels < costs.matrix_columns:
            return None
        if weights.largest(kernel.given) >= format.limit:
            return None
        rows, channels, depth, (data, codes, *_) = weights.rows, weights.channels, weights.depth, weights.op.inputs
        sides = Operand(data, False, 0), Operand(codes, False, 0)
        conv = Convolution(
            *sides, weights.op.outputs[0], rows, 1, 1, depth, 1, 1, channels, 1, 1, (1, 1), (1, 1), False, f32
        )
        return cls(Product(weights.nest, conv, None, weights.sums, None, weights.widest, format), weights)

    @classmethod
    def tiles(cls, product: Product, kernel: Kernel) -> Sequence[Tile]:
        return [replace(tile, stages=STAGES) for tile in TILES]

    def buffers(self, emission: Emission, m: Matrix, other_blocks: list[int]) -> list[SSAValue]:
        return [emission.builder.flatten(m.conv.data.value), *self.weights.pack(emission.given)]

    def kernel(
        self, b: LoopBuilder, m: Matrix, points: PointEmitter, buffers: Sequence[SSAValue], blocks: int
    ) -> BlockKernel:
        return BlockKernel(b, m, points, buffers, BlockReader(b, self.weights, buffers[1:]))


class BlockKernel(PairKernel):
    """Emits the work of one thread for a tile of a product with weights of few bits in blocks."""

    def __init__(
        self, b: LoopBuilder, matrix: Matrix, points: PointEmitter, buffers: Sequence[SSAValue], reader: BlockReader
    ):
        super().__init__(b, Pair(matrix, 1, False), matrix, points, buffers[:2])
        self.reader, self.number = reader, 0

    def pair_copies(self) -> PairCopies:
        return BlockCopies(self, self.reader)


class BlockCopies(PairCopies):
    """Emits one thread's copies of both factors to shared memory; the codes of the second factor, the weights, are
    converted to tf32 or half-precision floats on the way."""

    def __init__(self, kernel: BlockKernel, reader: BlockReader):
        self.reader = reader
        super().__init__(kernel.t, kernel.factors, kernel.pair, 0)

    def chunk(self, source: SSAValue, line: Index, k: Index, inside: SSAValue | None, place: Index) -> Part:
        if source is not self.reader.codes:
            return super().chunk(source, line, k, inside, place)
        b, t, m, whole = self.b, self.t, self.m, CHUNK // self.size

        def read(step: Index) -> list[SSAValue]:
            at, known = b.plus(b.times(step, m.deep), k), inside
            if m.depth < m.packed_depth or m.steps > 1:
                known = both(b, [known, below(b, at, m.depth)])
                at = binary(b, arith.MinUIOp, at, m.depth - whole)
            words, (scale, start) = self.reader.words(line, at, whole), self.reader.scale(line, at)
            steps = self.reader.steps(words, whole, start)
            found = float_words(b, m.format, [b.add(arith.MulfOp(each, scale)).result for each in steps])
            zero = b.constant(0, i32)
            return found if known is None else [b.select(known, word, zero) for word in found]

        def write(stage: Index, values: Sequence[SSAValue]) -> None:
            b.vector_store(self.of_words(values), t.numbers, [t.div(b.plus(stage, place), self.size)])

        return Part(read, write)
