"""Products of codes by groups of four warps: `wgmma.mma_async`, with both factors in shared memory.

Rows of 128 codes are stored in shared memory as the matrix units require (128-byte swizzle): chunk c of row r at c xor
(r mod 8), and 8 rows in 1,024 bytes. Shared memory has several buffers, each for the factors of one step of the
reduction. Products are asynchronous: at a barrier, those of the last step may still be in progress, but all groups have
waited for those of the step before. So a buffer is refilled two steps after its products were started.

Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" and "Async proxy".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import TAP
from relay.lowering.gpu.matrix_thread import MatrixThread

GROUP = 128
"""The number of threads of a warp group (four warps)."""
ROWS = 64
"""The number of rows of the data that one instruction of a warp group multiplies."""
UNIT = 16
"""The unit in bytes of offsets in a descriptor."""
SWIZZLES = {128: 1, 64: 2, 32: 3}
"""The value of the swizzle field of a descriptor, by the number of bytes of a row."""
FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned {left};"
VISIBLE = "fence.proxy.async.shared::cta;"
"""The fence that makes this thread's writes to shared memory visible to matrix units."""


def description(row: int) -> int:
    """Return the constant bits of the `wgmma` descriptor of a matrix in shared memory with rows of `row` bytes: the
    swizzle mode, and the stride in bytes between groups of 8 rows. The descriptor's other stride is unused in these
    modes."""
    return SWIZZLES[row] << 62 | 8 * row // UNIT << 32 | 1 << 16


def products_text(columns: int, left: str, right: str, count: int, tiles: int = 1) -> str:
    """Return the text of `count` products of 64 x 32 by 32 x `columns` codes as one group, for each of `tiles` tiles of
    64 rows; `left` and `right`: types of codes. Operands: the sums of all tiles, then for each product the descriptors
    of the tiles' factors and of the factor that they share."""
    sums = columns // 2
    each = f"wgmma.mma_async.sync.aligned.m64n{columns}k{TAP}.s32.{left}.{right}"
    words = [", ".join(f"${number}" for number in range(tile * sums, (tile + 1) * sums)) for tile in range(tiles)]
    lines = list[str]()
    for first in range(tiles * sums, tiles * sums + count * (tiles + 1), tiles + 1):
        lines += [f"{each} {{{words[tile]}}}, ${first + tile}, ${first + tiles}, 1;" for tile in range(tiles)]
    return " ".join([FENCE, *lines, COMMIT])


def signed(word: int) -> int:
    """Return the same 64 bits as a signed integer."""
    return word - (1 << 64) if word >> 63 else word


def constraints(sums: int, others: int) -> str:
    """Return the constraints of inline assembly that changes `sums` registers in place, and reads `others`
    registers."""
    places = ["=r"] * sums + ["l"] * others + [str(number) for number in range(sums)]
    return ",".join([*places, "~{memory}"])


def tied(b: LoopBuilder, text: str, sums: Sequence[SSAValue], others: Sequence[SSAValue] = ()) -> list[SSAValue]:
    """Emit inline assembly that changes the registers `sums` in place, and reads `others`; return the new sums."""
    count = len(sums)
    result = llvm.LLVMStructType.from_type_list([i32] * count)
    call = llvm.InlineAsmOp(text, constraints(count, len(others)), [*others, *sums], [result], 0, has_side_effects=True)
    return b.fields(b.add(call).results[0])


def instruction(b: LoopBuilder, text: str) -> None:
    """Emit an instruction without operands that only orders others, such as a fence."""
    b.add(llvm.InlineAsmOp(text, "~{memory}", [], [], 0, has_side_effects=True))


class GroupProducts:
    """Emits the products of one thread of a group: the sums of a step are available only after waiting in the next
    step."""

    kind = i32
    behind = 2
    """The number of stages that cannot be filled during a step: that of this step, and that of the previous step, whose
    products may still be in progress."""
    fenced = True
    rows = 0

    def __init__(self, thread: MatrixThread):
        self.t, self.b, self.tile = thread, thread.b, thread.tile

    def prepare(self) -> None:
        """Compute the matrix descriptors with which `wgmma` reads both factors from the first stage in shared
        memory."""
        b, t, tile = self.b, self.t, self.tile
        start = t.div(t.pointer(t.shared), UNIT)
        self.row = t.m.piece_bytes
        rows = b.times(t.div(t.number, GROUP), ROWS * self.row // UNIT)
        self.left = b.plus(b.plus(start, signed(description(self.row))), rows)
        right = signed(description(tile.depth)) + tile.rows * tile.depth // UNIT
        self.right = b.plus(start, right)

    def place(self, step: int, taken: int) -> int:
        """Return the offset at which a matrix instruction begins to read the first factor in a stage of shared memory,
        in units of 16 bytes as in matrix descriptors. `step`: the number of the instruction along the tile's rows;
        `taken`: the byte of each row at which it begins."""
        piece, inside = divmod(taken, self.row)
        return (piece * self.tile.rows * self.row + step * self.tile.step_rows * self.row + inside) // UNIT

    def turn(self, step: Index, sums: Sequence[SSAValue], refill: Callable[[Index], None]) -> list[SSAValue]:
        """Start the products of a step, request copies by `refill(step)`, and wait for the products of the previous
        step. Return the sums, which are valid only after a later wait."""
        found = self.begin(self.t.stage(step, UNIT), sums)
        refill(step)
        instruction(self.b, WAIT.format(left=1))
        return found

    def finish(self, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the sums after all products are complete."""
        return tied(self.b, WAIT.format(left=0), sums)

    def begin(self, stage: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Start all products of a stage; the returned sums are valid only after a wait."""
        b, tile, conv = self.b, self.tile, self.t.conv
        data, kernel = ("u8" if side.unsigned else "s8" for side in (conv.data, conv.kernel))
        count = tile.depth // TAP
        left, right = b.plus(self.left, stage), b.plus(self.right, stage)
        places = list[Index]()
        for taken in range(0, tile.depth, TAP):
            places += [b.plus(left, self.place(step, taken)) for step in range(tile.row_steps)]
            places.append(b.plus(right, taken // UNIT))
        words = [b.add(arith.IndexCastOp(b.index(place), i64)).result for place in places]
        return tied(b, products_text(tile.columns, data, kernel, count, tile.row_steps), sums, words)
