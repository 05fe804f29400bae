"""`detect`: recognizes the format of a model by its content. Each format is a row of `FORMATS`."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from relay.errors import Malformed, Unsupported
from relay.files import open_file, read_rest


class Format(NamedTuple):
    """A format of model files."""

    title: str
    importer: str
    """The name of the function of `relay.frontend` that imports the format."""
    hint: str = ""
    """What to do with such models instead; empty for formats that can be imported."""


_CONVERT = "convert the model to .tflite and use from_tflite"
FORMATS = {
    "mlir": Format("MLIR text", ""),
    "tflite": Format("TFLite", "from_tflite"),
    "onnx": Format("ONNX", "from_onnx"),
    "pt2": Format("a PyTorch program (.pt2)", "from_pytorch"),
    "keras": Format("a Keras model (.keras)", "from_keras"),
    "stablehlo": Format("a StableHLO artifact", "", _CONVERT),
}
"""The formats by name. Formats with a hint cannot be imported."""
MODELS = {name: each for name, each in FORMATS.items() if each.importer and not each.hint}
KNOWN = f"the formats known are {', '.join(each.title for each in FORMATS.values() if not each.hint)}"
_OTHERS = {
    b"ML\xefR": ("MLIR bytecode", "turn it into text with mlir-opt"),
    b"\x7fELF": ("an ELF object", KNOWN),
    b"\x89HDF": ("an HDF5 file", "save the model with Keras 3 as .keras"),
    b"PK\x03\x04": ("a zip archive", f"unpack it; {KNOWN}"),
}
"""The first bytes of other known kinds of files, with the name of the kind and what to do about it."""
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r")
_HEAD = 4096
_ONNX_FIELDS = frozenset((0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42))
"""The first bytes of the fields that may follow `ir_version` in ONNX's ModelProto."""


def detect(model: bytes | str | PathLike[str], name: str) -> str:
    """The name in `FORMATS` of the format of a model, given as bytes or by path; `name` is the file's name in errors.

    TFLite files have the identifier `TFL3` at byte 4, ONNX files begin with their version number, zip archives and MLIR
    bytecode are looked into, and MLIR text is UTF-8 without control characters. Raises Unsupported for anything else,
    naming the known formats, Malformed for text that is not UTF-8, and OSError.
    """
    with BytesIO(model) if isinstance(model, bytes) else open_file(model) as stream:
        head = stream.read(_HEAD)
        if head[4:8] == b"TFL3":
            return "tflite"
        if head.startswith(b"PK\x03\x04") and (found := _zipped(model, head)):
            return found
        if head.startswith(b"ML\xefR") and b"StableHLO" in head[:64]:
            return "stablehlo"
        if head.startswith(b"version https://git-lfs"):
            raise Unsupported(name, "is a pointer of Git LFS and not the file itself", "git lfs pull gets it")
        for start, (what, hint) in _OTHERS.items():
            if head.startswith(start):
                raise Unsupported(name, f"is {what}, which is not a format known here", hint)
        rest = head + read_rest(stream) if _is_text(head) else b"\0"
    if not _is_text(rest):
        if name.endswith(".onnx") or b"onnx" in head[:256] or _is_onnx(head):
            return "onnx"
        raise Unsupported(name, "is binary and not a format known here", KNOWN)
    try:
        rest.decode()
    except UnicodeDecodeError as error:
        raise Malformed(name, f"byte {error.start} is not UTF-8", "MLIR text is UTF-8") from None
    return "mlir"


def importable(model: bytes | str | PathLike[str], name: str) -> str:
    """The format of a model as `detect` returns it. Raises Unsupported for a format that cannot be imported."""
    format = detect(model, name)
    if FORMATS[format].hint:
        what = f"is {FORMATS[format].title} and not a format known here"
        raise Unsupported(name, what, f"{KNOWN}; {FORMATS[format].hint}")
    return format


def _is_text(data: bytes) -> bool:
    return not any(byte < 32 and byte not in _TEXT_CONTROLS for byte in set(data))


def _is_onnx(head: bytes) -> bool:
    """Whether the first field is `ir_version`, 1 to 31, and the second is one that may follow it."""
    return len(head) > 2 and head[0] == 0x08 and 0 < head[1] < 32 and head[2] in _ONNX_FIELDS


def _zipped(model: bytes | str | PathLike[str], head: bytes) -> str:
    """The format recognized by the names of an archive's entries, or by the first entry if the archive is damaged; an
    empty string if none is recognized."""
    try:
        with ZipFile(BytesIO(model) if isinstance(model, bytes) else Path(model)) as archive:
            names = {name.rpartition("/")[2] for name in archive.namelist()}
    except (BadZipFile, OSError, ValueError):
        first = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        if first in (b"metadata.json", b"config.json"):
            return "keras"
        starts = (b"data/weights/", b"models/", b"archive_format")
        return "pt2" if first.partition(b"/")[2].startswith(starts) else ""
    if {"config.json", "model.weights.h5"} <= names:
        return "keras"
    return "pt2" if names & {"archive_format", "serialized_exported_program.json", "data.pkl"} else ""


def is_torch(model: object) -> bool:
    """Whether the object is a program, module or other object of PyTorch, determined without importing PyTorch."""
    return any(each.__module__.partition(".")[0] == "torch" for each in type(model).__mro__)


def live(model: object) -> str:
    """The module of `relay.frontend` whose function `saved` gives the bytes of a model in memory; "" for an object that
    is no such model. The object's class tells, so that no framework is imported."""
    if is_keras_model(model):
        return "keras.import_graph"
    if is_torch(model):
        return "torch.import_graph"
    return "onnx.wire" if is_model_proto(model) else ""


def is_model_proto(model: object) -> bool:
    """Whether the object is an ONNX model in memory, determined without importing ONNX."""
    return type(model).__name__ == "ModelProto" and type(model).__module__.startswith("onnx.")


def is_keras_model(model: object) -> bool:
    """Whether the object is a Keras model in memory, determined without importing Keras."""
    return any(each.__module__ == "keras.src.models.model" for each in type(model).__mro__)
