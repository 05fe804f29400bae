"""`parallelize`: independent loops with enough work for several threads become `scf.parallel`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Region

from relay.lowering.builder import INDEPENDENT
from relay.lowering.scheduling.work import Costs, turns
from relay.passes import Pass

THREADS = 2
"""For so many threads a nest's loop is chosen: the outermost would do for more, if it has as many turns."""


@dataclass(frozen=True)
class Parallelize(Pass):
    """Turn loops that are marked `relay.independent` into `scf.parallel`, one of a nest at most: the one with which
    two threads should be done first, by an estimate of cycles. `fork`: the cycles that it takes to have threads share
    a loop, and to wait for them. Where less than `least` cycles of `@main` would be shared, all stays as it is:
    threads that sleep take longer to wake up. No mark is left. A kernel's `relay.schedule` says what was chosen.
    """

    name = "parallelize"
    requires = ("loops",)
    invalidates = ()
    opt_level = 1
    why = "has threads share loops with much work"
    fork: int = 2_000
    least: int = 200_000

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.body.block.ops if isinstance(f, func.FuncOp) and f.body.blocks]
        calls: dict[str, int] = {}
        for function in functions:
            for inner in function.walk():
                if isinstance(inner, func.CallOp):
                    callee = inner.callee.string_value()
                    calls[callee] = calls.get(callee, 0) + 1
        costs = Costs()
        chosen = {function: list(self.choose(function.body.block, costs)) for function in functions}
        shared = sum(
            costs.of(loop) * calls.get(function.sym_name.data, 1)
            for function, loops in chosen.items()
            for loop in loops
        )
        for function, loops in chosen.items():
            if shared >= self.least and loops:
                for loop in loops:
                    share(loop)
                said = function.attributes.get("relay.schedule")
                words = [said.data] if isinstance(said, StringAttr) else []
                counts = " and ".join(str(turns(loop)) for loop in loops)
                words.append(f"threads share loops of {counts} turns")
                function.attributes["relay.schedule"] = StringAttr("; ".join(words))
            for inner in function.walk():
                inner.attributes.pop(INDEPENDENT, None)

    def choose(self, block: Block, costs: Costs) -> Iterator[scf.ForOp]:
        """The loops inside the block that threads should share."""
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                yield from self.best(op, costs)[1]

    def best(self, loop: scf.ForOp, costs: Costs) -> tuple[float, list[scf.ForOp]]:
        """What the loop costs at best, with which loops of it shared."""
        count = turns(loop)
        turn, alone = costs.of_loop(loop)
        options: list[tuple[float, list[scf.ForOp]]] = [(alone, [])]
        if INDEPENDENT in loop.attributes and count > 1:
            rounds = -(-count // THREADS)
            waiting = turn / 2 if count > THREADS else 0.0
            options.append((self.fork + rounds * alone / count + waiting, [loop]))
        inner = [op for op in loop.body.block.ops if isinstance(op, scf.ForOp)]
        if inner and alone > self.fork:
            found = [self.best(op, costs) for op in inner]
            saved = sum(costs.of(op) - best for op, (best, _) in zip(inner, found, strict=True))
            options.append((alone - count * saved, [each for _, loops in found for each in loops]))
        return min(options, key=lambda option: option[0])


def share(loop: scf.ForOp) -> None:
    """scf.for %i = %a to %b step %c  =>  scf.parallel (%i) = (%a) to (%b) step (%c)"""
    body = loop.body.detach_block(0)
    end = body.last_op
    assert end is not None
    end.detach()
    end.erase()
    body.add_op(scf.ReduceOp())
    new = scf.ParallelOp([loop.lb], [loop.ub], [loop.step], Region(body))
    new.location = loop.location
    parent = loop.parent
    assert parent is not None
    parent.insert_op_before(new, loop)
    loop.detach()
    loop.erase()
