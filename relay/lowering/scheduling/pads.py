"""Padded copies that something reads: written before, row by row, or as a fill and a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from relay.lowering.scheduling.loops import emit_copy, emit_fill
from relay.lowering.scheduling.padding import Padding, emit_padding
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, moved


@dataclass(frozen=True, kw_only=True)
class PadSchedule(OpSchedule):
    """`by_rows`: each row is written once, with its edges; else all is filled and the image copied into it."""

    strategy = "pad"
    by_rows: bool


@dataclass(frozen=True)
class Pad(Strategy[PadSchedule]):
    """A padded copy that an operation reads as it is."""

    record = PadSchedule
    op: linalg.FillOp
    padding: Padding

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        padding = kernel.waiting.get(op.outputs[0]) if isinstance(op, linalg.FillOp) else None
        return None if padding is None or not isinstance(op, linalg.FillOp) else cls(op, padding)

    @property
    def covers(self) -> Sequence[Operation]:
        return self.padding.ops

    def decide(self, kernel: Kernel, pick: Picks) -> PadSchedule:
        image = self.padding.of_image
        by_rows = pick("by_rows", (True, False) if image else (False,), image)
        source, target = self.padding.source, self.padding.buffer
        again = () if by_rows else (source,)
        why = "read as it is by what follows"
        return PadSchedule(by_rows=by_rows, cycles=moved(kernel, source, target, *again), why=why)

    def emit(self, emission: Emission, schedule: PadSchedule) -> None:
        if schedule.by_rows:
            emit_padding(emission.builder, self.padding)
            return
        fill, view, copy = self.padding.ops
        assert isinstance(fill, linalg.FillOp) and isinstance(copy, memref.CopyOp)
        emit_fill(emission.builder, fill)
        emission.done.discard(view)
        emission.builder.block.add_op(view)
        emit_copy(emission.builder, copy)
