"""Records for the partition report: which compiler took or refused each op, read from the IR and stored in it when the
ops themselves are removed.

`partition-graph` writes `byoc.refusals` on the module: a dictionary for each op and each compiler that was offered it
and did not take it, `{compiler = "a", function = "main", op = "qnn.softmax", reason = "...", source = "operator 30
SOFTMAX 'p'"}`. `compile-external` writes `byoc.operators` on the declaration of a function: a dictionary for each op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from relay.byoc.partitioning.grouping import labels
from relay.byoc.partitioning.refusals import asked, forget, presumed, reasons, refuse
from relay.byoc.partitioning.scope import COMPILER, blocks, eligible, functions, partitioned
from relay.byoc.partitioning.work import multiplications
from relay.dialects import byoc
from relay.dialects.context import EXTENDED, UPSTREAM
from relay.dialects.plain import to_attribute
from relay.partition_report import Row
from relay.transforms.location import node_of, words

REFUSALS = "byoc.refusals"
OPERATORS = "byoc.operators"


def source_of(op: Operation) -> str:
    """The model's operator from which the op comes, or its location in the text; empty if unknown."""
    return op.location.desc.data if isinstance(op.location, NameLoc) else words(op.location)


def counts(op: Operation) -> bool:
    """Whether the op belongs to a model, and not to a dialect that models are lowered to."""
    return eligible(op) and op.name.partition(".")[0] not in (*UPSTREAM, *EXTENDED)


def leaves(op: Operation) -> Iterator[tuple[Operation, dict[str, str]]]:
    """The op, or the ops inside it, each with the reasons why compilers refused it."""
    if not isinstance(op, byoc.Body):
        yield op, reasons(op)
        return
    for inner in op.body.block.ops:
        if counts(inner):
            for leaf, told in leaves(inner):
                yield leaf, told | reasons(op)


def rows_of(op: Operation, function: str, targets: Sequence[str], compiler: str = "", place: str = "") -> list[Row]:
    """Return the report rows of an op; for a composite or region, those of the ops inside it. All these ops are taken
    by `compiler` ("": the host). Each row has the reasons why the other compilers of `targets` did not take its op. If
    a reason is not recorded, the row of an op on the host has a presumed one."""
    found: list[Row] = []
    for leaf, told in leaves(op):
        other = "" if compiler else presumed(leaf)
        refused = {name: told.get(name, other) for name in targets if name != compiler}
        refused = {name: why for name, why in refused.items() if why}
        macs, line = multiplications(leaf), node_of(leaf)
        found.append(Row(leaf.name, source_of(leaf), function, compiler, place, macs, line, refused))
    return found


def rows_of_host(function: FuncOp) -> list[Row]:
    """The report rows of all ops in a host function. Rows of annotated ops, and of ops in regions, name the compiler
    that takes them; the others are rows of the host."""
    found: list[Row] = []
    name, targets, regions = function.sym_name.data, asked(function), 0
    for block in blocks(function):
        annotated = labels(block)
        for op in block.ops:
            if isinstance(op, byoc.RegionOp):
                found += rows_of(op, name, targets, op.compiler.data, f"region {regions}")
                regions += 1
            elif counts(op):
                found += rows_of(op, name, targets, annotated[op].data if op in annotated else "")
    return found


def rows(module: ModuleOp) -> list[Row]:
    """The report rows of all ops of the module, in the order of its functions."""
    kept = read(module)
    found: list[Row] = []
    for function in [op for op in module.body.block.ops if isinstance(op, FuncOp)]:
        name, compiler = function.sym_name.data, function.attributes.get(COMPILER)
        if not isinstance(compiler, StringAttr) or (function.body.blocks and not partitioned(function)):
            found += rows_of_host(function) if kept is None else [row for row in kept if row.function == name]
            continue
        mine = operators(function) or contents(function)
        reasons_of = {row.key: row.refused for row in read(function) or ()}
        found += [replace(row, compiler=compiler.data, place=name, refused=reasons_of.get(row.key, {})) for row in mine]
    return found


