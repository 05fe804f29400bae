"""The result of `relay.exploration.compare` as one HTML file: a verdict, a chart of all tensors, and a table."""

from __future__ import annotations

from html import escape

from relay.exploration.comparing import Comparison, Row, cells

STYLE = """
:root { color-scheme: light dark; font: 14px system-ui, sans-serif }
body { margin: 2em auto; max-width: 70em; padding: 0 1em }
table { border-collapse: collapse } td, th { padding: .2em .7em; text-align: right; white-space: nowrap }
td:last-child, th:last-child { text-align: left; white-space: normal; overflow-wrap: anywhere }
tr.differs { background: #d6498a33 } svg { width: 100%; height: 90px }
.verdict { font-size: 1.2em; overflow-wrap: anywhere }
"""
EQUAL, DIFFERS = "#1f9a86", "#d6498a"


def page(comparison: Comparison, model: str) -> str:
    """The HTML page that shows a comparison of the tensors of `model` with those of a reference run. It loads nothing
    from elsewhere, and names are escaped."""
    title = f"{model} compared with {comparison.reference}"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style><h1>{escape(title)}</h1>{content(comparison)}</html>"
    )


def content(comparison: Comparison) -> str:
    """The HTML of verdict, chart and table, for the page or a notebook."""
    head = ("", "differ", "of", "largest", "SNR dB", "tensor")
    rows = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    for row in comparison.rows:
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells(row)))
    kinds = ["", *("" if row.equal else ' class="differs"' for row in comparison.rows)]
    table = "".join(f"<tr{kind}>{row}</tr>" for kind, row in zip(kinds, rows, strict=True))
    return (
        f'<p class="verdict">{escape(comparison.verdict)}</p>{picture([*comparison.tensors, *comparison.outputs])}'
        f"<p>{escape(comparison.how)}</p><table>{table}</table>"
    )


def picture(rows: list[Row]) -> str:
    """A bar chart (SVG) of all tensors in the order of execution: a bar's height shows the share of elements that
    differ. Bars of equal tensors are low and green."""
    bars: list[str] = []
    for number, row in enumerate(rows):
        share = row.count / max(row.size, 1)
        height = 4 if row.equal else 12 + 68 * share**0.5  # a single differing element is visible, too
        what = escape(f"{row.operator or row.name}: {row.count} of {row.size} differ")
        colour = EQUAL if row.equal else DIFFERS
        box = f'x="{number + 0.1:g}" y="{86 - height:g}" width="0.8" height="{height:g}"'
        bars.append(f'<rect {box} fill="{colour}"><title>{what}</title></rect>')
    how = 'height="90" width="100%" preserveAspectRatio="none" role="img"'
    return f'<svg viewBox="0 0 {max(len(rows), 1)} 90" {how}>{"".join(bars)}</svg>'
