"""Decides how each op of a kernel is scheduled, in the order of emission, before anything is emitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import func, memref, scf
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.errors import InvalidArgument
from relay.lowering.scheduling.contraction import recognise_groups
from relay.lowering.scheduling.given_constants import GivenConstants, argument_of
from relay.lowering.scheduling.padding import Padding, find_paddings
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import asked_tile
from relay.lowering.scheduling.record import Entry, Given, OpSchedule, entries_of, place_of
from relay.lowering.scheduling.registry import strategies_for
from relay.lowering.scheduling.strategy import Kernel, Scheduled, Strategy, Unit
from relay.lowering.scheduling.windows import widens
from relay.target import CpuTarget


@dataclass
class Decisions:
    """The decisions about a function. `units`: strategies with their decisions, by the operation at which they are
    emitted; `writers`: those that write padded copies, by the copy. `done`: operations that are emitted as part of
    another one, or not at all."""

    paddings: dict[SSAValue, Padding]
    units: dict[Operation, Unit] = field(default_factory=dict[Operation, Unit])
    writers: dict[SSAValue, Unit] = field(default_factory=dict[SSAValue, Unit])
    done: set[Operation] = field(default_factory=set[Operation])
    schedules: list[OpSchedule] = field(default_factory=list[OpSchedule])


class Chooser:
    """Chooses the cheapest strategy and the best value of each decision. Subclasses choose differently, to explore the
    possible schedules."""

    def picks(self, where: str, given: Given) -> Picks:
        """Return the object that makes the decisions about an op."""
        return Picks(where, given)

    def unit(self, units: Sequence[Unit]) -> Unit:
        """Choose one of the strategies that apply to an op."""
        return min(units, key=lambda unit: unit.schedule.cycles)


BEST = Chooser()


def decide(
    function: func.FuncOp, given: GivenConstants, target: CpuTarget, tile: str = "", chooser: Chooser = BEST
) -> Decisions:
    """Decide how all operations of a function are scheduled: by its attributes `relay.schedule` and `relay.tile`, else
    by `tile`, else by `chooser`. Raises InvalidArgument if the attributes ask for something impossible."""
    return Decider(function, given, target, tile, chooser).run()


class Decider:
    """Decides how all ops of one function are scheduled."""

    def __init__(self, function: func.FuncOp, given: GivenConstants, target: CpuTarget, tile: str, chooser: Chooser):
        self.block, self.given, self.chooser = function.body.block, given, chooser
        self.where, self.entries = place_of(function), entries_of(function)
        self.asked = asked_tile(function, tile)
        ops = [op for op in function.walk() if isinstance(op, Scheduled)]
        self.numbers: dict[Operation, int] = {op: number for number, op in enumerate(ops)}
        paddings = find_paddings(list(self.block.ops))
        self.kernel = Kernel(given, target, dict(paddings))
        self.found = Decisions(paddings, done={op for padding in paddings.values() for op in padding.ops})
        self.pending: dict[Operation, Operation] = {}

    def run(self) -> Decisions:
        """Decide about all ops of the function and return the decisions."""
        self.decide(list(self.block.ops))
        if self.entries:
            raise self.unused(self.entries[0])
        self.found.schedules.sort(key=lambda schedule: schedule.op)
        return self.found

    def decide(self, ops: Sequence[Operation]) -> None:
        """Decide how several ops are scheduled, in order."""
        for op in ops:
            if op in self.pending:
                self.choose(self.pending[op], op)
            elif op not in self.found.done:
                self.visit(op)

    def visit(self, op: Operation) -> None:
        """Choose the schedule of an op that no earlier choice covers; for an `scf.if` or `scf.while`, those of the ops
        inside."""
        if isinstance(op, memref.ExpandShapeOp) and self.is_split(op):
            self.found.done.add(op)
            return
        for value in op.operands:
            self.write(value)
        if isinstance(op, scf.IfOp | scf.WhileOp):
            for inner in op.walk():
                for value in inner.operands:
                    self.write(value)
            for block in [block for region in op.regions for block in region.blocks]:
                self.decide(list(block.ops))
        elif isinstance(op, linalg.GenericOp) and self.is_read_through(op):
            self.found.done.add(op)
        elif isinstance(op, Scheduled):
            self.choose(op, op)

    def write(self, value: SSAValue) -> None:
        """If the value is a padded copy whose writer is not decided yet, decide how it is written."""
        if (padding := self.kernel.waiting.get(value)) is not None:
            self.found.writers[value] = self.unit(strategies_for(padding.ops[0], self.kernel))
            del self.kernel.waiting[value]

    def choose(self, op: Operation, at: Operation) -> None:
        """Choose the strategy for `op`, which is emitted at `at`. If `op` is a fill that starts a larger pattern, the
        choice is deferred to the last operation of the pattern."""
        options = strategies_for(op, self.kernel)
        together = [option for option in options if option.op is not op]
        if together and op is at and not self.is_for_another(together):
            entry = self.entry_for(together, consume=False)
            first = next((option for option in together if entry and option.name == entry.strategy), together[0])
            self.found.done.update(first.covers)
            self.pending[first.covers[-1]] = op
            return
        unit = self.unit([option for option in options if option.op is op is at or is_emitted_at(option, op, at)])
        unpadded = unit.strategy.pads(unit.schedule)
        for value in dict.fromkeys(unit.strategy.reads):
            if value not in unpadded:
                self.write(value)
        self.found.units[at] = unit

    def is_for_another(self, together: Sequence[Strategy[Any]]) -> bool:
        """Whether the schedule attribute names a strategy for the operation alone, so that none of the strategies in
        `together`, which cover a larger pattern, applies."""
        if not self.entries:
            return False
        names = {option.name for option in together}
        if (entry := self.entry_for(together, consume=False)) is not None:
            return entry.strategy not in names
        alone = {option.name for option in strategies_for(together[0].op, self.kernel)} - names
        return any(entry.op is None and entry.strategy in alone for entry in self.entries)

    def asks_for_nest(self, *ops: Operation) -> bool:
        """Whether the kernel's attribute `relay.schedule` asks for plain loops (`nest`) for one of the operations
        `ops`; such loops read operands as they are stored."""
        numbers = {None, *(self.numbers.get(op) for op in ops)}
        return any(entry.strategy == "nest" and entry.op in numbers for entry in self.entries)

    def unit(self, options: Sequence[Strategy[Any]]) -> Unit:
        """Choose among the strategies `options` for one op, and record the choice: the strategy that the function's
        attribute `relay.schedule` names, or else the one that `self.chooser` prefers. Return it with its decisions."""
        number, entry = self.numbers[options[0].op], self.entry_for(options, consume=True)
        where = f"{self.where}: op {number}" if len(self.numbers) > 1 else self.where
        given: Given = {}
        if entry is not None:
            named = [option for option in options if option.name == entry.strategy]
            if not named:
                hint = f"possible: {', '.join(option.name for option in options)}"
                what = "names no strategy" if entry.strategy is None else f"strategy {entry.strategy} does not apply"
                raise InvalidArgument(where, what, hint)
            options, given = named, entry.given
        decided: list[Unit] = []
        for option in options:
            pick = self.chooser.picks(f"{where}: {option.name}", given)
            if entry is None and option.name in TILED:
                pick.at_most = self.asked
            schedule = option.decide(self.kernel, pick)
            if entry is not None:
                pick.finish()
            why = f"asked for: {schedule.why}" if entry is not None or pick.at_most else schedule.why
            decided.append(Unit(option, replace(schedule, op=number, why=why)))
        best = self.chooser.unit(decided)
        self.found.schedules.append(best.schedule)
        return best

    def entry_for(self, options: Sequence[Strategy[Any]], *, consume: bool) -> Entry | None:
        """Return the entry of the kernel's attribute `relay.schedule` for the operation that all `options` schedule;
        None if there is none. `consume`: whether the entry is removed from those that are left."""
        number, names = self.numbers[options[0].op], {option.name for option in options}
        for entry in self.entries:
            if entry.op == number or (entry.op is None and entry.strategy in names):
                if consume:
                    self.entries.remove(entry)
                return entry
        return None

    def unused(self, entry: Entry) -> InvalidArgument:
        """Return the error for an entry of the kernel's attribute `relay.schedule` whose op or strategy the kernel does
        not have."""
        what = "names no strategy" if entry.strategy is None else f"strategy {entry.strategy} applies to no operation"
        if entry.op is not None:
            what = f"op {entry.op} is not scheduled by itself"
        have = ", ".join(f"op {each.op} {each.strategy}" for each in self.found.schedules)
        return InvalidArgument(self.where, what, f"the kernel has: {have}")

    def is_read_through(self, op: linalg.GenericOp) -> bool:
        """Whether the operation only widens codes, which the strategies of its users do themselves."""
        if not self.kernel.target.has_vectors:
            return False
        return widens(op) and not self.asks_for_nest(*users_of(op.outputs[0], op))

    def is_split(self, op: memref.ExpandShapeOp) -> bool:
        """Whether the reshape splits an image into groups of channels for a contraction that reads the image
        unsplit."""
        users = users_of(op.result)
        if len(users) != 1 or not isinstance(users[0], linalg.GenericOp) or not self.given.calls:
            return False
        found = recognise_groups(users[0])
        if found is None or found.conv.data.value is not op.src or self.asks_for_nest(users[0]):
            return False
        kernel = argument_of(found.conv.kernel.value)
        return kernel is not None and self.given.constant(kernel)


def is_emitted_at(option: Strategy[Any], op: Operation, at: Operation) -> bool:
    """Whether the code of the fill `op` is emitted at the operation `at`: the strategy implements several operations
    together, whose code is emitted at the last of them. `op` is the first of them and `at` the last."""
    return option.op is not op and op is not at and option.covers[-1] is at


def users_of(value: SSAValue, *others: Operation) -> list[Operation]:
    """Return the ops that read or write the value, except `others`."""
    return [use.operation for use in value.uses if use.operation not in others]


TILED = frozenset({"contraction", "groups", "parts"})
"""The strategies to which a kernel's attribute `relay.tile`, a tile of pixels and channels, applies."""
