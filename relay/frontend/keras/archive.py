"""Reads a `.keras` archive: the layers as JSON, and their weights as HDF5. Source: keras/src/saving/saving_lib.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from relay.dialects.attributes import Array
from relay.errors import Malformed, Unsupported
from relay.frontend.importing.archives import Json, Zip
from relay.frontend.importing.conversion import DEEPEST
from relay.frontend.importing.hdf5 import Hdf5

CONFIG, METADATA, WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
_HINT = "give a file that model.save('x.keras') wrote"
CONTAINERS = ("Functional", "Sequential")


class Archive:
    """The model as JSON, and the weights of its layers by the paths that Keras gives to layers."""

    def __init__(self, data: bytes, file: str) -> None:
        self.file = file
        zip = Zip(data, file, _HINT)
        if CONFIG not in zip.entries:
            raise Malformed(file, f"has no entry {CONFIG}", _HINT)
        if WEIGHTS not in zip.entries:
            others = [name for name in zip.entries if name.startswith("model.weights")]
            what = f"its weights are in {others[0]}" if others else f"has no entry {WEIGHTS}"
            raise Unsupported(file, what, "save it in one piece: model.save('x.keras')")
        if METADATA in zip.entries:
            version = str(zip.json(METADATA).get("keras_version"))
            if not version.startswith("3."):
                raise Unsupported(file, f"was written by Keras {version[:20]}", "load and save it with Keras 3")
        self.model = zip.json(CONFIG)
        self.weights = Hdf5(zip.bytes(zip.entries[WEIGHTS]), f"{file}: {WEIGHTS}")
        self._named: dict[tuple[str, str], str] = {}

    def place(self, path: str, kind: str, name: str) -> str:
        """The path of a layer's variables; a layer that several models share is stored at the path where it was saved
        first."""
        if path in self.weights:
            self._named.setdefault((kind, name), path)
            return path
        return self._named.get((kind, name), path)

    def find_layers(self, model: Json, path: str = "", depth: int = 0) -> None:
        """Find the variables of all layers, in the order in which Keras saves them."""
        for row, own in with_paths(model, path):
            found = self.place(own, str(row["class_name"]), str(row["config"]["name"])) if own else ""
            if row["class_name"] in CONTAINERS and depth < DEEPEST:
                self.find_layers(row, found, depth + 1)

    def arrays(self, path: str) -> list[Array]:
        """The variables of a layer, in order."""
        folder = f"{path}/vars"
        return [self.weights.array(f"{folder}/{number}") for number in range(len(self.weights.names(folder)))]


def is_operation(row: Json) -> bool:
    """Whether this is an operation of `keras.ops`, which has no variables."""
    return str(row.get("module", "")).startswith("keras.src.ops")


def snake_case(name: str) -> str:
    """The name of a class as Keras writes it into paths."""
    # the class has another name in keras.layers
    name = {"GroupQueryAttention": "GroupedQueryAttention"}.get(name, name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def layers_of(model: Json) -> list[Json]:
    """The layers and operations of a Functional or Sequential model. Some operations have their name beside their
    configuration only (ExtractPatches): it is entered into the configuration."""
    rows = cast("list[Json]", model["config"]["layers"])
    for row in rows:
        if "name" in row:
            row["config"].setdefault("name", row["name"])
    return rows


def with_paths(model: Json, path: str) -> Iterator[tuple[Json, str]]:
    """Each layer of a model with the path of its variables: the class name, with a number appended from the second
    layer of a class on."""
    prefix = f"{path}/layers" if path else "layers"
    used: dict[str, int] = {}
    for row in layers_of(model):
        if is_operation(row) or (row["class_name"] == "InputLayer" and model["class_name"] == "Sequential"):
            yield row, ""
            continue
        name = snake_case(str(row["class_name"]))
        count = used[name] = used.get(name, -1) + 1
        yield row, f"{prefix}/{name}_{count}" if count else f"{prefix}/{name}"
