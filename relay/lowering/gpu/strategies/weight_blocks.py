"""`weight-blocks`: products of floats and weights of few bits, quantized in blocks, whose codes are converted to floats
in registers. The threads of a warp divide the reduction dimension; each reads 16 bytes of codes at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Self

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.block_weights import WORD_BITS, BlockReader, BlockWeights, block_weights_of
from relay.lowering.gpu.grids import points_of_teams
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.strategies.strategy import Emission, Kernel, Strategy, pick_block, powers, transfer
from relay.lowering.gpu.teams import Members, Team
from relay.lowering.indices import below, binary, both, unravelled, when
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.target.record import WARP

ROWS, CHANNELS = 4, 4
"""The most rows and the most channels of a warp: each thread has a sum for every pair, so that it reuses data and
codes."""
SUMS = 8
"""The default number of sums of a thread: with more, fewer threads fit the registers."""
FLOATS = 4
"""The number of elements of the data that a thread reads at once."""
UNPACKED = 4
"""The number of instructions that convert a code to a float."""
INSTRUCTIONS = 128
"""The number of thread instructions that a processor executes per clock cycle."""


@dataclass(frozen=True, kw_only=True)
class WeightBlocksSchedule(OpSchedule):
    """The decisions about a product with weights of few bits. `rows` and `channels`: the size of the tile of sums that
    threads compute together; `team`: the number of these threads, among which the depth (the axis that is summed) is
    divided; `block`: the number of threads of a block."""

    strategy = "weight-blocks"
    rows: int
    channels: int
    team: int
    block: int


@dataclass(frozen=True)
class WeightBlocks(Strategy[WeightBlocksSchedule]):
    """Products of floats with weights of few bits in blocks, with sums in float32."""

    record = WeightBlocksSchedule
    tier = 0
    weights: BlockWeights

    @classmethod
    def match_nest(cls, nest: Nest, kernel: Kernel) -> Self | None:
        found = block_weights_of(nest, kernel.fused.producers, kernel.given) if kernel.target.shuffles else None
        return None if found is None else cls(found)

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        w, costs = self.weights, kernel.target.costs
        most = max(team for team in powers(WARP) if team * w.piece <= max(w.depth, w.piece))
        team = pick("team", powers(most), most)
        rows = pick("rows", powers(ROWS), max(each for each in powers(ROWS) if each <= max(w.rows, 1)))
        groups = -(-w.rows // rows) * team
        few = [each for each in powers(CHANNELS) if each * rows <= SUMS]
        busy = [each for each in few if groups * -(-w.channels // each) >= costs.busy_threads]
        channels = pick("channels", powers(CHANNELS), [*busy, 1][0])
        pick_block(kernel, pick, groups // team * -(-w.channels // channels), team)
        bytes = w.channels * w.depth * w.bits // 8 // (costs.processors * costs.memory_bandwidth)
        bytes += transfer([w.op.inputs[0], *w.nest.op.outputs], costs)
        steps = w.rows * w.channels * w.depth * (1 + UNPACKED / rows) / (INSTRUCTIONS * costs.processors)
        why = f"{w.rows} rows by {w.channels} x {w.depth} codes of {w.bits} bits, which become floats in registers"
        return max(bytes, round(steps)), why

    def emit(self, emission: Emission, schedule: WeightBlocksSchedule) -> None:
        b, w = emission.builder, self.weights
        reader = BlockReader(b, w, w.pack(emission.given))
        points = PointEmitter(b, emission.fused.producers)
        shape = [-(-w.rows // schedule.rows), -(-w.channels // schedule.channels)]
        with points_of_teams(b, shape, Team(schedule.team, True), schedule.block) as (at, members, inside):
            ProductEmitter(b, schedule, reader, points, members).emit(at, inside)


@dataclass(eq=False)
class ProductEmitter:
    """Emits one thread's part of a product with weights in blocks that share a scale: the sums of some rows of data and
    some output channels, and the operations that follow them."""

    b: LoopBuilder
    schedule: WeightBlocksSchedule
    reader: BlockReader
    points: PointEmitter
    members: Members

    def __post_init__(self) -> None:
        self.w = self.reader.w

    def emit(self, at: Sequence[Index], inside: SSAValue | None) -> None:
        """Emit one thread's part of the tile at `at`. A team of GPU threads computes all sums of the tile together, and
        each of its threads then executes the operations that follow (bias, activation, store) for some of the sums.
        `inside`: whether the team has a tile; None if every team has one."""
        b, s, w = self.b, self.schedule, self.w
        rows = [b.plus(b.times(at[0], s.rows), n) for n in range(s.rows)]
        channels = [b.plus(b.times(at[1], s.channels), n) for n in range(s.channels)]
        lines = [self.clipped(row, w.rows, s.rows) for row in rows]
        columns = [self.clipped(channel, w.channels, s.channels) for channel in channels]
        zeros = [b.constant(0, f32)] * (s.rows * s.channels)
        with self.members.turns(w.depth // w.piece, zeros) as (turn, state):
            state.next = self.turn(b.times(turn, w.piece), lines, columns, state.args)
        for number, sum in enumerate(state.results):
            row, channel = rows[number // s.channels], channels[number % s.channels]
            total = self.members.join(sum, arith.AddfOp)
            mine = b.compare(b.index(self.members.member), "eq", b.index(number % s.team))
            known = [below(b, row, w.rows) if w.rows % s.rows else None]
            known.append(below(b, channel, w.channels) if w.channels % s.channels else None)
            when(b, both(b, [mine, inside, *known]), partial(self.finish, row, channel, total))

    def clipped(self, at: Index, count: int, together: int) -> Index:
        """Return the row or channel number `at`, limited to the last one of `count` if `count` is no multiple of
        `together`, the number of rows or channels that a thread computes."""
        return binary(self.b, arith.MinUIOp, at, count - 1) if count % together else at

    def turn(
        self, place: Index, rows: Sequence[Index], channels: Sequence[Index], sums: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Add the products with the next `self.w.piece` weights of each channel, from position `place` of the reduction
        on, to the sums. Weights that share a scale are summed first, and their sum is multiplied by the scale."""
        b, found, block = self.b, list(sums), gcd(self.w.piece, self.w.block)
        words = [self.reader.words(channel, place, self.w.piece) for channel in channels]
        per = WORD_BITS // self.w.bits
        for first in range(0, self.w.piece, block):
            scales = [self.reader.scale(channel, b.plus(place, first)) for channel in channels]
            parts = [b.constant(0, f32)] * len(found)
            for start in range(first, first + block, per):
                data = [self.data(row, b.plus(place, start), per) for row in rows]
                for column, (_, zero) in enumerate(scales):
                    steps = list(self.reader.steps(words[column][start // per :], per, zero))
                    for row, numbers in enumerate(data):
                        at = row * len(channels) + column
                        for x, step in zip(numbers, steps, strict=True):
                            parts[at] = self.plus(parts[at], x, step)
            for at, part in enumerate(parts):
                found[at] = self.plus(found[at], part, scales[at % len(channels)][0])
        return found

    def plus(self, sum: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return `sum + x * y`, rounded twice."""
        return self.b.add(arith.AddfOp(sum, self.b.add(arith.MulfOp(x, y)).result)).result

    def data(self, row: Index, place: Index, count: int) -> list[SSAValue]:
        """Load `count` neighbouring elements of a row."""
        b, found = self.b, list[SSAValue]()
        for first in range(0, count, FLOATS):
            vector = b.vector_load(self.w.op.inputs[0], [row, b.plus(place, first)], FLOATS)
            found += [b.lane(vector, lane) for lane in range(FLOATS)]
        return found

    def finish(self, row: Index, channel: Index, total: SSAValue) -> None:
        """Emit the operations that follow a sum, and store their results."""
        nest = self.w.nest
        self.points.known[self.w.op] = total
        dims = [*unravelled(self.b, row, nest.shape[:-1]), channel]
        self.points.results(nest, dims, self.points.nest(nest, dims))
