"""The pass `partition-graph`: outlines regions as functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from relay.byoc import registry
from relay.byoc.partitioning import bodies, records
from relay.byoc.partitioning.grouping import Grouping
from relay.byoc.partitioning.outlining import outline
from relay.byoc.partitioning.refusals import asked
from relay.byoc.partitioning.scope import CONSTANTS, blocks, functions
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import Pass
from relay.transforms.dead_ops import erase_dead

VENDOR = "vendor"


def hoists(name: str) -> bool:
    """Whether the compiler accepts constants as arguments; true for a compiler that is not registered here."""
    return name not in registry.names() or registry.load(name).hoists


@dataclass(frozen=True)
class PartitionGraph(Pass):
    """Outline each `byoc.region` as a private function of its compiler, and call it.

    The function is named `MOD_NAME_COMPILER_FUNCTION_K`: `mod_name` is a prefix for all names, and K counts the regions
    of a function in program order. It has the attributes `compiler` and `global_symbol`; if it consists of exactly one
    composite, also that one's `composite` and `partitioned_from_pattern`. Several outputs are several results;
    duplicate outputs are returned once, and inputs that are passed through stay with the host. Annotated ops that
    `merge-compiler-regions` has not put into regions become a function each. A composite that is assigned to no
    compiler is replaced by the ops in it.

    `constants=bind` gives each function its own copy of the constants it uses; with `constants=hoist` they are
    arguments, equal ones once, except for compilers that need them bound (`Compiler.hoists`). With `constants=vendor`
    they are bound and must be in the artifact: the function gets `byoc.constants = "vendor"`, and `compile-external`
    refuses an artifact that leaves one of them to the executable. The reasons why ops stay with the host are stored in
    the module's attribute `byoc.refusals`.
    """

    name: ClassVar[str] = "partition-graph"
    invalidates = ()
    why = "outlines each region of an external compiler as a function"
    mod_name: str = "relay"
    constants: str = "bind"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not (self.mod_name.isidentifier() and self.mod_name.isascii()):
            raise InvalidArgument(
                self.name, f"mod_name is '{self.mod_name}'", "give it one word: symbols begin with it"
            )
        if self.constants not in ("bind", "hoist", VENDOR):
            raise InvalidArgument(self.name, f"constants is '{self.constants}'", "it is 'bind', 'hoist' or 'vendor'")
        records.restore(op)
        for function in functions(op):
            self.partition(op, function)
        records.keep_refusals(op)

    def partition(self, module: ModuleOp, function: FuncOp) -> None:
        """Outline the regions of one function of the host."""
        for block in list(blocks(function)):
            grouping = Grouping(block)
            grouping.merge(grouping.direct)
            grouping.emit()
        regions: list[byoc.RegionOp] = []
        for block in blocks(function):
            bodies.inline_all(block, byoc.CompositeOp)
            regions += [inner for inner in block.ops if isinstance(inner, byoc.RegionOp)]
        taken, k = IRModule(module).functions, 0
        for region in regions:
            while (name := f"{self.mod_name}_{region.compiler.data}_{function.sym_name.data}_{k}") in taken:
                k += 1
            refused = [
                row for row in records.rows_of(region, name, asked(function), region.compiler.data) if row.refused
            ]
            made = outline(region, name, self.constants == "hoist" and hoists(region.compiler.data))
            if made is not None:
                module.body.block.add_op(made)
                k += 1
                if self.constants == VENDOR:
                    made.attributes[CONSTANTS] = StringAttr(VENDOR)
                if refused:
                    records.write(made, refused)
        for block in blocks(function):
            erase_dead(block.ops, ConstantOp)
