"""Loop nests without sums, and padded copies: a thread for each element, or for a few neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from xdsl.ir import Operation

from relay.lowering.gpu.channel_tables import ChannelTables
from relay.lowering.gpu.grids import threads
from relay.lowering.gpu.points import PointEmitter, inlined
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.strategies.strategy import (
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
from relay.lowering.gpu.widths import lanes_of, lanes_of_copy
from relay.lowering.scheduling.padding import Padding
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule


@dataclass(frozen=True, kw_only=True)
class ElementwiseSchedule(OpSchedule):
    """The decisions about a loop nest without sums. `lanes`: neighbours along the last dimension that a thread reads,
    computes and writes at once; `block`: threads of a block."""

    strategy = "elementwise"
    lanes: int
    block: int


@dataclass(frozen=True)
class Elementwise(Strategy[ElementwiseSchedule]):
    """A loop nest without sums, and the producers that it inlines."""

    record = ElementwiseSchedule
    nest: Nest

    @classmethod
    def match_nest(cls, nest: Nest, kernel: Kernel) -> Self | None:
        sums = any(inner.reduction for inner in inlined(nest, kernel.fused.producers))
        return None if nest.output_dims is None or sums else cls(nest)

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        possible = lanes_of(self.nest, kernel.fused.producers, kernel.target.costs.least_threads)
        return pick_neighbours(kernel, pick, self.nest.op, self.nest.shape, *possible)

    def emit(self, emission: Emission, schedule: ElementwiseSchedule) -> None:
        b, nest, lanes = emission.builder, self.nest, schedule.lanes
        with threads(b, elements(nest.shape, lanes), schedule.block) as at:
            tables = ChannelTables(b, emission.given, lanes)
            points = PointEmitter(b, emission.fused.producers, lanes, tables=tables)
            dims = nest.dims(points.widened(at))
            points.results(nest, dims, points.nest(nest, dims))


@dataclass(frozen=True, kw_only=True)
class PadSchedule(ElementwiseSchedule):
    """The decisions about a padded copy, which are the same as about an elementwise nest."""

    strategy = "pad"


@dataclass(frozen=True)
class Pad(Strategy[PadSchedule]):
    """A copy into the middle of a buffer together with the padding around it, in one launch."""

    record = PadSchedule
    found: Padding

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        found = kernel.fused.frames.get(op)
        return None if found is None else cls(found)

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        possible = lanes_of_copy(self.found, kernel.target.costs.least_threads)
        return pick_neighbours(kernel, pick, self.found.ops[-1], self.found.shape, *possible)

    def emit(self, emission: Emission, schedule: PadSchedule) -> None:
        b, lanes = emission.builder, schedule.lanes
        with threads(b, elements(self.found.shape, lanes), schedule.block) as at:
            points = PointEmitter(b, emission.fused.producers, lanes)
            at = points.widened(at)
            points.store(points.padded(self.found, at), self.found.buffer, at)


def pick_neighbours(
    kernel: Kernel, pick: Picks, op: Operation, shape: Sequence[int], most: int, best: int
) -> tuple[float, str]:
    """Decide how many neighbouring elements of a result a thread computes (`most`: the largest number allowed; `best`:
    the preferred one), and how many threads a block has. Return the cost in clock cycles, and a text that describes the
    choice. `shape`: the shape of the result."""
    lanes = pick("lanes", powers(most), best)
    pick_block(kernel, pick, count(shape, lanes))
    return traffic(kernel, op), f"a thread for {lanes} neighbours" if lanes > 1 else "a thread for each element"
