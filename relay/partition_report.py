"""`mod.partition_report()`: which external compiler takes which op of a module, and why the others do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby

from relay.tables import aligned

EXACT = "exact"
HOST = "host"
WIDTH = 48
"""The maximum width of the operator and ops columns of the table, in characters."""


@dataclass(frozen=True)
class Row:
    """One op: its origin in the model, its function, the compiler that takes it, and the reasons why others do not."""

    op: str
    source: str
    """The operator of the model, or the location in the MLIR text; empty if both are unknown."""
    function: str
    compiler: str = ""
    """The compiler that takes the op; empty for the host."""
    place: str = ""
    """`region K`, or the name of the compiler's function, that contains the op; empty if the op is only annotated."""
    macs: int = 0
    """The number of multiply-accumulates of the op."""
    line: int = -1
    """The index of the model's operator, or the line of the text; -1 if unknown."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """The reason why each of the other compilers does not take the op, by compiler."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The op's function, name and origin, by which it is identified; ops that have all three in common get equal
        keys."""
        return self.function, self.op, self.source


@dataclass(frozen=True)
class PartitionReport:
    """A row for each op of the model, in the model's order as far as it is known; `print` shows a table by operator."""

    rows: tuple[Row, ...]
    targets: tuple[str, ...]
    """The external compilers that were considered, or that have at least one op."""
    accuracy: Mapping[str, str] = field(default_factory=dict[str, str])
    """The possible error of each partitioned function, as text: "exact", or the finding of `relay.byoc.accuracy`."""

    plan: Mapping[str, float] = field(default_factory=dict[str, float])
    """Estimated times in microseconds, if ops were assigned by cost: of the plan (`chosen`), of the host alone
    (`host`), and of each compiler alone."""

    def of(self, compiler: str) -> list[Row]:
        """The rows of a compiler; those of the host if `compiler` is empty."""
        return [row for row in self.rows if row.compiler == compiler]

    def places(self, compiler: str) -> list[str]:
        """The regions or functions of a compiler."""
        return list(dict.fromkeys(f"{row.function} {row.place}" for row in self.of(compiler) if row.place))

    def summary(self) -> list[str]:
        """A line for each compiler and the host: its number of ops, its share of multiply-accumulates, and the number
        of its regions or functions."""
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
        """The summary, the possible error of each function that is not exact, and a table of operators: the model's
        operator, its ops, the compiler that takes them, and why other compilers do not."""
        table = [("operator", "ops", "where", "why not elsewhere")]
        for _, group in groupby(self.rows, key=lambda row: (row.function, row.compiler, row.place, row.source)):
            table.append(line(list(group)))
        accuracy = [f"{name}: {told}" for name, told in self.accuracy.items() if told != EXACT]
        return "\n".join([*self.summary(), *accuracy, "", *aligned(table)])

    def to_json(self) -> str:
        """The report as JSON: `{"targets": [...], "summary": [...], "accuracy": {...}, "plan": {...}, "rows":
        [...]}`."""
        facts = {"targets": self.targets, "summary": self.summary()}
        facts |= {"accuracy": dict(self.accuracy), "plan": dict(self.plan)}
        return json.dumps(facts | {"rows": [asdict(row) for row in self.rows]}, indent=2)


def line(rows: Sequence[Row]) -> tuple[str, str, str, str]:
    """The cells of a line of the report's table: operator of the model, ops, compiler, and reasons why other compilers
    do not take the ops. `rows`: all ops of one operator in the same region or function, which share the line."""
    first = rows[0]
    where = first.compiler or HOST
    if first.place:
        where += f": {first.place}" if first.place == first.function else f": {first.place} of {first.function}"
    told = dict.fromkeys(f"{name}: {why}" for row in rows for name, why in row.refused.items())
    ops = ", ".join(row.op.removeprefix("relay.") for row in rows)
    return shortened(first.source or "?"), shortened(ops), where, "; ".join(told)


def shortened(text: str) -> str:
    """The text, its middle replaced by `...` if it is longer than `WIDTH`."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 18]}...{text[-15:]}"
