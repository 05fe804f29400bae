"""Imports the main graph of a model: its inputs as arguments, and the nodes that its outputs need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod

import numpy as np
import onnx
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from relay.arguments import mapping
from relay.dialects.attributes import Array, dtype_of, element_type
from relay.dialects.op import DYNAMIC, Type
from relay.dialects.op import tensor as type_of
from relay.dialects.plug_in import importers
from relay.errors import InvalidArgument, Malformed
from relay.frontend.importing.function import completed, finished
from relay.frontend.importing.options import Source, batch_of, custom_functions, wanted_names
from relay.frontend.importing.problems import Problems
from relay.frontend.importing.sizes import Sizes, sized, sizes_known, symbols_of
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.conversion import Conversion
from relay.frontend.onnx.counted import finished_infos
from relay.frontend.onnx.model import Model, dtype_of_number, read_model, type_names
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import REFUSED, TABLE, Convert
from relay.module import IRModule
from relay.signature import TensorInfo

MOST_DECIDING = 8
"""The maximum number of elements of an integer input whose values may determine which nodes are needed."""


def imported(
    given: Source | onnx.ModelProto,
    batch: object,
    shapes: object,
    numerics: str,
    custom_ops: object,
    outputs: object,
    constants: object,
) -> IRModule:
    """The implementation of `from_onnx`, which checks its options."""
    images = None if batch is None else batch_of(batch, "from_onnx")
    model = read_model(given)
    graph, file = model.proto.graph, model.file
    problems = Problems(file)
    fixed = _arrays(constants, graph, file)
    dtypes, inputs = _inputs(model, {*fixed}, problems)
    problems.raise_all()
    inputs = sized(inputs, shapes, images, "from_onnx", file)
    infos = [TensorInfo(each.input, each.dims, dtype) for each, dtype in zip(inputs, dtypes, strict=True)]
    importer = Importer(model, _names(graph), numerics)
    results_of = _results(model)
    custom: Mapping[str, Convert] = {} if custom_ops is None else custom_functions(custom_ops, results_of)
    if not {domain for domain, _ in TABLE}.issuperset(model.opsets):
        custom = {**custom_functions(importers("onnx"), results_of, "plug-ins' onnx"), **custom}
    conversion = Conversion(model=model, importer=importer, problems=problems, custom=custom)
    importer.subgraph = conversion.subgraph
    importer.frame.tensors = {each.name: each for each in graph.initializer}
    for each in infos:
        importer.define(each.name, importer.entry_argument(each))
    names = [*(name for node in graph.node for name in node.output if name), *(each.name for each in graph.input)]
    wanted = wanted_names(outputs, names, [each.name for each in graph.output], "from_onnx", file)
    for name, array in fixed.items():
        importer.frame.values[name] = importer.constant(array, name)
    refused = ("the operator is not supported", *(why for why, _ in REFUSED.values()))
    with sizes_known(inputs, file, importer.frame.values.values, refused, _deciding(infos)):
        conversion.nodes(needed(graph.node, wanted))
        problems.raise_all()
    importer.leave()
    results = [_output(importer, name, file) for name in wanted]
    results, given_infos = finished_infos(importer, wanted, results)
    module = finished(importer.block, results, infos, [], given_infos)
    return completed(module, symbols_of(inputs), images, file, numerics == "ort")


def _deciding(infos: Sequence[TensorInfo]) -> dict[int, TensorInfo]:
    """The inputs whose values may determine which nodes are needed, by position."""
    return {
        number: info
        for number, info in enumerate(infos)
        if info.dtype.kind in "iub" and -1 not in info.shape and prod(info.shape) <= MOST_DECIDING
    }


def _arrays(constants: object, graph: onnx.GraphProto, file: str) -> dict[str, Array]:
    names = {each.name for each in graph.input}
    found: dict[str, Array] = {}
    for name, value in (mapping(constants, "constants", "{'input': array}") if constants is not None else {}).items():
        if name not in names:
            raise InvalidArgument(f"constants[{name!r}]", f"names no input of {file}", f"it has {', '.join(names)}")
        found[name] = np.asarray(value)
    return found


def _inputs(model: Model, fixed: set[str], problems: Problems) -> tuple[list[np.dtype[np.generic]], list[Sizes]]:
    """The types and sizes of the graph inputs that are no initializers."""
    dtypes, sizes = list[np.dtype[np.generic]](), list[Sizes]()
    known = {each.name for each in model.proto.graph.initializer} | fixed
    for proto in model.proto.graph.input:
        if proto.name in known:
            continue
        known.add(proto.name)
        where, type = f"{model.file}: input {proto.name!r}", proto.type.tensor_type
        kind = proto.type.WhichOneof("value")
        dtype = dtype_of_number(type.elem_type) if kind == "tensor_type" else None
        if dtype is None:
            what = type_names().get(type.elem_type, "no type") if kind == "tensor_type" else kind or "no type"
            problems.add(where, f"the type is {what}")
            continue
        if not type.HasField("shape"):
            problems.add(where, "has no shape, not even a rank")
            continue
        dims = tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else -1 for d in type.shape.dim)
        names = tuple(d.dim_param.strip("?") for d in type.shape.dim)  # Paddle names all unknown sizes "?"
        dtypes.append(dtype)
        sizes.append(Sizes(proto.name, dims, names))
    return dtypes, sizes


def _names(graph: onnx.GraphProto) -> set[str]:
    """The names of the graph's values, which labels of generated constants must not use."""
    names = {each.name for each in (*graph.input, *graph.initializer)}
    return names.union(*(node.output for node in graph.node))


def needed(nodes: Iterable[onnx.NodeProto], wanted: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes on which these names depend, in order."""
    live = {*wanted}
    found: list[onnx.NodeProto] = []
    for node in reversed([*nodes]):
        if not live.isdisjoint(node.output):
            live.update(_read(node))
            found.append(node)
    return found[::-1]


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node and its subgraphs read."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
            yield from (each.name for each in graph.output)
            for inner in graph.node:
                yield from _read(inner)


def _results(model: Model) -> Callable[[Node], list[tuple[str, Type | None]]]:
    """A function that returns the names of a node's outputs, and their types as far as the file states them."""
    graph = model.proto.graph
    types = {each.name: each.type.tensor_type for each in (*graph.value_info, *graph.output)}

    def results(node: Node) -> list[tuple[str, Type | None]]:
        return [(repr(name), _declared(types.get(name))) for name in node.outputs]

    return results


def _declared(type: onnx.TypeProto.Tensor | None) -> Type | None:
    dtype = None if type is None else dtype_of_number(type.elem_type)
    if type is None or dtype is None or not type.HasField("shape"):
        return None
    dims = [d.dim_value if d.HasField("dim_value") else DYNAMIC for d in type.shape.dim]
    return TensorType(element_type(dtype), dims)


def _output(importer: Importer, name: str, file: str) -> SSAValue:
    value = importer.find(name)
    if value is None:
        raise Malformed(file, f"its output {name!r} is given by no node")
    dtype_of(type_of(value).element_type)
    return value
