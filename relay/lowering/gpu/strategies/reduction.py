"""Sums and the like: a thread for each result, or a team of threads; products of codes four at a time (`idp4a`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.builder import Index
from relay.lowering.gpu.channel_tables import ChannelTables
from relay.lowering.gpu.depthwise_dots import depthwise_dot_of
from relay.lowering.gpu.depthwise_dots import emit as depthwise_sums
from relay.lowering.gpu.dots import LEAST_DOT, DotEmitter, dot_of
from relay.lowering.gpu.grids import teams
from relay.lowering.gpu.points import PointEmitter, inlined
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.strategies.strategy import (
    Decision,
    Emission,
    Kernel,
    Scheduled,
    Strategy,
    count,
    elements,
    pick_block,
    powers,
    traffic,
)
from relay.lowering.gpu.teams import Team, is_shareable, largest_team, neighbours, reductions, team_size
from relay.lowering.gpu.widths import lanes_of
from relay.lowering.indices import when
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import buffer_of
from relay.target.record import WARP


@dataclass(frozen=True, kw_only=True)
class ReductionSchedule(OpSchedule):
    """`lanes`: neighbouring results of a thread; `dot`: codes of each factor of a product that are read at once, 0 for
    one product at a time; `team`: threads that share a result, which are neighbours or, with `strided`, lie apart, so
    that those of neighbouring results are neighbours; `block`: threads of a block."""

    strategy = "reduction"
    lanes: int
    dot: int
    team: int
    strided: bool
    block: int


@dataclass(frozen=True)
class Reduction(Strategy[ReductionSchedule]):
    """A nest that sums, or the like, by itself or in what it reads in place."""

    record = ReductionSchedule
    nest: Nest

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp):
            return None
        nest = kernel.fused.nest(op)
        sums = any(inner.reduction for inner in inlined(nest, kernel.fused.producers))
        return cls(nest) if nest.output_dims is not None and sums else None

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[ReductionSchedule]:
        nest, producers, costs = self.nest, kernel.fused.producers, kernel.target.costs
        most, best = lanes_of(nest, producers, costs.least_threads)
        wide = any(each.reduction and size_of_sum(each) > 1 for each in inlined(nest, producers))
        lanes = pick("lanes", powers(most), min(best, costs.summed_lanes) if wide else best)
        widest = max(
            (found.lanes for each in inlined(nest, producers) if (found := dot_of(each, producers)) is not None),
            default=0,
        )
        taps = [depthwise_dot_of(each, producers, kernel.given) for each in inlined(nest, producers)]
        widest = LEAST_DOT if lanes % LEAST_DOT == 0 and any(taps) else widest
        widest = widest if kernel.target.dots else 0
        dot = pick("dot", [*powers(widest, LEAST_DOT), 0], widest)
        shared = kernel.target.shuffles and is_shareable(nest, producers)
        inner = [each for each in reductions(nest, producers) if each is not None]
        strided = not neighbours(inner)
        size = 1
        if shared:
            codes = max((min(dot, found.lanes) for each in inner if (found := dot_of(each, producers))), default=0)
            size = team_size(inner, count(nest.shape, lanes), max(codes, 1), strided or lanes > 1, costs)
        team = pick("team", powers(largest_team(strided or lanes > 1, costs) if shared else 1), size)
        strided = pick("strided", (False, True) if 1 < team <= WARP else (False,), strided and team > 1)
        block = pick_block(kernel, pick, count(nest.shape, lanes), team)
        what = [f"{team} threads share a result" if team > 1 else "a thread for each result"]
        what += [f"{lanes} neighbours at once"] if lanes > 1 else []
        what += [f"{dot} products of codes at once"] if dot else []
        cost = traffic(kernel, nest.op)
        return Decision(
            cost,
            ReductionSchedule(
                lanes=lanes, dot=dot, team=team, strided=strided, block=block, cycles=cost, why=", ".join(what)
            ),
        )

    def emit(self, emission: Emission, schedule: ReductionSchedule) -> None:
        b, nest, producers = emission.builder, self.nest, emission.fused.producers

        def dot(points: PointEmitter, inner: Nest, dims: list[Index]) -> SSAValue | None:
            """A sum by dot products, if it is such a sum."""
            taps = depthwise_dot_of(inner, producers, emission.given)
            if taps is not None and points.members is None and points.is_wide(dims[inner.parallel[-1]]):
                return depthwise_sums(points, inner, taps, dims, emission.given)
            found = dot_of(inner, producers, schedule.dot)
            if found is None:
                return None
            emitter = DotEmitter(b, producers, inner, found, points.members)
            return emitter.emit(dims, points.starting(inner, dims)[0])

        team = Team(schedule.team, not schedule.strided)
        with teams(b, elements(nest.shape, schedule.lanes), team, schedule.block) as (at, members, first):
            tables = ChannelTables(b, emission.given, schedule.lanes)
            points = PointEmitter(b, producers, schedule.lanes, dot if schedule.dot else None, members, tables)
            dims = nest.dims(points.widened(at))
            values = points.nest(nest, dims)
            when(b, first, lambda: points.results(nest, dims, values))


def size_of_sum(nest: Nest) -> int:
    """Bytes of each element of a nest's first result."""
    return dtype_of(buffer_of(nest.op.outputs[0]).element_type).itemsize
