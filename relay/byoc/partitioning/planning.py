"""`choose=cost`: of several plans the one that costs least in all, where the host competes with the compilers.

A plan costs what the host needs for the whole module, less what each region saves: the host's price of its ops less the
compiler's price of the region. Plans tried: all compilers in the order they are named, each of them alone, and the best
runs of ops in program order, a run for one compiler. Of each plan the regions stay that save something, so none costs
more than the host alone, nor than the same compiler alone with all that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Protocol

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation

from relay.byoc.partitioning.offers import Compilers, Offer
from relay.byoc.partitioning.prune_regions import release
from relay.byoc.partitioning.refusals import refuse
from relay.byoc.partitioning.scope import CHOICE, blocks, eligible, functions, opened, used, variables
from relay.dialects import byoc
from relay.dialects.plain import to_attribute

NUMBER = "byoc.number"
"""On every op while plans are tried on copies of the module: which op it is."""
PLAN = "byoc.plan"
"""On the module: microseconds of the plan, of the host alone, and of each compiler alone with all that it takes."""
UNKNOWN = "its cost is not known: choose=measured finds it"
SEARCHED = 100
"""Ops and composites of a block up to which every run of them is priced: their pairs are that number squared."""


class Prices(Protocol):
    """What regions cost, in microseconds."""

    estimates: bool
    """Whether a price is computed, so that thousands may be asked; a measured one takes seconds."""

    @property
    def whole(self) -> float:
        """What the host alone needs for the module; infinite where that is not known."""
        ...

    def host(self, ops: Sequence[Operation]) -> float:
        """What the host needs for these ops."""
        ...

    def region(self, offer: Offer, ops: Sequence[Operation]) -> float | None:
        """What a compiler needs for a region, transfers and the call included; None if that is not known."""
        ...


@dataclass(frozen=True)
class Plan:
    """A copy of the module with regions, and what they save."""

    module: ModuleOp
    saved: float
    """By the regions that stay."""
    unpruned: float
    """By all that the compilers take."""
    units: Mapping[int, tuple[Operation, ...]]
    """By the number of an op that a compiler takes, the ops of the copy that it takes as one."""


def plan(
    module: ModuleOp,
    names: Sequence[str],
    compilers: Compilers,
    pricing: Callable[[ModuleOp], Prices],
    annotate: Callable[[ModuleOp, Sequence[str]], None],
) -> None:
    """Give the module the regions of the best plan; `annotate` makes regions of what compilers of these names take."""
    every = [op for op in module.walk() if eligible(op)]
    for number, op in enumerate(every):
        op.attributes[NUMBER] = IntegerAttr(number, i64)
    prices = pricing(module)
    host = prices.whole

    def tried(given: Sequence[str], chosen: Mapping[int, str] | None = None) -> Plan:
        copy = module.clone()
        for op in copy.walk():
            if chosen is not None and eligible(op):
                op.attributes[CHOICE] = StringAttr(chosen.get(number_of(op), ""))
        annotate(copy, given)
        return priced(copy, compilers, prices)

    alone = {name: tried([name]) for name in names}
    plans = [tried(names), *alone.values()] if len(alone) > 1 else [*alone.values()]
    if prices.estimates and isfinite(host):
        chosen: dict[int, str] = {}
        for function in functions(module):
            for block in blocks(function):
                row = [number_of(op) for op in block.ops if eligible(op) and used(op) and variables(op)]
                chosen |= best_runs(row, alone, compilers, prices, {n: prices.host([every[n]]) for n in row})
        plans.append(tried(names, chosen))
    best = max(plans, key=lambda each: each.saved)
    for op in best.module.walk():
        op.attributes.pop(NUMBER, None)
        op.attributes.pop(CHOICE, None)
    module.attributes.update(best.module.attributes)
    costs = {"chosen": host - best.saved, "host": host}
    costs |= {name: host - each.unpruned for name, each in alone.items()}
    if isfinite(host):
        module.attributes[PLAN] = to_attribute({name: cost for name, cost in costs.items() if isfinite(cost)}, PLAN)
    module.body.detach_block(0)
    module.body.add_block(best.module.body.detach_block(0))


def number_of(op: Operation) -> int:
    """Which op of the module it is."""
    attr = op.attributes[NUMBER]
    assert isinstance(attr, IntegerAttr)
    return attr.value.data


def priced(module: ModuleOp, compilers: Compilers, prices: Prices) -> Plan:
    """The plan of the module's regions, after those that save nothing went back to the host, each with the reason."""
    saved = unpruned = 0.0
    units: dict[int, tuple[Operation, ...]] = {}
    for region in [op for op in module.walk() if isinstance(op, byoc.RegionOp)]:
        for unit in region.body.block.ops:
            ops = tuple(opened([unit]))
            units.update(dict.fromkeys(map(number_of, ops), ops))
        offer = compilers.of([region.compiler.data])[0]
        cost, host = prices.region(offer, [region]), prices.host([region])
        gain = -inf if cost is None else 0.0 if cost == host else host - cost
        unpruned += gain
        if gain > 0:
            saved += gain
            continue
        why = f"a region of {cost:.4g} us takes the host {host:.4g} us" if cost is not None else UNKNOWN
        for op in opened([region]):
            refuse(op, offer.compiler.name, why)
        if cost is not None or isfinite(host):
            release(region)
    return Plan(module, saved, unpruned, units)


def best_runs(
    row: Sequence[int], alone: Mapping[str, Plan], compilers: Compilers, prices: Prices, host: Mapping[int, float]
) -> dict[int, str]:
    """The compilers of ops by number such that runs of ops, in this order, cost least; the rest is the host's."""
    place = {number: at for at, number in enumerate(row)}
    ends: list[list[tuple[int, float, str]]] = [[] for _ in row]
    for name, plan in alone.items():
        units = list(dict.fromkeys(plan.units[n] for n in row if n in plan.units))
        if len(units) > SEARCHED:
            continue
        offer = compilers.of([name])[0]
        places = {unit: [place[n] for n in map(number_of, unit) if n in place] for unit in units}
        for start in {min(places[unit]) for unit in units}:
            run: dict[tuple[Operation, ...], None] = {}
            last = start
            for at in range(start, len(row)):
                unit = plan.units.get(row[at])
                if unit is None or min(places[unit]) < start:
                    break
                last = max(last, *places[unit])
                run[unit] = None
                if last == at and (cost := prices.region(offer, [op for unit in run for op in unit])) is not None:
                    ends[at].append((start, cost, name))
    best = [0.0]
    took: list[tuple[int, str]] = []
    for at, number in enumerate(row):
        options = [(best[at] + host[number], at, ""), *((best[s] + cost, s, name) for s, cost, name in ends[at])]
        cost, start, name = min(options, key=lambda option: option[0])
        best.append(cost)
        took.append((start, name))
    chosen: dict[int, str] = {}
    at = len(row)
    while at:
        start, name = took[at - 1]
        chosen |= {number: name for number in row[start:at] if name}
        at = start
    return chosen
