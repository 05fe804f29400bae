"""Products by persistent blocks: two groups of four warps compute tiles alternately, and a separate warp requests
copies.

Block n computes the tiles n, n + the number of blocks, and so on. Tiles of even turns are computed by the first group,
of odd turns by the second: while one completes its sums and writes results, the other multiplies (ping-pong). Stages
form a ring: the copy engine fills them in the order of the block's tiles, and a group that has waited for a stage's
bytes multiplies it; when the products of a stage are complete, each warp of the group arrives at the stage's second
barrier, and the warp that requests copies, which waits for all four, has the stage filled again. So copies are ahead of
the products by as many steps as there are stages, across tiles. A group waits for its turn before it waits for its
first stage: a parity distinguishes a phase only from the one before, so all earlier phases must have been waited for.

Sources: PTX ISA, "mbarrier" (phases, parity, arrival), "wgmma.wait_group", "cp.async.bulk.tensor".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from relay.lowering.builder import INDEX, Index, LoopBuilder
from relay.lowering.gpu.bulk_copies import ACQUIRE, ARRIVED, INIT, BulkCopies
from relay.lowering.gpu.matrix import BARRIER_BYTES
from relay.lowering.gpu.matrix_kernel import MatrixKernel
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.teams import shuffled
from relay.lowering.gpu.tiles import GROUPS
from relay.lowering.gpu.warpgroup_products import GROUP, UNIT, WAIT, GroupProducts, instruction, tied
from relay.lowering.indices import binary, both, minus, when
from relay.target.record import WARP

ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [$0];"
ZERO = "mov.b64 $0, 0;"
WARPS = GROUP // WARP
"""The number of warps of a group, each of which signals that its products of a stage are complete."""
TAKE, GIVE = "setmaxnreg.inc.sync.aligned.u32 240;", "setmaxnreg.dec.sync.aligned.u32 24;"
"""The instructions that change the number of registers of a thread: all start with 168, the threads of two groups
increase theirs to 240, and those of the third group decrease theirs to 24. Three warps, one of each group, share the
registers of a quarter of a multiprocessor: 512 for each lane."""


class Slot(NamedTuple):
    """A thread's position among the stages of shared memory, which are filled and read in turn: the number of a stage,
    and the parity of the phase of its barrier in which the stage is filled."""

    stage: Index
    parity: Index

    def values(self, b: LoopBuilder) -> list[SSAValue]:
        """Return the number of the stage and the parity of its barrier's phase as 32-bit values, which a loop carries
        from one iteration to the next."""
        return [word(b, self.stage), word(b, self.parity)]

    @staticmethod
    def of(b: LoopBuilder, values: Sequence[SSAValue]) -> Slot:
        """Return the slot of the two 32-bit values that a loop carries, the number of the stage and the parity of its
        barrier's phase: the inverse of `values`."""
        return Slot(*(index_of(b, value) for value in values))


def word(b: LoopBuilder, number: Index) -> SSAValue:
    """Return a number in 32 bits, so that LLVM and the assembler compute no upper half."""
    return b.add(arith.IndexCastOp(b.index(number), i32)).result


def index_of(b: LoopBuilder, value: SSAValue) -> Index:
    """Convert a word to an index."""
    return b.add(arith.IndexCastOp(value, INDEX)).result


