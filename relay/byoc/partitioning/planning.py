"""`choose=cost`: selects the cheapest of several partitioning plans, where the host competes with the compilers.

The cost of a plan is the host's cost of the whole module, less what each region saves: the host's cost of its ops less
the compiler's cost of the region. The plans are: all compilers in the order in which they are named, each of them
alone, and the best division of the ops, in program order, into runs with one compiler each. In each plan only the
regions that save something are kept, so no plan costs more than the host alone, or than the same compiler alone with
all ops that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Protocol

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.partitioning.offers import Compilers, Offer
from relay.byoc.partitioning.prune_regions import release
from relay.byoc.partitioning.refusals import ask, asked, reasons, refuse
from relay.byoc.partitioning.scope import CHOICE, blocks, eligible, functions, opened, used, variables
from relay.dialects import byoc
from relay.dialects.plain import to_attribute

NUMBER = "byoc.number"
"""The attribute that numbers the ops while plans are tried on copies of the module."""
PLAN = "byoc.plan"
"""The module attribute with the cost in microseconds of the plan, of the host alone, and of each compiler alone with
all ops that it takes."""
DEARER = "the plan costs less without it"
SEARCHED = 100
"""The maximum number of ops and composites of a block for which the cost of every run of consecutive ones is computed;
the number of runs grows with its square."""


class Prices(Protocol):
    """The costs of regions, in microseconds."""

    estimates: bool
    """Whether costs are estimated by formulas, so that thousands can be evaluated, instead of measured, which takes
    seconds for each."""

    @property
    def whole(self) -> float:
        """The time that the host alone needs for the module; infinite if unknown."""
        ...

    def host(self, ops: Sequence[Operation]) -> float:
        """The time in microseconds that the host needs for these ops."""
        ...

    def region(self, offer: Offer, ops: Sequence[Operation]) -> float | Refusal:
        """The time that a compiler needs for a region, including transfers and the call; if it is unknown, the reason
        for that."""
        ...


@dataclass(frozen=True)
class Plan:
    """A copy of the module with regions, and the time in microseconds that they save."""

    module: ModuleOp
    saved: float
    """The time in microseconds that the regions of `module` save."""
    unpruned: float
    """The time in microseconds that would be saved if every region that the compilers take were kept, also those that
    save nothing; it may be negative."""
    units: Mapping[int, tuple[Operation, ...]]
    """For each op in a region, by its number (`number_of`): the ops of its composite, itself included, or only the op
    itself if it is in none. The ops belong to the copy of the module for which the plan was made."""


def plan(
    module: ModuleOp,
    names: Sequence[str],
    compilers: Compilers,
    pricing: Callable[[ModuleOp], Prices],
    annotate: Callable[[ModuleOp, Sequence[str]], None],
) -> None:
    """Replace the module's body by that of the partitioning plan with the least cost. `names` are the external
    compilers. `pricing` returns, for the module, the prices from which costs are computed. `annotate` is called with a
    module and names of compilers: it forms regions of the ops that these compilers take."""
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

    # the choice matters where functions name compilers of their own: annotate(copy, [name]) annotates these, too
    alone = {name: tried([name], dict.fromkeys(range(len(every)), name)) for name in names}
    plans = [tried(names), *alone.values()] if len(alone) > 1 else [*alone.values()]
    if prices.estimates and isfinite(host):
        chosen: dict[int, str] = {}
        for function in functions(module):
            for block in blocks(function):
                row = [number_of(op) for op in block.ops if eligible(op) and used(op) and variables(op)]
                chosen |= best_runs(row, alone, compilers, prices, {n: prices.host([every[n]]) for n in row})
        plans.append(tried(names, chosen))
    best = max(plans, key=lambda each: each.saved)
    explain(best.module, alone)
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


def explain(module: ModuleOp, alone: Mapping[str, Plan]) -> None:
    """Record on each op of the chosen plan (`module`) why the other compilers do not take it. `alone` has for each
    compiler the plan with this compiler alone: the reason is the one recorded there or, if the compiler takes the op
    there, that the chosen plan costs less."""
    for name, plan in alone.items():
        asking = {function.sym_name.data for function in functions(plan.module) if name in asked(function)}
        told = {number_of(op): reasons(op).get(name) for op in plan.module.walk() if NUMBER in op.attributes}
        for function in functions(module):
            if function.sym_name.data not in asking:
                continue
            ask(function, [name])
            for op in function.walk():
                if NUMBER not in op.attributes or name in reasons(op) or name == compiler_of(op):
                    continue
                number = number_of(op)
                if reason := told.get(number) or (DEARER if number in plan.units else None):
                    refuse(op, name, reason)


def compiler_of(op: Operation) -> str:
    """The name of the compiler whose region contains the op; "" if none does."""
    holder = op.parent_op()
    while holder is not None and not isinstance(holder, byoc.RegionOp):
        holder = holder.parent_op()
    return "" if holder is None else holder.compiler.data


def number_of(op: Operation) -> int:
    """The number that the planner has given the op in its attribute `NUMBER`, which copies of the op keep."""
    attr = op.attributes[NUMBER]
    assert isinstance(attr, IntegerAttr)
    return attr.value.data


def priced(module: ModuleOp, compilers: Compilers, prices: Prices) -> Plan:
    """Evaluate a module with regions: regions that save nothing return to the host, with the reason recorded on their
    ops."""
    saved = unpruned = 0.0
    units: dict[int, tuple[Operation, ...]] = {}
    for region in [op for op in module.walk() if isinstance(op, byoc.RegionOp)]:
        for unit in region.body.block.ops:
            ops = tuple(opened([unit]))
            units.update(dict.fromkeys(map(number_of, ops), ops))
        offer = compilers.of([region.compiler.data])[0]
        cost, host = prices.region(offer, [region]), prices.host([region])
        if isinstance(cost, Refusal):
            gain, why = -inf, cost.reason
        else:
            gain = 0.0 if cost == host else host - cost
            why = f"the region takes {cost:.4g} us, on the host {host:.4g} us"
        unpruned += gain
        if gain > 0:
            saved += gain
            continue
        for op in opened([region]):
            refuse(op, offer.compiler.name, why)
        if not isinstance(cost, Refusal) or isfinite(host):
            release(region)
    return Plan(module, saved, unpruned, units)


def best_runs(
    row: Sequence[int], alone: Mapping[str, Plan], compilers: Compilers, prices: Prices, host: Mapping[int, float]
) -> dict[int, str]:
    """Divide the ops with the numbers `row`, in this order, into runs, and assign each run to a compiler or the host,
    so that the total cost is least. Returns the name of the compiler by op number; ops not listed stay on the host."""
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
                if last == at:
                    cost = prices.region(offer, [op for unit in run for op in unit])
                    if not isinstance(cost, Refusal):
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
