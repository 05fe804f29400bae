"""One thread of a block that computes a tile of a product: its position, and arithmetic on its addresses."""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i16
from xdsl.ir import SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import Matrix
from relay.lowering.gpu.shared_memory import shared_memory, shared_view
from relay.lowering.gpu.teams import WORD
from relay.lowering.gpu.tiles import CHUNK
from relay.lowering.indices import below, binary, quotient, remainder
from relay.target.record import WARP

BANKS = 128
"""The bytes of shared memory that can be read at once, for which the layout of rows is designed."""


class MatrixThread:
    """The position of one thread, as values that its copies and products use. `number`: the thread's index in its slice
    of the block; `part`: the index of the block's part of the depth; `first_step`, `start`: the slice's first step, and
    the byte at which its stages start; `first_row`, `first_column`: those of the block's tile; `warp_row`,
    `warp_column`: the offsets of the warp's first row and column in the tile; `shared`, `numbers`: the block's shared
    memory, as bytes and as elements of the data.

    A row of 64 bytes is stored in shared memory as four chunks of 16, chunk c of row r at c xor (r / 2 mod 4), so that
    eight rows' chunks use all banks; a row of 128 bytes as eight, chunk c at c xor (r mod 8). The constructor allocates
    shared memory unless it is given as `shared`.
    """

    def __init__(
        self, builder: LoopBuilder, matrix: Matrix, block: Index, thread: Index, shared: SSAValue | None = None
    ):
        b, tile = builder, matrix.tile
        self.b, self.m, self.tile, self.conv = builder, matrix, tile, matrix.conv
        self.slice = self.div(thread, tile.threads) if tile.slices > 1 else 0
        self.number = thread = self.rem(thread, tile.threads) if tile.slices > 1 else thread
        self.start = b.times(self.slice, tile.stages * tile.stage_bytes)
        self.chunks = tile.depth // CHUNK
        across = matrix.packed_columns // tile.columns
        tiles = across * -(-matrix.rows // tile.rows)
        self.part = self.div(block, tiles) if matrix.splits > 1 else 0
        block = self.rem(block, tiles) if matrix.splits > 1 else block
        self.first_step = b.times(b.plus(b.times(self.part, tile.slices), self.slice), matrix.steps)
        self.first_row = b.times(self.div(block, across), tile.rows)
        self.first_column = b.times(self.rem(block, across), tile.columns)
        self.lane, warp = self.rem(thread, WARP), self.div(thread, WARP)
        self.warp_row = b.times(self.rem(warp, tile.down), tile.warp_rows)
        self.warp_column = b.times(self.div(warp, tile.down), tile.columns // tile.across)
        self.shared = self.numbers = shared_memory(b, matrix.shared_bytes) if shared is None else shared
        if not matrix.format.exact:
            count = tile.slices * tile.stages * tile.stage_bytes // matrix.format.data
            element = matrix.conv.data.element if matrix.format.data == WORD else i16
            self.numbers = shared_view(b, self.shared, element, count)

    def div(self, a: Index, c: int) -> Index:
        """Emit and return `a / c`."""
        return quotient(self.b, a, c)

    def rem(self, a: Index, c: int) -> Index:
        """Emit and return `a mod c`."""
        return remainder(self.b, a, c)

    def below(self, a: Index, bound: int) -> SSAValue:
        """Emit and return the condition `0 <= a < bound`."""
        return below(self.b, a, bound)

    def place(self, row: Index, chunk: Index) -> Index:
        """Return the offset in bytes at which a chunk, 16 bytes, of a tile's row is stored in a pipeline stage. The
        chunks of a row are permuted, so that threads which access the same chunk of several rows use different
        banks."""
        twist = self.rem(self.div(row, BANKS // self.tile.depth), self.chunks)
        turned = binary(self.b, arith.XOrIOp, chunk, twist)
        return self.b.plus(self.b.times(row, self.tile.depth), self.b.times(turned, CHUNK))

    def pointer(self, buffer: SSAValue) -> Index:
        """Return the address of a buffer."""
        return self.b.add(memref.ExtractAlignedPointerAsIndexOp.get(buffer)).aligned_pointer

    def stage(self, step: Index, unit: int = 1) -> Index:
        """Return the offset of a step's stage in shared memory, in units of `unit` bytes."""
        stage = self.b.times(self.rem(step, self.m.tile.stages), self.tile.stage_bytes // unit)
        return stage if self.tile.slices == 1 else self.b.plus(stage, self.div(self.start, unit))
