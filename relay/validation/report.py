"""The findings about a saved executable: what is proved, tested, compared, not checked, or wrong."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

KINDS = ("wrong", "not checked", "proved", "tested", "compared")
"""The kinds of findings. `proved`: every case was tried, or a bound follows from values that were read; its assumptions
are stated. `tested`: random cases were tried; the probability that a difference is missed is stated. `compared`: floats
agree within a stated bound."""


@dataclass(frozen=True)
class Finding:
    """One sentence of the report about a kernel, or about the whole executable."""

    kind: str
    text: str


@dataclass
class Part:
    """A kernel, or the whole executable, with its formula in words and the findings about it."""

    name: str
    formula: str
    findings: list[Finding] = field(default_factory=list[Finding])
    runs: int = 0
    seconds: float = 0.0
    whole: bool = False
    """Whether the part is the whole executable and not one kernel."""
    complete: bool = False
    """Whether every case of the kernel was tried."""

    def say(self, kind: str, text: str) -> None:
        """Add a finding, a sentence `text` of one of the `KINDS`, such as "proved" or "wrong"."""
        self.findings.append(Finding(kind, text))

    @property
    def kinds(self) -> set[str]:
        """The kinds (of `KINDS`) that occur among the part's findings."""
        return {finding.kind for finding in self.findings}

    @property
    def level(self) -> str:
        """The kind of finding (of `KINDS`) that sums up the part: "wrong" if any finding is; "proved" only if every
        case was tried and none was merely compared."""
        if "wrong" in self.kinds or self.kinds <= {"not checked"}:
            return "wrong" if "wrong" in self.kinds else "not checked"
        return "compared" if "compared" in self.kinds else "proved" if self.complete else "tested"


@dataclass
class Report:
    """The certificate. `ok` if nothing is wrong and every kernel was checked; `exit_status` is 0 if nothing is wrong, 1
    if something is, 2 if nothing could be checked."""

    where: str
    target: str
    parts: list[Part] = field(default_factory=list[Part])

    @property
    def wrong(self) -> list[str]:
        """A line for each finding that something is wrong."""
        return [f"{p.name}: {f.text}" for p in self.parts for f in p.findings if f.kind == "wrong"]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong and every kernel was checked."""
        return not self.wrong and all(part.kinds - {"not checked"} for part in self.parts)

    @property
    def exit_status(self) -> int:
        """The exit status of `relay certify`: 1 if something is wrong, 0 if nothing is and at least one part was
        proved, tested or compared, 2 if nothing was checked."""
        checked = any(part.kinds & {"proved", "tested", "compared"} for part in self.parts)
        return 1 if self.wrong else 0 if checked else 2

    @property
    def summary(self) -> str:
        """A summary in one line."""
        kernels = [part for part in self.parts if not part.whole]
        unchecked = sum(part.kinds <= {"not checked"} for part in kernels)
        counts = Counter(finding.kind for part in self.parts for finding in part.findings)
        verdict = "WRONG" if self.wrong else "every kernel checked" if self.ok else f"{unchecked} kernels not checked"
        counted = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
        runs, seconds = sum(part.runs for part in self.parts), sum(part.seconds for part in self.parts)
        return f"{self.where}: {verdict} ({len(kernels)} kernels; findings: {counted}; {runs} runs, {seconds:.1f} s)"

    @property
    def levels(self) -> Counter[str]:
        """The number of kernels for each level: proved, tested, compared, not checked, wrong."""
        return Counter(part.level for part in self.parts if not part.whole)

    @property
    def unchecked(self) -> Counter[str]:
        """The number of kernels that were not checked, by reason."""
        parts = [part for part in self.parts if part.level == "not checked"]
        return Counter(part.findings[0].text for part in parts if part.findings)

    def __str__(self) -> str:
        lines = [self.summary, f"code for {self.target}"]
        levels = self.levels
        lines += [f"kernels {kind}: {levels[kind]}" for kind in KINDS if levels[kind]]
        lines += [f"  {count} because: {reason}" for reason, count in self.unchecked.most_common()]
        for part in self.parts:
            lines.append(f"{part.name}: {part.formula}")
            lines += [f"  {finding.kind}: {finding.text}" for finding in part.findings]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The report as JSON: `where`, `target`, `ok`, counts of `kernels`, and `parts` with their findings."""
        return json.dumps({**asdict(self), "ok": self.ok, "kernels": self.levels}, indent=1)

    @staticmethod
    def part_of(row: dict[str, Any]) -> Part:
        """Create a part from its JSON object."""
        findings = [Finding(**each) for each in row["findings"]]
        return Part(row["name"], row["formula"], findings, row["runs"], row["seconds"], row["whole"], row["complete"])

    def to_html(self) -> str:
        """The report as one HTML page without external files."""
        head = f"<title>Certificate of {escape(self.where)}</title>"
        verdict, kind = (
            ("Something is wrong", "wrong")
            if self.wrong
            else ("Every kernel was checked", "proved")
            if self.ok
            else ("Nothing was found wrong; not everything was checked", "not")
        )
        levels = self.levels
        tiles = "".join(
            f'<li class="{kind.split()[0]}"><b>{levels[kind]}</b> {"kernel" if levels[kind] == 1 else "kernels"} {kind}'
            for kind in KINDS
        )
        reasons = "".join(f"<li>{count} because: {escape(why)}" for why, count in self.unchecked.most_common())
        meanings = "".join(f"<dt>{kind}<dd>{escape(text)}" for kind, text in MEANINGS.items())
        seconds, runs = sum(part.seconds for part in self.parts), sum(part.runs for part in self.parts)
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"{head}<style>{STYLE}</style><h1>Certificate</h1>"
            f"<p>{escape(self.where)}, code for {escape(self.target)}</p>"
            f'<p class="verdict {kind}">{verdict}</p><ul class="tiles">{tiles}</ul>'
            f"<p>{sum(not part.whole for part in self.parts)} kernels, {runs} runs of their code, {seconds:.1f} s</p>"
            f"{'<h2>Not checked</h2><ul>' + reasons + '</ul>' if reasons else ''}"
            f"<table><thead><tr><th>Kernel<th>Formula<th>What was found<th>Runs<th>Time</thead><tbody>"
            f"{''.join(row_of(part) for part in self.parts)}</tbody></table><h2>What the words mean</h2>"
            f"<dl>{meanings}</dl><p>{escape(LIMITS)}</p></html>"
        )


