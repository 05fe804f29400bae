"""The data-flow graph of a function: its ops, and the values and buffers that flow between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from xdsl.dialects.builtin import ShapedType, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.traits import ConstantLike, IsTerminator
from xdsl.utils.hints import isa

from relay.viewer.effects import VIEWS, Effects, callee_of, root

Kind = Literal["argument", "op", "call", "output"]

DETAILS = VIEWS | {
    "arith.constant",
    "memref.alloc",
    "memref.alloca",
    "memref.dealloc",
    "memref.get_global",
    "memref.view",
    "relay.constant",
    "tensor.empty",
    "ub.poison",
}
"""Ops that get no node in the graph: constants, and ops that create or view buffers. Each node that uses one has its
line in the module's text in `Node.details` instead."""


@dataclass(frozen=True)
class Node:
    """A node: an op of a function's body with everything in its regions, an argument, or a returned value."""

    kind: Kind
    name: str
    """The op's name, the called function as `@name`, or the argument's name."""
    note: str
    """The types of the results; for an op with regions, the number of ops in them."""
    place: str
    """The external compiler that runs the node; "" for the host."""
    lines: tuple[int, int]
    """The first line of the node in the module's text, counted from 0, and the line after its last."""
    details: tuple[int, ...] = ()
    """For each op that has no node (`DETAILS`: constants, and ops that create or view buffers) and that this node uses,
    the number of its line in the module's text, counted from 0."""


@dataclass(frozen=True)
class Edge:
    """A value, or the contents of a buffer, that flows from one node to a later one; the label is its type."""

    source: int
    target: int
    label: str


