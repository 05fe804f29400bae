"""`schedule`: turns `linalg` on memrefs into loops; convolutions and products get micro-kernels and packed weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relay.errors import InvalidArgument
from relay.lowering.builder import LoopBuilder
from relay.lowering.call_graph import CallGraph
from relay.lowering.lengths import close_extents, open_extents, opened
from relay.lowering.scheduling.decide import Decisions, decide
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.record import ATTRIBUTE, entries_of, not_scheduled, write
from relay.lowering.scheduling.records import Table, attribute_of, processor_of, signature_of, table_of
from relay.lowering.scheduling.seen_keys import seen_keys
from relay.lowering.scheduling.strategy import Emission, Scheduled
from relay.lowering.shaped import require_static
from relay.lowering.walking import walked
from relay.passes.target_pass import TargetPass
from relay.target import CpuTarget
from relay.transforms.dead_ops import erase_dead

EMITTED = scf.ForOp | memref.StoreOp | vector.StoreOp
"""Ops at least one of which a function contains once it is scheduled, as it has loops or stores then."""


@dataclass(frozen=True)
class Schedule(TargetPass):
    """Turn `linalg` ops and copies into `scf` loops over `vector`, `arith` and `memref`.

    The ops are `linalg.fill`, `linalg.generic` and `memref.copy`.

    A convolution, depthwise convolution or matrix product whose weights are constants in every caller becomes a
    register-tiled micro-kernel, with the elementwise operation that follows it as epilogue; the pass packs its weights.
    The choice depends on the module's target. A kernel's attribute `relay.schedule` records the decisions about each of
    its operations, and their reasons (`print-choices` prints a table). If it is there already, the pass follows the
    decisions in it and makes the others: `{strategy = "nest"}`, or `{strategy = "contraction", tile = [8, 48]}` for a
    register tile of 8 pixels x 48 channels. The option `tile`, such as `8x48`, sets the register tile in all kernels
    without the attribute; the option `records`, the text of schedules that `relay.tune` measured, applies them to the
    kernels that the text contains. See docs/schedules.md.
    """

    name = "schedule"
    requires = ("bufferized", "expanded")
    establishes = ("loops",)
    invalidates = ("target-ops", "functions")
    why = "tiles, vectorizes, and packs weights"
    tile: str = ""
    records: str = ""

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(inner.name.startswith("linalg.") for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = self.cpu(op)
        calls = CallGraph(walked(op))
        table: Table = table_of(self.records) if self.records else {}
        known = table.get(processor_of(target), {})
        for function in list(op.body.block.ops):
            if isinstance(function, func.FuncOp) and function.body.blocks:
                FunctionScheduler(function, calls.of(function), target, self.tile, known).run()


class FunctionScheduler:
    """Rewrites the body of one function: decides about all ops, writes the decisions to `relay.schedule`, then emits
    loops."""

    def __init__(
        self,
        function: func.FuncOp,
        calls: Sequence[func.CallOp],
        target: CpuTarget,
        tile: str,
        known: Mapping[str, str],
    ):
        self.function, self.target, self.tile, self.known = function, target, tile, known
        if opened(function):
            open_extents(function)
        self.old = function.body.block
        self.given = GivenConstants(self.old, calls)
        self.keys = seen_keys(self.old, self.given) if target.has_vectors and not opened(function) else None
        if self.keys is not None:
            self.keys.open()

    def run(self) -> None:
        scheduled = [op for op in self.old.walk() if isinstance(op, Scheduled)]
        for op in scheduled:
            require_static(op)
        if not scheduled:
            if entries_of(self.function) and not any(isinstance(op, EMITTED) for op in self.old.walk()):
                raise not_scheduled(self.function)
            if opened(self.function):
                close_extents(self.function)
            return
        self.found = found = self.recorded() or decide(self.function, self.given, self.target, self.tile)
        write(self.function, found.schedules)
        self.builder = LoopBuilder(self.old)
        self.done = {*found.done, *found.units}
        self.emission = Emission(self.builder, self.given, found.paddings, found.writers, self.done)
        ops = list(self.old.ops)
        for op in ops:
            op.detach()
        if self.keys is not None:
            self.builder.counted = self.keys.count(self.builder)
        self.emit_all(ops)
        for op in self.done:
            op.erase(safe_erase=False)
        erase_dead(self.old.ops, memref.AllocOp | memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp)
        if self.given.calls and not self.target.has_threads and not self.target.has_vectors:
            self.given.narrow()
            self.given.retire_unread()  # flash is scarce; elsewhere relay.validation reads the bias that was packed
        self.given.erase_retired()
        if opened(self.function) or self.keys is not None:
            close_extents(self.function)
        self.function.update_function_type()

    def recorded(self) -> Decisions | None:
        """Return the decisions of the tuning record of this kernel. None if the kernel has an attribute
        `relay.schedule`, which has precedence, if there is no record, or if its decisions are not possible with the
        kernel's constants."""
        if not self.known or ATTRIBUTE in self.function.attributes:
            return None
        text = self.known.get(signature_of(self.function, self.given))
        if text is None:
            return None
        self.function.attributes[ATTRIBUTE] = attribute_of(text)
        try:
            return decide(self.function, self.given, self.target)
        except InvalidArgument:
            del self.function.attributes[ATTRIBUTE]
            return None

    def emit_all(self, ops: Sequence[Operation]) -> None:
        """Emit several ops in order."""
        for op in ops:
            self.builder.location = op.location
            if (unit := self.found.units.get(op)) is not None:
                around = [each for each in unit.strategy.covers if each is not unit.strategy.op]
                self.write(around or [op])  # a strategy writes the operands of its own op itself
                unit.emit(self.emission)
            elif op not in self.done:
                control = isinstance(op, scf.IfOp | scf.WhileOp)
                self.write(op.walk() if control else [op])
                self.builder.block.add_op(op)
                if control:
                    self.control(op)

    def write(self, ops: Iterable[Operation]) -> None:
        """Emit the loops that fill the padded buffers (copies of data with a border) that `ops` read, unless they are
        emitted already."""
        for operand in [operand for op in ops for operand in op.operands]:
            self.emission.write(operand)

    def control(self, op: Operation) -> None:
        """Emit the contents of branches, or of a loop, in their own blocks."""
        outer, blocks = self.builder.block, [block for region in op.regions for block in region.blocks]
        for block in blocks:
            self.builder.block, ops = block, list(block.ops)
            for inner in ops:
                inner.detach()
            self.emit_all(ops)
        self.builder.block = outer
