"""Converts a graph to ops: nodes by the rows of the table, functions and subgraphs inlined, problems collected.

An operator without a row for which ONNX's schema has a body of simpler operators is replaced by that body; so are
operators that are functions of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import onnx
from google.protobuf.message import DecodeError
from onnx import helper
from xdsl.ir import Block, SSAValue

from relay.dialects.attributes import dtype_of
from relay.dialects.op import DYNAMIC, is_tensor
from relay.errors import Unsupported
from relay.frontend.importing.conversion import NodeConversion
from relay.frontend.onnx.builder import Frame, Importer
from relay.frontend.onnx.counted import follow
from relay.frontend.onnx.model import STANDARD, Model, check_texts, number_of_dtype
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.operators import row
from relay.frontend.onnx.table import REFUSED, Convert


class _Bodies(Protocol):
    """Methods of ONNX's schemas that its type stubs lack."""

    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: list[int]
    context_dependent_function_opset_versions: list[int]

    def get_function_with_opset_version(self, version: int) -> bytes: ...
    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: list[bytes]
    ) -> bytes: ...


@dataclass(slots=True, kw_only=True)
class Conversion(NodeConversion[Importer]):
    """Converts nodes to ops, each by the importer that the caller, a plug-in or `relay.frontend.onnx.operators` has for
    its operator, or else by the function body that the model or ONNX defines for the operator."""

    model: Model
    custom: Mapping[str, Convert]

    def nodes(self, protos: Iterable[onnx.NodeProto], index: int | None = None) -> None:
        """Convert nodes in order. If they are the subgraph or the function body of another node, `index` is that node's
        index in the main graph, which errors name."""
        for number, proto in enumerate(protos):
            self.node(proto, number if index is None else index)

    def node(self, proto: onnx.NodeProto, index: int) -> None:
        """Build one node; if that fails, record why and continue with placeholders."""
        importer, frame = self.importer, self.importer.frame
        check_texts((*proto.input, *proto.output, proto.name, proto.op_type, proto.domain), self.model.file)
        check_texts((each.name for each in proto.attribute), self.model.file)
        domain = "" if proto.domain in STANDARD else proto.domain
        attributes = _resolved(proto, frame.attributes)
        values = tuple(importer.find(name) if name else None for name in proto.input)
        version = frame.opsets.get(domain, 1)
        file = self.model.file
        node = Node(file, proto, index, domain, version, attributes, values, importer.known, frame.within)
        for name, value in zip(proto.input, values, strict=True):
            if name and value is None:
                raise node.malformed(f"takes {name!r}, which no node before it gives")
        custom = self.custom_function(node) is not None
        results = self.tried(node, node.outputs, lambda: self.results(node), custom)
        for name, value in zip(proto.output, results, strict=False):
            if name and value is not None:
                importer.define(name, value)

    def results(self, node: Node) -> Sequence[SSAValue | None] | None:
        """The values of a node's outputs; None if an input is missing because an earlier node could not be imported:
        then only the operator is checked."""
        if not self.unknown.isdisjoint(node.values):
            self.known_operator(node)
            return None
        found = self.called(node, lambda: self.converted(node), self.custom_function(node) is not None)
        values = [found] if isinstance(found, SSAValue) else list(found)
        wanted = max((number + 1 for number, name in enumerate(node.outputs) if name), default=0)
        if len(values) < wanted:
            raise node.unsupported(f"output {len(values)} is not supported")
        for value in values:
            if value is not None:
                self.check_size(node, value)
        follow(self.importer, node, values)
        return values

    def custom_function(self, node: Node) -> Convert | None:
        """The function for an operator that the caller gave by its name, or a plug-in by its domain and name; else
        None."""
        given = self.custom.get(node.kind)
        return self.custom.get(f"{node.domain}.{node.kind}") if given is None else given

    def converted(self, node: Node) -> SSAValue | Sequence[SSAValue | None]:
        """Return the results of a node, by a custom function, by the model's own function of that name, by the importer
        registered for the operator, or by the body that ONNX defines for the operator."""
        if (custom := self.custom_function(node)) is not None and row(node.domain, node.kind, node.version) is None:
            return custom(self.importer, node)
        key = (node.domain, node.kind)
        function = self.model.functions.get((*key, node.proto.overload))
        if function is None:
            self.check(node)
            if (convert := row(*key, node.version)) is not None:
                found = convert(self.importer, node)
                if isinstance(found, SSAValue) or found or not node.proto.output:
                    return found
            function = self.body(node)
        if function is None:
            raise self.not_supported(node)
        return self.expanded(node, function)

    def known_operator(self, node: Node) -> None:
        """Raise Unsupported for an operator that cannot be imported in any way."""
        schema, key = node.schema, (node.domain, node.kind)
        bodies = schema is not None and (
            cast(_Bodies, schema).has_function or cast(_Bodies, schema).has_context_dependent_function
        )
        model = (*key, node.proto.overload) in self.model.functions
        if not (model or bodies or self.custom_function(node) or row(*key, node.version)):
            raise self.not_supported(node)

    def not_supported(self, node: Node) -> Unsupported:
        hint = "pass it in custom_ops, or cut it off with outputs" if node.domain else ""
        return node.unsupported(*REFUSED.get(node.domain, ("the operator is not supported", hint)))

    def check(self, node: Node) -> None:
        """Check the numbers of inputs and outputs against ONNX's schema."""
        schema = node.schema
        if schema is None:
            return
        if schema.deprecated and not cast(_Bodies, schema).has_context_dependent_function:
            raise node.unsupported(f"was removed from the operators in version {schema.since_version}")
        for what, count, least, most in (
            ("inputs", len(node.values), schema.min_input, schema.max_input),
            ("outputs", len(node.outputs), schema.min_output, schema.max_output),
        ):
            if not least <= count <= most:
                raise node.malformed(f"has {count} {what}", f"it takes {least} to {most}")
        for name, attribute in schema.attributes.items():
            if attribute.required and name not in node.attributes:
                raise node.malformed(f"the attribute {name} is missing")

    def body(self, node: Node) -> onnx.FunctionProto | None:
        """The body of simpler operators that ONNX defines for an operator; None if there is none for these types."""
        schema = node.schema
        if schema is None:
            return None
        found = cast(_Bodies, schema)
        if found.has_context_dependent_function:
            versions = found.context_dependent_function_opset_versions
            version = max((each for each in versions if each <= node.version), default=min(versions, default=0))
            types = [_type_proto(value).SerializeToString() for value in node.values]
            proto = onnx.NodeProto()
            proto.CopyFrom(node.proto)
            del proto.attribute[:]
            proto.attribute.extend(node.attributes.values())
            given = proto.SerializeToString()
            try:
                data = found.get_context_dependent_function_with_opset_version(version, given, types)
            except (RuntimeError, ValueError):
                return None
        elif found.has_function:
            known = [each for each in found.function_opset_versions if each <= node.version]
            data = found.get_function_with_opset_version(max(known)) if known else b""
        else:
            return None
        try:
            function = onnx.FunctionProto.FromString(data)
        except DecodeError:
            return None
        return function if function.node else None

    def expanded(self, node: Node, function: onnx.FunctionProto) -> list[SSAValue | None]:
        """The outputs of a function's body for the node's inputs."""
        frame = Frame(self.importer.block, within=node.title)
        frame.opsets = {"" if each.domain in STANDARD else each.domain: each.version for each in function.opset_import}
        for domain, version in self.importer.frame.opsets.items():
            frame.opsets.setdefault(domain, version)
        given: dict[str, onnx.AttributeProto] = {each.name: each for each in function.attribute_proto}
        if (schema := node.schema) is not None:
            for name in (*function.attribute, *schema.attributes):
                if name in schema.attributes and (each := schema.attributes[name].default_value).type:
                    given[name] = each
        frame.attributes = given | node.attributes
        for name, value in zip(function.input, node.values, strict=False):
            if value is not None:
                frame.values[name] = value
        wanted = [name if node.wants(number) else "" for number, name in enumerate(function.output)]
        return self.inside(node, frame, function.node, wanted, missing=function.input[len(node.values) :])

    def subgraph(self, node: Node, graph: onnx.GraphProto, block: Block, given: Sequence[SSAValue]) -> list[SSAValue]:
        """Build a subgraph of a node at the end of a block, with these values as its inputs; returns its outputs."""
        outer = self.importer.frame
        check_texts((each.name for each in (*graph.input, *graph.output, *graph.initializer)), self.model.file)
        frame = Frame(block, outer, attributes=outer.attributes, opsets=outer.opsets, within=node.title)
        frame.tensors = {each.name: each for each in graph.initializer}
        if len(graph.input) != len(given):
            raise node.malformed(f"gives its subgraph {len(given)} inputs, and it takes {len(graph.input)}")
        for proto, value in zip(graph.input, given, strict=True):
            frame.values[proto.name] = value
        found = self.inside(node, frame, graph.node, [each.name for each in graph.output])
        if any(value in self.importer.counted for value in found):
            raise node.unsupported("gives a tensor whose size follows from values")
        return [value for value in found if value is not None]

    def inside(
        self,
        node: Node,
        frame: Frame,
        nodes: Iterable[onnx.NodeProto],
        outputs: Sequence[str],
        missing: Iterable[str] = (),
    ) -> list[SSAValue | None]:
        """Build nodes in the scope `frame`, and return the values of the names `outputs`, None for an empty name.
        `missing`: the names of optional inputs for which the caller passes no value; nodes are built without them."""
        importer, outer, left_out = self.importer, self.importer.frame, {*missing}
        try:
            with self.nested(node, frame.block):
                importer.frame = frame
                for proto in nodes:
                    self.node(_without(proto, left_out), node.index)
                found = [importer.find(name) if name else None for name in outputs]
        finally:
            importer.frame = outer
        for name, value in zip(outputs, found, strict=True):
            if value is None and name:
                raise node.malformed(f"its body does not give {name!r}")
        return found


