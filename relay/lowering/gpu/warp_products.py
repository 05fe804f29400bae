"""Products of tiles in shared memory by the matrix units of single warps (`ldmatrix` and `mma.sync`): of codes; and of
floats, which are rounded to tf32, or to half precision, two to a 32-bit word. The data is rounded after it is read from
shared memory, weights when the model is built.

Layouts of the lanes: PTX ISA, "Matrix Fragments for mma.m16n8k32", and "mma.m16n8k8" and "mma.m16n8k16", whose layouts
in bytes equal those of codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import bf16, f16, f32, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects import nvgpu
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.dots import ONES
from relay.lowering.gpu.formats import Format
from relay.lowering.gpu.matrix import TAP
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.teams import WORD
from relay.lowering.shaped import vector_of

HALVES: dict[str, Attribute] = {"f16": f16, "bf16": bf16}
PRODUCTS = {
    "tf32": "llvm.nvvm.mma.m16n8k8.row.col.tf32",
    "f16": "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
    "bf16": "llvm.nvvm.mma.m16n8k16.row.col.bf16",
}
"""The intrinsics for each float format; those of f16 take vectors, the others words."""


class WarpProducts:
    """Emits one thread's part of a warp's products of quantized data and weights, by matrix instructions. If the
    weights have a zero point, `rows` further sums follow the sums of products in the thread's list of sums: they add
    up the codes of the rows of the data, for the correction by the zero point."""

    kind: Attribute = i32
    """The type of the sums."""
    behind = 1
    """The number of stages (copies of the operands' tiles in shared memory) that must not be refilled while a step is
    computed: one, the stage that the step reads."""
    fenced = False

    def __init__(self, thread: MatrixThread):
        self.t, self.b, self.m, self.tile, self.conv = thread, thread.b, thread.m, thread.tile, thread.conv
        self.rows: int = 4 * self.tile.row_steps if self.conv.kernel.zero_point else 0

    def prepare(self) -> None:
        """Compute which addresses this lane of the warp supplies to `ldmatrix`: `self.left` for the data, `self.right`
        for the weights, as offsets from the start of a pipeline stage in shared memory, with one offset for each of the
        matrix instructions that cover the tile's depth."""
        b, t, tile, lane = self.b, self.t, self.tile, self.t.lane
        halves = range(tile.depth // TAP)
        row = b.plus(t.warp_row, t.rem(lane, 16))
        self.column = b.plus(t.warp_column, b.plus(t.rem(lane, 8), b.times(t.div(lane, 16), 8)))
        self.left = [t.place(row, b.plus(t.div(lane, 16), 2 * half)) for half in halves]
        right = t.rem(t.div(lane, 8), 2)
        self.right = [b.plus(t.place(self.column, b.plus(right, 2 * half)), tile.rows * tile.depth) for half in halves]

    def turn(self, step: Index, sums: Sequence[SSAValue], refill: Callable[[Index], None]) -> list[SSAValue]:
        """Emit one step of the loop: `refill`, which starts the copies of a later step, and then all products of this
        step. Return the sums."""
        refill(step)
        return self.multiply(self.t.stage(step), sums)

    def finish(self, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the sums after all products are complete."""
        return list(sums)

    def multiply(self, stage: Index, sums: Sequence[SSAValue], data: Index | None = None) -> list[SSAValue]:
        """Emit the products of the data and weights in a pipeline stage, a buffer of shared memory at offset `stage`;
        return `sums` with these products added. `data`: the offset of the rows of the data in shared memory if they are
        not in the stage."""
        b, tile, found, data = self.b, self.tile, list(sums), stage if data is None else data
        for half in range(tile.depth // TAP):
            left = b.plus(data, self.left[half])
            a = [self.factors(self.matrices(b.plus(left, 16 * tile.depth * n))) for n in range(tile.row_steps)]
            self.add_products(a, self.weights(b.plus(stage, self.right[half])), found)
        return found

    def weights(self, right: Index) -> list[list[SSAValue]]:
        """Load the lane's part of the weights of all columns: for every 8 columns, the two 32-bit words that one matrix
        instruction takes. `right`: the offset in shared memory that the lane supplies to the first `ldmatrix`."""
        b, apart = self.b, 16 // self.m.format.fold * self.tile.depth
        pairs = [self.matrices(b.plus(right, apart * n)) for n in range(self.tile.column_steps // 2)]
        return [pair[part : part + 2] for pair in pairs for part in (0, 2)]

    def add_products(
        self, a: Sequence[Sequence[SSAValue]], w: Sequence[Sequence[SSAValue]], sums: list[SSAValue]
    ) -> None:
        """Add the products of all rows of `a` by all columns of `w` to `sums`. If the weights have a zero point, also
        add the elements of each row to the row's sums of data, which follow the sums of products."""
        b = self.b
        for row, factors in enumerate(a):
            for column, weights in enumerate(w):
                at = 4 * (row * len(w) + column)
                sums[at : at + 4] = self.product(factors, weights, sums[at : at + 4])
            if self.conv.kernel.zero_point:
                at = 4 * (len(a) * len(w) + row)
                sums[at : at + 4] = self.product(factors, [b.constant(ONES, i32)] * 2, sums[at : at + 4])

    def factors(self, words: list[SSAValue]) -> list[SSAValue]:
        """Convert the data's 32-bit words, as they are in shared memory, to operands of the matrix instruction: here
        they are unchanged; `FloatProducts` rounds floats to tf32."""
        return words

    def matrices(self, at: Index) -> list[SSAValue]:
        """Load four matrices from shared memory by an `ldmatrix`, for which the lane supplies the address `at` of a
        row; return the lane's word of each matrix."""
        b = self.b
        read = b.add(nvgpu.LdMatrixOp(self.t.shared, [b.index(at)])).res
        return [b.lane(b.bitcast(b.lane(read, number), i32, 1), 0) for number in range(nvgpu.MATRICES)]

    def product(self, a: Sequence[SSAValue], w: Sequence[SSAValue], sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Add 32 products to each of 16 x 8 sums."""
        signs = [("u8" if side.unsigned else "s8") for side in (self.conv.data, self.conv.kernel)]
        name = signs[0] if signs[0] == signs[1] else ".".join(signs)
        return self.four(f"llvm.nvvm.mma.m16n8k32.row.col.{name}", [*a, *w, *sums])

    def four(self, intrinsic: str, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """Emit a matrix instruction; return the four of its 16 x 8 sums that this lane holds."""
        four = llvm.LLVMStructType.from_type_list([self.kind] * 4)
        return self.b.fields(self.b.add(llvm.CallIntrinsicOp(intrinsic, operands, [four])).results[0])


class RoundedProducts(WarpProducts):
    """Emits the products of one thread of a warp, of floats that were rounded before they were written to shared
    memory."""

    kind = f32

    def product(self, a: Sequence[SSAValue], w: Sequence[SSAValue], sums: Sequence[SSAValue]) -> list[SSAValue]:
        b, name = self.b, self.m.format.name
        words = [*a, *w]
        if name == "f16":
            words = [b.bitcast(b.broadcast(word, 1), HALVES[name], 2) for word in words]
        return self.four(PRODUCTS[name], [*words, *sums])


class FloatProducts(RoundedProducts):
    """Emits the products of floats of one thread of a warp. Weights were rounded before, the data is rounded here."""

    def prepare(self) -> None:
        super().prepare()
        if self.m.format.fold == 2:
            b, t, lane = self.b, self.t, self.t.lane
            chunk = b.plus(b.times(t.rem(self.column, 2), 2), t.rem(t.div(lane, 8), 2))
            self.right = [b.plus(t.place(t.div(self.column, 2), chunk), self.tile.rows * self.tile.depth)]

    def multiply(self, stage: Index, sums: Sequence[SSAValue], data: Index | None = None) -> list[SSAValue]:
        if self.m.format.fold == 1:
            return super().multiply(stage, sums, data)
        b, tile, found = self.b, self.tile, list(sums)
        halves = [b.plus(stage, left) for left in self.left]
        a = [
            self.joined([self.matrices(b.plus(half, 16 * tile.depth * n)) for half in halves])
            for n in range(tile.row_steps)
        ]
        self.add_products(a, self.weights(b.plus(stage, self.right[0])), found)
        return found

    def joined(self, halves: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
        """Return the four 32-bit words that a lane supplies as the left factor of a matrix instruction; each holds two
        floats rounded to half precision. The lane has elements of two rows of 16: first (t, t + 4) of each row, then
        (t + 8, t + 12) of each, where t is the lane's number modulo 4. `halves`: the lane's words of the rows' elements
        0 to 7 and 8 to 15, as `ldmatrix` loads them."""
        pairs = [[words[row], words[row + 2]] for words in halves for row in range(2)]
        return [half_word(self.b, self.m.format.name, self.floats(pair)) for pair in pairs]

    def factors(self, words: list[SSAValue]) -> list[SSAValue]:
        return [tf32_word(self.b, number) for number in self.floats(words)]

    def floats(self, words: Sequence[SSAValue]) -> list[SSAValue]:
        """Reinterpret words as floats."""
        return [self.b.add(arith.BitcastOp(word, f32)).result for word in words]


def half_word(b: LoopBuilder, name: str, pair: Sequence[SSAValue]) -> SSAValue:
    """Round two floats to the half-precision format `name`; return them as one word."""
    both = b.add(arith.TruncFOp(b.packed(pair), vector_of(HALVES[name], 2))).result
    return b.lane(b.bitcast(both, i32, 1), 0)


def tf32_word(b: LoopBuilder, number: SSAValue) -> SSAValue:
    """Return a float rounded to tf32, as a word."""
    return b.intrinsic("llvm.nvvm.f2tf32.rna", [number], i32)


def float_words(b: LoopBuilder, format: Format, numbers: Sequence[SSAValue]) -> list[SSAValue]:
    """Convert floats to words for matrix units: one tf32 per word, or two half-precision floats, where the last word is
    filled up with 0."""
    if format.data == WORD:
        return [tf32_word(b, number) for number in numbers]
    even = [*numbers, *[b.constant(0, f32)] * (len(numbers) % 2)]
    return [half_word(b, format.name, even[n : n + 2]) for n in range(0, len(even), 2)]
