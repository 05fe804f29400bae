"""The subgraphs that the main one calls by IF, WHILE and CALL_ONCE, and limits on their total size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from relay.errors import Unsupported
from relay.frontend.tflite.model import Model, Operator, Subgraph, Tensor
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.variables import ASSIGN

CALLS = {
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "CALL_ONCE": ("init_subgraph_index",),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
}
"""The options that name subgraphs, by operator."""
DEEPEST = 32
"""The maximum nesting of subgraphs, not counting the main one."""
SPARE, COPIES = 1000, 4
"""A file of `n` operators may expand to at most `SPARE + COPIES * n` operators: each call of a subgraph copies the
subgraph's operators."""


def called(model: Model, name: str) -> tuple[Subgraph, ...]:
    """All subgraphs, the main one first. Raises Unsupported for a subgraph that the main one does not call, directly or
    through others, such as that of a second signature."""
    graphs = model.subgraphs
    reached, pending = {0}, [0]
    while pending:
        for operator in graphs[pending.pop()].operators:
            for number in _calls(operator, len(graphs)):
                if number not in reached:
                    reached.add(number)
                    pending.append(number)
    left = [graph for number, graph in enumerate(graphs) if number not in reached]
    if left:
        names = ", ".join(repr(graph.name[:40]) for graph in left[:8])
        hint = "convert the model with one signature"
        raise Unsupported(name, f"has {len(left)} subgraphs beside the main one: {names}", hint)
    return graphs


def _calls(operator: Operator, count: int) -> Iterator[int]:
    """The indices of the subgraphs that the operator calls, without invalid ones."""
    for option in CALLS.get(operator.kind, ()):
        number = operator.options.get(option, 0)
        if isinstance(number, int) and 0 <= number < count:
            yield number


def needed(graph: Subgraph, wanted: Iterable[Tensor], name: str, keep_states: bool = False) -> list[Node]:
    """The operators on which the tensors depend, in order, including those that change the variables they read; with
    `keep_states` also those that change other states."""
    live = {tensor.index for tensor in wanted}
    found: list[Node] = []
    seen = -1
    while len(found) != seen:
        seen, found = len(found), []
        for operator in reversed(graph.operators):
            changes_state = keep_states and any(i >= 0 and graph.tensors[i].is_variable for i in operator.inputs)
            assigns = operator.kind == ASSIGN and not live.isdisjoint(operator.inputs[:1])
            if (
                changes_state
                or assigns
                or not live.isdisjoint(operator.outputs)
                or (keep_states and not operator.outputs)
            ):
                live.update(operator.inputs)
                found.append(Node(name, graph, operator))
    return found[::-1]


class _Sizes:
    """For each subgraph, the number of operators and the nesting depth, both including the subgraphs that it calls;
    computed once."""

    def __init__(self, graphs: Sequence[Subgraph], name: str) -> None:
        self.graphs, self.name = graphs, name
        self.most = SPARE + COPIES * sum(len(graph.operators) for graph in graphs)
        self.known: dict[int, tuple[int, int]] = {}

    def of(self, nodes: Iterable[Node], around: tuple[int, ...]) -> tuple[int, int]:
        """The number of these operators and of those in the subgraphs that they call, and the nesting depth of the
        calls; `around` are the indices of the subgraphs that contain these operators."""
        size, depth = 0, 0
        for node in nodes:
            size += 1
            for number in _calls(node.operator, len(self.graphs)):
                if number in around:
                    raise node.malformed(f"calls subgraph {number}, in which it is")
                if len(around) + self.known.get(number, (0, 0))[1] > DEEPEST:
                    raise node.unsupported(f"its subgraphs are more than {DEEPEST} deep in each other")
                if number not in self.known:
                    graph = self.graphs[number]
                    outputs = [graph.tensors[index] for index in graph.outputs]
                    self.known[number] = self.of(needed(graph, outputs, self.name), (*around, number))
                inner, below = self.known[number]
                size, depth = size + inner, max(depth, 1 + below)
            if size > self.most:
                what = f"with it, the copies of subgraphs come to {size} operators, and {self.most} are the most"
                raise node.unsupported(what, "a subgraph is copied for each of its calls")
        return size, depth


def check_calls(graphs: Sequence[Subgraph], nodes: Iterable[Node], name: str) -> None:
    """Check that subgraphs can be copied for each call by these operators of the main one.

    Raises Unsupported if the result would be too large or too deep, Malformed if a subgraph calls itself.
    """
    _Sizes(graphs, name).of(nodes, (0,))
