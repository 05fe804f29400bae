"""The basic strategies: fills and copies, with a thread for each element, and loops of a single thread for other
operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from xdsl.dialects import memref, scf
from xdsl.dialects.linalg import ops as linalg

from relay.errors import Unsupported
from relay.lowering.gpu.grids import threads
from relay.lowering.gpu.strategies.strategy import Emission, Kernel, Scheduled, Strategy, count, pick_block, traffic
from relay.lowering.scheduling import loops
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plain import best_order, emit_nest
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import is_buffer, shape_of
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
    op: linalg.FillOp | memref.CopyOp

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        return cls(op) if isinstance(op, linalg.FillOp) else None

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        pick_block(kernel, pick, count(shape_of(self.op.operands[1])))
        return traffic(kernel, self.op), "a thread for each element"

    def emit(self, emission: Emission, schedule: FillSchedule) -> None:
        b, (source, target) = emission.builder, self.op.operands
        with threads(b, shape_of(target), schedule.block) as at:
            loops.store(b, b.load(source, at) if is_buffer(source.type) else source, target, at)


@dataclass(frozen=True, kw_only=True)
class CopySchedule(FillSchedule):
    """The decision about a copy, which is the same as about a fill."""

    strategy = "copy"


@dataclass(frozen=True)
class Copy(Fill):
    """`memref.copy`: a thread for each element."""

    record = CopySchedule

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        return cls(op) if isinstance(op, memref.CopyOp) and op not in kernel.fused.frames else None


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

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        if isinstance(self.op, linalg.GenericOp) and any(value in kernel.fused.producers for value in self.op.operands):
            what = "reads what is computed in place, and has no result to compute it for"
            raise Unsupported(place(self.op), what)
        cost = traffic(kernel, self.op) * kernel.target.costs.processors
        return cost, "elements of results are written more than once"

    def emit(self, emission: Emission, schedule: SingleSchedule) -> None:
        b, op = emission.builder, self.op
        with threads(b, [1], WARP):
            if isinstance(op, scf.ForOp):
                b.block.add_op(op)
                return
            for fill in emission.fused.pending.get(op, ()):
                loops.emit_fill(b, fill)
            emit_nest(b, op, best_order(op))
