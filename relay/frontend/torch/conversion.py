"""Converts the graph of an exported PyTorch program to ops. Each node is converted by the import function of its
operator (`relay.frontend.torch.table`), subgraphs are inlined, and problems are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, SSAValue

from relay.dialects.attributes import element_type
from relay.dialects.element_types import is_float
from relay.dialects.op import DYNAMIC, Type, compatible, is_tensor
from relay.errors import Unsupported
from relay.frontend.importing.builder import value_name
from relay.frontend.importing.conversion import READ_ERRORS, NodeConversion
from relay.frontend.torch.archive import Json, dtype_of_number
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import (
    Argument,
    Node,
    ScalarType,
    Subgraph,
    is_list,
    is_value,
    target_of,
    writes_in_place,
)
from relay.frontend.torch.operators import VIEWS, Convert, row
from relay.frontend.torch.table import AUTOCAST, Result, refusal


@dataclass(slots=True, kw_only=True)
class Conversion(NodeConversion[Importer]):
    """Converts nodes, and tracks which tensors share memory by views and in-place writes."""

    file: str
    custom: Mapping[str, Convert]
    values: dict[str, Result] = field(default_factory=dict[str, Result])
    in_autocast: bool = False
    types: Json = field(default_factory=dict[str, Any])
    """The descriptions of the tensors (element type, sizes, layout) of the graph that is being converted, by tensor
    name, as they are in the file."""
    roots: dict[str, str] = field(default_factory=dict[str, str])
    """For each tensor, the tensor whose memory it shares, through views and in-place writes."""
    views: set[str] = field(default_factory=set[str])
    """The names of the tensors that are views: a part of another tensor, or its elements in another shape."""
    states: set[str] = field(default_factory=set[str])
    """The names of the tensors that are states of the model: buffers that it writes, whose final values are results of
    `@main`."""
    resized: bool = False
    """Whether the caller gave inputs other sizes than those in the file."""

    def graph(self, graph: Json, within: str = "", index: int | None = None) -> None:
        """Convert the nodes of a graph in order. For a subgraph, `index` is the index of the node that contains it, and
        `within` that node's title."""
        outer, self.types = self.types, graph.get("tensor_values") or {}
        for number, each in enumerate(cast("list[Json]", graph["nodes"])):
            self.node(each, number if index is None else index, within)
        self.types = outer

    def node(self, given: Json, index: int, within: str) -> None:
        """Build one node; if that fails, record why and continue with placeholders."""
        node = self.read(given, index, within)
        by_caller = custom_name(node) in self.custom
        results = self.tried(node, node.outputs, lambda: self.results(node), by_caller)
        for name, value in zip(node.outputs, results, strict=False):
            if name:
                self.define(name, value)
        self.written(node, given)

    def written(self, node: Node, given: Json) -> None:
        """Record the value that an in-place node such as `aten.add_` has written: all names of that memory get the new
        value, except views of it, which become outdated."""
        target = next(iter(tensor_names(given["inputs"][:1])), "")
        root = self.roots.get(target, target)
        if node.packet in VIEWS and root:
            self.roots.update(dict.fromkeys(node.outputs, root))
            self.views.update(node.outputs)
        if not writes_in_place(node.packet) or not node.outputs:
            return
        output, partly = node.outputs[0], target in self.views
        if partly and root in self.states:
            raise node.unsupported("writes to a part of a buffer", "make it functional: program.run_decompositions()")
        for other in [root, *(each for each, own in self.roots.items() if own == root)]:
            self.values[other] = None if partly or other in self.views else self.values[output]
        self.values[target] = self.values[output]
        if partly:
            self.views.discard(target)
            self.roots[target] = root = output
        self.roots[output] = root

    def define(self, name: str, value: Result) -> None:
        self.values[name] = value
        if isinstance(value, SSAValue) and value.name_hint is None:
            value.name_hint = value_name(name)

    def read(self, given: Json, index: int, within: str) -> Node:
        """The node with its arguments resolved. Raises Malformed."""
        target, name = target_of(given), str(given.get("name") or "")
        outputs = [each for output in given["outputs"] for each in tensor_names(output) or [""]]
        name = name or (outputs[0] if outputs else "")
        node = Node(self.file, target, index, name, {}, [], outputs, [], within)
        try:
            node.types.extend(self.type_of(each, node.where) for each in outputs)
            for each in given["inputs"]:
                found = self.argument(node, each["arg"], str(each["name"]))
                node.positional.append(found)
                if each["name"]:
                    node.arguments[str(each["name"])] = found
        except READ_ERRORS as error:
            raise node.malformed(f"cannot be read: {type(error).__name__}: {error}") from None
        return node

    def type_of(self, name: str, where: str) -> Type | None:
        """The type that the file states for a tensor; None if it states none."""
        meta = self.types.get(name)
        if meta is None:
            return None
        sizes = [each.get("as_int") for each in meta["sizes"]]
        dtype = dtype_of_number(meta["dtype"], f"{where}: its result {name[:120]!r}")
        return TensorType(element_type(dtype), [DYNAMIC if each is None else int(each) for each in sizes])

    def find(self, node: Node, name: str) -> Result:
        if name not in self.values:
            raise node.malformed(f"takes {name[:120]!r}, which no node before it gives")
        found = self.values[name]
        if found is None:
            what = f"takes {name[:120]!r}, which is not computed, or is a view of what was written in place"
            raise node.unsupported(what, "make the program functional: program.run_decompositions()")
        return found

    def argument(self, node: Node, given: Json, label: str) -> Argument:
        """The argument that `given` describes, an entry of the file with the kind of the argument as its key."""
        ((kind, value),) = given.items()
        match kind:
            case "as_tensor":
                return self.find(node, value["name"])
            case "as_tensors":
                return [self.find(node, each["name"]) for each in value]
            case "as_nested_tensors":
                return [[self.find(node, each["name"]) for each in row] for row in value]
            case "as_optional_tensors" | "as_sym_ints" | "as_sym_floats" | "as_sym_bools":
                return [self.argument(node, each, label) for each in value]
            case "as_optional_tensor" | "as_sym_int" | "as_sym_float" | "as_sym_bool":
                return self.argument(node, value, label)
            case "as_name":
                return self.find(node, value)
            case "as_scalar_type":
                return ScalarType(int(value))
            case "as_graph":
                return Subgraph(str(value["name"]), value["graph"])
            case "as_none" | "as_memory_format" | "as_layout" | "as_device":
                return None
            case "as_int" | "as_float" | "as_bool" | "as_string" | "as_ints" | "as_floats" | "as_bools" | "as_strings":
                return value
            case _:
                what = f"the argument {label[:120]} is of the kind {kind[3:][:40]}"
                raise node.unsupported(what, "export the program with tensors and numbers only")

    def results(self, node: Node) -> Sequence[Result] | None:
        """The values of a node's outputs; None if an input is missing because an earlier node could not be imported:
        then only the operator is checked."""
        why, custom = refusal(node), self.custom.get(custom_name(node))
        convert = None if why else row(node)
        if convert is None and custom is None:
            hint = "pass it in custom_ops, or cut it off with outputs"
            if node.packet.startswith(("aten.", "torch.")) and not why:
                hint = f"program.run_decompositions() may write it by others; or {hint}"
            raise node.unsupported(why or "the operator is not supported", hint)
        if not self.unknown.isdisjoint(_values(node.positional)):
            return None
        node, build = self.autocast(node), convert or cast(Convert, custom)
        found = self.called(node, lambda: build(self.importer, node), convert is None)
        values = list(found) if isinstance(found, Sequence) else [found]
        if len(values) < len(node.outputs):
            raise node.unsupported(f"output {len(values)} is not supported", "export the program without it")
        for value, declared in zip(values, node.types, strict=False):
            if isinstance(value, SSAValue):
                self.check(node, value, declared)
        return values

    def autocast(self, node: Node) -> Node:
        """The node with its float arguments cast to its result's type, if it is in a region of torch.autocast."""
        element = next((each.element_type for each in node.types if each is not None), None)
        if not self.in_autocast or element is None or not is_float(element):
            return node

        def converted(given: Argument) -> Argument:
            if is_list(given):
                return [converted(each) for each in given]
            return self.importer.cast(given, element) if is_value(given) and self.importer.is_float(given) else given

        arguments = {name: converted(each) for name, each in node.arguments.items()}
        return replace(node, positional=[converted(each) for each in node.positional], arguments=arguments)

    def check(self, node: Node, value: SSAValue, declared: Type | None) -> None:
        """Raise Malformed unless the type of a result is compatible with the one in the file, if there is one there."""
        dims = self.check_size(node, value)
        if declared is not None and self.resized and is_tensor(value.type):
            declared = TensorType(declared.element_type, dims if len(dims) == len(declared.get_shape()) else [])
        if declared is not None and not compatible(value.type, declared):
            raise node.malformed(f"gives {value.type}, which is {declared} in the file")

    def subgraph(self, node: Node, graph: Subgraph, block: Block, given: Sequence[SSAValue]) -> list[SSAValue]:
        """Build a subgraph of a node at the end of a block, with these values as its inputs; returns its outputs."""
        outer, in_autocast = self.values, self.in_autocast
        inputs = tensor_names(graph.graph["inputs"])
        if len(inputs) != len(given):
            raise node.malformed(f"gives {graph.name[:120]!r} {len(given)} inputs, and it takes {len(inputs)}")
        try:
            with self.nested(node, block):
                self.values = dict(zip(inputs, given, strict=True))
                self.in_autocast = in_autocast or node.target == AUTOCAST
                self.graph(graph.graph, node.title, node.index)
                found = [self.find(node, name) for name in tensor_names(graph.graph["outputs"])]
        finally:
            self.values, self.in_autocast = outer, in_autocast
        tensors = [each for each in found if isinstance(each, SSAValue)]
        if len(tensors) != len(found):
            raise node.unsupported("its body gives a number, not a tensor", "let it give torch.tensor(number)")
        if not self.unknown.isdisjoint(tensors):
            raise Unsupported(node.where, "its body cannot be imported")
        return tensors


def custom_name(node: Node) -> str:
    """The name under which callers give a function for an operator: `X` for `mine.X.default`."""
    return node.packet.rpartition(".")[2]


def _values(arguments: Sequence[object]) -> list[SSAValue]:
    """The values among nested arguments."""
    found: list[SSAValue] = []
    for each in arguments:
        if is_value(each):
            found.append(each)
        elif is_list(each):
            found += _values(each)
    return found


def tensor_names(given: object) -> list[str]:
    """All tensor names in arguments or outputs."""
    if is_list(given):
        return [name for each in given for name in tensor_names(each)]
    if not isinstance(given, dict):
        return []
    row = cast(Json, given)
    if "graph" in row and "nodes" not in row:
        return []
    named = [str(row[key]) for key in ("name", "as_name") if isinstance(row.get(key), str) and "arg" not in row]
    return named + [name for key, each in row.items() if key != "name" for name in tensor_names(each)]
