"""Resource variables, by which streaming models keep state between runs: each becomes a state of the main subgraph.

VAR_HANDLE names a variable, READ_VARIABLE and ASSIGN_VARIABLE take the handle, CALL_ONCE first runs a subgraph that
assigns initial values. The graph that `with_variables` makes has no handles: a variable is a tensor that keeps its
value, like the states of recurrent layers, and READ and ASSIGN take the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relay.errors import Unsupported
from relay.frontend.tflite.model import Subgraph, Tensor
from relay.frontend.tflite.node import Node

Key = tuple[str, str]
"""The container and the name of a variable."""
READ, ASSIGN = "READ_VARIABLE", "ASSIGN_VARIABLE"
DECLARED = {"CALL_ONCE": (1, 1), "VAR_HANDLE": (1, 1)}
"""The operators that are removed when variables become states, with their versions."""


def with_variables(graphs: Sequence[Subgraph], name: str) -> Subgraph:
    """The main subgraph with its variables as states, whose initial values are those that CALL_ONCE assigns, or else
    real zero.

    LiteRT refuses to read a variable that nothing has assigned; TFLite Micro starts it at zero. Raises Unsupported for
    computed initial values, and if variables are used before CALL_ONCE.
    """
    graph = graphs[0]
    if not any(operator.kind in DECLARED for operator in graph.operators):
        return graph
    return _States(graph, name).graph(_first_values(graphs, name))


class _States:
    """The resource variables of a subgraph: which variable each handle names (`handles`, by tensor index), the first
    tensor read from or assigned to each variable (`described`), and the operators that read or assign one (`used`)."""

    def __init__(self, source: Subgraph, name: str) -> None:
        self.source, self.name = source, name
        self.handles: dict[int, Key] = {}
        self.described: dict[Key, Tensor] = {}
        """The first tensor that is read from or assigned to each variable."""
        self.used: list[tuple[Node, Key]] = []
        for operator in source.operators:
            node = Node(name, source, operator)
            if operator.kind == "VAR_HANDLE":
                self.handles[node.output().index] = str(operator.options["container"]), node.word("shared_name")
            elif operator.kind in (READ, ASSIGN):
                key = self.handles.get(node.input(0).index)
                if key is None:
                    raise node.unsupported("its variable is not named by VAR_HANDLE")
                self.described.setdefault(key, node.output() if operator.kind == READ else node.input(1))
                self.used.append((node, key))

    def graph(self, values: dict[Key, Tensor]) -> Subgraph:
        """The subgraph without its variable handles: each variable is a state, a tensor marked `is_variable`, which
        READ_VARIABLE and ASSIGN_VARIABLE name directly. `values` are constants with the variables' initial values."""
        tensors, states = list(self.source.tensors), dict[Key, int]()
        for key, tensor in self.described.items():
            first = values.get(key, tensor)
            data = first.data if key in values else None
            if first.type != tensor.type:
                what = f"starts as {first.type}, and is {tensor.type} later"
                raise Unsupported(f"{self.name}: variable {key[1][:120]!r}", what)
            states[key] = len(tensors)
            shape = first.shape
            tensors.append(
                replace(
                    tensor,
                    index=len(tensors),
                    name=key[1],
                    shape=shape,
                    shape_signature=shape,
                    data=data,
                    is_variable=True,
                )
            )
        known = {node.operator.index: key for node, key in self.used}
        operators = [
            replace(operator, inputs=(states[known[operator.index]], *operator.inputs[1:]))
            if operator.index in known
            else operator
            for operator in self.source.operators
            if operator.kind not in DECLARED
        ]
        return replace(self.source, tensors=tuple(tensors), operators=tuple(operators))


def _first_values(graphs: Sequence[Subgraph], name: str) -> dict[Key, Tensor]:
    """The constants that subgraphs of CALL_ONCE assign, by variable."""
    found: dict[Key, Tensor] = {}
    used = False
    for operator in graphs[0].operators:
        used |= operator.kind in (READ, ASSIGN)
        if operator.kind != "CALL_ONCE":
            continue
        node = Node(name, graphs[0], operator)
        number = node.integer("init_subgraph_index")
        if used:
            raise node.unsupported("variables are used before it")
        if not 0 < number < len(graphs):
            raise node.malformed(f"calls subgraph {number} of {len(graphs)}")
        once = _States(graphs[number], name)
        for step in graphs[number].operators:
            if step.kind not in (ASSIGN, "VAR_HANDLE"):
                raise node.unsupported(f"its {step}: only assignments of constants are known before the first run")
        for step, key in once.used:
            value = step.input(1)
            if value.data is None:
                raise node.unsupported(f"it assigns {value}, which is no constant")
            found[key] = value
    return found
