"""Importers, which convert a model file to an `IRModule`, one folder per format. May import `transforms` and the layers
below it, but not `lowering`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast

from relay.arguments import shown, text
from relay.doors import door
from relay.errors import InvalidArgument, Malformed
from relay.files import NamedBytes, name_of
from relay.frontend.importing.formats import FORMATS, KNOWN, importable, live
from relay.module import IRModule, read_module

if TYPE_CHECKING:
    from relay.frontend.keras.import_graph import from_keras
    from relay.frontend.onnx.import_graph import from_onnx
    from relay.frontend.tflite.import_graph import from_tflite, supported_operators
    from relay.frontend.torch.import_graph import from_pytorch

__all__ = [
    "from_keras",
    "from_onnx",
    "from_pytorch",
    "from_tflite",
    "import_model",
    "saved_model",
    "supported_operators",
]

__getattr__ = door(
    __name__,
    {
        "relay.frontend.keras.import_graph": "from_keras",
        "relay.frontend.onnx.import_graph": "from_onnx",
        "relay.frontend.tflite.import_graph": "from_tflite supported_operators",
        "relay.frontend.torch.import_graph": "from_pytorch",
    },
)[0]
"""Importers are imported when they are first used."""


def __dir__() -> list[str]:
    return sorted(__all__)


def import_model(model: str | PathLike[str] | bytes, options: Mapping[str, Any]) -> IRModule:
    """Import a model given by path or as bytes, with the importer of its format, which is recognized by content;
    `options` are the importer's.

    Raises Unsupported for a format that cannot be imported, InvalidArgument for options that its importer lacks.
    """
    file = saved_model(model)
    try:
        format = importable(file, name_of(file) if isinstance(file, bytes) else file)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise InvalidArgument(str(file), f"cannot be read: {said}", "give the path or the bytes of a model") from None
    if format == "mlir":
        if isinstance(file, bytes):
            what = "is text and no model" if file else "is empty"
            raise Malformed("<bytes>", what, "IRModule.parse reads MLIR text")
        module = _text(file)
        if options:
            raise InvalidArgument("frontend", "options are for model files; MLIR text is imported already")
        return module
    from relay.frontend.importing.options import check_known

    importer: Callable[..., IRModule] = getattr(import_module(__name__), FORMATS[format].importer)
    return importer(file, **check_known(options, importer))


def _text(file: str) -> IRModule:
    """Parse a file of MLIR text. Raises Malformed; unless the file's name ends in `.mlir`, the hint asks whether it is
    the right file."""
    try:
        return read_module(file)
    except Malformed as error:
        if file.endswith(".mlir"):
            raise
        raise Malformed(error.where, error.what, error.hint or f"is this the right file? {KNOWN}") from None


def saved_model(model: object) -> str | bytes:
    """The path of a model file, or its bytes; a Keras model, PyTorch program or ONNX ModelProto in memory is saved to
    bytes with its name. Raises InvalidArgument for any other object."""
    if isinstance(model, bytes):
        return model
    if module := live(model):
        saved: Callable[[object], tuple[bytes, str]] = import_module(f"{__name__}.{module}").saved
        return NamedBytes(*saved(model))
    if not isinstance(model, str | PathLike):
        hint = "import a model with relay.frontend, or give its path or bytes"
        raise InvalidArgument("model", f"{shown(model)} is no module and no file", hint)
    path: object = fspath(cast("PathLike[str]", model))
    return text(path, "model", "a path is a text")
