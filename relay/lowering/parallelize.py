"""`parallelize`: turns independent loops with enough work for several threads into `scf.parallel`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, permutations

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Region
from xdsl.rewriter import Rewriter

from relay.errors import InvalidArgument
from relay.lowering.builder import INDEPENDENT, SHARED, TURNS
from relay.lowering.call_graph import CallGraph
from relay.lowering.scheduling import sharing
from relay.lowering.scheduling.record import SharedLoop, place_of, threads_of, write_threads
from relay.lowering.scheduling.work import Costs, turns
from relay.lowering.walking import walked
from relay.passes import Pass
from relay.target import CpuCosts, cpu_of

PURE = frozenset({arith.AddiOp.name, arith.MuliOp.name, scf.YieldOp.name})
"""Ops that the body of a loop may contain besides a single inner loop, if threads share all iterations of both loops:
every thread repeats these ops."""


@dataclass(frozen=True)
class Parallelize(Pass):
    """Turn one independent loop of each nest into `scf.parallel`.

    Of the loops with the attribute `relay.independent`, the pass chooses the one that two threads are estimated to
    finish first, or none if one thread is faster. The option `fork` is the number of cycles for starting threads on a
    loop and waiting for them. The value of `relay.independent` may hold the extra cost of running the loop on several
    cores: a number of cycles, or what the cores transfer. `{weights = 512}`: bytes that every core reads. In `{data =
    4096, pixels = 49, pixel = 16}`, `data` is the size of the data in bytes (another core wrote half of them), `pixels`
    the number of result pixels, and `pixel` the number of bytes that an iteration writes of each pixel. Unless the
    bytes of a pixel fill whole cache lines, two cores write to the same line for each pixel.

    If a loop has such a cost, a loop inside it may be chosen instead. The outer loop then gets the attribute
    `relay.shared`: threads start once for all its iterations. Nothing is changed if the total saving, reduced by the
    cycles in which kernels without a parallel loop read what several cores wrote, is below `least` cycles, about the
    time to wake up threads. The entry `threads` of a kernel's `relay.schedule` records the chosen loops, by their
    numbers among the independent loops of the kernel, in the order in which these are printed; an existing entry
    determines the choice. The pass removes `relay.independent` from all loops.
    """

    name = "parallelize"
    requires = ("loops",)
    invalidates = ()
    opt_level = 1
    why = "divides large loops among threads"
    fork: int | None = None
    least: int | None = None

    def __post_init__(self) -> None:
        for option, cycles in (("fork", self.fork), ("least", self.least)):
            if cycles is not None and cycles < 0:
                raise InvalidArgument(f"option {option}", f"is {cycles}", "give a number of cycles")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.body.block.ops if isinstance(f, func.FuncOp) and f.body.blocks]
        cpu = cpu_of(op, self.name)
        inside = {function: walked(function) for function in functions}
        calls = CallGraph(chain.from_iterable(inside.values())).by_callee
        marked = {function: [op for op in ops if INDEPENDENT in op.attributes] for function, ops in inside.items()}
        loops_of = {function: [op for op in ops if isinstance(op, scf.ForOp)] for function, ops in marked.items()}
        target = cpu.costs
        costs = Costs(target)
        asked = {function.sym_name.data: asked_of(function, loops_of[function], target) for function in functions}
        chosen: dict[str, tuple[float, list[Shared]]] = {}
        for function in functions:
            loops = asked[function.sym_name.data]
            found = self.choose(function.body.block, costs) if loops is None else (0.0, loops)
            chosen[function.sym_name.data] = found
        saved = sum(gain * max(len(calls.get(name, [])), 1) for name, (gain, _) in chosen.items())
        alone = [call for name, every in calls.items() if not chosen.get(name, (0.0, []))[1] for call in every]
        read = sum(sharing.of_reading(target, call.arguments) for call in alone)
        possible = cpu.has_threads or not cpu.triple
        pays = possible and target.confident_saving * saved - read >= (
            target.least_saving if self.least is None else self.least
        )
        for function in functions:
            name = function.sym_name.data
            loops = chosen[name][1] if pays or asked[name] is not None else []
            if loops:
                numbers = {each: number for number, each in enumerate(loops_of[function])}
                shared = [SharedLoop(numbers[one.loop], numbers[one.around], turns(one.loop)) for one in loops]
                write_threads(function, shared)
            for each in loops:
                share(each)
        for inner in chain.from_iterable(marked.values()):
            inner.attributes.pop(INDEPENDENT, None)
            inner.attributes.pop(TURNS, None)

    def choose(self, block: Block, costs: Costs) -> tuple[float, list[Shared]]:
        """Return the cycles that sharing loops of the block among threads saves, and these loops."""
        saved, found = 0.0, list[Shared]()
        for op in block.ops:
            if op.regions and isinstance(op, scf.ForOp):
                cycles, loops = self.best(op, costs)
                saved += costs.of(op) - cycles
                found += loops
        return saved, found

    def best(self, loop: scf.ForOp, costs: Costs) -> tuple[float, list[Shared]]:
        """Return the least cost of the loop in cycles, and the loops (`loop` itself, or loops inside it) that must be
        divided among threads to reach this cost; none if one thread is fastest."""
        threads, fork = costs.costs.planned_threads, costs.costs.fork if self.fork is None else self.fork
        alone = costs.of(loop)
        options: list[tuple[float, list[Shared]]] = [(alone, [])]
        for inner in independent(loop, costs.costs):
            count = turns(inner)
            if count > 1:
                waiting = alone / count / 2 if count > threads else 0.0
                cycles = fork + alone * -(-count // threads) / count + waiting + apart(inner, costs.costs)
                options.append((cycles, [Shared(loop, inner)]))
        nested = [op for op in loop.body.block.ops if op.regions and isinstance(op, scf.ForOp)]
        if nested and alone > fork:
            found = [self.best(op, costs) for op in nested]
            saved = sum(costs.of(op) - best for op, (best, _) in zip(nested, found, strict=True))
            options.append((alone - turns(loop) * saved, [each for _, loops in found for each in loops]))
        return min(options, key=lambda option: option[0])


@dataclass(frozen=True)
class Shared:
    """A loop whose iterations are divided among threads (`loop`), and the loop around it before which the threads are
    started (`around`), or `loop` itself: all threads execute every iteration of `around`, and their share of `loop` in
    it."""

    around: scf.ForOp
    loop: scf.ForOp


def asked_of(function: func.FuncOp, loops: Sequence[scf.ForOp], costs: CpuCosts) -> list[Shared] | None:
    """Return the loops of `loops` that the entry `threads` of the function's attribute `relay.schedule` divides among
    threads; None if there is no such entry. Raises InvalidArgument if threads cannot share a loop that it names."""
    threads = threads_of(function)
    if threads is None:
        return None
    found = list[Shared]()
    for each in threads:
        if not (0 <= each.loop < len(loops) and 0 <= each.around < len(loops)):
            have = f"loops 0 to {len(loops) - 1} are independent" if loops else "no loop is independent"
            what = f"threads cannot share loop {each.loop}"
            if 0 <= each.loop < len(loops):
                what += f" for all turns of loop {each.around}"
            raise InvalidArgument(place_of(function), what, have)
        shared = Shared(loops[each.around], loops[each.loop])
        if all(shared.loop is not inner for inner in independent(shared.around, costs)):
            what = f"threads cannot share loop {each.loop} for all turns of loop {each.around}"
            raise InvalidArgument(place_of(function), what, f"write around = {each.loop}")
        found.append(shared)
    for one, other in permutations(found, 2):
        if one.around.is_ancestor(other.around):
            raise InvalidArgument(place_of(function), "threads share one loop inside of another", "share one of a nest")
    return found


def apart(loop: scf.ForOp, costs: CpuCosts) -> int:
    """Return the extra cycles for executing an independent loop's iterations on several cores."""
    return sharing.cycles(loop.attributes[INDEPENDENT], costs)


