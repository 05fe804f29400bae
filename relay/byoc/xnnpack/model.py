"""Builds a .tflite file: tensors, constants and operators of one subgraph, as objects of the schema classes in LiteRT's
wheel.

Source: TFLite schema.fbs, version 3; the versions of operators are those of TFLite's `op_version.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from relay.byoc.quantized import Codes
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.frontend.tflite import schema

IDENTIFIER = b"TFL3"
BYTES_ALIGNMENT = 16
"""The alignment of a buffer's bytes: `force_align` in the schema, which the generated Python classes ignore."""
_PLACEHOLDER = schema.BUILTIN_OPERATORS.index("PLACEHOLDER_FOR_GREATER_OP_CODES")
_TYPES = {row.dtype.lstrip("<|"): number for number, row in enumerate(schema.TENSOR_TYPES) if row.dtype}
_INT8_VERSIONS = {
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 3,
    "FULLY_CONNECTED": 4,
    "RELU_N1_TO_1": 1,
    "RESHAPE": 1,
    "CAST": 1,
    "GATHER_ND": 1,
}
"""The versions of operators on int8 that differ from 2."""
_FLOAT_VERSIONS = {"BROADCAST_TO": 2}
"""The versions of TFLite operators without int8 inputs or outputs, if they differ from 1."""

OptionValue = bool | int | float | str


def table(kind: str, values: Mapping[str, object]) -> Any:
    """A table of the schema with values by the schema's field names; None is absent."""
    found = getattr(import_module("ai_edge_litert.schema_py_generated"), f"{kind}T")()
    for name, value in values.items():
        first, *words = name.split("_")
        setattr(found, first + "".join(word.capitalize() for word in words), value)
    return found


def serialize(model: Any) -> bytes:
    """The bytes of the file. Raises InvalidArgument if it would exceed 2 GiB, the range of offsets."""
    flatbuffers = import_module("flatbuffers")
    builder = flatbuffers.Builder(1 << 16)
    for buffer in model.buffers:
        if buffer.data is not None:
            buffer.Pack = partial(aligned, buffer.Pack, buffer.data.size)
    try:
        builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    except flatbuffers.builder.BuilderSizeError as error:
        raise InvalidArgument("flatbuffer", "its weights exceed 2 GiB", "give it fewer") from error
    return bytes(builder.Output())


def aligned(pack: Callable[[Any], int], size: int, builder: Any) -> int:
    """Write a `Buffer` table of the model with its `size` bytes aligned to `BYTES_ALIGNMENT`, and return its offset.
    `pack` is the table's own method that writes it to the flatbuffers `builder`."""
    builder.Prep(BYTES_ALIGNMENT, size)
    return pack(builder)


class Model:
    """A subgraph under construction. Tensors are identified by index."""

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description
        self.types: list[str] = []
        self._tensors: list[Any] = []
        self._buffers = [table("Buffer", {})]
        self._codes: dict[tuple[str, int], int] = {}
        self._operators: list[Any] = []
        self._names: list[str] = []
        self._lines: list[str] = []

    @property
    def listing(self) -> str:
        """The operators as text, one per line: results = KIND operands options."""
        return "".join(f"{line}\n" for line in self._lines)

    def tensor(
        self,
        shape: Sequence[int],
        dtype: np.dtype[np.generic],
        codes: Codes | None = None,
        name: str = "",
    ) -> int:
        """Add a computed tensor or an input; returns its index."""
        scale = None if codes is None else np.array([codes.scale], np.float32)
        zero_point = None if codes is None else np.array([codes.zero_point])
        return self._tensor(shape, dtype, 0, _quantization(scale, zero_point, 0), name)

    def constant(
        self,
        array: Array,
        scale: Array | None = None,
        zero_point: int = 0,
        axis: int = 0,
        name: str = "",
    ) -> int:
        """Add a constant; returns its index. Several scales vary along `axis`; with a single scale the axis is written
        as 0, as XNNPACK requires."""
        flat = np.ascontiguousarray(array).reshape(-1)
        self._buffers.append(table("Buffer", {"data": flat.view(np.uint8)}))
        zero_points = None if scale is None else np.full(scale.size, zero_point)
        quantization = _quantization(scale, zero_points, axis)
        return self._tensor(array.shape, array.dtype, len(self._buffers) - 1, quantization, name)

    def _tensor(
        self, shape: Sequence[int], dtype: np.dtype[np.generic], buffer: int, quantization: Any, name: str
    ) -> int:
        number = len(self._tensors)
        values: dict[str, object] = {
            "shape": np.array(shape, np.int32),
            "type": _TYPES[dtype.str.lstrip("<|")],
            "buffer": buffer,
            "name": name or f"t{number}",
            "quantization": quantization,
        }
        self._tensors.append(table("Tensor", values))
        self.types.append(dtype.name)
        self._names.append(f"%{number}:{'x'.join(map(str, (*shape, dtype.name)))}")
        return number

    def operator(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: Mapping[str, OptionValue | Array] | None = None,
        version: int | None = None,
    ) -> None:
        """Append an operator to the TFLite model. `inputs` and `outputs` are indices of tensors; `options` are named as
        in TFLite's schema.fbs, with enum values by name. `version`: by default, one that fits the tensors' types."""
        if version is None:
            codes = "int8" in (self.types[i] for i in (*inputs, *outputs))
            version = _INT8_VERSIONS.get(kind, 2) if codes else _FLOAT_VERSIONS.get(kind, 1)
        values: dict[str, object] = {
            "opcode_index": self._codes.setdefault((kind, version), len(self._codes)),
            "inputs": np.array(inputs, np.int32),
            "outputs": np.array(outputs, np.int32),
        }
        row = schema.OPTIONS.get(kind)
        if row is not None:
            values["builtin_options_type"] = row.member
            values["builtin_options"] = table(row.name, _encoded(row.fields, options or {}))
        self._operators.append(table("Operator", values))
        taken, made = (", ".join(self._names[i] for i in numbers) for numbers in (inputs, outputs))
        shown = "".join(f" {name}={value}" for name, value in (options or {}).items())
        self._lines.append(f"{made} = {kind} {taken}{shown}")

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The bytes of the file."""
        graph: dict[str, object] = {
            "tensors": self._tensors,
            "inputs": np.array(inputs, np.int32),
            "outputs": np.array(outputs, np.int32),
            "operators": self._operators,
            "name": self.name,
        }
        codes = [
            table(
                "OperatorCode",
                {
                    "deprecated_builtin_code": min(number, _PLACEHOLDER),
                    "builtin_code": number,
                    "version": version,
                },
            )
            for number, version in ((schema.BUILTIN_OPERATORS.index(kind), version) for kind, version in self._codes)
        ]
        root: dict[str, object] = {
            "version": 3,
            "operator_codes": codes,
            "subgraphs": [table("SubGraph", graph)],
            "description": self.description,
            "buffers": self._buffers,
        }
        return serialize(table("Model", root))


def _quantization(scale: Array | None, zero_point: Array | None, axis: int) -> Any:
    if scale is None or zero_point is None:
        return None
    values: dict[str, object] = {
        "scale": scale,
        "zero_point": zero_point,
        "quantized_dimension": axis if scale.size > 1 else 0,
    }
    return table("QuantizationParameters", values)


def _encoded(fields: schema.Fields, options: Mapping[str, OptionValue | Array]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in options.items():
        values[name] = fields[name].names.index(value) if isinstance(value, str) else value
    return values
