"""Which subgraphs of a file belong to its main one: those that IF and WHILE call."""

from __future__ import annotations

from relay.errors import Unsupported
from relay.frontend.tflite.model import Model, Subgraph

CALLS = {
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
}
"""The options that name subgraphs, by operator."""


def called(model: Model, name: str) -> tuple[Subgraph, ...]:
    """All subgraphs, the main one first. Raises Unsupported if one is called by none: another signature."""
    graphs = model.subgraphs
    reached, pending = {0}, [0]
    while pending:
        for operator in graphs[pending.pop()].operators:
            for option in CALLS.get(operator.kind, ()):
                number = operator.options.get(option, 0)
                if isinstance(number, int) and 0 <= number < len(graphs) and number not in reached:
                    reached.add(number)
                    pending.append(number)
    left = [graph for number, graph in enumerate(graphs) if number not in reached]
    if left:
        names = ", ".join(repr(graph.name[:40]) for graph in left[:8])
        hint = "convert the model with one signature, and without variables that are set once"
        raise Unsupported(name, f"has {len(left)} subgraphs beside the main one: {names}", hint)
    return graphs