@dataclass(frozen=True)
class Graph:
    """The data-flow graph of a function's ops. Nodes are in the order of the ops; every edge leads to a later node."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def graph_of(
    arguments: Sequence[BlockArgument],
    ops: Sequence[Operation],
    lines: Mapping[Operation, tuple[int, int]],
    effects: Effects,
    place: str,
) -> Graph:
    """The graph of the ops of a body, which the external compiler `place` runs ("" for the host).

    An edge leads from the op that computes a value to the ops that use it, also inside their regions. For a buffer, it
    leads from the op that wrote it last to the ops that read or write it. An argument is an input if an op uses it
    before one writes it, and an output if an op writes it.
    """
    builder = Builder(lines, effects, place, arguments)
    for op in ops:
        if op.has_trait(IsTerminator, value_if_unregistered=False):
            builder.returned(op)
        elif op.name in DETAILS or op.has_trait(ConstantLike, value_if_unregistered=False):
            builder.detail(op)
        else:
            builder.op(op)
    builder.outputs()
    return builder.graph()


@dataclass
class Builder:
    """Builds a graph op by op."""

    lines: Mapping[Operation, tuple[int, int]]
    effects: Effects
    place: str
    arguments: Sequence[BlockArgument]
    nodes: list[Node] = field(default_factory=list[Node])
    edges: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    made_by: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The node that computes a value, or last wrote a buffer."""
    places: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """The external compiler in whose annotated region (between `byoc.compiler_begin` and `compiler_end`) a value is."""
    hidden: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])

    def argument(self, value: SSAValue) -> int | None:
        """The node of an argument, which is added when it is first read; None for any other value."""
        if not isinstance(value, BlockArgument) or value not in self.arguments:
            return None
        self.made_by[value] = len(self.nodes)
        self.nodes.append(self.end("argument", value))
        return self.made_by[value]

    def end(self, kind: Kind, value: BlockArgument) -> Node:
        """Make a node for an argument of the body; `kind` says whether it stands for an input or an output of the
        graph."""
        head = value.owner.parent_op()
        first = 0 if head is None else self.lines.get(head, (0, 0))[0]
        name = value.name_hint or f"argument {value.index}"
        return Node(kind, name, brief(value.type), self.place, (first, first + 1))

    def detail(self, op: Operation) -> None:
        """Record an op that gets no node and is only listed by its users."""
        for result in op.results:
            self.hidden[result] = op

    def details_of(self, value: SSAValue) -> Iterator[Operation]:
        """Yield the op that computes a value if it has no node, and in the same way the ops that compute its
        operands."""
        if value in self.hidden:
            yield self.hidden[value]
            for operand in self.hidden[value].operands:
                yield from self.details_of(operand)

    def op(self, op: Operation) -> None:
        """Add a node for the op, with an edge for each value and buffer that the op or an op in its regions uses."""
        used = list(dict.fromkeys(value for inner in op.walk() for value in inner.operands))
        written = {root(value) for value in self.effects.written(op)}
        place = self.place_of(op)
        details = sorted({self.lines[detail][0] for value in used for detail in self.details_of(value)})
        self.link(used, written)
        number = len(self.nodes)
        for value in op.results:
            self.made_by[value] = number
            self.places[value] = place
        for value in written:
            self.made_by[value] = number
        called = callee_of(op)
        name = f"@{called}" if called else name_of(op)
        note = contents_text(op) or ", ".join(brief(type) for type in (op.result_types or [v.type for v in written]))
        self.nodes.append(Node("call" if called else "op", name, note, place, self.lines[op], tuple(details)))

    def link(self, used: Sequence[SSAValue], written: Collection[SSAValue] = ()) -> None:
        """Add edges to the node that will be added next: from each node that computes a value in `used`, or last wrote
        a buffer in it. `written`: buffers that the next node writes, which are not made inputs of the graph."""
        found: dict[int, str] = {}
        for value in used:
            held = root(value)
            source = self.made_by.get(held)
            if source is None and held not in written:
                source = self.argument(held)
            if source is not None:
                found.setdefault(source, brief(value.type))
        for source, label in found.items():
            self.edges[source, len(self.nodes)] = label

    def place_of(self, op: Operation) -> str:
        """The external compiler that runs an op; "" for the host."""
        for key in ("compiler", "composite"):
            named = op.properties.get(key, op.attributes.get(key))
            if isinstance(named, StringAttr) and named.data:
                return named.data.partition(".")[0] if key == "composite" else named.data
        function = self.effects.functions.get(callee_of(op))
        taken_by = None if function is None else function.attributes.get("compiler")
        if isinstance(taken_by, StringAttr):
            return taken_by.data
        around = (self.places.get(v, "") for v in op.operands if not _leaves(v))
        return next(filter(None, around), self.place)

    def returned(self, op: Operation) -> None:
        """Add a node for `op`, the body's terminator, with edges from its operands; none if it has no operands."""
        if op.operands:
            self.link(op.operands)
            note = ", ".join(brief(type) for type in op.operand_types)
            self.nodes.append(Node("output", op.name.rpartition(".")[2], note, self.place, self.lines[op]))

    def outputs(self) -> None:
        """Add an output node for each argument that an op has written."""
        for argument in self.arguments:
            writer = self.made_by.get(argument)
            if writer is not None and self.nodes[writer].kind != "argument":
                self.edges[writer, len(self.nodes)] = brief(argument.type)
                self.nodes.append(self.end("output", argument))

    def graph(self) -> Graph:
        """Return the graph that was built."""
        return Graph(tuple(self.nodes), tuple(Edge(s, t, label) for (s, t), label in self.edges.items()))


def _leaves(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name == "byoc.compiler_end"


def name_of(op: Operation) -> str:
    """The op's name; for a composite, the pattern's name."""
    composite = op.properties.get("composite")
    return composite.data if isinstance(composite, StringAttr) else op.name


def contents_text(op: Operation) -> str:
    """A text with the number of ops in an op's regions and the two most frequent kinds; "" if there are none."""
    kinds = Counter(inner.name for inner in op.walk() if inner is not op)
    total = sum(kinds.values())
    if not total:
        return ""
    most = ", ".join(f"{name.rpartition('.')[2]} ×{count}" for name, count in kinds.most_common(2))
    return f"{total} ops: {most}"


@lru_cache(4096)
def brief(type: Attribute) -> str:
    """A short text of a type: `1×28×28×3 i8`."""
    if isinstance(type, ShapedType) and isa(element := getattr(type, "element_type", None), Attribute):
        dimensions = "×".join("?" if size < 0 else str(size) for size in type.get_shape())
        return f"{dimensions} {element}".strip()
    text = str(type)
    return text if len(text) <= 24 else text[:23] + "…"
