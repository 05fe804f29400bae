"""What was found of an artifact: what is proved, tested, compared, not checked, wrong."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

KINDS = ("wrong", "not checked", "proved", "tested", "compared")
"""`proved`: every case was tried, or a bound follows from numbers that were read; assumptions are named with it.
`tested`: cases drawn at random, with the probability that a difference is missed. `compared`: floats, with a bound."""


@dataclass(frozen=True)
class Finding:
    """One sentence about a kernel, or the whole."""

    kind: str
    text: str


@dataclass
class Part:
    """A kernel, or the whole artifact: its name, its formula in words, and what was found."""

    name: str
    formula: str
    findings: list[Finding] = field(default_factory=list[Finding])
    runs: int = 0
    seconds: float = 0.0

    def say(self, kind: str, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, text))

    @property
    def kinds(self) -> set[str]:
        """The kinds of what was found."""
        return {finding.kind for finding in self.findings}


@dataclass
class Report:
    """The certificate: `ok` where nothing is wrong and every kernel was checked; `exit_status` 0 where nothing is
    wrong (1: something is, 2: nothing could be checked)."""

    where: str
    target: str
    parts: list[Part] = field(default_factory=list[Part])

    @property
    def wrong(self) -> list[str]:
        """What is wrong, a line for each."""
        return [f"{p.name}: {f.text}" for p in self.parts for f in p.findings if f.kind == "wrong"]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, and no kernel is without a check."""
        return not self.wrong and all(part.kinds - {"not checked"} for part in self.parts)

    @property
    def exit_status(self) -> int:
        """Of the command."""
        checked = any(part.kinds & {"proved", "tested", "compared"} for part in self.parts)
        return 1 if self.wrong else 0 if checked else 2

    @property
    def summary(self) -> str:
        """One line."""
        kernels = self.parts[1:]
        unchecked = sum(part.kinds <= {"not checked"} for part in kernels)
        counts = Counter(finding.kind for part in self.parts for finding in part.findings)
        verdict = "WRONG" if self.wrong else "every kernel checked" if self.ok else f"{unchecked} kernels not checked"
        counted = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
        runs, seconds = sum(part.runs for part in self.parts), sum(part.seconds for part in self.parts)
        return f"{self.where}: {verdict} ({len(kernels)} kernels; findings: {counted}; {runs} runs, {seconds:.1f} s)"

    def __str__(self) -> str:
        lines = [self.summary, f"code for {self.target}"]
        for part in self.parts:
            lines.append(f"{part.name}: {part.formula}")
            lines += [f"  {finding.kind}: {finding.text}" for finding in part.findings]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The report as JSON: `where`, `target`, `ok`, and `parts` with their findings."""
        return json.dumps({**asdict(self), "ok": self.ok}, indent=1)

    @staticmethod
    def part_of(row: dict[str, Any]) -> Part:
        """A part, from JSON."""
        findings = [Finding(**each) for each in row["findings"]]
        return Part(row["name"], row["formula"], findings, row["runs"], row["seconds"])

    def to_html(self) -> str:
        """The report as a page."""
        rows = "".join(
            f"<tr><td>{escape(part.name)}<td>{escape(part.formula)}<td><ul>"
            + "".join(f'<li class="{f.kind.split()[0]}"><b>{f.kind}</b> {escape(f.text)}</li>' for f in part.findings)
            + "</ul>"
            for part in self.parts
        )
        cell = "td{vertical-align:top;padding:4px 12px;border-top:1px solid #ccc}"
        style = f"body{{font-family:sans-serif}}{cell}.wrong{{color:#b00}}"
        return (
            f'<!doctype html><meta charset="utf-8"><title>Certificate of {escape(self.where)}</title>'
            f"<style>{style}</style><h1>Certificate</h1>"
            f"<p>{escape(self.summary)}</p><p>Code for {escape(self.target)}</p>"
            f"<table><tr><th>Kernel<th>Formula<th>What was found</tr>{rows}</table>"
        )
