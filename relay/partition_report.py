"""`mod.partition_report()`: which external compiler has which op of a module, and why the others do not have it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby

EXACT = "exact"
HOST = "host"
WIDTH = 48
"""The longest that a source or a list of ops is in the table."""


@dataclass(frozen=True)
class Row:
    """One op: what it is, where it comes from and is now, who takes it, and why others do not."""

    op: str
    source: str
    """The operator of the model, else the place in the text; empty if neither is known."""
    function: str
    compiler: str = ""
    """Empty for the host."""
    place: str = ""
    """`region K`, or the name of the function, of that compiler; empty where the op is only annotated."""
    macs: int = 0
    """Multiply-accumulates."""
    line: int = -1
    """The number of the operator or the line of the text; -1 if not known."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why the other compilers that were asked do not have it."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells the op from others, as far as it can be told."""
        return self.function, self.op, self.source


@dataclass(frozen=True)
class PartitionReport:
    """A row for each op of the model, in its order as far as that is known; `print` shows a table by operator."""

    rows: tuple[Row, ...]
    targets: tuple[str, ...]
    """The compilers that were asked, and those that have something."""
    accuracy: Mapping[str, str] = field(default_factory=dict[str, str])
    """How far each partitioned function may be off, in words: "exact", or what `relay.byoc.accuracy` finds."""

    plan: Mapping[str, float] = field(default_factory=dict[str, float])
    """If costs chose: microseconds of the plan (`chosen`), of the host alone (`host`) and of each compiler alone."""

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
        if self.plan:
            told = [f"{cost:.4g} us {name}" for name, cost in self.plan.items()]
            pays = "" if self.plan["chosen"] < self.plan["host"] else "; leaving the host does not pay"
            lines.append(f"plan: {', '.join(told)}{pays}")
        return lines

    def __str__(self) -> str:
        """The summary; how far functions may be off that are not exact; a table: operator of the model, its ops, where
        they are, why others do not have them."""
        table = [("operator", "ops", "where", "why not elsewhere")]
        for _, group in groupby(self.rows, key=lambda row: (row.function, row.compiler, row.place, row.source)):
            table.append(line(list(group)))
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        rows = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) for row in table]
        accuracy = [f"{name}: {told}" for name, told in self.accuracy.items() if told != EXACT]
        return "\n".join([*self.summary(), *accuracy, "", *map(str.rstrip, rows)])

    def to_json(self) -> str:
        """The same as JSON: `{"targets": [...], "summary": [...], "accuracy": {...}, "plan": {...}, "rows": [...]}`."""
        facts = {"targets": self.targets, "summary": self.summary()}
        facts |= {"accuracy": dict(self.accuracy), "plan": dict(self.plan)}
        return json.dumps(facts | {"rows": [asdict(row) for row in self.rows]}, indent=2)


def line(rows: Sequence[Row]) -> tuple[str, str, str, str]:
    """The cells for ops of one operator that are in one place."""
    first = rows[0]
    where = first.compiler or HOST
    if first.place:
        where += f": {first.place}" if first.place == first.function else f": {first.place} of {first.function}"
    told = dict.fromkeys(f"{name}: {why}" for row in rows for name, why in row.refused.items())
    ops = ", ".join(row.op.removeprefix("relay.") for row in rows)
    return shortened(first.source or "?"), shortened(ops), where, "; ".join(told)


def shortened(text: str) -> str:
    """The text, its middle left out where it is long."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 18]}...{text[-15:]}"
