"""A model's graph to ops: calls by the rows of the table, models in models in their places, problems collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.ir import SSAValue

from relay.dialects.attributes import dtype_of
from relay.dialects.op import DYNAMIC, is_tensor
from relay.errors import Malformed, Unsupported
from relay.frontend.importing.archives import Json
from relay.frontend.importing.builder import value_name
from relay.frontend.importing.conversion import DEEPEST, NodeConversion
from relay.frontend.keras.archive import CONTAINERS, Archive, is_operation, with_paths
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Argument, Layer, array_of, is_list, is_row, values_in
from relay.frontend.keras.operators import REFUSED, TABLE

MOST_RESULTS = 8
"""Of a layer that cannot be imported, whose number of outputs is not known."""
Key = tuple[str, int]
"""A call: the layer's name, and which of its calls."""
MASKED = frozenset(
    "LSTM GRU SimpleRNN Bidirectional TimeDistributed MultiHeadAttention GroupQueryAttention Attention "
    "AdditiveAttention GlobalAveragePooling1D Softmax".split()
)
"""Layers that leave masked steps out."""
UNMASKED = frozenset({"Flatten", "Lambda"})
"""Layers whose result has no mask."""


@dataclass(slots=True)
class Calls:
    """The calls of one model: the layer of each, its path and arguments."""

    rows: dict[str, tuple[int, Json, str]]
    """Number, description and path of each layer by its name."""
    given: dict[Key, list[SSAValue]]
    """The results of the calls so far."""

    def nodes(self, name: str) -> list[Json]:
        return cast("list[Json]", self.rows[name][1]["inbound_nodes"])

    def output(self, given: tuple[str, int, int]) -> tuple[Key, int]:
        """The call and the place of an output: there, calls of Functional models count from 1."""
        name, number, place = given
        return (name, number - (self.rows[name][1]["class_name"] == "Functional")), place


