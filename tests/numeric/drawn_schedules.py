"""Plain loops: a pass before `schedule` that gives every kernel an attribute `relay.schedule`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.linalg import ops as linalg

from relay.exploration.tuning import scheduled
from relay.lowering.scheduling.record import ATTRIBUTE
from relay.lowering.scheduling.strategy import Scheduled
from relay.passes import Pass


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
