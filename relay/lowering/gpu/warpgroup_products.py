"""Products of codes by groups of four warps: `wgmma.mma_async`, both factors from shared memory.

Rows of 128 codes lie in shared memory as the matrix units want them (128-byte swizzle): chunk c of row r at c xor
(r mod 8), and 8 rows in 1,024 bytes. A stage is filled again two steps after it was multiplied: at a barrier, all
groups have waited for the products of the step before the last, while those of the last may still be under way.
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
"""Threads of a group."""
ROWS = 64
"""Rows of a group."""
UNIT = 16
"""Bytes that a descriptor counts by."""
SWIZZLES = {128: 1, 64: 2, 32: 3}
"""A descriptor's number of a swizzle, by the bytes of a row."""
FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned {left};"
VISIBLE = "fence.proxy.async.shared::cta;"
"""What this thread wrote to shared memory is what matrix units will read."""


def description(row: int) -> int:
    """What a descriptor says of a matrix in shared memory with rows of so many bytes, besides where it starts: the
    swizzle, and the bytes from eight rows to the next; the other distance is not used with it."""
    return SWIZZLES[row] << 62 | 8 * row // UNIT << 32 | 1 << 16


def products_text(columns: int, left: str, right: str, count: int, tiles: int = 1) -> str:
    """`count` products of 64 x 32 by 32 x `columns` codes as one group, for each of some tiles of 64 rows; `left` and
    `right` are types of codes. Operands: the sums of all tiles, then for each of the products descriptors of the tiles'
    factors and of the one that they share."""
    sums = columns // 2
    each = f"wgmma.mma_async.sync.aligned.m64n{columns}k{TAP}.s32.{left}.{right}"
    words = [", ".join(f"${number}" for number in range(tile * sums, (tile + 1) * sums)) for tile in range(tiles)]
    lines = list[str]()
    for first in range(tiles * sums, tiles * sums + count * (tiles + 1), tiles + 1):
        lines += [f"{each} {{{words[tile]}}}, ${first + tile}, ${first + tiles}, 1;" for tile in range(tiles)]
    return " ".join([FENCE, *lines, COMMIT])


def signed(word: int) -> int:
    """The same 64 bits as a signed number."""
    return word - (1 << 64) if word >> 63 else word


def constraints(sums: int, others: int) -> str:
    """Of instructions that change so many registers in place, and read others."""
    places = ["=r"] * sums + ["l"] * others + [str(number) for number in range(sums)]
    return ",".join([*places, "~{memory}"])


def tied(b: LoopBuilder, text: str, sums: Sequence[SSAValue], others: Sequence[SSAValue] = ()) -> list[SSAValue]:
    """Instructions that change some registers in place, and read others."""
    count = len(sums)
    result = llvm.LLVMStructType.from_type_list([i32] * count)
    call = llvm.InlineAsmOp(text, constraints(count, len(others)), [*others, *sums], [result], 0, has_side_effects=True)
    found = b.add(call).res
    assert found is not None
    return b.fields(found)


def instruction(b: LoopBuilder, text: str) -> None:
    """One that only orders others."""
    b.add(llvm.InlineAsmOp(text, "~{memory}", [], [], 0, has_side_effects=True))


class GroupProducts:
    """Emits what one thread of a group multiplies: the sums of a step are known when the next step's are waited for."""

    kind = i32
    behind = 2
    """Stages that are not filled: of this step, and of the last, whose products may be under way."""
    fenced = True
    rows = 0

    def __init__(self, thread: MatrixThread):
        self.t, self.b, self.tile = thread, thread.b, thread.tile

    def prepare(self) -> None:
        """What matrix units are told of both factors in the first stage."""
        b, t, tile = self.b, self.t, self.tile
        start = t.div(t.pointer(t.shared), UNIT)
        self.row = t.m.piece_bytes
        rows = b.times(t.div(t.number, GROUP), ROWS * self.row // UNIT)
        self.left = b.plus(b.plus(start, signed(description(self.row))), rows)
        right = signed(description(tile.depth)) + tile.rows * tile.depth // UNIT
        self.right = b.plus(start, right)

    def place(self, step: int, taken: int) -> int:
        """Where the rows of a thread's product of 16 rows are, whose codes are these of a step, in units."""
        piece, inside = divmod(taken, self.row)
        return (piece * self.tile.rows * self.row + step * self.tile.step_rows * self.row + inside) // UNIT

    def turn(self, step: Index, sums: Sequence[SSAValue], refill: Callable[[Index], None]) -> list[SSAValue]:
        """Start the products of a step, and wait for those of the last."""
        found = self.begin(self.t.stage(step, UNIT), sums)
        refill(step)
        instruction(self.b, WAIT.format(left=1))
        return found

    def finish(self, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """The sums, once all products are done."""
        return tied(self.b, WAIT.format(left=0), sums)

    def begin(self, stage: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Start all products of a stage; the sums are known when they are waited for."""
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
