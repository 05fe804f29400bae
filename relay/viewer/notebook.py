"""The HTML that a notebook shows for a module, a pipeline, an exploration and other results: without script, all text
escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from relay.dialects.attributes import to_numpy
from relay.exploration import Exploration
from relay.module import IRModule, is_constant
from relay.passes import Pipeline
from relay.passes.documentation import summary
from relay.passes.info import info_of, why_of
from relay.passes.timing import Entry, PassTimingInstrument
from relay.viewer.layout import short
from relay.viewer.page import report
from relay.viewer.picture import picture
from relay.viewer.recording import Record
from relay.viewer.snapshot import take

LINES, LETTERS = 400, 240
"""The maximum numbers of lines of a module's text, and of characters of each line, that are shown."""
OPTIONS = 60
"""The maximum number of characters shown of a pass with its options."""
EDGE = "border:1px solid rgba(128,128,128,.4);border-radius:6px"
FRAME = f"{EDGE};max-height:420px;overflow:auto;padding:8px;margin:4px 0"


def of_module(mod: IRModule) -> str:
    """The HTML of a module: its counts, the graph of `main`, and its text."""
    found = take(mod)
    weights = sum(to_numpy(op.value).nbytes for _, op in mod.constants() if is_constant(op))
    functions = "1 function" if len(mod.functions) == 1 else f"{len(mod.functions)} functions"
    head = f"{functions}, {found.ops:,} ops, {weights:,} bytes of weights"
    main = next((part for part in found.parts if part.name == "main"), found.parts[0] if found.parts else None)
    drawn = "" if main is None else picture(main.graph)
    shown = [line if len(line) <= LETTERS else f"{line[:LETTERS]} …" for line in found.lines[:LINES]]
    if len(found.lines) > LINES:
        shown.append(f"… {len(found.lines) - LINES:,} more lines")
    parts = [f"<b>IRModule</b> {head}"]
    if main is not None and drawn:
        parts.append(_folded(f"graph of {main.name}", f'<div style="{FRAME}">{drawn}</div>', open=True))
    text = escape("\n".join(shown))
    parts.append(_folded("text", f'<pre style="{FRAME};white-space:pre;line-height:1.35;font-size:12px">{text}</pre>'))
    return f"<div>{''.join(parts)}</div>"


def of_pipeline(pipeline: Pipeline) -> str:
    """The HTML of a pipeline: a table of its passes with options, level and purpose."""
    rows = [
        [str(number), short(str(step), OPTIONS), str(info_of(step).opt_level), why_of(step) or summary(type(step))]
        for number, step in enumerate(pipeline)
    ]
    return f"<div><b>Pipeline</b> {len(rows)} passes{_table(['', 'pass', 'level', 'what it does'], rows)}</div>"


def of_timing(timing: PassTimingInstrument) -> str:
    """The measured times of passes as an indented table, with op counts before and after."""
    whole = timing.root.total or 1.0

    def rows(entry: Entry, depth: int) -> list[list[str]]:
        ops = f"{entry.ops_before:,} → {entry.ops_after:,}" if depth else ""
        row = ["\u2003" * depth + entry.name, f"{entry.total * 1e3:.2f}", f"{entry.total / whole:.0%}", ops]
        return [row, *(line for inner in entry.inner for line in rows(inner, depth + 1))]

    return f"<div>{_table(['pass', 'ms', 'share', 'ops'], rows(timing.root, 0))}</div>"


def of_exploration(exploration: Exploration) -> str:
    """The HTML of an exploration: a table of all alternatives, with values relative to the best and errors of failed
    ones."""
    heads, *rows = exploration.table()
    return f"<div>{_table(heads, rows)}<p>* the best, or on the front; ~ not told from the best</p></div>"


def of_record(record: Record) -> str:
    """The HTML of a record: the complete page in a frame, which may run the page's script and nothing else."""
    page = escape(report(record))
    return f'<iframe sandbox="allow-scripts" style="{EDGE};width:100%;height:720px" srcdoc="{page}"></iframe>'


def _folded(title: str, content: str, *, open: bool = False) -> str:
    return f"<details{' open' if open else ''}><summary>{escape(title)}</summary>{content}</details>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        spelled = (f'<{tag} style="text-align:left">{escape(cell)}</{tag}>' for cell in cells)
        return f"<tr>{''.join(spelled)}</tr>"

    return f"<table>{line('th', heads)}{''.join(line('td', row) for row in rows)}</table>"
