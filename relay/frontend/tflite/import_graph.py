"""`from_tflite`: imports a `.tflite` file in three stages.

1. Read (`model.py`): bytes to dataclasses, with all checks that hold for any operator. 2. Survey: every operator that
the outputs need is checked against the table (`table.py`) and the tensors' types. 3. Convert: the table's functions
build the ops, and refuse options for which they have no formula.

Refusals of 2 and 3 are collected: one Unsupported names every operator that cannot be imported.

The module has one function `@main` with an argument for each input of the graph, in the file's order and with the
file's types, then one for each state (a variable tensor of the file); its results are the outputs, then the new states.
Their names and quantization are stored on the function (`relay.signature`). Constants are `relay.constant`s that share
the file's bytes and have the file's tensor names as labels, made unique. The location of every op reads `"operator 17
CONV_2D 'name of its output'"("file.tflite":17:0)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import SupportsIndex

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, SSAValue

from relay.arguments import mapping, shown
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC, Type
from relay.dialects.plug_in import importers
from relay.errors import InvalidArgument, RelayError, Unsupported
from relay.frontend.importing.builder import free_name
from relay.frontend.importing.function import finished
from relay.frontend.importing.options import (
    MAX_ELEMENTS,
    Source,
    batch_of,
    by_name,
    chosen,
    custom_functions,
    numerics_of,
    one_of,
    source,
)
from relay.frontend.importing.problems import Problems
from relay.frontend.importing.sizes import Sizes, given_sizes, unknown_sizes
from relay.frontend.tflite.builder import Importer, numpy_type, tensor_type
from relay.frontend.tflite.model import MAX_RANK, Operator, Subgraph, Tensor, read_model
from relay.frontend.tflite.narrow import widened
from relay.frontend.tflite.node import INDICES, Node
from relay.frontend.tflite.operators import TABLE
from relay.frontend.tflite.operators.spectral import real_parts
from relay.frontend.tflite.profiles import PROFILES, Numerics
from relay.frontend.tflite.schema import BUILTIN_OPERATORS
from relay.frontend.tflite.subgraphs import CALLS, called, check_calls, needed
from relay.frontend.tflite.table import ANY, Convert, Row
from relay.frontend.tflite.variables import DECLARED, with_variables
from relay.interpreters import run
from relay.module import IRModule
from relay.signature import TensorInfo
from relay.transforms.batch import rebatch
from relay.transforms.dead_ops import erase_dead

MOST = 1024
"""The maximum number of elements of a tensor that the importer evaluates because it follows from shapes. Such tensors,
vectors of sizes, are short."""


def supported_operators() -> dict[str, tuple[int, int]]:
    """The kinds of operators that `from_tflite` imports, with the first and last version of each."""
    return dict(sorted([*((kind, row.versions) for kind, row in TABLE.items()), *DECLARED.items()]))


@by_name
def from_tflite(
    model: Source,
    *,
    batch: SupportsIndex | None = None,
    shapes: Mapping[str, Sequence[SupportsIndex]] | None = None,
    numerics: str = "litert",
    custom_ops: Mapping[str, Convert] | None = None,
    outputs: Sequence[str | SupportsIndex] | None = None,
    shape_dict: Mapping[str, Sequence[SupportsIndex]] | None = None,
) -> IRModule:
    """Import a .tflite file, given as bytes or by path. The function `@main` has one argument per graph input, with
    layout NHWC and dtypes as stored.

    `batch` replaces the leading axis of every input and of dependent values; every row of a result equals that of a
    batch of 1. `shapes` (TVM's name: `shape_dict`) gives other shapes of inputs by name, as LiteRT's
    `resize_tensor_input` does. `numerics` selects the runtime whose integers are reproduced: "litert" for LiteRT's
    reference kernels (2.3), or "litert-1.2", "tflm", "xnnpack", "ort", "tvm" (docs/numerics.md). `custom_ops` maps
    names of custom operators to functions that import them: they take an `Importer` and a `Node`, and return a value
    per output. `outputs` are the tensors to compute instead of the graph's outputs, by name or index; operators
    that they do not need are dropped. Shapes of results are inferred from the inputs, whatever the file states.

    Raises Malformed (the bytes), Unsupported (every operator that cannot be imported) or InvalidArgument. Source:
    TFLite schema.fbs, version 3.
    """
    profile = PROFILES[numerics_of(numerics, PROFILES, "from_tflite")]
    images = None if batch is None else batch_of(batch, "from_tflite")
    data, name = source(model, "from_tflite")
    graphs = [real_parts(widened(each, name)) for each in called(read_model(data, name), name)]
    graphs[0] = with_variables(graphs, name)
    graph = graphs[0] = _with_shapes(graphs[0], one_of(shapes, shape_dict), batch, name)
    if images is not None and any(operator.kind in CALLS for operator in graph.operators):
        raise Unsupported(name, "has control flow, whose subgraphs keep their batch", "leave batch out")
    table = TABLE if custom_ops is None else TABLE | _custom_rows(custom_ops)
    kinds = {operator.kind for each in graphs for operator in each.operators}
    if any(kind.startswith("CUSTOM:") and kind not in table for kind in kinds):
        table = _custom_rows(importers("tflite"), "plug-ins' tflite") | table
    wanted = _wanted(graph, outputs, name)
    nodes = needed(graph, wanted, name, keep_states=outputs is None)
    check_calls(graphs, nodes, name)
    conversion = _Conversion(graph, name, table, profile, graphs)
    module = conversion.run(nodes, wanted)
    if images is not None:
        for tensor in wanted:
            if conversion.tensors[tensor.index].data is not None and tensor.data is None:
                what = "is computed from the stored shapes, of another batch"
                raise Unsupported(f"{name}: {tensor}", what, "leave batch or this output out")
        rebatch(module, images, name)
    return module


def _custom_rows(custom_ops: object, what: str = "custom_ops") -> dict[str, Row]:
    """The rows for the caller's custom operators, to add to the table of operators that can be imported, by kind:
    `CUSTOM:` and the operator's code. Raises InvalidArgument for a name that is no code of a custom operator."""
    for code in mapping(custom_ops, what, "{'Code': function}"):
        if code in BUILTIN_OPERATORS or code.startswith("CUSTOM:"):
            hint = "operators of TFLite's own stay as they are; 'X' is that of CUSTOM:X"
            raise InvalidArgument(f"{what}[{shown(code)}]", "is no code of a custom operator", hint)
    functions: Mapping[str, Convert] = custom_functions(custom_ops, _results, what)
    return {f"CUSTOM:{code}": Row((1, ANY), (0, ANY), (0, ANY), each) for code, each in functions.items()}


def _results(node: Node) -> list[tuple[str, Type | None]]:
    """The names of a node's outputs and their types; sizes that the file leaves unknown are `?`."""
    found: list[tuple[str, Type | None]] = []
    for number in range(len(node.operator.outputs)):
        tensor = node.output(number)
        type, free = tensor_type(tensor), [DYNAMIC if size < 0 else size for size in tensor.shape_signature]
        found.append((str(tensor), None if type is None else TensorType(type.element_type, free)))
    return found


def _with_shape(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor with that shape; the tensor itself if it has it."""
    dims = tuple(shape)
    return tensor if tensor.shape == dims else replace(tensor, shape=dims, shape_signature=dims)


def _with_shapes(graph: Subgraph, shapes: object, batch: object, name: str) -> Subgraph:
    """The graph with inputs of these shapes, by name, instead of those in the file; where the file leaves a size
    unknown, the caller must give one.

    Raises InvalidArgument for shapes that inputs cannot have, and for an input of unknown size without a given shape.
    """
    tensors = list(graph.tensors)
    sizes = [Sizes(tensors[index].name, tensors[index].shape_signature) for index in graph.inputs]
    given = given_sizes(sizes, shapes, batch, "from_tflite", name)
    for index, each in zip(graph.inputs, sizes, strict=True):
        pairs = zip(tensors[index].shape[1:], each.dims[1:], strict=True)
        if each.input in given:
            tensors[index] = _with_shape(tensors[index], given[each.input])
        elif any(stored <= 1 and free < 0 for stored, free in pairs):
            raise unknown_sizes(each, sizes, name)
    return replace(graph, tensors=tuple(tensors))


def _wanted(graph: Subgraph, outputs: object, name: str) -> list[Tensor]:
    """The tensors to compute: the graph's outputs, or those with these names or indices."""
    if outputs is None:
        return [graph.tensors[index] for index in graph.outputs]
    indices = sorted({index for operator in graph.operators for index in operator.outputs} | {*graph.inputs})
    computed = [(graph.tensors[index].name, index) for index in indices]
    own = [graph.tensors[index].name for index in graph.outputs]
    return [graph.tensors[index] for index in chosen(outputs, computed, own, "from_tflite", name)]


def _evaluated(name: str, graph: Subgraph, operator: Operator) -> list[Array]:
    """Compute the results of an operator whose inputs are constants, or whose results depend on the inputs' shapes
    only. Raises RelayError."""
    wanted = [graph.tensors[index] for index in operator.outputs]
    free = [index for index in operator.inputs if index >= 0 and graph.tensors[index].data is None]
    alone = replace(graph, inputs=tuple(free), outputs=operator.outputs, operators=(operator,))
    conversion = _Conversion(alone, name, TABLE, PROFILES["litert"])
    module = conversion.run([Node(name, alone, operator)], wanted, evaluate=False)
    if any(math.prod(conversion.tensors[index].shape) > MOST for index in operator.outputs):
        raise Unsupported(name, f"more than {MOST} numbers")
    unread = [np.broadcast_to(numpy_type(tensor).type(), tensor.shape) for tensor in (graph.tensors[i] for i in free)]
    return [*run(module, unread)]


class _Conversion:
    """Imports the operators in order, and collects the reasons why some cannot be imported."""

    def __init__(
        self,
        graph: Subgraph,
        file: str,
        table: Mapping[str, Row],
        numerics: Numerics,
        graphs: Sequence[Subgraph] = (),
    ) -> None:
        """`graphs` are all subgraphs of the file, by index; their calls must have been checked."""
        self.tensors = list(graph.tensors)
        """The tensors with inferred shapes: later operators see the shapes that earlier ones give."""
        self.graph = replace(graph, tensors=self.tensors)
        self.known: set[int] = set()
        """The indices of the tensors whose elements follow from shapes."""
        self.graphs = graphs
        self.file = file
        self.table = table
        self.numerics = numerics
        self.names = _unique_names(graph)
        self.importer = Importer(self.names, numerics.profile)
        self.importer.inline = self.inline
        self.problems = Problems(file)

    def run(self, nodes: Sequence[Node], wanted: Sequence[Tensor], evaluate: bool = True) -> IRModule:
        used = {index for node in nodes for index in node.operator.inputs} | {tensor.index for tensor in wanted}
        inputs = [self.graph.tensors[index] for index in self.graph.inputs]
        states = [
            tensor
            for tensor in self.graph.tensors
            if tensor.is_variable and tensor.index in used and tensor not in inputs
        ]
        for tensor in (*inputs, *states, *wanted):
            if tensor_type(tensor) is None:
                self.problems.add(str(tensor), _type_problem(tensor))
        for tensor in (*inputs, *states):
            self.importer.argument(tensor)
        for node in nodes:
            self.convert(replace(node, graph=self.graph), evaluate)
        self.problems.raise_all()
        return self.module(inputs, states, [self.tensors[tensor.index] for tensor in wanted])

    def convert(self, node: Node, evaluate: bool = True) -> None:
        """Build an operator; if that fails, record why and continue with placeholders."""
        if evaluate and self.evaluated(node.operator):
            return
        self.importer.enter(node)
        outputs = [self.graph.tensors[index] for index in node.operator.outputs]
        custom = self.table.get(node.operator.kind) is not TABLE.get(node.operator.kind)
        values = self.problems.tried(node, lambda: self.values(node, outputs), by_caller=custom)
        if values is None:
            for tensor in outputs:
                self.importer.placeholder(tensor)
            return
        for tensor, value in zip(outputs, values, strict=True):
            self.tensors[tensor.index] = _with_shape(tensor, self.importer.shape(value))
            self.importer.define(tensor, value)

    def evaluated(self, operator: Operator) -> bool:
        """Replace the operator's results by constants if they are integers that follow from shapes, and return True;
        else return False. They follow from shapes if the operator is SHAPE, or if all its inputs are constants and at
        least one of these was computed from a shape.

        Keras writes such chains for a reshape whose batch size is unknown (SHAPE, STRIDED_SLICE, PACK, RESHAPE), whose
        last operator can then read the result.
        """
        outputs = [self.tensors[index] for index in operator.outputs]
        if not outputs or any(tensor.type not in INDICES for tensor in outputs):
            return False
        if operator.kind != "SHAPE":
            inputs = [self.tensors[index] for index in operator.inputs if index >= 0]
            constant = all((t.data is not None or 0 in t.shape) and not t.is_variable for t in inputs)
            if not constant or self.known.isdisjoint(operator.inputs):
                return False
        try:
            found = _evaluated(self.file, self.graph, operator)
        except RelayError:
            return False  # the error is reported when the operator is imported
        for array, tensor in zip(found, outputs, strict=True):
            data = memoryview(np.ascontiguousarray(array).tobytes())
            self.tensors[tensor.index] = replace(tensor, shape=array.shape, shape_signature=array.shape, data=data)
        self.known.update(operator.outputs)
        return True

    def values(self, node: Node, outputs: Sequence[Tensor]) -> Sequence[SSAValue]:
        """Import an operator by the function that the table of operators has for it, and return the results, which are
        checked against the file's output tensors."""
        row = self.survey(node)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            values = row.convert(self.importer, node)
        self.check(node, outputs, values)
        return values

    def inline(self, node: Node, number: int, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Build a subgraph with these inputs at the end of a block, and return its outputs."""
        if not 0 <= number < len(self.graphs):
            raise node.malformed(f"calls subgraph {number} of {len(self.graphs)}")
        graph = self.graphs[number]
        inner = _Conversion(graph, self.file, self.table, self.numerics, self.graphs)
        inner.importer.begin(block, self.importer)
        outputs = [graph.tensors[index] for index in graph.outputs]
        if len(arguments) != len(graph.inputs):
            raise node.malformed(f"gives subgraph {number} {len(arguments)} inputs, and it takes {len(graph.inputs)}")
        inputs = [
            _with_shape(graph.tensors[index], self.importer.shape(value))
            for index, value in zip(graph.inputs, arguments, strict=True)
        ]
        if [tensor_type(tensor) for tensor in inputs] != [value.type for value in arguments]:
            raise node.malformed(f"gives subgraph {number} inputs that are not of its types")
        if any(tensor.is_variable or tensor.type == "RESOURCE" for tensor in graph.tensors):
            raise node.unsupported(f"subgraph {number} has states")
        for tensor, value in zip(inputs, arguments, strict=True):
            inner.tensors[tensor.index] = tensor
            inner.importer.define(tensor, value)
        for step in needed(graph, outputs, self.file):
            inner.convert(replace(step, graph=inner.graph))
        self.problems.found += inner.problems.found
        inner.importer.enter(node)
        return [inner.importer.value(inner.tensors[index]) for index in graph.outputs]

    def survey(self, node: Node) -> Row:
        """The table row that says how to import the operator. Raises Unsupported unless its kind, version and the types
        of its tensors are supported, and Malformed if the number of its inputs or outputs is wrong."""
        operator = node.operator
        row = self.table.get(operator.kind)
        if row is None:
            hint = "pass it in custom_ops, or cut it off with outputs" if operator.kind.startswith("CUSTOM:") else ""
            raise node.unsupported("the operator is not supported", hint)
        first, last = row.versions
        if not first <= operator.version <= last:
            raise node.unsupported(f"version {operator.version} is not supported", f"versions {first} to {last} are")
        for what, count, (least, most) in (
            ("inputs", len(operator.inputs), row.inputs),
            ("outputs", len(operator.outputs), row.outputs),
        ):
            if not least <= count <= most:
                raise node.malformed(f"has {count} {what}", f"it takes {least} to {most}")
        for index in (*operator.inputs, *operator.outputs):
            if index >= 0 and tensor_type(self.graph.tensors[index]) is None:
                raise node.unsupported(f"{self.graph.tensors[index]}: {_type_problem(self.graph.tensors[index])}")
        if (type := node.code_type()) and not self.numerics.covers(operator.kind, type):
            hint = f"they are known for {', '.join(self.numerics.kinds or ())}"
            raise node.unsupported(f"numerics {self.numerics.profile.name!r} has no integers for it on {type}", hint)
        return row._replace(convert=self.numerics.rows.get(operator.kind, row.convert))

    def check(self, node: Node, outputs: Sequence[Tensor], values: Sequence[SSAValue]) -> None:
        """Check that the inferred element types are those in the file; shapes may differ."""
        if len(outputs) != len(values):
            raise node.malformed(f"has {len(outputs)} outputs, but its kind has {len(values)}")
        for tensor, value in zip(outputs, values, strict=True):
            dims = self.importer.shape(value)
            if len(dims) > MAX_RANK or math.prod(dims) > MAX_ELEMENTS:
                raise node.malformed(f"{tensor} would be {value.type}")
            if value.type != tensor_type(_with_shape(tensor, dims)):
                raise node.malformed(f"{tensor} is {tensor_type(tensor)}, but {value.type} follows from the inputs")

    def module(self, inputs: Sequence[Tensor], states: Sequence[Tensor], wanted: Sequence[Tensor]) -> IRModule:
        importer = self.importer
        importer.leave()
        results = [importer.value(tensor) for tensor in (*wanted, *states)]
        infos = (
            [self.info(tensor, kind) for tensor in tensors]
            for tensors, kind in ((inputs, "input"), (states, "state"), (wanted, "output"))
        )
        found = finished(importer.block, results, *infos)
        if self.known:  # shape computations left values that nothing else uses
            erase_dead(importer.block.ops)
        return found

    def info(self, tensor: Tensor, kind: str) -> TensorInfo:
        dtype = numpy_type(tensor)
        found = tensor.quantization
        scale, zero_point = None, 0
        if found is not None and len(found.scale) == 1 and found.scale[0] and found.details == "NONE":
            scale, zero_point = float(found.scale[0]), int(found.zero_point[0])
        initial = None
        if kind == "state":
            start = zero_point if tensor.type == "INT8" else 0
            initial = tensor.to_numpy() if tensor.data is not None else np.full(tensor.shape, start, dtype)
        return TensorInfo(self.names[tensor.index], tensor.shape, dtype, kind, scale, zero_point, initial)


def _unique_names(graph: Subgraph) -> dict[int, str]:
    """A unique name for each tensor; an index is appended to names that are empty or taken."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for tensor in graph.tensors:
        names[tensor.index] = free_name(tensor.name or f"tensor{tensor.index}", taken)
        taken.add(names[tensor.index])
    return names


def _type_problem(tensor: Tensor) -> str:
    return "the data is sparse; store the tensor dense" if tensor.is_sparse else f"the type is {tensor.type}"
