"""`mod.partition_report()`: which compiler takes which op, and why others do not.

The report reads a module at any stage of partitioning: with composites and annotations, regions, functions, or
declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from relay.byoc.accuracy import DIFFERENCE, stated
from relay.byoc.measuring import differences
from relay.byoc.partitioning import records
from relay.byoc.partitioning.planning import PLAN
from relay.byoc.partitioning.refusals import asked
from relay.byoc.partitioning.scope import COMPILER, partitioned
from relay.byoc.settings import compiler_of
from relay.dialects.attributes import Array
from relay.dialects.plain import from_attribute
from relay.errors import RelayError
from relay.module import IRModule
from relay.partition_report import PartitionReport


def partition_report(
    mod: IRModule | ModuleOp, inputs: Sequence[Array] | Mapping[str, Array] | None = None
) -> PartitionReport:
    """A report of which ops external compilers take, and why they do not take the others. With inputs for `@main`,
    every partitioned function is also compiled and run on the data that reach it, and the report adds its measured
    error."""
    module = mod.op if isinstance(mod, IRModule) else mod
    rows = records.rows(module)
    if all(row.line >= 0 for row in rows):
        rows.sort(key=lambda row: row.line)
    targets = [name for function in IRModule(module).functions.values() for name in asked(function)]
    targets += [row.compiler for row in rows if row.compiler]
    accuracy = {name: told for name, f in IRModule(module).functions.items() if (told := accuracy_of(module, f))}
    for row in differences(module, inputs) if inputs is not None else ():
        accuracy[row.function] += f"; result {row.result}: {row.largest:g} at most, {row.mean:.4f} on average, measured"
    plan = cast(dict[str, float], from_attribute(module.attributes.get(PLAN, DictionaryAttr({})), PLAN))
    return PartitionReport(tuple(rows), tuple(dict.fromkeys(targets)), accuracy, plan)


def accuracy_of(module: ModuleOp, function: FuncOp) -> str:
    """The possible error of a partitioned function as text, from its declaration or from its compiler; empty if
    unknown."""
    kept = function.attributes.get(DIFFERENCE)
    if isinstance(kept, StringAttr):
        return kept.data
    compiler = function.attributes.get(COMPILER)
    if not partitioned(function) or not function.body.blocks or not isinstance(compiler, StringAttr):
        return ""
    try:
        return stated(compiler_of(module, compiler.data), function)
    except RelayError:
        return ""
