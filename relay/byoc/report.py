"""What went where, and why not elsewhere: `mod.partition_report()`.

It reads a module at any step: with composites and annotations, with regions, with functions, with declarations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from relay.byoc.accuracy import DIFFERENCE, EXACT, stated
from relay.byoc.partitioning import records
from relay.byoc.partitioning.records import Row
from relay.byoc.partitioning.refusals import asked
from relay.byoc.partitioning.scope import COMPILER, partitioned
from relay.byoc.patterns.names import short
from relay.byoc.settings import compiler_of
from relay.errors import RelayError
from relay.module import IRModule

HOST = "host"
WIDTH = 48
"""The longest that a source or a list of ops is in the table."""


@dataclass(frozen=True)
class PartitionReport:
    """A row for each op of the model, in its order as far as that is known; `print` shows a table by operator."""

    rows: tuple[Row, ...]
    targets: tuple[str, ...]
    """The compilers that were asked, and those that have something."""
    numerics: Mapping[str, str] = field(default_factory=dict[str, str])
    """How far each partitioned function may be off, in words: "exact", or what `relay.byoc.accuracy` finds."""

    def of(self, compiler: str) -> list[Row]:
        """What a compiler has; the host, if it is empty."""
        return [row for row in self.rows if row.compiler == compiler]

    def places(self, compiler: str) -> list[str]:
        """The regions or functions of a compiler."""
        return list(dict.fromkeys(f"{row.function} {row.place}" for row in self.of(compiler) if row.place))

    def summary(self) -> list[str]:
        """A line for each compiler and the host: how many ops, how much of the work, in how many pieces."""
        macs = sum(row.macs for row in self.rows)
        lines: list[str] = []
        for name in (*self.targets, ""):
            mine, pieces = self.of(name), len(self.places(name))
            line = f"{name or HOST}: {len(mine)} of {len(self.rows)} ops"
            if macs:
                line += f", {100 * sum(row.macs for row in mine) / macs:.1f} % of {macs} multiply-accumulates"
            lines.append(line + (f", in {pieces} {'part' if pieces == 1 else 'parts'}" if pieces else ""))
        return lines

    def __str__(self) -> str:
        """The summary; how far functions may be off that are not exact; a table: operator of the model, its ops, where
        they are, why others do not have them."""
        table = [("operator", "ops", "where", "why not elsewhere")]
        for _, group in groupby(self.rows, key=lambda row: (row.function, row.compiler, row.place, row.source)):
            table.append(line(list(group)))
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        rows = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) for row in table]
        numerics = [f"{name}: {told}" for name, told in self.numerics.items() if told != EXACT]
        return "\n".join([*self.summary(), *numerics, "", *map(str.rstrip, rows)])

    def to_json(self) -> str:
        """The same as JSON: `{"targets": [...], "summary": [...], "numerics": {...}, "rows": [{"op": ...}]}`."""
        facts = {"targets": self.targets, "summary": self.summary(), "numerics": dict(self.numerics)}
        return json.dumps(facts | {"rows": [asdict(row) for row in self.rows]}, indent=2)


def line(rows: Sequence[Row]) -> tuple[str, str, str, str]:
    """The cells for ops of one operator that are in one place."""
    first = rows[0]
    where = first.compiler or HOST
    if first.place:
        where += f": {first.place}" if first.place == first.function else f": {first.place} of {first.function}"
    told = dict.fromkeys(f"{name}: {why}" for row in rows for name, why in row.refused.items())
    return shortened(first.source or "?"), shortened(", ".join(short(row.op) for row in rows)), where, "; ".join(told)


def shortened(text: str) -> str:
    """The text, its middle left out where it is long."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 18]}...{text[-15:]}"


def partition_report(mod: IRModule | ModuleOp) -> PartitionReport:
    """What external compilers take of the module, and why they do not take the rest."""
    module = mod.op if isinstance(mod, IRModule) else mod
    rows = records.rows(module)
    if all(row.line >= 0 for row in rows):
        rows.sort(key=lambda row: row.line)
    targets = [name for function in IRModule(module).functions.values() for name in asked(function)]
    targets += [row.compiler for row in rows if row.compiler]
    numerics = {name: told for name, f in IRModule(module).functions.items() if (told := numerics_of(module, f))}
    return PartitionReport(tuple(rows), tuple(dict.fromkeys(targets)), numerics)


def numerics_of(module: ModuleOp, function: FuncOp) -> str:
    """How far a partitioned function may be off: what its declaration keeps, else what its compiler says of its body;
    empty where that cannot be asked."""
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
