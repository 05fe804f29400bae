"""A graph as an SVG picture without script, for notebooks."""

from __future__ import annotations

from html import escape

from relay.viewer.dataflow import Graph, Node
from relay.viewer.layout import HEIGHT, lay_out, name_shown, note_shown

COLOURS = ("#e08a1e", "#9355d8", "#1f9a86", "#d6498a", "#7c9a1d", "#2a8fce")
"""The colours of external compilers, in the order of their names; nodes that run on the host have none. They are
visible on light and dark backgrounds."""
LARGEST = 400
"""The largest number of nodes for which a graph is drawn."""


def picture(graph: Graph) -> str:
    """The graph as SVG; "" if it is empty or too large to be drawn."""
    layout = lay_out(graph) if 0 < len(graph.nodes) <= LARGEST else None
    if layout is None:
        return ""
    compilers = sorted({node.place for node in graph.nodes} - {""})
    width, height = layout.width + 4, layout.height + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="-2 -2 {width:g} {height:g}" font-family="monospace" text-anchor="middle" fill="currentColor">'
    ]
    for path in layout.paths:
        points = " ".join(f"{x:g},{y:g}" for x, y in path)
        parts.append(f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-opacity=".45"/>')
    for node, (left, top, box) in zip(graph.nodes, layout.boxes, strict=True):
        parts.append(f'<g transform="translate({left:g} {top:g})">{_box(node, box, compilers)}</g>')
    return "".join([*parts, "</svg>"])


def _box(node: Node, width: float, compilers: list[str]) -> str:
    colour = COLOURS[compilers.index(node.place) % len(COLOURS)] if node.place else "currentColor"
    round = 7 if node.kind in ("op", "call") else HEIGHT / 2
    where = f" on {node.place}" if node.place else ""
    return (
        f"<title>{escape(f'{node.name}: {node.note}{where}')}</title>"
        f'<rect width="{width:g}" height="{HEIGHT:g}" rx="{round:g}" fill="{colour}" fill-opacity=".1" '
        f'stroke="{colour}" stroke-opacity=".7"/>'
        f'<text x="{width / 2:g}" y="17" font-size="12" font-weight="600">{escape(name_shown(node))}</text>'
        f'<text x="{width / 2:g}" y="31" font-size="10" fill-opacity=".7">{escape(note_shown(node))}</text>'
    )