def contents(function: FuncOp) -> list[Row]:
    """The rows of the partition report for the ops of a partitioned function, one for each op; empty for a
    declaration."""
    if not function.body.blocks:
        return []
    ops = [op for op in function.body.block.ops if counts(op)]
    return [row for op in ops for row in rows_of(op, function.sym_name.data, ())]


def describe(row: Row) -> dict[str, object]:
    """The entries `op` (its name), `source`, `macs` and `line` that describe an op; those that are empty or unknown are
    omitted."""
    unknown = {"source": "", "macs": 0, "line": -1}
    found = {"op": row.op, "source": row.source, "macs": row.macs, "line": row.line}
    return {key: value for key, value in found.items() if value != unknown.get(key)}


def row_from(attr: DictionaryAttr, function: str) -> Row:
    """A row from the attributes that `describe` made."""
    macs, line = (attr.data.get(key) for key in ("macs", "line"))
    return Row(
        text(attr, "op"),
        text(attr, "source"),
        function,
        macs=macs.value.data if isinstance(macs, IntegerAttr) else 0,
        line=line.value.data if isinstance(line, IntegerAttr) else -1,
    )


def text(attr: DictionaryAttr, key: str) -> str:
    """A string entry of a dictionary, empty if it is missing."""
    found = attr.data.get(key)
    return found.data if isinstance(found, StringAttr) else ""


def dictionaries(attr: Attribute | None) -> list[DictionaryAttr]:
    """The dictionaries in an array attribute."""
    return [item for item in attr.data if isinstance(item, DictionaryAttr)] if isa(attr, ArrayAttr[Attribute]) else []


def keep_operators(function: FuncOp) -> None:
    """Store the ops of a partitioned function as an attribute, before its body is removed."""
    function.attributes[OPERATORS] = to_attribute([describe(row) for row in contents(function)], OPERATORS)


def operators(function: FuncOp) -> list[Row]:
    """The rows of the partition report for the ops of a partitioned function, as stored by `keep_operators` before its
    body was removed."""
    found = dictionaries(function.attributes.get(OPERATORS))
    return [row_from(attr, function.sym_name.data) for attr in found]


def write(holder: Operation, kept: Sequence[Row]) -> None:
    """Store rows in an attribute: on a module those of ops that stay with the host, with the reasons; on a partitioned
    function those of its ops that other compilers refused."""
    found: list[object] = []
    for row in kept:
        what = describe(row) | {"function": row.function}
        found += [what | {"compiler": name, "reason": why} for name, why in row.refused.items()] or [what]
    holder.attributes[REFUSALS] = to_attribute(found, REFUSALS)


def read(holder: Operation) -> list[Row] | None:
    """The report rows of ops, with the compilers that refused them, that `write` stored in the attribute
    `byoc.refusals` of `holder` (a module or a function); None if it has no such attribute."""
    if REFUSALS not in holder.attributes:
        return None
    found: list[Row] = []
    for attr in dictionaries(holder.attributes[REFUSALS]):
        row, compiler = row_from(attr, text(attr, "function")), text(attr, "compiler")
        told = {compiler: text(attr, "reason")} if compiler else {}
        last = found[-1] if found else None
        if last is not None and last.key == row.key and told and last.refused and compiler not in last.refused:
            found[-1] = replace(last, refused={**last.refused, **told})
        else:
            found.append(replace(row, refused=told))
    return found


def keep_refusals(module: ModuleOp) -> None:
    """Move the recorded reasons why compilers refused ops from the host's ops to the module's attribute
    `byoc.refusals`."""
    write(module, [row for function in functions(module) for row in rows_of_host(function)])
    for function in functions(module):
        forget(function)


def restore(module: ModuleOp) -> None:
    """Move the recorded reasons why compilers refused ops from the module's attribute `byoc.refusals` back to the
    host's ops, before the module is partitioned further."""
    kept = read(module)
    if kept is None:
        return
    del module.attributes[REFUSALS]
    waiting = {row.key: row.refused for row in kept}
    for function in functions(module):
        for block in blocks(function):
            for op in block.ops:
                told = waiting.get((function.sym_name.data, op.name, source_of(op)), {})
                for compiler, reason in told.items():
                    if reason != presumed(op):
                        refuse(op, compiler, reason)
