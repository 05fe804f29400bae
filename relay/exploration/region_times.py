"""`choose=measured`: measure how long a region takes with each external compiler and on the host. For each of them the
region is built and run on this machine once; the times are kept in the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from relay.byoc.compiler import Refusal
from relay.byoc.partitioning.offers import Offer
from relay.byoc.partitioning.planning import NUMBER
from relay.byoc.partitioning.prune_regions import release
from relay.byoc.settings import read
from relay.compile.entry import build
from relay.dialects import byoc
from relay.errors import RelayError
from relay.exploration.measuring import Latency
from relay.module import IRModule
from relay.store import key_of, store
from relay.target import resolve, spelled, target_of
from relay.target.attributes import ATTRIBUTE

ROUNDS = 5
"""How many times the latency is measured; the least time counts."""


class RegionTimes:
    """Measured costs of a module's regions: code for the module's target is built and run on this machine."""

    estimates = False

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.target = spelled(target_of(module) if ATTRIBUTE in module.attributes else resolve("llvm"))

    @property
    def whole(self) -> float:
        return self.on_host(IRModule(self.module.clone()))

    def host(self, ops: Sequence[Operation]) -> float:
        return self.on_host(alone(ops, self.module.attributes, opened=True))

    def on_host(self, module: IRModule) -> float:
        """The microseconds of one run of the module on the host; infinite if it cannot be built or run."""
        found = self.kept("host", module)
        return inf if isinstance(found, Refusal) else found

    def region(self, offer: Offer, ops: Sequence[Operation]) -> float | Refusal:
        name, options = offer.compiler.name, read(self.module).get(offer.compiler.name, {})
        module = alone(ops, self.module.attributes)
        return self.kept(f"{name} {offer.compiler.version} {sorted(options.items())}", module)

    def kept(self, what: str, module: IRModule) -> float | Refusal:
        """Return the microseconds of one run of the module, read from the cache or measured and stored there; a
        `Refusal` with the reason if the module cannot be built or run. `what`, a part of the cache's key, names what
        runs the module: "host", or an external compiler with its version and options."""
        for op in module.op.walk():
            op.attributes.pop(NUMBER, None)
        key, records = key_of("time", what, module.to_text(weights=True), self.target), store()
        if records is not None and (data := records.get(key)) is not None:
            return float(data)
        try:
            executable = build(module, self.target)
            found = min(Latency()(executable) for _ in range(ROUNDS)) * 1e6
        except RelayError as error:
            return Refusal(f"it cannot be measured here: {error}")
        if records is not None:
            records.put(key, repr(found).encode())
        return found


def alone(ops: Sequence[Operation], attributes: Mapping[str, Attribute], opened: bool = False) -> IRModule:
    """Return a module with these attributes whose `@main` has a copy of one `byoc.region`, the only element of `ops`,
    and returns its results. If `opened`, `@main` has the ops of the region without the region, so that the host runs
    them."""
    (region,) = ops
    assert isinstance(region, byoc.RegionOp)
    block = Block(arg_types=[value.type for value in region.operands])
    values: dict[SSAValue, SSAValue] = dict(zip(region.operands, block.args, strict=False))
    copy = region.clone(values)
    block.add_ops([copy, ReturnOp(*copy.results)])
    if opened:
        release(copy)
    type = FunctionType.from_lists(list(block.arg_types), [result.type for result in region.results])
    return IRModule(ModuleOp([FuncOp("main", type, Region(block))], dict(attributes)))
