"""Converts a model's graph to ops: calls by the rows of the table, nested models inlined, problems collected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.dialects.attributes import element_type
from relay.dialects.element_types import dtype_named
from relay.dialects.op import DYNAMIC, is_tensor
from relay.errors import Malformed, Unsupported
from relay.frontend.importing.archives import Json
from relay.frontend.importing.builder import is_list, is_value, value_name
from relay.frontend.importing.conversion import DEEPEST, NodeConversion
from relay.frontend.keras.archive import CONTAINERS, Archive, is_operation, with_paths
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import DTYPES, Argument, Layer, is_row, values_in
from relay.frontend.keras.operators import REFUSED, TABLE

MOST_RESULTS = 8
"""The number of placeholders that stand for the outputs of a layer that cannot be imported: how many outputs it has is
not known."""
Key = tuple[str, int]
"""A call of a layer: the layer's name, and the index of the call."""
Calls = dict[Key, list[SSAValue]]
"""The results of the calls of layers that are imported so far, by (layer name, index of the call)."""
MASKED = frozenset(
    "LSTM GRU SimpleRNN Bidirectional TimeDistributed MultiHeadAttention GroupQueryAttention Attention "
    "AdditiveAttention GlobalAveragePooling1D Softmax".split()
)
"""Layers that skip masked time steps."""
UNMASKED = frozenset({"Flatten", "Lambda"})
"""Layers whose result has no mask."""
FOR_ALL_SIZES = (
    "is not supported",
    "whose call is Python code",
    "is called in training mode",
    "leaves out steps by a mask",
    "is quantized as",
    "computes in",
    *REFUSED.values(),
)
"""Texts of errors that no size of an input can avoid."""


@dataclass(slots=True)
class Conversion(NodeConversion[Importer]):
    """Converts calls, and collects the problems found."""

    archive: Archive
    resized: bool = False
    """Whether the caller gave inputs other sizes than those in the file."""
    masked: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that carry a mask of time steps."""
    built: list[SSAValue] = field(default_factory=list[SSAValue])
    """The model's inputs, and the results of all layer calls that have been imported so far."""

    def model(self, row: Json, path: str, inputs: Sequence[SSAValue], where: str) -> list[SSAValue]:
        """Build a model with these values as its inputs; returns its outputs."""
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
            if each["class_name"] == "InputLayer":
                values = [self.converted(value, each["config"]) for value in values]
            else:
                values = self.call(each, number, own, values, {})
        return values

    def functional(self, row: Json, path: str, inputs: Sequence[SSAValue]) -> list[SSAValue]:
        """Build the calls of a Functional model, each after the calls whose results it uses. Of the calls that are
        ready, the one that became ready last is built next."""
        config: Json = row["config"]
        layers = {str(each["config"]["name"]): (i, each, own) for i, (each, own) in enumerate(with_paths(row, path))}
        names = histories(config["input_layers"])
        if len(names) != len(inputs):
            raise self.importer.at.malformed(f"calls a model of {len(names)} inputs with {len(inputs)}")
        given: Calls = {}
        for (name, number, _), value in zip(names, inputs, strict=True):
            given[name, number] = [self.converted(value, layers[name][1]["config"])]
        nodes = {(name, i): n for name, (_, each, _) in layers.items() for i, n in enumerate(each["inbound_nodes"])}
        sorter = TopologicalSorter({key: _keys([node["args"], node["kwargs"]]) for key, node in nodes.items()})
        sorter.prepare()
        ready = [*sorter.get_ready()]
        while ready:
            key = ready.pop()
            if key not in given:
                arguments = [self.argument(given, each) for each in nodes[key]["args"]]
                keywords = {str(k): self.argument(given, each) for k, each in nodes[key]["kwargs"].items()}
                index, each, own = layers[key[0]]
                given[key] = self.call(each, index, own, arguments, keywords)
            sorter.done(key)
            ready += sorter.get_ready()
        wanted = histories(config["output_layers"])  # calls of Functional models are counted from 1 there
        keys = [(name, number - (layers[name][1]["class_name"] == "Functional")) for name, number, _ in wanted]
        return [given[key][place] for key, (_, _, place) in zip(keys, wanted, strict=True)]

    def converted(self, value: SSAValue, config: Json) -> SSAValue:
        """An input of a model, cast to the element type that its input layer states."""
        dtype = str(config.get("dtype"))
        if value in self.unknown or dtype not in DTYPES:
            return value
        return self.importer.cast(value, element_type(dtype_named(dtype)))

    def argument(self, calls: Calls, given: object) -> Argument:
        """Convert an argument of a call from its serialized form `given`. A reference to a tensor becomes the result of
        an earlier call in `calls`."""
        if is_list(given):
            return [self.argument(calls, each) for each in given]
        if not is_row(given):
            return given
        config: Json = given.get("config", {})
        match given.get("class_name"):
            case "__keras_tensor__":
                name, number, place = history(config["keras_history"])
                value = calls[name, number][place]
                self.check(value, config, name)
                return value
            case "__tensor__" | "__numpy__":
                return np.asarray(config["value"], np.dtype(str(config.get("dtype", "float32"))))
            case "__slice__":
                return slice(*(self.argument(calls, config[each]) for each in ("start", "stop", "step")))
            case "__ellipsis__":
                return ...
            case _:
                return {key: self.argument(calls, each) for key, each in given.items()}

    def check(self, value: SSAValue, declared: Json, name: str) -> None:
        """Check the sizes of a value against those in the file. Its element type may differ: Keras states float32 for a
        resized uint8 image, but computes uint8."""
        if value in self.unknown or not is_tensor(value.type):
            return
        dims, sizes, dtype = value.type.get_shape(), declared["shape"], str(declared["dtype"])
        pairs = zip(dims, sizes, strict=False)
        differ = any(size not in (None, own) and own != DYNAMIC for own, size in pairs) and not self.resized
        if len(dims) != len(sizes) or differ:
            what = f"gives {value.type}, which is {sizes} {dtype} in the file"
            raise Malformed(f"{self.archive.file}: layer {name[:120]!r}", what)

    def call(
        self, row: Json, index: int, path: str, arguments: Sequence[Argument], keywords: Mapping[str, Argument]
    ) -> list[SSAValue]:
        """Build one call; if that fails, record why and continue with placeholders."""
        kind, archive, config = str(row["class_name"]), self.archive, row["config"]
        name = f"ops.{kind}" if is_operation(row) else kind
        path = archive.place(path, kind, str(config["name"])) if path else ""
        layer = Layer(archive.file, archive, name, index, config, path, arguments, keywords)
        if kind in CONTAINERS and str(row.get("module")).startswith("keras"):
            self.begin(layer)
            return self.model(row, layer.path, values_in([*arguments]), layer.where)
        given = values_in([*arguments, dict(keywords)])
        found = self.tried(layer, range(MOST_RESULTS), lambda: self.results(layer, row, given), by_caller=False)
        if kind not in UNMASKED and not self.masked.isdisjoint(given) or layer.config.get("mask_zero") is True:
            self.masked.update(found)
        for value in found:
            value.name_hint = value.name_hint or value_name(layer.name)
        self.built += found
        return [*found]

    def real(self, given: Argument) -> Argument:
        """An argument of a layer with floats cast to float32, in which layers compute."""
        if is_value(given):
            return self.importer.cast(given, f32) if self.importer.is_float(given) else given
        if is_row(given):
            return {key: self.real(each) for key, each in given.items()}
        return [self.real(each) for each in given] if is_list(given) else given

    def results(self, layer: Layer, row: Json, given: Sequence[SSAValue]) -> list[SSAValue] | None:
        """Import a call of a layer and return its outputs. If an input is missing because an earlier call could not be
        imported, only check that the layer's class is supported, and return None."""
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
        if values_in([layer.keywords.get("mask")]) or (layer.kind in MASKED and not self.masked.isdisjoint(given)):
            raise layer.unsupported("leaves out steps by a mask", "cut the sequences instead, without mask_zero")
        _check_types(layer)
        if not layer.kind.startswith("ops."):
            arguments, keywords = self.real([*layer.arguments]), self.real(dict(layer.keywords))
            layer = replace(layer, arguments=cast(list[Argument], arguments), keywords=cast(Json, keywords))
        found = self.called(layer, lambda: convert(self.importer, layer), by_caller=False)
        values = [found] if isinstance(found, SSAValue) else list(found)
        for value in values:
            self.check_size(layer, value)
        return values