def row_of(part: Part) -> str:
    """The HTML row of a part: its name, its formulas, its findings in the order of `KINDS`, runs and seconds."""
    rank = {kind: number for number, kind in enumerate(KINDS)}
    found = "".join(
        f'<li><span class="mark {f.kind.split()[0]}">{f.kind}</span> {escape(f.text)}'
        for f in sorted(part.findings, key=lambda finding: rank[finding.kind])
    )
    formula = " \u2192 ".join(escape(word) for word in part.formula.split())
    formula = escape(part.formula) if part.whole else formula
    return f"<tr><th>{escape(part.name)}<td>{formula}<td><ul>{found}</ul><td>{part.runs or ''}<td>{part.seconds:.1f} s"


MEANINGS = {
    "wrong": "The code's results are not those of the formula, it crashed, or it did not end.",
    "not checked": "No statement is made, for the reason that the line gives.",
    "proved": "Every case was tried on the machine code, or it follows from numbers that were read from it. A kernel "
    "is counted here if all of it is, else where the weakest statement about its results belongs.",
    "tested": "Random cases were tried; the line gives the probability that a difference was missed.",
    "compared": "Floats, whose roundings may differ: results were compared with bounds.",
}
LIMITS = (
    "A certificate says that the machine code computes the formulas. It does not say that the formulas are those of "
    "the model: importers and passes before the lowering are tested otherwise. It is no protection from hostile code."
)
STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#1b1f24}"
    "h1{margin-bottom:0}.verdict{font-size:1.3em;font-weight:600;padding:.5em .8em;border-radius:6px}"
    ".tiles{display:flex;gap:.6em;padding:0;list-style:none;flex-wrap:wrap}"
    ".tiles li{padding:.4em .9em;border-radius:6px}"
    ".tiles b{font-size:1.3em}.mark{border-radius:4px;padding:0 .4em;font-size:.85em;white-space:nowrap}"
    ".wrong{background:#ffd7d5;color:#82071e}.not{background:#fff1c2;color:#5c4300}"
    ".proved{background:#d3f5dc;color:#10461f}"
    ".tested{background:#d9ebff;color:#0a3069}.compared{background:#eae2fb;color:#3b1f78}"
    "table{border-collapse:collapse;width:100%}thead th{position:sticky;top:0;background:#fff;text-align:left}"
    "td,th{vertical-align:top;padding:.45em .6em;border-top:1px solid #d0d7de;text-align:left;font-weight:400}"
    "tbody th{white-space:nowrap;font-weight:600}td ul{margin:0;padding:0;list-style:none}"
    "td:nth-child(2){max-width:16em}"
    "td:nth-child(n+4){text-align:right;white-space:nowrap}dt{font-weight:600}dd{margin:0 0 .4em}"
)