def independent(loop: scf.ForOp, costs: CpuCosts) -> Iterator[scf.ForOp]:
    """Yield the loops whose iterations threads may share: the given one, if its iterations are independent. If sharing
    them costs extra cycles for transfers between cores, and the body has only one loop besides `PURE` ops, also that
    inner loop, on the same conditions, and so on inwards."""
    while INDEPENDENT in loop.attributes and not loop.iter_args:
        yield loop
        if not apart(loop, costs):
            return
        inside = [op for op in loop.body.block.ops if op.regions or op.name not in PURE]
        if len(inside) != 1 or not isinstance(only := inside[0], scf.ForOp) or TURNS in only.attributes:
            return
        loop = only


def share(shared: Shared) -> None:
    """scf.for %i = %a to %b step %c  =>  scf.parallel (%i) = (%a) to (%b) step (%c)"""
    loop = shared.loop
    if shared.around is not loop:
        shared.around.attributes[SHARED] = UnitAttr()
    body = loop.body.detach_block(0)
    end = body.last_op
    assert end is not None
    Rewriter.erase_op(end)
    body.add_op(scf.ReduceOp())
    new = scf.ParallelOp([loop.lb], [loop.ub], [loop.step], Region(body))
    new.location = loop.location
    Rewriter.replace_op(loop, new)
