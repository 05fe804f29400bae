"""Loop nests without sums, and padded copies: a thread for each element, or for a few neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg

from relay.lowering.gpu.channel_tables import ChannelTables
from relay.lowering.gpu.grids import threads
from relay.lowering.gpu.points import PointEmitter, inlined
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.strategies.strategy import (
    Decision,
    Emission,
    Kernel,
    Scheduled,
    Strategy,
    count,
    decided,
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
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp):
            return None
        nest = kernel.fused.nest(op)
        sums = any(inner.reduction for inner in inlined(nest, kernel.fused.producers))
        return None if nest.output_dims is None or sums else cls(nest)

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[ElementwiseSchedule]:
        most, best = lanes_of(self.nest, kernel.fused.producers, kernel.target.costs.least_threads)
        lanes = pick("lanes", powers(most), best)
        pick_block(kernel, pick, count(self.nest.shape, lanes))
        return decided(pick, ElementwiseSchedule, traffic(kernel, self.nest.op), why(lanes))

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
    op: memref.CopyOp
    found: Padding

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        found = kernel.fused.frames.get(op)
        return cls(op, found) if isinstance(op, memref.CopyOp) and found is not None else None

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[PadSchedule]:
        most, best = lanes_of_copy(self.found, kernel.target.costs.least_threads)
        lanes = pick("lanes", powers(most), best)
        pick_block(kernel, pick, count(self.found.shape, lanes))
        return decided(pick, PadSchedule, traffic(kernel, self.op), why(lanes))

    def emit(self, emission: Emission, schedule: PadSchedule) -> None:
        b, lanes = emission.builder, schedule.lanes
        with threads(b, elements(self.found.shape, lanes), schedule.block) as at:
            points = PointEmitter(b, emission.fused.producers, lanes)
            at = points.widened(at)
            points.store(points.padded(self.found, at), self.found.buffer, at)


def why(lanes: int) -> str:
    """Return the text that says how many elements a thread computes."""
    return f"a thread for {lanes} neighbours" if lanes > 1 else "a thread for each element"
