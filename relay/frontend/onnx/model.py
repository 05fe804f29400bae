"""Reads a model: its ModelProto without large weights, and the arrays of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import prod
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper

from relay.dialects.attributes import Array
from relay.dialects.element_types import FEW_BITS
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.files import open_file
from relay.frontend.importing.options import MAX_ELEMENTS, Source, source
from relay.frontend.onnx.wire import detached, saved

OPSETS = range(1, 29)
"""The versions (opsets) of ONNX's standard operators that the importer supports."""
STANDARD = ("", "ai.onnx")
"""The names of the domain of standard operators."""
_NO_NUMBERS = ("STRING", "COMPLEX64", "COMPLEX128", "UNDEFINED")


@cache
def type_names() -> Mapping[int, str]:
    return {number: name for name, number in onnx.TensorProto.DataType.items()}


def dtype_of_number(number: int) -> np.dtype[Any] | None:
    """The numpy dtype of ONNX's element type; None if relay does not compute with it."""
    if type_names().get(number, "UNDEFINED") in _NO_NUMBERS:
        return None
    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(number)
    return dtype


@cache
def number_of_dtype(dtype: np.dtype[Any]) -> int:
    """The number of ONNX's element type for a dtype, the inverse of `dtype_of_number`."""
    return int(helper.np_dtype_to_tensor_dtype(dtype))


class Model:
    """A model file: its ModelProto, and the location of its weights."""

    def __init__(self, proto: onnx.ModelProto, file: str, data: memoryview, folder: Path | None) -> None:
        self.proto, self.file = proto, file
        self._data, self._folder = np.frombuffer(data, np.uint8), folder
        self._maps: dict[str, Array] = {}
        self.opsets = {"" if row.domain in STANDARD else row.domain: row.version for row in proto.opset_import}
        """The version of the operators of each domain."""
        self.functions = {(each.domain, each.name, each.overload): each for each in proto.functions}

    def array(self, tensor: onnx.TensorProto) -> Array:
        """The array of a tensor, without a copy if the file stores it in that form. Raises RelayError."""
        where = f"{self.file}: tensor {tensor.name!r}"
        dtype = dtype_of_number(tensor.data_type)
        if dtype is None:
            raise Unsupported(where, f"the type is {type_names().get(tensor.data_type, tensor.data_type)}")
        dims = tuple(tensor.dims)
        if min(dims, default=0) < 0 or prod(dims) > MAX_ELEMENTS:
            raise Malformed(where, f"has the shape {list(dims)}")
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            try:
                return numpy_helper.to_array(tensor)
            except (ValueError, TypeError, OverflowError) as error:
                raise Malformed(where, f"its numbers cannot be read: {error}") from None
        data = self._bytes(tensor, where)
        few = dtype.name in FEW_BITS or dtype.name == "float4_e2m1fn"  # several elements per byte
        bits = int(dtype.name[-1]) if dtype.name in FEW_BITS else 4 if few else 8 * dtype.itemsize
        if data.size != -(-prod(dims) * bits // 8):
            raise Malformed(where, f"has {data.size} bytes for {dtype} of shape {list(dims)}")
        if few:
            packed = onnx.TensorProto(dims=dims, data_type=tensor.data_type, raw_data=data.tobytes())
            return numpy_helper.to_array(packed)
        return data.view(dtype.newbyteorder("<")).view(dtype).reshape(dims)

    def _bytes(self, tensor: onnx.TensorProto, where: str) -> Array:
        """The bytes of external data; an empty location stands for the model file itself."""
        entries = {row.key: row.value for row in tensor.external_data}
        location = entries.get("location", "")
        data = self._data if not location else self._mapped(location, where)
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", data.size - offset))
        except ValueError:
            raise Malformed(where, "its place in the file is no number") from None
        if offset < 0 or length < 0 or offset + length > data.size:
            raise Malformed(where, f"lies at {offset} to {offset + length} of {data.size} bytes")
        return data[offset : offset + length]

    def _mapped(self, location: str, where: str) -> Array:
        """The bytes of another file in the model's folder, mapped into memory."""
        if self._folder is None:
            raise Unsupported(where, f"its numbers are in the file {location!r}", "give the model's path")
        path = (self._folder / location).resolve()
        if not path.is_relative_to(self._folder.resolve()):
            raise Malformed(where, f"its numbers are in {location!r}, which is outside the model's folder")
        if location not in self._maps:
            try:
                self._maps[location] = np.memmap(open_file(path), np.uint8, "r")
            except (OSError, ValueError) as error:
                raise InvalidArgument(where, f"its numbers cannot be read from {location!r}: {error}") from None
        return self._maps[location]


def read_model(model: Source | onnx.ModelProto) -> Model:
    """Read a model, given as a file's path, its bytes or a ModelProto. Raises RelayError."""
    folder: Path | None = None
    if isinstance(model, onnx.ModelProto):
        data, file = saved(model)
    else:
        data, file = source(model, "from_onnx")
        if isinstance(model, str | PathLike):
            folder = Path(fspath(model)).parent
    view = memoryview(data).cast("B")
    if not len(view):
        raise Malformed(file, "is empty")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(detached(view, file))
    except (DecodeError, RecursionError) as error:
        raise Malformed(file, f"is not an ONNX model: {error}") from None
    _check(proto, file)
    return Model(proto, file, view, folder)


def _check(proto: onnx.ModelProto, file: str) -> None:
    """Raise Malformed if a model has no graph, or names that are not UTF-8, and Unsupported if it uses a version of
    ONNX's operators that the importer does not know."""
    if not proto.HasField("graph"):
        raise Malformed(file, "has no graph")
    versions = [row.version for row in proto.opset_import if row.domain in STANDARD]
    if not versions and proto.ir_version >= 3:
        versions = [1] if any(node.domain in STANDARD for node in proto.graph.node) else []
    for version in versions:
        if version not in OPSETS:
            known = f"{OPSETS.start} to {OPSETS.stop - 1} are"
            raise Unsupported(file, f"version {version} of the operators is not supported", known)
    graph = proto.graph
    check_texts((each.name for each in (*graph.input, *graph.output, *graph.initializer)), file)


def check_texts(texts: Iterable[object], where: str) -> None:
    """Raise Malformed for a text that is not UTF-8, which protobuf returns as bytes."""
    for text in texts:
        if not isinstance(text, str):
            raise Malformed(where, f"{text!r} is not UTF-8")