def _check_types(layer: Layer) -> None:
    """Raise Unsupported for element types other than float32, and for quantization other than int8."""
    for key, found in _policies(layer.entry("dtype")):
        if key == "mode" and found != "int8":
            raise layer.unsupported(f"is quantized as {found[:40]}", "int8 is supported: model.quantize('int8')")
        if key != "mode" and found != "float32" and layer.kind != "InputLayer" and not layer.kind.startswith("ops."):
            hint = "build the model again with the dtype policy float32, and set_weights(this_model.get_weights())"
            raise layer.unsupported(f"computes in {found[:40]}", hint)


def _policies(given: object) -> Iterator[tuple[str, str]]:
    """The element types and quantization modes in a dtype policy, or in a map of policies by path."""
    if isinstance(given, str):
        yield "name", given
    if is_row(given) and is_row(config := given.get("config")):
        if given.get("class_name") == "DTypePolicyMap":
            for part in config["policy_map"].values():
                yield from _policies(part)
            return
        own = [(key, str(config[key])) for key in ("source_name", "mode") if config.get(key) is not None]
        yield from own or _policies(config.get("name"))


def history(given: object) -> tuple[str, int, int]:
    """The layer, the call index and the output index that a serialized tensor refers to."""
    name, number, place = cast("list[Any]", given)
    if not isinstance(number, int) or not isinstance(place, int) or place < 0:
        raise ValueError(f"tensor {given}")
    return str(name), number, place


def histories(given: object) -> list[tuple[str, int, int]]:
    """The references (`history`) of all serialized tensors in nested arguments, in Keras's order."""
    if is_row(given):
        return [each for key in sorted(given) for each in histories(given[key])]
    if is_list(given):
        if len(given) == 3 and isinstance(given[0], str):
            return [history(given)]
        return [each for part in given for each in histories(part)]
    raise ValueError(f"tensors {str(given)[:80]}")


def _keys(given: object) -> list[Key]:
    """The layer calls whose results occur in a call's serialized arguments, each as the layer's name and the number of
    the call."""
    if is_row(given) and given.get("class_name") == "__keras_tensor__":
        return [history(given["config"]["keras_history"])[:2]]
    inner = [*given.values()] if is_row(given) else given if is_list(given) else []
    return [key for each in inner for key in _keys(each)]