@dataclass(slots=True)
class Conversion(NodeConversion[Importer]):
    """The calls that have been looked at, and what stands in their way."""

    archive: Archive
    resized: bool = False
    """Whether inputs have other sizes than the file says."""
    masked: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that carry a mask of steps."""
    built: list[SSAValue] = field(default_factory=list[SSAValue])
    """The results of all calls."""

    def model(self, row: Json, path: str, inputs: Sequence[SSAValue], where: str) -> list[SSAValue]:
        """Build a model for these values of its inputs; its outputs."""
        if self.depth >= DEEPEST:
            raise Unsupported(where, f"models are more than {DEEPEST} deep in each other")
        self.depth += 1
        build = self.sequential if row["class_name"] == "Sequential" else self.functional
        found = build(row, path, inputs)
        self.depth -= 1
        return found

    def sequential(self, row: Json, path: str, inputs: Sequence[SSAValue]) -> list[SSAValue]:
        values = list(inputs)
        for number, (each, own) in enumerate(with_paths(row, path)):
            if each["class_name"] != "InputLayer":
                values = self.call(each, number, own, values, {})
        return values

    def functional(self, row: Json, path: str, inputs: Sequence[SSAValue]) -> list[SSAValue]:
        config: Json = row["config"]
        rows = {str(each["config"]["name"]): (i, each, own) for i, (each, own) in enumerate(with_paths(row, path))}
        calls = Calls(rows, {})
        names = histories(config["input_layers"])
        if len(names) != len(inputs):
            raise self.importer.at.malformed(f"calls a model of {len(names)} inputs with {len(inputs)}")
        for (name, number, _), value in zip(names, inputs, strict=True):
            calls.given[name, number] = [value]
        wanted = [calls.output(each) for each in histories(config["output_layers"])]
        for key, _ in wanted:
            self.resolve(calls, key)
        return [calls.given[key][place] for key, place in wanted]

    def resolve(self, calls: Calls, wanted: Key) -> None:
        """Build a call, and before it those that it depends on."""
        pending: list[Key] = [wanted]
        waiting: set[Key] = set()
        while pending:
            key = name, number = pending[-1]
            if key in calls.given:
                pending.pop()
                continue
            index, row, path = calls.rows[name]
            if number < 0:
                raise IndexError(f"call {number} of {name!r}")
            node = calls.nodes(name)[number]
            needs = [need for need in _keys([node["args"], node["kwargs"]]) if need not in calls.given]
            if not needs:
                arguments = [self.argument(calls, each) for each in node["args"]]
                keywords = {str(k): self.argument(calls, each) for k, each in cast(Json, node["kwargs"]).items()}
                calls.given[key] = self.call(row, index, path, arguments, keywords)
            elif key in waiting:
                raise ValueError(f"{name!r} depends on itself")
            else:
                waiting.add(key)
                pending += needs

    def argument(self, calls: Calls, given: object) -> Argument:
        """The value of a serialized argument."""
        if is_list(given):
            return [self.argument(calls, each) for each in given]
        if not is_row(given):
            return given
        config: Json = given.get("config", {})
        match given.get("class_name"):
            case "__keras_tensor__":
                name, number, place = history(config["keras_history"])
                value = calls.given[name, number][place]
                self.check(value, config, name)
                return value
            case "__tensor__" | "__numpy__":
                return array_of(config)
            case "__slice__":
                return slice(*(self.argument(calls, config[each]) for each in ("start", "stop", "step")))
            case "__ellipsis__":
                return ...
            case _:
                return {key: self.argument(calls, each) for key, each in given.items()}

    def check(self, value: SSAValue, declared: Json, name: str) -> None:
        """Hold a value against what the file says of it."""
        if value in self.unknown or not is_tensor(value.type):
            return
        dims, sizes = value.type.get_shape(), cast("list[int | None]", declared["shape"])
        pairs = zip(dims, sizes, strict=False)
        differ = any(size not in (None, own) and own != DYNAMIC for own, size in pairs) and not self.resized
        dtype = str(declared["dtype"])
        if len(dims) != len(sizes) or differ or dtype_of(value.type.element_type).name != dtype:
            what = f"gives {value.type}, which is {sizes} {dtype} in the file"
            raise Malformed(f"{self.archive.file}: layer {name[:120]!r}", what)

    def call(
        self, row: Json, index: int, path: str, arguments: Sequence[Argument], keywords: Mapping[str, Argument]
    ) -> list[SSAValue]:
        """Build one call; where that cannot be, remember why and go on as if it had been."""
        kind = str(row["class_name"])
        layer = Layer(
            self.archive.file,
            self.archive,
            f"ops.{kind}" if is_operation(row) else kind,
            index,
            row["config"],
            self.archive.place(path, kind, str(row["config"]["name"])) if path else "",
            arguments,
            keywords,
        )
        given = values_in([*arguments, dict(keywords)])
        if kind in CONTAINERS and str(row.get("module")).startswith("keras"):
            self.begin(layer)
            return self.model(row, layer.path, values_in([*arguments]), layer.where)
        found = self.tried(layer, range(MOST_RESULTS), lambda: self.results(layer, row, given), by_caller=False)
        if kind not in UNMASKED and not self.masked.isdisjoint(given) or layer.config.get("mask_zero") is True:
            self.masked.update(found)
        for value in found:
            value.name_hint = value.name_hint or value_name(layer.name)
        self.built += found
        return [*found]

    def results(self, layer: Layer, row: Json, given: Sequence[SSAValue]) -> list[SSAValue] | None:
        """The outputs of a call; None behind a problem, where only the class is looked at."""
        module = str(row.get("module"))
        if not module.startswith("keras"):
            raise layer.unsupported(f"is of a class of {module[:80]}, whose call is Python code")
        convert = TABLE.get(layer.kind)
        if convert is None:
            raise layer.unsupported(REFUSED.get(layer.kind, "the class is not supported"))
        if not self.unknown.isdisjoint(given):
            return None
        if layer.keywords.get("training") is True and layer.kind not in ("CenterCrop", "Resizing"):
            raise layer.unsupported("is called in training mode", "call it with training=False")
        mask = layer.keywords.get("mask")
        if (mask is not None and values_in([mask])) or (layer.kind in MASKED and not self.masked.isdisjoint(given)):
            raise layer.unsupported("leaves out steps by a mask", "cut the sequences instead, without mask_zero")
        _check_types(layer)
        found = self.called(layer, lambda: convert(self.importer, layer), by_caller=False)
        values = [found] if isinstance(found, SSAValue) else list(found)
        for value in values:
            self.check_size(layer, value)
        return values


def _check_types(layer: Layer) -> None:
    """Raise Unsupported for element types other than float32, and for ways of quantization other than int8."""
    for key, found in _policies(layer.config.get("dtype")):
        if key == "mode" and found != "int8":
            raise layer.unsupported(f"is quantized as {found[:40]}", "int8 is supported: model.quantize('int8')")
        if key != "mode" and found != "float32" and layer.kind != "InputLayer" and not layer.kind.startswith("ops."):
            raise layer.unsupported(f"computes in {found[:40]}", "load the model with the dtype policy float32")


def _policies(given: object) -> list[tuple[str, str]]:
    """The element types and ways of quantization in a dtype policy, or in a map of them by path."""
    if isinstance(given, str):
        return [("name", given)]
    if not is_row(given) or not is_row(config := given.get("config")):
        return []
    own = [(key, str(config[key])) for key in ("name", "source_name", "mode") if config.get(key) is not None]
    if given.get("class_name") == "DTypePolicyMap":
        rows: object = config.get("policy_map")
        return [each for part in rows.values() for each in _policies(part)] if is_row(rows) else []
    return [each for each in own if each[0] != "name" or len(own) == 1]


def history(given: object) -> tuple[str, int, int]:
    """The layer, the number of its call and the number of the output that a tensor is."""
    name, number, place = cast("list[Any]", given)
    if not isinstance(number, int) or not isinstance(place, int) or place < 0:
        raise ValueError(f"tensor {given}")
    return str(name), number, place


def histories(given: object) -> list[tuple[str, int, int]]:
    """Those of nested tensors in the order in which Keras counts them."""
    if is_row(given):
        return [each for key in sorted(given) for each in histories(given[key])]
    if is_list(given):
        if len(given) == 3 and isinstance(given[0], str):
            return [history(given)]
        return [each for part in given for each in histories(part)]
    raise ValueError(f"tensors {str(given)[:80]}")


def _keys(given: object) -> list[Key]:
    """The calls that serialized arguments are results of."""
    if is_list(given):
        return [key for each in given for key in _keys(each)]
    if not is_row(given):
        return []
    if given.get("class_name") == "__keras_tensor__":
        return [history(given["config"]["keras_history"])[:2]]
    return [key for each in given.values() for key in _keys(each)]
