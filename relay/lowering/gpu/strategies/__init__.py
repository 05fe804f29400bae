"""The strategies of GPU scheduling, and the choice among those that apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from xdsl.dialects.func import FuncOp

from relay.errors import InvalidArgument
from relay.lowering.gpu.strategies.attention import OneAttention
from relay.lowering.gpu.strategies.elementwise import Elementwise, Pad
from relay.lowering.gpu.strategies.mma import Mma
from relay.lowering.gpu.strategies.mma_blocks import MmaBlocks
from relay.lowering.gpu.strategies.mma_pairs import MmaPairs
from relay.lowering.gpu.strategies.plain import Copy, Fill, Single
from relay.lowering.gpu.strategies.reduction import Reduction
from relay.lowering.gpu.strategies.row_attention import OneRowAttention
from relay.lowering.gpu.strategies.rows import Rows
from relay.lowering.gpu.strategies.strategy import Kernel, Scheduled, Strategy
from relay.lowering.gpu.strategies.weight_blocks import WeightBlocks
from relay.lowering.gpu.strategies.wgmma import Wgmma, WgmmaTma, WgmmaTurns
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import Entry, OpSchedule, schedules_in

STRATEGIES: Sequence[type[Strategy[Any]]] = (
    Mma,
    WgmmaTurns,
    WgmmaTma,
    Wgmma,
    MmaPairs,
    MmaBlocks,
    WeightBlocks,
    OneAttention,
    OneRowAttention,
    Rows,
    Reduction,
    Elementwise,
    Pad,
    Fill,
    Copy,
    Single,
)
"""All strategies; of equally cheap ones, the first is chosen."""


class Chosen(NamedTuple):
    """A strategy for an operation, with its decisions."""

    strategy: Strategy[Any]
    schedule: OpSchedule


def matching(op: Scheduled, kernel: Kernel) -> list[Strategy[Any]]:
    """Return the strategies that apply to an operation; for the last operation of a chain, those that compute the whole
    chain."""
    if op in kernel.chained:
        return [kernel.chained[op]]
    return [strategy for kind in STRATEGIES if (strategy := kind.match(op, kernel)) is not None]


def choose(op: Scheduled, kernel: Kernel, entry: Entry | None, where: str) -> Chosen:
    """Return the strategy and decisions that a kernel's attribute names for the operation, or else the cheapest. Raises
    InvalidArgument for a strategy that does not apply and for a decision that is not possible."""
    found = matching(op, kernel)
    if entry is None or entry.strategy is None:
        lowest = min(strategy.tier for strategy in found)
        decided = [(each, each.decide(kernel, Picks())) for each in found if each.tier == lowest]
        strategy, (_, schedule) = min(decided, key=lambda each: each[1].cost)
        if entry is None or not entry.given:
            return Chosen(strategy, schedule)
    else:
        named = [each for each in found if each.record.strategy == entry.strategy]
        if not named:
            hint = f"possible: {', '.join(each.record.strategy for each in found)}"
            raise InvalidArgument(where, f"strategy {entry.strategy} does not apply", hint)
        strategy = named[0]
    pick = Picks(f"{where}: {strategy.record.strategy}", entry.given)
    schedule = strategy.decide(kernel, pick).schedule
    pick.finish()
    return Chosen(strategy, replace(schedule, why=f"as asked for: {schedule.why}"))


def schedules_of(function: FuncOp) -> list[OpSchedule]:
    """Return the typed view of a kernel's attribute `relay.schedule`, as written by `schedule-gpu`."""
    return schedules_in(function, {kind.record.strategy: kind.record for kind in STRATEGIES})
