"""Normalizations: a team of threads computes all operations on a row, whose elements stay in registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.gpu.grids import points_of_teams
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.row_emitter import RowEmitter, is_read_elsewhere, pieces
from relay.lowering.gpu.strategies.strategy import Emission, Kernel, Strategy, pick_block, powers, transfer
from relay.lowering.gpu.teams import Team, join_of
from relay.lowering.gpu.widths import BYTES, Narrow, fitting, is_wide, reads
from relay.lowering.scheduling.in_turn import Chain, is_number, is_reduction
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import is_buffer
from relay.target import GpuTarget
from relay.target.costs import GpuCosts
from relay.target.record import WARP

ELEMENTS = 32
"""The most elements of a row that a thread holds: two or three values of each are live, in its 255 registers."""


@dataclass(frozen=True, kw_only=True)
class RowsSchedule(OpSchedule):
    """The decisions about a chain of operations on rows. `lanes`: neighbouring elements that a thread reads and writes
    at once; `team`: threads that divide a row, and combine partial results by `shuffles`, or through memory; `block`:
    threads of a block."""

    strategy = "rows"
    lanes: int
    team: int
    shuffles: bool
    block: int


def chains_of(order: Sequence[Operation], target: GpuTarget) -> Iterator[Chain]:
    """Yield the chains of consecutive operations on the same rows, such as the operations of a softmax, for which
    threads of the GPU can divide each row among them."""
    taken: set[Operation] = set()
    for op in order:
        if not isinstance(op, linalg.GenericOp | linalg.FillOp) or op in taken:
            continue
        chain = Chain.of(op, least=2, rows=1)
        if chain is not None and is_shareable(chain, target):
            taken.update(chain.ops)
            yield chain


def is_shareable(chain: Chain, target: GpuTarget) -> bool:
    """Whether the threads of a GPU can divide each row of the chain: partial results of each reduction can be combined,
    a row fits the registers of the threads that share it, and the elementwise operations do not read the buffers that
    they write."""
    generics = [op for op in chain.ops if isinstance(op, linalg.GenericOp)]
    joined = all(join_of(op) is not None for op in generics if is_reduction(op))
    written = (arg for op in generics if not is_reduction(op) for arg in op.body.block.args[len(op.inputs) :])
    small = chain.size <= ELEMENTS * target.costs.team_threads
    return joined and small and prod(chain.outer) > 0 and not any(any(a.uses) for a in written)


@dataclass(frozen=True)
class Rows(Strategy[RowsSchedule]):
    """A chain of operations on the same rows: a reduction of each row, and operations that use its result."""

    record = RowsSchedule
    tier = 0
    chain: Chain

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        chain, costs = self.chain, kernel.target.costs
        rows, size = prod(chain.outer), chain.size
        most = self.widest(kernel.fused.producers)
        lanes = pick("lanes", powers(most), most)
        teams = [team for team in powers(costs.team_threads) if pieces(size, lanes, team) * lanes <= ELEMENTS]
        usual = best_team(rows, size, lanes, teams, costs) if kernel.target.shuffles else teams[-1]
        team = pick("team", teams, usual)
        pick.may("shuffles", kernel.target.shuffles)
        pick_block(kernel, pick, rows, team)
        count = sum(isinstance(op, linalg.GenericOp) for op in chain.ops)
        kept = pieces(size, lanes, team) * lanes
        why = f"{count} operations on {rows} rows of {size}, {kept} elements in registers of each of {team} threads"
        return transfer(self.buffers, costs), why

    @property
    def buffers(self) -> set[SSAValue]:
        """The buffers in memory that the operations of `self.chain` read, and those that they write for other
        operations; the others stay in registers."""
        found = {value for op in self.chain.ops for value in op.operands if is_buffer(value.type)}
        return {value for value in found if value not in self.chain.written or is_read_elsewhere(value, self.chain)}

    def widest(self, producers: Mapping[SSAValue, Producer]) -> int:
        """Return the largest number of neighbouring elements of a row that one instruction can read or write in each of
        the buffers; 1 if neighbours are not contiguous in all of them."""
        try:
            accesses = list(self.accesses(producers))
        except Narrow:
            return 1
        size = max(dtype_of(type.element_type).itemsize for type in accesses)
        return fitting(self.chain.size, accesses, BYTES // size)

    def accesses(self, producers: Mapping[SSAValue, Producer]) -> Iterator[MemRefType]:
        """Yield the types of the buffers in memory that the operations of `self.chain` read or write by vectors of
        neighbouring elements of a row. Raises Narrow if the elements that a vector needs are not contiguous in
        memory."""
        last = len(self.chain.outer)
        for op in self.chain.ops:
            if not isinstance(op, linalg.GenericOp) or is_number(op, self.chain.outer):
                continue
            for value, map in zip(op.operands, op.indexing_maps, strict=True):
                if value in self.buffers and is_wide(map.data, last):
                    yield from reads(value, producers)

    def emit(self, emission: Emission, schedule: RowsSchedule) -> None:
        b = emission.builder
        points = PointEmitter(b, emission.fused.producers, schedule.lanes)
        team = Team(schedule.team, True, schedule.shuffles)
        with points_of_teams(b, self.chain.outer, team, schedule.block) as (dims, members, inside):
            RowEmitter(b, self.chain, points, members, dims, inside).emit()


def best_team(rows: int, size: int, lanes: int, teams: Sequence[int], costs: GpuCosts) -> int:
    """Return the best number of threads for a row: the smallest possible one, doubled while the device has idle threads
    and each thread has enough work."""
    team = teams[-1]
    while 2 * team in teams and team * lanes < size and rows * team < costs.busy_threads:
        if 2 * team > WARP and size < 2 * team * costs.warps_turns:
            break
        team *= 2
    return team
