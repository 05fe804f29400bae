"""`from_pytorch`: imports a program of `torch.export`.

The module has one function `@main` with an argument for each input of the user, then one for each buffer that the
program writes, which is a state; its results are the user's outputs, then the new states. Parameters, other buffers and
constants are `relay.constant`s with their names as labels.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any, SupportsIndex, cast

from xdsl.ir import SSAValue

from relay import symbols
from relay.dialects.op import Type
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.frontend.importing.conversion import readable
from relay.frontend.importing.function import completed, finished, output_infos
from relay.frontend.importing.options import (
    Source,
    batch_of,
    custom_functions,
    numerics_of,
    one_of,
    source,
    wanted_names,
)
from relay.frontend.importing.problems import Problems
from relay.frontend.importing.sizes import Sizes, sized, sizes_known, symbols_of
from relay.frontend.torch.archive import Archive, Json, dtype_of_number
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.conversion import Conversion, tensor_names
from relay.frontend.torch.node import Node, packet_of, target_of, writes_in_place
from relay.frontend.torch.table import REFUSED, VIEWS, Convert
from relay.module import IRModule
from relay.signature import TensorInfo

NUMERICS = ("xnnpack", "qdq")


def from_pytorch(
    model: Source | object,
    *,
    batch: SupportsIndex | None = None,
    shapes: Mapping[str, Sequence[SupportsIndex]] | None = None,
    numerics: str = "xnnpack",
    custom_ops: Mapping[str, Convert] | None = None,
    outputs: Sequence[str | SupportsIndex] | None = None,
    shape_dict: Mapping[str, Sequence[SupportsIndex]] | None = None,
) -> IRModule:
    """Import a program of `torch.export`: a `.pt2` archive by path or as bytes, for which PyTorch need not be
    installed, or an `ExportedProgram`. The function `@main` has one argument per input of the program; dtypes are kept.

    Operators may be whole, as `export` leaves them, or decomposed by `run_decompositions`. Unknown sizes are `?` and
    symbols of the function (`relay.symbols`) with their ranges; `shapes` gives sizes by input, and `batch` gives every
    unknown leading one. Buffers that the program writes are states. `numerics` selects the integers of quantized
    programs: "xnnpack" for those of integer kernels, "qdq" for those of the definition in floats. `custom_ops` maps
    operators to functions that take an `Importer` and a `Node`, and return a value per output. `outputs` are the
    tensors to compute instead of the program's outputs. `shape_dict` is TVM's name of `shapes`.

    Raises Malformed (the file), Unsupported (every node that cannot be imported) or InvalidArgument. Source:
    torch/_export/serde/schema.py.
    """
    numerics_of(numerics, NUMERICS, "from_pytorch")
    images = None if batch is None else batch_of(batch, "from_pytorch")
    archive = Archive(*saved(model))
    given = one_of(shapes, shape_dict)
    with readable(archive.file, "graph"):
        return _Program(archive).module(images, given, numerics, custom_ops, outputs)


def saved(model: object) -> tuple[bytes, str]:
    """The bytes of a `.pt2` archive, and its name in errors. An `ExportedProgram` in memory is saved to such bytes by
    `torch.export.save`. Raises Unsupported if that fails, InvalidArgument for a module that was not exported."""
    kind = type(model)
    if kind.__name__ == "ExportedProgram" and kind.__module__.startswith("torch."):
        stream = BytesIO()
        torch: Any = sys.modules["torch"]
        try:
            torch.export.save(model, stream)
        except Exception as error:
            last = str(error).strip().rpartition("\n")[2][:200]  # the last line, after a traceback
            what = f"torch.export.save raises {type(error).__name__}: {last}"
            raise Unsupported("ExportedProgram", what, "export what PyTorch can save") from error
        return stream.getvalue(), "ExportedProgram"
    if any((each.__module__, each.__name__) == ("torch.nn.modules.module", "Module") for each in kind.__mro__):
        what = f"{kind.__name__} is a module, whose call is Python code"
        raise InvalidArgument("from_pytorch", what, "pass torch.export.export(module, args)")
    data, file = source(cast(Source, model), "from_pytorch")
    return bytes(data), file


class _Program:
    """The inputs and outputs of a program, from its signature."""

    def __init__(self, archive: Archive) -> None:
        self.archive, self.file = archive, archive.file
        module = archive.program["graph_module"]
        self.graph: Json = module["graph"]
        self.types: Json = self.graph["tensor_values"]
        self.inputs: list[tuple[str, str]] = []
        """The user's inputs: names in the graph and for the user."""
        self.weights: dict[str, str] = {}
        """The names of weights by their names in the graph."""
        self.buffers: dict[str, str] = {}
        """The names of buffers in the graph, by buffer."""
        self.numbers: dict[str, int | float | bool | None] = {}
        """The values of the graph's constant scalar inputs, by name; None for values that are no numbers."""
        self.outputs: list[str] = []
        self.writes: dict[str, str] = {}
        """The name of the new value of each buffer that is written."""
        for each in module["signature"]["input_specs"]:
            self.read_input(each)
        for each in module["signature"]["output_specs"]:
            self.read_output(each)

    def read_input(self, spec: Json) -> None:
        ((kind, row),) = spec.items()
        match kind:
            case "user_input":
                self.inputs += [(name, name) for name in self.tensor(row, f"input {len(self.inputs)}")]
            case "parameter" | "buffer" | "tensor_constant":
                name = str(row["arg"]["name"])
                self.weights[name] = str(row[f"{kind}_name"])
                if kind == "buffer":
                    self.buffers[self.weights[name]] = name
            case "constant_input":
                ((tag, value),) = row["value"].items()
                self.numbers[str(row["name"])] = value if tag in ("as_int", "as_float", "as_bool") else None
            case _:
                raise Unsupported(self.file, f"has an input of the kind {kind[:40]}", "export it with tensors only")

    def read_output(self, spec: Json) -> None:
        ((kind, row),) = spec.items()
        match kind:
            case "user_output":
                self.outputs += self.tensor(row, f"output {len(self.outputs)}")
            case "buffer_mutation":
                self.writes[str(row["buffer_name"])] = str(row["arg"]["name"])
            case "user_input_mutation":
                what = f"writes to its input {str(row['user_input_name'])[:120]!r}"
                raise Unsupported(self.file, what, "write to x.clone(), or make it a buffer, which becomes a state")
            case _:
                raise Unsupported(self.file, f"has an output of the kind {kind[:40]}", "export it for inference")

    def tensor(self, row: Json, what: str) -> list[str]:
        """A list with the name of the tensor to which `row`, an input or output of the signature, refers; an empty list
        if the input or output is None. Raises Unsupported for any other kind; `what` names the input or output in the
        error."""
        ((tag, arg),) = row["arg"].items()
        if tag not in ("as_none", "as_tensor"):
            raise Unsupported(self.file, f"{what} is {tag[3:][:40]}, no tensor", "export it with tensors only")
        return [str(arg["name"])] if tag == "as_tensor" else []

    def sizes(self, problems: Problems) -> tuple[list[TensorInfo], list[Sizes]]:
        """The inputs: their types, and their sizes as far as they are known."""
        infos, found = list[TensorInfo](), list[Sizes]()
        for name, label in self.inputs:
            where, meta = f"input {label!r}", self.types[name]
            try:
                dtype = dtype_of_number(meta["dtype"], where)
            except Unsupported as error:
                problems.add(where, error.what)
                continue
            dims = tuple(int(each["as_int"]) if "as_int" in each else -1 for each in meta["sizes"])
            names = tuple(_symbol(each) for each in meta["sizes"])
            found.append(Sizes(label, dims, names))
            infos.append(TensorInfo(label, dims, dtype))
        return infos, found

    def module(
        self, images: int | None, shapes: object, numerics: str, custom_ops: object, outputs: object
    ) -> IRModule:
        problems = Problems(self.file)
        infos, inputs = self.sizes(problems)
        problems.raise_all()
        inputs = sized(inputs, shapes, images, "from_pytorch", self.file)
        infos = [replace(info, shape=each.dims) for info, each in zip(infos, inputs, strict=True)]
        importer = Importer(self.types)
        custom: Mapping[str, Convert] = {}
        if custom_ops is not None:
            custom = cast("Mapping[str, Convert]", custom_functions(custom_ops, _results))
        conversion = Conversion(file=self.file, importer=importer, problems=problems, custom=custom)
        importer.subgraph = conversion.subgraph
        conversion.resized = images is not None or bool(shapes)
        nodes: list[Json] = self.graph["nodes"]
        names = [name for node in nodes for name in tensor_names(node["outputs"])] + [name for name, _ in self.inputs]
        wanted = wanted_names(outputs, names, self.outputs, "from_pytorch", self.file)
        states = self.states(nodes)
        for (name, _), info in zip(self.inputs, infos, strict=True):
            conversion.define(name, importer.entry_argument(info))
        state_infos = [self.state(buffer) for buffer in states]
        for buffer, info in zip(states, state_infos, strict=True):
            conversion.define(self.buffers[buffer], importer.entry_argument(info))
        conversion.values.update(self.numbers)
        conversion.states.update(self.buffers[buffer] for buffer in states)
        live = _needed(nodes, [*wanted, *states.values()])
        for name, weight in self.weights.items():
            if name in live and name not in conversion.values:
                conversion.define(name, importer.constant(self.archive.array(weight), weight))
        given: Json = {**self.graph, "nodes": [each for number, each in enumerate(nodes) if number in live]}
        refused = ["the operator is not supported", *REFUSED.values()]
        with sizes_known(inputs, self.file, conversion.values.values, refused):
            conversion.graph(given)
            problems.raise_all()
        importer.leave()
        results = [self.result(conversion, name) for name in wanted]
        new = [self.result(conversion, name) for name in states.values()]
        given_out = output_infos(wanted, results)
        module = finished(importer.block, [*results, *new], infos, state_infos, given_out)
        ranges: Json = self.archive.program.get("range_constraints") or {}
        named = [_ranged(each, ranges.get(each.name)) for each in symbols_of(inputs)]
        return completed(module, named, images, self.file, numerics == "xnnpack")

    def states(self, nodes: Sequence[Json]) -> dict[str, str]:
        """The buffers that the program writes, by its signature or in place, and the names of their new values."""
        found = dict(self.writes)
        by_name = {name: buffer for buffer, name in self.buffers.items()}
        shared = {name: name for name in by_name}
        """For a tensor, the buffer (by its name in the graph) whose memory it shares."""
        for node in nodes:
            packet, inputs = packet_of(target_of(node)), tensor_names(node["inputs"][:1])
            first = shared.get(inputs[0]) if inputs else None
            in_place = writes_in_place(packet)
            if first is not None and (in_place or packet in VIEWS):
                shared.update(dict.fromkeys(tensor_names(node["outputs"]), first))
                if in_place:
                    found.setdefault(by_name[first], first)
        return found

    def state(self, buffer: str) -> TensorInfo:
        first = self.archive.array(buffer)
        return TensorInfo(buffer, first.shape, first.dtype, "state", initial=first)

    def result(self, conversion: Conversion, name: str) -> SSAValue:
        value = conversion.values.get(name)
        if value is None and name in conversion.values:
            of = next((target_of(e) for e in self.graph["nodes"] if name in tensor_names(e["outputs"])), "an input")
            what = f"its output {name[:120]!r}, of {of[:120]}, is not computed"
            raise Unsupported(self.file, what, "export the program without it")
        if not isinstance(value, SSAValue):
            raise Malformed(self.file, f"its output {name[:120]!r} is given by no node")
        return value


