"""Estimated costs of regions: the host's from the loops that `schedule` generates, a compiler's from
`Compiler.cost`."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.partitioning.offers import Offer
from relay.byoc.partitioning.planning import NUMBER, number_of
from relay.byoc.partitioning.scope import eligible, opened
from relay.byoc.partitioning.work import multiplications, size
from relay.errors import RelayError
from relay.lowering.call_graph import CallGraph
from relay.lowering.schedule import Schedule
from relay.lowering.scheduling.work import Costs
from relay.passes.runner import Runner
from relay.target import CpuTarget, attach, resolve, target_of
from relay.target.attributes import ATTRIBUTE
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.location import node_of
from relay.transforms.simplify import Simplify

UNKNOWN = Refusal("its cost is not known: choose=measured finds it")


class Estimates:
    """Estimated costs, in microseconds, by which partitioning chooses regions: of ops on the host, computed for the
    given module when the object is created, and of regions of external compilers."""

    estimates = True

    def __init__(self, module: ModuleOp) -> None:
        self.microseconds = host_microseconds(module)

    @property
    def whole(self) -> float:
        return inf if self.microseconds is None else sum(self.microseconds.values())

    def host(self, ops: Sequence[Operation]) -> float:
        known = self.microseconds
        return inf if known is None else sum(known.get(number_of(op), 0.0) for op in opened(ops))

    def region(self, offer: Offer, ops: Sequence[Operation]) -> float | Refusal:
        cost = offer.cost_of(ops)
        return UNKNOWN if cost is None else cost


def host_microseconds(module: ModuleOp) -> dict[int, float] | None:
    """The estimated time in microseconds of each numbered op on the host. The time of a kernel of several ops is
    divided among them in proportion to their multiply-accumulates and result elements. None if the host's passes cannot
    lower the module, because of unknown sizes or ops of external compilers."""
    copy = module.clone()
    work: dict[int, int] = {}
    for op in filter(eligible, copy.walk()):
        work[number := number_of(op)] = multiplications(op) + sum(map(size, op.results))
        op.location = FileLineColLoc(StringAttr(NUMBER), IntAttr(number), IntAttr(0))
    target = target_of(module)
    if ATTRIBUTE not in module.attributes or not isinstance(target, CpuTarget):
        target = resolve("llvm")
        assert isinstance(target, CpuTarget)
    attach(copy, target)
    try:
        Runner(copy).run([FoldConstant(), Simplify(), FuseOps(), Schedule()])
    except RelayError:
        return None
    costs, calls = Costs(target.costs), CallGraph(copy.walk())
    found = dict.fromkeys(work, 0.0)
    for kernel in [op for op in copy.walk() if isinstance(op, FuncOp) and op.body.blocks]:
        every = calls.of(kernel)
        for call in every:  # of several calls, a kernel has the location of only one
            inside = [node_of(op) for op in (call, *(kernel.walk() if len(every) == 1 else ()))]
            numbers = set(inside) & set(work)
            whole = sum(work[number] for number in numbers)
            cycles = costs.block(kernel.body.block)
            for number in numbers:
                found[number] += cycles / target.costs.estimated_cycles * (work[number] / whole if whole else 0.0)
    return found
