"""The basic strategies: fills and copies, with a thread for each element, and loops of a single thread for other
operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from xdsl.dialects import memref, scf
from xdsl.dialects.linalg import ops as linalg

from relay.errors import Unsupported
from relay.lowering.gpu.grids import threads
from relay.lowering.gpu.strategies.strategy import (
    Decision,
    Emission,
    Kernel,
    Scheduled,
    Strategy,
    count,
    decided,
    pick_block,
    traffic,
)
from relay.lowering.scheduling import loops
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plain import best_order, emit_nest
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import shape_of
from relay.target.record import WARP
from relay.transforms.location import place


@dataclass(frozen=True, kw_only=True)
class FillSchedule(OpSchedule):
    """The decision about a fill. `block`: threads of a block."""

    strategy = "fill"
    block: int


@dataclass(frozen=True)
class Fill(Strategy[FillSchedule]):
    """`linalg.fill`: a thread for each element."""

    record = FillSchedule
    op: linalg.FillOp

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        return cls(op) if isinstance(op, linalg.FillOp) else None

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[FillSchedule]:
        pick_block(kernel, pick, count(shape_of(self.op.outputs[0])))
        return decided(pick, FillSchedule, traffic(kernel, self.op), "a thread for each element")

    def emit(self, emission: Emission, schedule: FillSchedule) -> None:
        b, output = emission.builder, self.op.outputs[0]
        with threads(b, shape_of(output), schedule.block) as at:
            b.store(self.op.inputs[0], output, at)


@dataclass(frozen=True, kw_only=True)
class CopySchedule(OpSchedule):
    """The decision about a copy. `block`: threads of a block."""

    strategy = "copy"
    block: int


@dataclass(frozen=True)
class Copy(Strategy[CopySchedule]):
    """`memref.copy`: a thread for each element."""

    record = CopySchedule
    op: memref.CopyOp

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        return cls(op) if isinstance(op, memref.CopyOp) and op not in kernel.fused.frames else None

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[CopySchedule]:
        pick_block(kernel, pick, count(shape_of(self.op.destination)))
        return decided(pick, CopySchedule, traffic(kernel, self.op), "a thread for each element")

    def emit(self, emission: Emission, schedule: CopySchedule) -> None:
        b, op = emission.builder, self.op
        with threads(b, shape_of(op.destination), schedule.block) as at:
            loops.store(b, b.load(op.source, at), op.destination, at)


@dataclass(frozen=True, kw_only=True)
class SingleSchedule(OpSchedule):
    """The schedule of a single thread, which has no decisions."""

    strategy = "single-thread"


@dataclass(frozen=True)
class Single(Strategy[SingleSchedule]):
    """Loops that a single thread executes: for loops of `scf`, and for loop nests that may write an element of a result
    more than once."""

    record = SingleSchedule
    op: linalg.GenericOp | scf.ForOp

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        if isinstance(op, linalg.GenericOp):
            return cls(op) if kernel.fused.nest(op).output_dims is None else None
        return cls(op) if isinstance(op, scf.ForOp) else None

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[SingleSchedule]:
        if isinstance(self.op, linalg.GenericOp) and any(value in kernel.fused.producers for value in self.op.operands):
            what = "reads what is computed in place, and has no result to compute it for"
            raise Unsupported(place(self.op), what)
        cost = traffic(kernel, self.op) * kernel.target.costs.processors
        return decided(pick, SingleSchedule, cost, "elements of results are written more than once")

    def emit(self, emission: Emission, schedule: SingleSchedule) -> None:
        b, op = emission.builder, self.op
        with threads(b, [1], WARP):
            if isinstance(op, scf.ForOp):
                b.block.add_op(op)
                return
            for fill in emission.fused.pending.get(op, ()):
                loops.emit_fill(b, fill)
            emit_nest(b, op, best_order(op))