class Ring(BulkCopies):
    """Emits a thread's operations on the ring of stages: for each stage a barrier that counts bytes, as in
    `BulkCopies`, and behind these, barriers that count warps that have finished with a stage."""

    def after(self, slot: Slot, steps: int) -> Slot:
        """Return the position (stage and barrier parity) that a thread at `slot` has after `steps` more steps of the
        reduction, each of which uses the next stage in turn."""
        b, stages = self.b, self.m.tile.stages
        turns, more = divmod(steps, stages)
        parity = binary(b, arith.XOrIOp, slot.parity, turns % 2) if turns % 2 else slot.parity
        if not more:
            return Slot(slot.stage, parity)
        moved = b.plus(slot.stage, more)
        inside = self.t.below(moved, stages)
        wrapped = minus(b, moved, stages)
        other = binary(b, arith.XOrIOp, parity, 1)
        return Slot(
            b.select(inside, b.index(moved), b.index(wrapped)), b.select(inside, b.index(parity), b.index(other))
        )

    def free(self, stage: Index) -> Index:
        """Return the address of the barrier that counts warps that have finished with a stage."""
        return self.b.plus(self.barrier(stage), self.m.tile.stages * BARRIER_BYTES)

    def turn(self, group: Index) -> Index:
        """Return the address of the barrier at which group `group` of warps waits for its turn to multiply a tile. The
        warps of the other group arrive at it when they have started the last product of their tile."""
        return self.b.plus(self.free(self.m.tile.stages), self.b.times(group, BARRIER_BYTES))

    def from_requester(self) -> Index:
        return minus(self.b, self.t.number, GROUPS * GROUP)

    def begin(self) -> None:
        """Initialise the barriers, and make the tensor maps visible to the copy engine by a fence."""
        for stage in range(self.m.tile.stages):
            self.emit(INIT.format(count=1), [self.barrier(stage)])
            self.emit(INIT.format(count=WARPS), [self.free(stage)])
        for group in range(GROUPS):
            self.emit(INIT.format(count=WARPS), [self.turn(group)])
        for source in self.addresses:
            self.emit(ACQUIRE, [source])

    def wait(self, barrier: Index, parity: Index) -> None:
        """Wait until the phase of this parity is over."""
        self.emit(ARRIVED, [barrier], [parity])

    def fill(self, slot: Slot, step: Index) -> None:
        """Request the tiles of a step, once its stage is free. All stages are free initially, because a new barrier
        counts the phase with parity 1 as complete."""
        self.wait(self.free(slot.stage), binary(self.b, arith.XOrIOp, slot.parity, 1))
        when(self.b, self.first, partial(self.issue, step, slot.stage))

    def signal(self, barrier: Index, condition: SSAValue | None = None) -> None:
        """Emit an arrival of this warp at a barrier, under a condition if one is given."""
        lane = self.t.below(self.t.lane, 1)
        when(self.b, both(self.b, [condition, lane]), lambda: self.emit(ARRIVE, [barrier]))

    def of_tile(self, item: Index, number: Index) -> Ring:
        """Return an emitter for the same stages and barriers in shared memory, but for the tile with number `item` and
        the thread with number `number`."""
        found = Ring(MatrixThread(self.b, self.m, item, number, self.t.shared), self.maps, self.ahead, True)
        found.memory, found.addresses, found.first = self.memory, self.addresses, self.first
        return found


