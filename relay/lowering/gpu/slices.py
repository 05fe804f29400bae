"""If the depth of a product is divided into slices, which different warps of a block sum up, these warps add their sums
through shared memory after all products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.shared_memory import shared_view

VECTOR = 4
"""The number of sums that are written, or read, at once."""


class Exchange:
    """Emits one thread's part in adding the sums of all slices of the depth through shared memory. `groups`: the
    indices of the thread's sums, in groups of neighbours; each group is added up and completed by the threads of one
    slice."""

    def __init__(self, thread: MatrixThread, groups: Sequence[Sequence[int]]):
        self.t, self.b, self.groups = thread, thread.b, groups
        self.each = len(groups[0]) // VECTOR
        words = thread.tile.slices * thread.tile.rows * thread.tile.columns
        self.words = shared_view(self.b, thread.shared, i32, words)

    def place(self, slice: Index, group: int, vector: int) -> Index:
        """Return the offset in shared memory, in 32-bit words, at which vector `vector` (`VECTOR` sums) of this
        thread's group `group` of sums is stored, as computed by slice `slice` of the depth. The vectors with the same
        numbers of neighbouring threads are contiguous."""
        b, t = self.b, self.t
        number = b.plus(b.times(slice, len(self.groups) * self.each), group * self.each + vector)
        return b.times(b.plus(b.times(number, t.tile.threads), t.number), VECTOR)

    def write(self, sums: Sequence[SSAValue]) -> None:
        """Store all sums that this thread computed for its slice of the depth in shared memory, where `total` reads
        them, between two barriers of the block."""
        b = self.b
        b.add(BarrierOp.create())
        for number, group in enumerate(self.groups):
            for vector in range(self.each):
                values = [sums[place] for place in group[vector * VECTOR :][:VECTOR]]
                b.vector_store(b.packed(values), self.words, [self.place(self.t.slice, number, vector)])
        b.add(BarrierOp.create())

    def total(self, group: int) -> list[SSAValue]:
        """Emit the additions, over all slices of the depth, of the sums whose indices are `self.groups[group]`; return
        the totals. They are read from shared memory, where `write` stored them."""
        b, found = self.b, list[SSAValue]()
        for vector in range(self.each):
            total: SSAValue | None = None
            for slice in range(self.t.tile.slices):
                part = b.vector_load(self.words, [self.place(slice, group, vector)], VECTOR)
                total = part if total is None else b.add(arith.AddiOp(total, part)).result
            assert total is not None
            found += [b.lane(total, lane) for lane in range(VECTOR)]
        return found
