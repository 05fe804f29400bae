"""Products of floats by a GPU's matrix units, as tf32 or two to a word: the data is rounded when it has been read from
shared memory, weights when the model is built.

Layouts of the lanes: PTX ISA, "Matrix Fragments for mma.m16n8k8" and "mma.m16n8k16": in bytes those of codes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType, bf16, f16, f32, i32
from xdsl.ir import Attribute, SSAValue

from relay.lowering.builder import Index
from relay.lowering.gpu.matrix_kernel import MatrixEmitter
from relay.lowering.shaped import buffer_of, vector_of

HALVES: dict[str, Attribute] = {"f16": f16, "bf16": bf16}
PRODUCTS = {
    "tf32": "llvm.nvvm.mma.m16n8k8.row.col.tf32",
    "f16": "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
    "bf16": "llvm.nvvm.mma.m16n8k16.row.col.bf16",
}
"""Intrinsics. Those of f16 take vectors, the others words."""


class FloatEmitter(MatrixEmitter):
    """Emits what one thread does with floats."""

    kind = f32
    add = arith.AddfOp

    def share(self, shared: SSAValue) -> None:
        b, numbers = self.b, self.m.stages * self.tile.stage_bytes // self.m.format.data
        type = MemRefType(f32, [numbers], memory_space=buffer_of(shared).memory_space)
        self.shared, self.numbers = shared, b.add(memref.ViewOp(shared, b.index(0), [], type)).result

    def sources(self, lane: Index) -> None:
        super().sources(lane)
        if self.m.format.fold == 2:
            b = self.b
            column = b.plus(self.warp_column, b.plus(self.rem(lane, 8), b.times(self.div(lane, 16), 8)))
            chunk = b.plus(b.times(self.rem(column, 2), 2), self.rem(self.div(lane, 8), 2))
            self.right = [b.plus(self.place(self.div(column, 2), chunk), self.tile.rows * self.tile.depth)]

    def multiply(self, stage: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        if self.m.format.fold == 1:
            return super().multiply(stage, sums)
        b, tile, found = self.b, self.tile, list(sums)
        halves = [b.plus(stage, left) for left in self.left]
        a = [
            self.joined([self.matrices(b.plus(half, 16 * tile.depth * n)) for half in halves])
            for n in range(tile.row_steps)
        ]
        self.add_products(a, b.plus(stage, self.right[0]), found)
        return found

    def joined(self, halves: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
        """Words of two numbers each, of a lane's numbers t, t + 4, t + 8 and t + 12 of two rows of 16."""
        b, half = self.b, HALVES[self.m.format.name]
        found = list[SSAValue]()
        for words in halves:
            for row in range(2):
                two = b.packed([b.add(arith.BitcastOp(words[row + 2 * n], f32)).result for n in range(2)])
                both = b.add(arith.TruncFOp(two, vector_of(half, 2))).result
                found.append(both if half == f16 else b.lane(b.bitcast(both, i32, 1), 0))
        return found

    def product(self, a: Sequence[SSAValue], w: Sequence[SSAValue], sums: Sequence[SSAValue]) -> list[SSAValue]:
        b, name = self.b, self.m.format.name
        if name == "f16":
            w = [b.bitcast(b.broadcast(word, 1), HALVES[name], 2) for word in w]
        return self.four(PRODUCTS[name], [*a, *w, *sums])

    def factors(self, words: list[SSAValue]) -> list[SSAValue]:
        floats = [self.b.add(arith.BitcastOp(word, f32)).result for word in words]
        return [self.b.intrinsic("llvm.nvvm.f2tf32.rna", [number], i32) for number in floats]