class TurnKernel(MatrixKernel):
    """Emits the work of one thread of a persistent block."""

    def emit(self, block: Index, thread: Index, unravel: Callable[[Index], list[Index]]) -> None:
        b = self.b
        here = MatrixThread(b, self.m, block, thread)
        ring = Ring(here, self.factors, 0, True)
        ring.connect()
        group = self.same_in_warp(here.div(thread, GROUP))
        groups = here.below(group, GROUPS)
        when(b, groups, partial(self.consume, ring, block, group, unravel), partial(self.request_copies, ring, block))

    def same_in_warp(self, same: Index) -> Index:
        """Return the number `same`, which is equal in all threads of a warp, as a shuffle reads it from the first lane:
        this shows the assembler that it is equal, so that addresses stay in uniform registers and whole warps
        branch."""
        return index_of(self.b, shuffled(self.b, "idx", word(self.b, same), 0))

    def zero(self) -> Index:
        """Return 0 in a form that the compiler cannot fold: loads whose addresses include it are not hoisted out of the
        loop over tiles."""
        zero = llvm.InlineAsmOp(ZERO, "=l", [], [i64], 0, has_side_effects=True)
        return index_of(self.b, self.b.add(zero).results[0])

    def request_copies(self, ring: Ring, block: Index) -> None:
        """Emit the work of the third group of four warps, which multiplies nothing: it releases registers, and one of
        its warps requests the copies to shared memory."""
        b = self.b
        instruction(b, GIVE)
        one = ring.t.below(ring.from_requester(), WARP)
        when(b, one, partial(self.produce, ring, block))

    def produce(self, ring: Ring, block: Index) -> None:
        """Emit the work of the warp that requests copies: all steps of all tiles of the block."""
        b, slot = self.b, Slot(0, 0)
        with b.loop(block, self.m.blocks, self.blocks, carried=slot.values(b)) as (item, tiles):
            tile = ring.of_tile(item, ring.t.number)
            with b.loop(0, self.m.steps, carried=tiles.args) as (step, steps):
                slot = Slot.of(b, steps.args)
                tile.fill(slot, step)
                steps.next = tile.after(slot, 1).values(b)
            self.rolled()
            tiles.next = steps.results
        self.rolled()

    def consume(self, ring: Ring, block: Index, group: Index, unravel: Callable[[Index], list[Index]]) -> None:
        """Emit the work of one of the two warpgroups that multiply: each computes every other tile of the persistent
        block. `ring`: the stages in shared memory from which it reads the factors."""
        b, number = self.b, ring.t.rem(ring.t.number, GROUP)
        instruction(b, TAKE)
        first, other = b.plus(block, b.times(group, self.blocks)), minus(b, 1, group)
        second = b.compare(b.index(group), "eq", b.index(1))
        skipped = ring.after(Slot(0, 0), self.m.steps).values(b)
        slot = [b.select(second, later, b.constant(0, i32)) for later in skipped]
        with b.loop(first, self.m.blocks, GROUPS * self.blocks, carried=[*slot, word(b, other)]) as (item, tiles):
            *slot, parity = tiles.args
            parity = index_of(b, parity)
            tile = ring.of_tile(item, number)
            self.t = tile.t
            if isinstance(self.t.first_column, int):
                self.t.first_column = self.zero()
            sums, after = self.multiplied(tile, Slot.of(b, slot), tile.turn(group), parity, tile.turn(other))
            tiles.next = [*tile.after(after, self.m.steps).values(b), word(b, binary(b, arith.XOrIOp, parity, 1))]
            self.finish_tile(sums, (), unravel)
        self.rolled()

    def multiplied(
        self, ring: Ring, slot: Slot, own: Index, parity: Index, other: Index
    ) -> tuple[Sequence[SSAValue], Slot]:
        """Emit the products of a tile by one of the two groups of warps, which multiply in turns. Returns a thread's
        sums, and the stage of the ring that follows. The group waits for the barrier `own`, at this parity, before it
        multiplies, and signals `other`, the other group's, after it has started its last product."""
        b, units = self.b, GroupProducts(self.t)
        units.prepare()
        sums = self.starting() or [b.constant(0, self.kind)] * self.tile.sums
        count = self.tile.sums
        ring.wait(own, parity)
        with b.loop(0, self.m.steps, carried=[*sums, *slot.values(b), word(b, 0)]) as (step, state):
            now = Slot.of(b, state.args[count : count + 2])
            ring.wait(ring.barrier(now.stage), now.parity)
            found = units.begin(b.times(now.stage, self.tile.stage_bytes // UNIT), state.args[:count])
            instruction(b, WAIT.format(left=1))
            if not isinstance(step, int):
                before, later = index_of(b, state.args[-1]), b.compare(step, "ne", b.index(0))
                ring.signal(ring.free(before), later)
            state.next = [*found, *ring.after(now, 1).values(b), word(b, now.stage)]
        self.rolled()
        ring.signal(other)
        sums = tied(b, WAIT.format(left=0), state.results[:count])
        ring.signal(ring.free(index_of(b, state.results[-1])))
        return sums, Slot.of(b, state.results[count : count + 2])