def _resolved(proto: onnx.NodeProto, around: Mapping[str, onnx.AttributeProto]) -> dict[str, onnx.AttributeProto]:
    """The attributes of a node, with references to attributes of the enclosing function resolved; an attribute is
    absent if the attribute to which it refers is absent."""
    found: dict[str, onnx.AttributeProto] = {}
    for each in proto.attribute:
        if not each.ref_attr_name:
            found[each.name] = each
        elif (given := around.get(each.ref_attr_name)) is not None:
            renamed = onnx.AttributeProto()
            renamed.CopyFrom(given)
            renamed.name = each.name
            found[each.name] = renamed
    return found


def _without(proto: onnx.NodeProto, names: set[str]) -> onnx.NodeProto:
    """The node of a function's body without the inputs that the caller omits."""
    if not names.intersection(proto.input):
        return proto
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    copy.input[:] = ["" if name in names else name for name in proto.input]
    return copy


def _type_proto(value: SSAValue | None) -> onnx.TypeProto:
    """The type of a value as ONNX's TypeProto."""
    if value is None or not is_tensor(value.type):
        return onnx.TypeProto()
    dims = [None if size == DYNAMIC else size for size in value.type.get_shape()]
    return helper.make_tensor_type_proto(number_of_dtype(dtype_of(value.type.element_type)), dims)
