"""A record as JSON: a small overview, and the parts that the page requests when it shows them."""

from __future__ import annotations

from collections.abc import Iterator

from relay import __version__
from relay.viewer.dataflow import Node
from relay.viewer.diff import diff
from relay.viewer.layout import lay_out, name_shown, note_shown
from relay.viewer.recording import Record
from relay.viewer.snapshot import Snapshot

Json = dict[str, object]


def overview(record: Record) -> Json:
    """The record's passes with their times and op counts, and the contents of each snapshot."""
    compilers = {node.place for s in record.snapshots for part in s.parts for node in part.graph.nodes} - {""}
    return {
        "version": __version__,
        "name": record.name,
        "pipeline": record.pipeline,
        "target": record.target,
        "level": record.opt_level,
        "verify": record.verify,
        "seconds": record.seconds,
        "error": record.error,
        "compilers": sorted(compilers),
        "steps": [
            {**vars(step), "ops": [record.snapshots[step.before].ops, record.snapshots[step.after].ops]}
            for step in record.steps
        ],
        "snapshots": [_contents(snapshot) for snapshot in record.snapshots],
    }


def _contents(snapshot: Snapshot) -> Json:
    parts = [
        {"name": p.name, "ops": p.ops, "compiler": p.compiler, "lines": p.lines, "loose": p.loose}
        for p in snapshot.parts
    ]
    return {"ops": snapshot.ops, "lines": len(snapshot.lines), "kinds": dict(snapshot.kinds), "parts": parts}


def snapshot(record: Record, number: int) -> Json:
    """The text of a snapshot, and the source location of each line."""
    found = record.snapshots[number]
    return {"text": found.text, "sources": list(found.sources), "source_of": list(found.source_of)}


def changes(record: Record, number: int) -> Json:
    """The changes of step number `number`, as `{"hunks": rows}`: a row `[equal, begin before, end before, begin after,
    end after]` for each hunk of lines."""
    step = record.steps[number]
    hunks = diff(record.snapshots[step.before], record.snapshots[step.after])
    return {"hunks": [[h.equal, *h.before, *h.after] for h in hunks]}


def graph(record: Record, number: int, part: int) -> Json:
    """The graph of part `part` (a function) of snapshot `number`, with positions; `{"large": count of nodes}` if the
    graph is too large to be drawn."""
    found = record.snapshots[number].parts[part].graph
    layout = lay_out(found)
    if layout is None:
        return {"large": len(found.nodes)}
    nodes = [
        {
            **vars(node),
            "shown": [name_shown(node), note_shown(node)],
            "heat": heat(record, number, node),
            "box": box,
        }
        for node, box in zip(found.nodes, layout.boxes, strict=True)
    ]
    edges = [[e.source, e.target, e.label, path] for e, path in zip(found.edges, layout.paths, strict=True)]
    return {"size": [layout.width, layout.height], "nodes": nodes, "edges": edges}


def heat(record: Record, number: int, node: Node) -> float | None:
    """The share of the run time that a node's kernel, or its operator of the source model, takes; None if unknown."""
    if node.name in record.heat:
        return record.heat[node.name]
    found = record.snapshots[number]
    place = found.source_of[node.lines[0]] if node.kind == "op" else -1
    return record.heat.get(found.sources[place].rpartition(" (")[0]) if place >= 0 else None


def parts(record: Record) -> Iterator[tuple[str, Json]]:
    """Yield all JSON objects that the page can request (snapshots, changes, graphs), each with the path under which the
    page requests it."""
    for number in range(len(record.snapshots)):
        yield f"snapshot/{number}", snapshot(record, number)
    for number, step in enumerate(record.steps):
        if step.before != step.after:
            yield f"changes/{number}", changes(record, number)
    names = dict.fromkeys(part.name for s in record.snapshots for part in s.parts)
    for name in names:
        for number, found in enumerate(record.snapshots):
            for place, part in enumerate(found.parts):
                if part.name == name:
                    yield f"graph/{number}/{place}", graph(record, number, place)
