"""Draws a bar chart as SVG, without a plotting package."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

LINE, LEFT, WIDTH = 16, 330, 420
SHOWN = 48


def picture(bars: Sequence[tuple[str, float, bool]]) -> str:
    """An SVG bar chart. `bars`: for each bar its name, its length in decibels, and whether it is red."""
    longest = max([60.0, *(min(value, 120.0) for _, value, _ in bars)])
    height = LINE * (len(bars) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<text x="{LEFT}" y="{LINE - 4}">signal to noise, dB</text>',
    ]
    for number, (name, value, marked) in enumerate(bars, 1):
        top, size = LINE * number, max(0.0, min(value, 120.0)) / longest * WIDTH
        short = name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…"
        color = "#c0392b" if marked else "#2e6da4"
        lines.append(f'<text x="{LEFT - 6}" y="{top + 11}" text-anchor="end">{escape(short)}</text>')
        lines.append(f'<rect x="{LEFT}" y="{top + 2}" width="{size:.1f}" height="{LINE - 4}" fill="{color}"/>')
        lines.append(f'<text x="{LEFT + size + 4:.1f}" y="{top + 11}">{value:.1f}</text>')
    return "\n".join([*lines, "</svg>", ""])
