"""Products by groups of four warps whose factors are copied by the device's engine for tiles (TMA).

One thread asks for both tiles of a stage; a barrier in shared memory counts their bytes, and all threads wait for it.
What the engine writes is what matrix units read: no fence is between them.
Sources: PTX ISA, "cp.async.bulk.tensor", "mbarrier", "fence.proxy.tensormap"; CUDA C++ Programming Guide, "Using TMA to
transfer multi-dimensional arrays", of maps in global memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import BARRIER_BYTES, GroupTile, Matrix
from relay.lowering.gpu.matrix_floats import FloatEmitter
from relay.lowering.gpu.matrix_kernel import MatrixEmitter
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.tensor_maps import TensorMap
from relay.lowering.gpu.warpgroup_kernel import BEHIND, UNIT, VISIBLE, WAIT, GroupEmitter, instruction, tied
from relay.lowering.indices import when

INIT = "mbarrier.init.shared::cta.b64 [$0], 1;"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {bytes};"
ACQUIRE = "{ .reg .b64 map; cvta.global.u64 map, $0; fence.proxy.tensormap::generic.acquire.sys [map], 128; }"
"""The map, which the host has written, is what the engine will read."""
COPY = (
    "{ .reg .b64 map; cvta.global.u64 map, $1; "
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [map, {$2, $3}], [$4]; }"
)
ARRIVED = "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra again; }"


class BulkEmitter(GroupEmitter):
    """Emits what one thread of a group does, where both factors are matrices in memory."""

    def __init__(self, builder: LoopBuilder, matrix: Matrix, points: PointEmitter, buffers: Sequence[SSAValue]):
        super().__init__(builder, matrix, points, buffers)
        tile, depth, packed = self.tile, matrix.depth, matrix.packed_depth
        data = TensorMap((depth, matrix.rows), (depth,), (tile.depth, tile.rows))
        weights = TensorMap((packed, matrix.packed_columns), (packed,), (tile.depth, tile.columns))
        self.maps = [data.of(builder, self.data), weights.of(builder, self.weights)]

    def products(self, thread: Index, lane: Index) -> tuple[list[SSAValue], list[SSAValue]]:
        """The sums of a thread."""
        b, stages, steps = self.b, self.m.stages, self.m.steps
        self.describe(thread)
        self.start = self.pointer(self.shared)
        self.sources_of = [self.pointer(map) for map in self.maps]
        ahead, first = stages - BEHIND, self.below(thread, 1)
        when(b, first, self.prepare_copies)
        instruction(b, VISIBLE)
        b.add(BarrierOp.create())
        when(b, first, lambda: self.copy_first(min(ahead, steps)))
        sums = self.starting(lane) or [b.constant(0, i32)] * self.tile.sums
        with b.loop(0, steps, carried=sums) as (step, state):
            stage = self.rem(step, stages)
            self.ask(ARRIVED, [self.barrier(stage)], [self.rem(self.div(step, stages), 2)])
            b.add(BarrierOp.create())
            state.next = self.begin(b.times(stage, self.tile.stage_bytes // UNIT), state.args)
            self.issue_later(step, ahead, first)
            instruction(b, WAIT.format(left=1))
        return tied(b, WAIT.format(left=0), state.results), []

    def barrier(self, stage: Index) -> Index:
        """Where the barrier of a stage is."""
        b = self.b
        start = b.plus(self.start, self.m.stages * self.tile.stage_bytes)
        return b.plus(start, b.times(stage, BARRIER_BYTES))

    def ask(
        self, text: str, addresses: Sequence[Index], numbers: Sequence[Index] = (), last: Index | None = None
    ) -> None:
        """An instruction of addresses, then words, then perhaps another address."""
        b = self.b
        values = [(place, i64) for place in addresses] + [(number, i32) for number in numbers]
        values += [] if last is None else [(last, i64)]
        operands = [b.add(arith.IndexCastOp(b.index(value), type)).result for value, type in values]
        kinds = ",".join("l" if type is i64 else "r" for _, type in values)
        b.add(llvm.InlineAsmOp(text, f"{kinds},~{{memory}}", operands, [], 0, has_side_effects=True))

    def prepare_copies(self) -> None:
        """What is done once: barriers, and maps."""
        for stage in range(self.m.stages):
            self.ask(INIT, [self.barrier(stage)])
        for source in self.sources_of:
            self.ask(ACQUIRE, [source])

    def copy_first(self, count: int) -> None:
        """Ask for the tiles of the first steps."""
        for step in range(count):
            self.issue(step, step)

    def issue(self, step: Index, stage: Index) -> None:
        """Ask for both tiles of a step."""
        b, tile, barrier = self.b, self.tile, self.barrier(stage)
        left = b.plus(self.start, b.times(stage, tile.stage_bytes))
        step = b.plus(b.times(self.part, self.m.steps), step)
        column = b.times(step, tile.depth)
        self.ask(EXPECT.format(bytes=tile.stage_bytes), [barrier])
        self.ask(COPY, [left, self.sources_of[0]], [column, self.first_row], barrier)
        right = b.plus(left, tile.rows * tile.depth)
        self.ask(COPY, [right, self.sources_of[1]], [column, self.first_column], barrier)


def emitter_of(matrix: Matrix) -> type[MatrixEmitter]:
    """What emits the product."""
    if not matrix.format.exact:
        return FloatEmitter
    if matrix.bulk:
        return BulkEmitter
    return GroupEmitter if isinstance(matrix.tile, GroupTile) else MatrixEmitter