def _results(node: Node) -> list[tuple[str, Type | None]]:
    """The names of a node's outputs, and their types as the file states them."""
    return list(zip(map(repr, node.outputs), node.types, strict=True))


def _symbol(size: Json) -> str:
    """The symbol of an unknown size; empty for any other expression."""
    text = str(size["as_expr"]["expr_str"]) if "as_expr" in size else ""
    match = re.fullmatch(r"(?:Symbol\('(\w+)'.*\)|(\w+))", text)
    return (match[1] or match[2]) if match and text.count("Symbol(") <= 1 else ""


def _ranged(symbol: symbols.Symbol, row: Json | None) -> symbols.Symbol:
    """The symbol with the range that the program gives it."""
    if row is None:
        return symbol
    low, high = row.get("min_val"), row.get("max_val")
    maximum = high if isinstance(high, int) and 0 < high < 1 << 40 else None
    return replace(symbol, minimum=max(low, 1) if isinstance(low, int) else 1, maximum=maximum)


def _needed(nodes: Sequence[Json], wanted: Sequence[str]) -> set[object]:
    """The indices of the nodes on which these names depend, and the names that these nodes read."""
    live: set[object] = set(wanted)
    for number, node in reversed([*enumerate(nodes)]):
        if writes_in_place(packet_of(target_of(node))) or not live.isdisjoint(tensor_names(node["outputs"])):
            live.update(tensor_names(node["inputs"]))
            live.add(number)
    return live
