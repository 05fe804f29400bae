"""The pass `partition-graph`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation

from relay.byoc.partitioning import bodies
from relay.byoc.partitioning.grouping import Grouping
from relay.byoc.partitioning.scope import COMPILER, SYMBOL, blocks, functions, symbols
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp
from relay.errors import InvalidArgument
from relay.passes import Pass


@dataclass(frozen=True)
class PartitionGraph(Pass):
    """Make each `byoc.region` a private function of its compiler, and a call of it.

    The function is named `<mod_name>_<compiler>_<function>_<k>`, k counting through the regions of a function in
    program order, and has the attributes `compiler` and `global_symbol`; if it is exactly one composite, that one's
    `composite` and `partitioned_from_pattern` too. Annotations that `merge-compiler-regions` has not made regions of
    become a function each. Composites that no compiler was given are dissolved.
    """

    name: ClassVar[str] = "partition-graph"
    invalidates = ()
    why = "makes a function of each region of an external compiler"
    mod_name: str = "relay"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.mod_name.isidentifier():
            raise InvalidArgument(self.name, f"mod_name is '{self.mod_name}'", "give it one word: it begins symbols")
        taken = dict.fromkeys(symbols(op))
        for function in functions(op):
            regions: list[byoc.RegionOp] = []
            for block in list(blocks(function)):
                grouping = Grouping(block)
                grouping.merge(grouping.direct)
                grouping.emit()
            for block in list(blocks(function)):
                bodies.inline_composites(block)
                regions += [inner for inner in block.ops if isinstance(inner, byoc.RegionOp)]
            k = 0
            for region in regions:
                while (name := f"{self.mod_name}_{region.compiler.data}_{function.sym_name.data}_{k}") in taken:
                    k += 1
                taken[name] = None
                op.body.block.add_op(outline(region, name))
                k += 1


def outline(region: byoc.RegionOp, name: str) -> FuncOp:
    """The function of the region's ops; a call of it takes the region's place."""
    block = region.body.block
    assert isinstance(end := block.last_op, byoc.YieldOp) and region.parent is not None
    call = CallOp(name, tuple(region.operands), list(region.result_types))
    call.location = region.location
    region.parent.insert_op_before(call, region)
    for old, new in zip(region.results, call.res, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    returned = ReturnOp(*end.operands)
    returned.location = region.location
    end.detach()
    end.erase()
    block.add_op(returned)
    body = region.body
    region.detach_region(body)
    types = ([argument.type for argument in block.args], [value.type for value in returned.operands])
    function = FuncOp(name, types, body, visibility="private")
    function.location = region.location
    function.attributes |= {COMPILER: region.compiler, SYMBOL: StringAttr(name)} | composite_of(list(block.ops))
    region.detach()
    region.erase()
    return function


def composite_of(ops: Sequence[Operation]) -> dict[str, StringAttr]:
    """What a function says of the one composite that it is; nothing if it is more."""
    found = [op for op in ops if not isinstance(op, ConstantOp | ReturnOp)]
    match found:
        case [byoc.CompositeOp() as only]:
            return {"composite": only.composite, "partitioned_from_pattern": only.partitioned_from_pattern}
        case _:
            return {}
