"""`schedule-gpu`: turns `linalg` on memrefs into parallel loops over blocks and threads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects import func, memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, OperationInvT, SSAValue

from relay.dialects.attributes import dtype_of
from relay.errors import InvalidArgument, Unsupported
from relay.lowering.builder import INDEPENDENT, LoopBuilder
from relay.lowering.call_graph import CallGraph
from relay.lowering.gpu.formats import FLOATS
from relay.lowering.gpu.points import Producer
from relay.lowering.gpu.producers import computed, padded, starts
from relay.lowering.gpu.strategies import Chosen, choose
from relay.lowering.gpu.strategies.attention import AttentionSchedule, attentions_of
from relay.lowering.gpu.strategies.row_attention import RowAttentionSchedule, row_attentions_of
from relay.lowering.gpu.strategies.rows import Rows, RowsSchedule, chains_of
from relay.lowering.gpu.strategies.strategy import Emission, Fused, Kernel, Scheduled, Strategy
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.in_turn import Chain
from relay.lowering.scheduling.padding import Padding, padding_of
from relay.lowering.scheduling.record import Entry, OpSchedule, entries_of, not_scheduled, place_of, threads_of, write
from relay.lowering.shaped import VIEWS, is_buffer, is_vector, require_static
from relay.passes.target_pass import TargetPass
from relay.target import GpuTarget
from relay.transforms.dead_ops import erase_dead
from relay.transforms.location import place


@dataclass(frozen=True)
class ScheduleGpu(TargetPass):
    """Turn `linalg` ops and copies into `scf.parallel` over blocks and threads. The loop over threads is inside the
    loop over blocks; both are mapped as by `gpu-map-parallel-loops`, with one iteration for each element of a result,
    or for several neighbours that are read and written at once.

    A buffer whose elements are read once, by one reader, needs no memory: padding becomes a comparison, and a sum
    becomes one nest with the operations after it. An operation that does not write each element of its results once
    runs in a single thread. If the module's target has `dot`, sums of products of codes compute four products at a
    time; with `shuffle`, threads divide long reductions; with `mma` and `async-copy`, matrix units multiply large
    products with constant weights, which the pass packs; with `wgmma`, groups of four warps multiply them where that
    should be faster. If there are fewer blocks than the device has processors, each block may sum a part of the depth,
    and another launch adds the parts. If the target's `matmul` names a float format, the factors of float
    products are rounded to it, and matrix units multiply them.

    Of the strategies that apply to an operation, the cheapest is chosen. A function's attribute `relay.schedule`
    records the choice, all decisions, and their reasons (`print-choices` prints a table); if a function has the
    attribute already, the pass follows the decisions in it and makes the others.
    """

    name = "schedule-gpu"
    requires = ("bufferized", "expanded")
    establishes = ("loops",)
    invalidates = ("functions",)
    why = "assigns elements to GPU threads"
    processors: int | None = field(default=None, metadata={"deprecated": True})
    matmul: str = field(default="", metadata={"deprecated": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.matmul and self.matmul not in FLOATS:
            raise InvalidArgument(self.name, f"has matmul={self.matmul!r}", f"there are {', '.join(FLOATS)}")
        for option, new in (("processors", "-costs=processors=108"), ("matmul", "-matmul=tf32")):
            if getattr(self, option):
                text = f'{self.name}{{{option}=...}} is deprecated: put attach-target{{target="cuda {new}"}} before'
                warnings.warn(text, DeprecationWarning, stacklevel=3)

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(inner.name.startswith("linalg.") for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target, calls = self.device(op), CallGraph(op.walk())
        for function in list(op.body.block.ops):
            if isinstance(function, func.FuncOp) and function.body.blocks:
                FunctionScheduler(function, calls.of(function), target).run()

    def device(self, op: ModuleOp) -> GpuTarget:
        """Return the module's target, changed by the pass's options."""
        found = self.gpu(op)
        if self.processors is not None:
            found = found.with_costs({"processors": self.processors})
        return replace(found, matmul=self.matmul) if self.matmul else found


class KernelBuilder(LoopBuilder):
    """A builder for kernels, which aligns vector accesses to the size of the vector: buffers start at a multiple of it,
    and threads access whole vectors."""

    def add(self, op: OperationInvT) -> OperationInvT:
        if isinstance(op, vector.LoadOp | vector.StoreOp):
            type = (*op.results, *op.operands)[0].type
            assert is_vector(type)
            size = type.get_shape()[0] * dtype_of(type.element_type).itemsize
            op.attributes["alignment"] = IntegerAttr(size, i64)
        return super().add(op)


class FunctionScheduler:
    """Decides the schedule of one function, then rewrites its body accordingly."""

    def __init__(self, function: func.FuncOp, calls: Sequence[func.CallOp], target: GpuTarget):
        self.function = function
        self.block = function.body.block
        for op in self.block.walk():
            if isinstance(op, Scheduled):
                require_static(op)
        self.given = GivenConstants(self.block, calls)
        self.order = list(self.block.ops)
        self.done: list[Operation] = []
        self.rows = self.find_rows(target)
        self.fused = self.find()
        self.kernel = self.attend(Kernel(target, self.given, self.fused))

    def run(self) -> None:
        """Decide the schedule, record it in the function's attribute `relay.schedule`, and emit the new body."""
        chosen = self.decide()
        if chosen:
            write(self.function, [each.schedule for each in chosen.values()])
        self.emit(chosen)

    def find_rows(self, target: GpuTarget) -> dict[Operation, Chain]:
        """Return the chains of operations on the same rows, by the last operation of each; none if the function's
        schedule attribute names other strategies. The launch for the last operation computes the whole chain, so the
        others are added to `self.done`, the operations that need no launch of their own."""
        kinds = RowsSchedule, AttentionSchedule, RowAttentionSchedule
        chains = [*chains_of(self.order, target)] if self.may_be(*kinds) else []
        self.done += [op for chain in chains for op in chain.ops[:-1]]
        return {chain.ops[-1]: chain for chain in chains}

    def attend(self, kernel: Kernel) -> Kernel:
        """Return the kernel with the chains that were found in it: those on rows, and attentions for matrix units and
        for single rows. A launch for the last operation of an attention computes all of it, so the other operations are
        added to `done`, the operations that need no launch of their own."""
        chained: dict[Operation, Strategy[Any]] = {last: Rows(chain) for last, chain in self.rows.items()}
        for record, find in ((AttentionSchedule, attentions_of), (RowAttentionSchedule, row_attentions_of)):
            launched = [op for op in launches(self.order) if op not in self.done]
            found = dict(find(kernel, launched)) if self.may_be(record) else {}
            self.done += [op for each in found.values() for op in (each.parts.op, each.parts.chain.ops[-1])]
            chained |= found
        return replace(kernel, chained=chained)

    def may_be(self, *kinds: type[OpSchedule]) -> bool:
        """Whether the function's schedule attribute allows schedules of the classes `kinds`: it names no strategies
        other than those of `kinds`."""
        named = {entry.strategy for entry in entries_of(self.function)}
        return named <= {None, *(kind.strategy for kind in kinds)}

    def find(self) -> Fused:
        """Find the operations that need no launch of their own, and add them to `self.done`. These are the operations
        that write a buffer which needs no memory, because its reader computes the elements itself, and the fills that
        only initialise a later operation."""
        producers: dict[SSAValue, Producer] = {}
        pending: dict[Operation, list[linalg.FillOp]] = {}
        frames: dict[Operation, Padding] = {}
        kept = {buffer for chain in self.rows.values() for buffer in chain.written}
        shared = {op for chain in self.rows.values() for op in chain.ops}
        for op in self.order:
            if not isinstance(op, memref.AllocOp) or not self.here(op.memref) or op.memref in kept:
                continue
            if (copy := padded(op)) is not None:
                producers[op.memref] = copy
                self.done += copy.ops
            elif (found := computed(op, self.order)) is not None:
                nest, ops = found
                if nest.reduction and any(use.operation in shared for use in op.memref.uses):
                    continue
                producers[op.memref] = nest
                self.done += ops
        for argument in self.block.args:
            found = padding_of(argument) if is_buffer(argument.type) and self.here(argument) else None
            if found is not None and found.source not in producers and len(list(argument.uses)) == 2:
                fill, view, copy = found.ops
                between = self.order[self.order.index(fill) + 1 : self.order.index(copy)]
                if all(isinstance(op, memref.SubviewOp) for op in between):
                    frames[copy] = found
                    self.done += (fill, view)
        for op in self.order:
            if isinstance(op, linalg.FillOp) and op not in self.done and (user := starts(op, self.order)) is not None:
                if user in shared:
                    continue
                pending.setdefault(user, []).append(op)
        self.done += [fill for fills in pending.values() for fill in fills]
        return Fused(producers, pending, frames, self.rows)

    def here(self, buffer: SSAValue) -> bool:
        """Whether all uses of a buffer are in the function's own block, not in a branch or loop."""
        users = [use.operation for use in buffer.uses]
        views = [user.results[0] for user in users if isinstance(user, VIEWS)]
        return all(user.parent is self.block for user in users) and all(map(self.here, views))

    # Decisions

    @property
    def numbered(self) -> dict[int, Scheduled]:
        """The operations that are launched and not fused into another one, by their positions among all operations of
        the function that can be scheduled."""
        known = [op for op in self.function.walk() if isinstance(op, Scheduled)]
        launched = [op for op in launches(self.order) if op not in self.done]
        return {known.index(op): op for op in launched}

    def decide(self) -> dict[Operation, Chosen]:
        """Return a strategy and its schedule for each operation that is not fused. Decisions that the function's
        attribute `relay.schedule` prescribes are kept. Raises InvalidArgument for an attribute that does not apply."""
        numbers, where, entries = self.numbered, place_of(self.function), entries_of(self.function)
        if threads_of(self.function) is not None:
            raise InvalidArgument(where, "has threads, which are a CPU's", "block is how many a launch's block has")
        if entries and not numbers:
            raise not_scheduled(self.function)
        asked = entries_by_number(entries, list(numbers), where)
        found: dict[Operation, Chosen] = {}
        for number, op in numbers.items():
            at = f"{where}: op {number}" if len(numbers) > 1 else where
            strategy, schedule = choose(op, self.kernel, asked.get(number), at)
            found[op] = Chosen(strategy, replace(schedule, op=number))
        return found

    # Emission

    def emit(self, chosen: Mapping[Operation, Chosen]) -> None:
        """Emit the function's body as launches, and the operations between them."""
        emission = Emission(KernelBuilder(self.block), self.given, self.fused)
        self.emit_ops(self.order, emission, chosen)
        for op in self.done:
            op.erase(safe_erase=False)
        for op in self.block.walk():
            op.attributes.pop(INDEPENDENT, None)
        erase_dead(self.block.ops, memref.AllocOp | VIEWS)
        self.given.retire_unread(self.given.copied)
        self.given.erase_retired()
        self.function.update_function_type()

    def emit_ops(self, ops: Sequence[Operation], emission: Emission, chosen: Mapping[Operation, Chosen]) -> None:
        """Emit the operations of a block, except those that are fused into others."""
        for op in ops:
            op.detach()
        for op in ops:
            if op not in self.done:
                self.emit_op(op, emission, chosen)

    def emit_op(self, op: Operation, emission: Emission, chosen: Mapping[Operation, Chosen]) -> None:
        """Emit the launch of an operation, or keep the operation unchanged; the contents of branches and loops are
        emitted the same way."""
        builder = emission.builder
        builder.location = op.location
        if op in chosen:
            chosen[op].strategy.emit(emission, chosen[op].schedule)
            if op.parent is None:
                self.done.append(op)
            return
        builder.block.add_op(op)
        if isinstance(op, scf.IfOp | scf.WhileOp):
            outer = builder.block
            for block in [block for region in op.regions for block in region.blocks]:
                builder.block = block
                self.emit_ops(list(block.ops), emission, chosen)
            builder.block = outer


