"""`from_keras`: imports a Functional or Sequential model of Keras 3.

The module has one function `@main`, with an argument for each input layer and a result for each output of the model.
Variables are `relay.constant`s with the names of their layers as labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, SupportsIndex, cast

from relay.dialects.element_types import dtype_named
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.frontend.importing.archives import Json
from relay.frontend.importing.builder import value_name
from relay.frontend.importing.conversion import readable
from relay.frontend.importing.formats import is_keras_model
from relay.frontend.importing.function import completed, finished, output_infos
from relay.frontend.importing.options import Source, batch_of, one_of, source
from relay.frontend.importing.problems import Problems
from relay.frontend.importing.sizes import Sizes, sized, sizes_known, symbols_of
from relay.frontend.keras.archive import CONTAINERS, Archive, layers_of
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.conversion import FOR_ALL_SIZES, Conversion, histories
from relay.frontend.keras.node import DTYPES, is_list
from relay.module import IRModule
from relay.signature import TensorInfo

_BUILT = "call the model once, or give it an Input, before it is saved"


def from_keras(
    model: Source | object,
    *,
    batch: SupportsIndex | None = None,
    shapes: Mapping[str, Sequence[SupportsIndex]] | None = None,
    shape_dict: Mapping[str, Sequence[SupportsIndex]] | None = None,
) -> IRModule:
    """Import a Functional or Sequential model of Keras 3: a `.keras` file by path or as bytes, for which Keras need not
    be installed, or a model in memory, of any backend. `@main` has one argument per input layer; layouts and dtypes are
    kept.

    Sizes that are `None` stay unknown: the leading one is the symbol `batch` (`relay.symbols`), others are named by
    input and axis. `shapes` gives them, by input layer, and `batch` gives the leading one. Weights that
    `model.quantize("int8")` made stay integers, and rows are quantized at run time as in Keras. `shape_dict` is TVM's
    name of `shapes`.

    Raises Malformed (the file), Unsupported (every layer that cannot be imported) or InvalidArgument. Source:
    keras/src/saving, keras/src/models/functional.py.
    """
    images = None if batch is None else batch_of(batch, "from_keras")
    archive = Archive(*saved(model))
    given = one_of(shapes, shape_dict)
    with readable(archive.file, "model"):
        return _module(archive, images, given)


def saved(model: object) -> tuple[bytes, str]:
    """The bytes of an archive, and its name in errors. A model in memory is saved by its Keras and then read like a
    file."""
    if not is_keras_model(model):
        data, file = source(cast(Source, model), "from_keras")
        return bytes(data), file
    live = cast(Any, model)
    name = str(live.name)
    if not live.built:
        raise Unsupported(name, "is not built: its shapes are not known", _BUILT)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        try:
            live.save(path)
        except (NotImplementedError, TypeError, ValueError) as error:
            raise Unsupported(name, f"Keras cannot save it: {str(error)[:200]}", "make it Functional") from error
        return path.read_bytes(), name


def _inputs(model: Json, file: str) -> list[tuple[str, Json]]:
    """The names and configurations of the input layers, in the order of the model's arguments."""
    kind, module = str(model.get("class_name")), str(model.get("module"))
    if kind not in CONTAINERS or not module.startswith("keras"):
        hint = "write it as a Functional or Sequential model"
        raise Unsupported(file, f"is a model of the class {kind[:80]!r}, whose call is Python code", hint)
    rows = [row["config"] for row in layers_of(model)]
    if kind == "Functional":
        named = {str(config["name"]): config for config in rows}
        return [(name, named[name]) for name, _, _ in histories(model["config"]["input_layers"])]
    if layers_of(model)[0]["class_name"] == "InputLayer":
        return [(str(rows[0]["name"]), rows[0])]
    shape: object = model["config"].get("build_input_shape")
    if not shape:
        raise Unsupported(file, "is not built: its shapes are not known", _BUILT)
    return [("input", {"batch_shape": shape, "dtype": "float32"})]


def _sizes(name: str, config: Json, file: str) -> tuple[TensorInfo, Sizes]:
    """The description of an input, and its sizes as far as they are known."""
    where, dtype = f"{file}: input {name[:120]!r}", str(config.get("dtype"))
    if dtype not in DTYPES:
        raise Unsupported(where, f"has the element type {dtype[:40]}", "use numbers")
    if config.get("sparse") or config.get("ragged") or config.get("optional"):
        raise Unsupported(where, "is sparse, ragged or optional", "make it a plain Input")
    shape = config.get("batch_shape")
    if not is_list(shape) or not all(each is None or (isinstance(each, int) and each > 0) for each in shape):
        raise Malformed(where, f"has the shape {str(shape)[:80]}")
    dims = tuple(-1 if each is None else each for each in cast("list[int | None]", shape))
    names = tuple("batch" if not axis else f"{name}.{axis}" for axis in range(len(dims)))
    return TensorInfo(name, dims, dtype_named(dtype)), Sizes(name, dims, names)


def _module(archive: Archive, images: int | None, shapes: object) -> IRModule:
    file, model = archive.file, archive.model
    rows = [_sizes(name, config, file) for name, config in _inputs(model, file)]
    inputs = sized([sizes for _, sizes in rows], shapes, images, "from_keras", file)
    infos = [replace(info, shape=each.dims) for (info, _), each in zip(rows, inputs, strict=True)]
    importer, problems = Importer([info.name for info in infos]), Problems(file)
    archive.find_layers(model)
    conversion = Conversion(archive, importer=importer, problems=problems)
    importer.model = conversion.model
    conversion.resized = images is not None or bool(shapes)
    for info in infos:
        conversion.built.append(importer.entry_argument(info))
        conversion.built[-1].name_hint = value_name(info.name)
    with sizes_known(inputs, file, lambda: conversion.built, FOR_ALL_SIZES):
        results = conversion.model(model, "", [*conversion.built], file)
        problems.raise_all()
    if not results:
        raise InvalidArgument(file, "has no outputs")
    importer.leave()
    names = [str(layers_of(model)[-1]["config"]["name"])] * len(results)
    if model["class_name"] == "Functional":
        names = [name for name, _, _ in histories(model["config"]["output_layers"])]
    module = finished(importer.block, results, infos, [], output_infos(names, results))
    return completed(module, symbols_of(inputs), images, file, quantized=False)
