"""Reductions: a thread for each result, or a team of threads; products of codes four at a time (`idp4a`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from xdsl.ir import SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.builder import Index
from relay.lowering.gpu.channel_tables import ChannelTables
from relay.lowering.gpu.dots import LEAST_DOT, DotEmitter, depthwise_dot_of, depthwise_sums, dot_of, sums_at
from relay.lowering.gpu.grids import teams, threads
from relay.lowering.gpu.points import PointEmitter, Producer, inlined
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.strategies.strategy import (
    Emission,
    Kernel,
    Strategy,
    count,
    elements,
    pick_block,
    powers,
    traffic,
)
from relay.lowering.gpu.teams import Team, is_along, is_shareable, largest_team, reductions, team_size
from relay.lowering.gpu.widths import lanes_of
from relay.lowering.indices import when
from relay.lowering.scheduling.affine import dims_of, uses
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import buffer_of
from relay.target.record import WARP


@dataclass(frozen=True, kw_only=True)
class ReductionSchedule(OpSchedule):
    """The decisions about a reduction. `lanes`: the number of neighbouring results that a thread computes; `dot`: the
    number of codes of each factor of a product that are read at once, 0 for one product at a time; `team`: the number
    of threads that share a result; `strided`: whether neighbouring threads have neighbouring results, instead of the
    same result; `points`: the number of results along a second dimension that a thread computes while it reads the
    factor that they have in common once; `block`: the number of threads of a block."""

    strategy = "reduction"
    lanes: int
    dot: int
    team: int
    strided: bool
    points: int
    block: int


@dataclass(frozen=True)
class Reduction(Strategy[ReductionSchedule]):
    """A loop nest that is a reduction, or that inlines one."""

    record = ReductionSchedule
    nest: Nest

    @classmethod
    def match_nest(cls, nest: Nest, kernel: Kernel) -> Self | None:
        sums = any(inner.reduction for inner in inlined(nest, kernel.fused.producers))
        return cls(nest) if nest.output_dims is not None and sums else None

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
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
        strided = not all(map(is_along, inner))
        size = 1
        if shared:
            codes = max((min(dot, found.lanes) for each in inner if (found := dot_of(each, producers))), default=0)
            size = team_size(inner, count(nest.shape, lanes), max(codes, 1), strided or lanes > 1, costs)
        team = pick("team", powers(largest_team(strided or lanes > 1, costs) if shared else 1), size)
        pick("strided", (False, True) if 1 < team <= WARP else (False,), strided and team > 1)
        shared_sum = None if team > 1 or any(taps) else sum_of_points(nest, producers)
        most_points = 1 if shared_sum is None else nest.shape[shared_sum.along]
        possible = [number for number in range(1, most_points + 1) if most_points % number == 0]
        usual = [number for number in possible if number <= costs.near_results]
        busy = [number for number in usual if count(nest.shape, lanes) // number >= costs.processors * WARP]
        points = pick("points", possible, max(busy, default=1))
        pick_block(kernel, pick, count(nest.shape, lanes) // points, team)
        what = [f"{team} threads share a result" if team > 1 else "a thread for each result"]
        what += [f"{lanes} neighbours at once"] if lanes > 1 else []
        what += [f"{points} points share reads"] if points > 1 else []
        what += [f"{dot} products of codes at once"] if dot else []
        return traffic(kernel, nest.op), ", ".join(what)

    def emit(self, emission: Emission, schedule: ReductionSchedule) -> None:
        b, nest, producers = emission.builder, self.nest, emission.fused.producers
        if schedule.points > 1:
            self.emit_points(emission, schedule)
            return

        def dot(points: PointEmitter, inner: Nest, dims: list[Index]) -> SSAValue | None:
            """Return the sum of the nest, computed by dot products of codes; None if it cannot be."""
            taps = depthwise_dot_of(inner, producers, emission.given)
            if taps is not None and points.members is None and points.is_wide(dims[inner.parallel[-1]]):
                return depthwise_sums(points, inner, taps, dims, emission.given)
            found = dot_of(inner, producers, schedule.dot)
            if found is None:
                return None
            emitter = DotEmitter(b, producers, inner, found, points.members)
            return emitter.emit([dims], points.starting(inner, dims))[0]

        team = Team(schedule.team, not schedule.strided)
        with teams(b, elements(nest.shape, schedule.lanes), team, schedule.block) as (at, members, first):
            tables = ChannelTables(b, emission.given, schedule.lanes)
            points = PointEmitter(b, producers, schedule.lanes, dot if schedule.dot else None, members, tables)
            dims = nest.dims(points.widened(at))
            values = points.nest(nest, dims)
            when(b, first, lambda: points.results(nest, dims, values))

    def emit_points(self, emission: Emission, schedule: ReductionSchedule) -> None:
        """Emit several results of each thread, whose sums are computed in the same loops."""
        b, nest, producers = emission.builder, self.nest, emission.fused.producers
        found = sum_of_points(nest, producers)
        assert found is not None
        shape = elements(nest.shape, schedule.lanes)
        shape[found.along] //= schedule.points
        with threads(b, shape, schedule.block) as at:
            tables = ChannelTables(b, emission.given, schedule.lanes)
            points = PointEmitter(b, producers, schedule.lanes, tables=tables, selects=True)
            at = points.widened(at)
            start = b.times(at[found.along], schedule.points)
            places = [[*at[: found.along], b.plus(start, n), *at[found.along + 1 :]] for n in range(schedule.points)]
            inner = [found.nest.dims(place) for place in places]
            sums = sums_at(points, found.nest, inner, schedule.dot)
            for place, total in zip(places, sums, strict=True):
                points.known[found.nest.op] = total
                dims = nest.dims(place)
                points.results(nest, dims, points.nest(nest, dims))


@dataclass(frozen=True)
class PointsSum:
    """The only reduction of a loop nest, and a dimension of its results on which one of its inputs does not depend: a
    thread that computes several results along this dimension reads that input only once."""

    nest: Nest
    along: int


def sum_of_points(nest: Nest, producers: Mapping[SSAValue, Producer]) -> PointsSum | None:
    """Return the only reduction of a nest, with a dimension of its results along which one thread can compute several
    results and read one of the inputs only once. Some input does not depend on this dimension; it is larger than 1, and
    not the innermost of the results. If there are several such dimensions, the last one is chosen. Return None if there
    is no such dimension, if there are several reductions, or if a nest that uses the sums does not read them at the
    indices at which it writes its own results."""
    sums = [each for each in inlined(nest, producers) if each.reduction]
    if len(sums) != 1 or len(sums[0].op.outputs) != 1:
        return None
    (found,) = sums
    for each in inlined(nest, producers):
        if each is found:
            break
        every = list(range(len(each.shape)))
        readers = [dims_of(map) for value, map in zip(each.op.inputs, each.maps, strict=False) if value in producers]
        if each.output_dims != every or any(dims != every for dims in readers):
            return None
    order = found.output_dims or []
    inputs = found.maps[: len(found.op.inputs)]
    free = [n for n, dim in enumerate(order[:-1]) if not all(uses(map, dim) for map in inputs)]
    wide = [n for n in free if found.shape[n] > 1]
    return PointsSum(found, wide[-1]) if wide else None


def size_of_sum(nest: Nest) -> int:
    """Return the size in bytes of an element of a nest's first result."""
    return dtype_of(buffer_of(nest.op.outputs[0]).element_type).itemsize
