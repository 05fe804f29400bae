"""Legal schedules by chance: a pass before `schedule` that gives every kernel an attribute `relay.schedule`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg

from relay.lowering.call_graph import CallGraph
from relay.lowering.scheduling.decide import Chooser, decide
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import ATTRIBUTE, Given, Value, write
from relay.lowering.scheduling.strategy import Scheduled, Unit
from relay.passes import Pass
from relay.target import cpu_of

T = TypeVar("T", bound=Value)


class DrawnPicks(Picks):
    """Takes any decision that is possible, half of the time the best."""

    def __init__(self, where: str, given: Given, random: Random):
        super().__init__(where, given)
        self.random = random

    def __call__(self, name: str, possible: Sequence[T], best: T) -> T:
        if name not in self.given and self.random.random() < 0.5:
            best = possible[self.random.randrange(len(possible))]
        return super().__call__(name, possible, best)

    def part(self, where: str, given: Given) -> Picks:
        return DrawnPicks(where, given, self.random)


class DrawnStrategies(Chooser):
    """Takes any strategy that applies."""

    def __init__(self, random: Random):
        self.random = random

    def picks(self, where: str, given: Given) -> Picks:
        return DrawnPicks(where, given, self.random)

    def unit(self, units: Sequence[Unit]) -> Unit:
        return self.random.choice(units)


@dataclass(frozen=True)
class DrawSchedules(Pass):
    """Give every kernel a legal schedule, by chance (`seed`)."""

    name = "draw-schedules"
    seed: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        random, calls = Random(self.seed), CallGraph(op.walk())
        target = cpu_of(op, self.name)
        for function in scheduled(op):
            given = GivenConstants(function.body.block, calls.of(function))
            write(function, decide(function, given, target, chooser=DrawnStrategies(random)).schedules)


@dataclass(frozen=True)
class PlainSchedules(Pass):
    """Have every kernel be plain loops."""

    name = "plain-schedules"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in scheduled(op):
            ops = [inner for inner in function.walk() if isinstance(inner, Scheduled)]
            numbers = [number for number, inner in enumerate(ops) if isinstance(inner, linalg.GenericOp)]
            plain = [DictionaryAttr({"strategy": StringAttr("nest"), "op": IntegerAttr(n, i64)}) for n in numbers]
            if plain:
                function.attributes[ATTRIBUTE] = DictionaryAttr({"ops": ArrayAttr(plain)})


def scheduled(module: ModuleOp) -> list[FuncOp]:
    """The functions with operations to schedule."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    return [function for function in functions if any(isinstance(op, Scheduled) for op in function.walk())]
