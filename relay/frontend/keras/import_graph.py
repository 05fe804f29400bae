"""`from_keras`: a Functional or Sequential model of Keras 3 to a module.

The module is one function `@main`: an argument for each input layer, a result for each output of the model. Variables
are `relay.constant`s with the names of their layers as labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, SupportsIndex, cast

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects.op import DYNAMIC, is_tensor
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.frontend.importing.archives import Json
from relay.frontend.importing.builder import value_name
from relay.frontend.importing.conversion import READ_ERRORS
from relay.frontend.importing.formats import is_keras_model
from relay.frontend.importing.function import completed, finished, output_infos
from relay.frontend.importing.options import Source, batch_of, one_of, source
from relay.frontend.importing.problems import Problems
from relay.frontend.importing.sizes import Sizes, given_sizes, sized, sizes_known, symbols_of
from relay.frontend.keras.archive import CONTAINERS, Archive, layers_of
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.conversion import Conversion, histories
from relay.frontend.keras.node import is_list
from relay.module import IRModule
from relay.signature import TensorInfo

DTYPES = frozenset("float32 float64 float16 int8 int16 int32 int64 uint8 uint16 bool".split())
_BUILT = "call the model once, or give it an Input, before it is saved"


def from_keras(
    model: Source | object,
    *,
    batch: SupportsIndex | None = None,
    shapes: Mapping[str, Sequence[SupportsIndex]] | None = None,
    shape_dict: Mapping[str, Sequence[SupportsIndex]] | None = None,
) -> IRModule:
    """Read a Functional or Sequential model of Keras 3: a `.keras` file by path or as bytes, for which Keras need not
    be installed, or the model itself, of any backend. `@main` has one argument per input layer, layouts and dtypes as
    they are.

    Sizes that are `None` stay open: the first one is the symbol `batch` (`relay.symbols`), others are named by input
    and axis; `shapes` gives them, by input layer, and `batch` gives the first one. Weights that
    `model.quantize("int8")` made stay integers, and rows are quantized at run time as Keras does. `shape_dict` is TVM's
    name of `shapes`.

    Raises Malformed (the file), Unsupported (every layer that cannot be imported) or InvalidArgument.
    Source: keras/src/saving, keras/src/models/functional.py.
    """
    images = None if batch is None else batch_of(batch, "from_keras")
    archive = Archive(*saved(model))
    given = one_of(shapes, shape_dict)
    try:
        return _module(archive, images, given)
    except RelayError:
        raise
    except READ_ERRORS as error:
        what = f"the model cannot be read: {type(error).__name__}: {error}"
        raise Malformed(archive.file, what) from error


def saved(model: object) -> tuple[bytes, str]:
    """The bytes of an archive, and what errors call it. A model is saved by the Keras that made it, and read as a file
    is."""
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
    """The configurations of the input layers, in the order of the model's arguments."""
    kind, module = str(model.get("class_name")), str(model.get("module"))
    if kind not in CONTAINERS or not module.startswith("keras"):
        hint = "write it as a Functional or Sequential model"
        raise Unsupported(file, f"is a model of the class {kind[:80]!r}, whose call is Python code", hint)
    if kind == "Functional":
        rows = {str(row["config"]["name"]): row["config"] for row in layers_of(model)}
        return [(name, rows[name]) for name, _, _ in histories(model["config"]["input_layers"])]
    first = layers_of(model)[0]
    if first["class_name"] == "InputLayer":
        return [(str(first["config"]["name"]), first["config"])]
    shape: object = model["config"].get("build_input_shape")
    if not shape:
        raise Unsupported(file, "is not built: its shapes are not known", _BUILT)
    return [("input", {"batch_shape": shape, "dtype": "float32"})]


def _sizes(model: Json, file: str) -> tuple[list[TensorInfo], list[Sizes]]:
    """The inputs: types, and sizes as far as they are known."""
    infos, found = list[TensorInfo](), list[Sizes]()
    for name, config in _inputs(model, file):
        where = f"{file}: input {name[:120]!r}"
        dtype = str(config.get("dtype"))
        if dtype not in DTYPES:
            raise Unsupported(where, f"has the element type {dtype[:40]}", "use numbers")
        if config.get("sparse") or config.get("ragged") or config.get("optional"):
            raise Unsupported(where, "is sparse, ragged or optional", "make it a plain Input")
        shape = config.get("batch_shape")
        if not is_list(shape) or not all(each is None or (isinstance(each, int) and each > 0) for each in shape):
            raise Malformed(where, f"has the shape {str(shape)[:80]}")
        dims = tuple(-1 if each is None else each for each in cast("list[int | None]", shape))
        names = tuple("batch" if not axis else f"{name}.{axis}" for axis in range(len(dims)))
        found.append(Sizes(name, dims, names))
        infos.append(TensorInfo(name, dims, np.dtype(dtype)))
    return infos, found


def _module(archive: Archive, images: int | None, shapes: object) -> IRModule:
    file, model = archive.file, archive.model
    infos, inputs = _sizes(model, file)
    inputs = sized(inputs, given_sizes(inputs, shapes, images, "from_keras", file), images)
    infos = [replace(info, shape=each.dims) for info, each in zip(infos, inputs, strict=True)]
    importer = Importer([info.name for info in infos])
    archive.find_layers(model)
    problems = Problems(file)
    conversion = Conversion(archive, importer=importer, problems=problems)
    conversion.resized = images is not None or bool(shapes)
    arguments: list[SSAValue] = []
    for info in infos:
        arguments.append(importer.entry_argument(info))
        arguments[-1].name_hint = value_name(info.name)

    def is_open(error: RelayError) -> bool:
        types = [each.type for each in [*arguments, *conversion.built]]
        unknown = any(is_tensor(type) and DYNAMIC in type.get_shape() for type in types)
        return unknown and "is not supported" not in str(error)

    with sizes_known(inputs, file, is_open):
        results = conversion.model(model, "", arguments, file)
        problems.raise_all()
    if not results:
        raise InvalidArgument(file, "has no outputs")
    importer.leave()
    names = _names(model, len(results))
    module = finished(importer.block, results, infos, [], output_infos(names, results))
    return completed(module, symbols_of(inputs), images, file, quantized=False)


def _names(model: Json, count: int) -> list[str]:
    """The outputs are named after the layers that give them."""
    config: Json = model["config"]
    if model["class_name"] == "Functional":
        names = [name for name, _, _ in histories(config["output_layers"])]
    else:
        names = [str(layers_of(model)[-1]["config"]["name"])]
    return (names * count)[:count]