def launches(ops: Iterable[Operation]) -> Iterator[Scheduled]:
    """Yield the operations that are launched, in order, including those in the host's branches and loops. Raises
    Unsupported for a loop that only the host could execute."""
    for op in ops:
        if isinstance(op, scf.ForOp) and op.results:
            raise Unsupported(place(op), "gives what a loop of the host computes", 'target="llvm" does')
        if isinstance(op, Scheduled):
            yield op
        elif isinstance(op, scf.IfOp | scf.WhileOp):
            yield from launches(inner for region in op.regions for block in region.blocks for inner in block.ops)


def entries_by_number(entries: Sequence[Entry], numbers: Sequence[int], where: str) -> dict[int, Entry]:
    """Return the entries of the attribute `relay.schedule` by the number of the operation that each describes. An entry
    without a number describes the kernel's only operation. Raises InvalidArgument, with the place `where`, if a number
    is missing, unknown, or used twice."""
    found: dict[int, Entry] = {}
    for entry in entries:
        number = numbers[0] if entry.op is None and len(numbers) == 1 else entry.op
        if number is None or number not in numbers or number in found:
            what = "does not say which op" if number is None else f"op {number} is not scheduled by itself, or is twice"
            raise InvalidArgument(where, what, f"the kernel has: {', '.join(f'op {each}' for each in numbers)}")
        found[number] = entry
    return found
