"""`read_model`: parses a `.tflite` file to plain, checked dataclasses, without copying the weights.

The checks are those that hold for every operator: indices, shapes, sizes and quantisation parameters are consistent,
and each tensor is produced once and before it is used. Checks of a single operator's inputs and options are the
importer's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.frontend.importing.options import MAX_ELEMENTS
from relay.frontend.tflite import schema
from relay.frontend.tflite.flatbuffer import Reader, Table
from relay.frontend.tflite.sparsity import SPARSITY, Sparsity, read_sparsity

OptionValue = int | float | bool | str | tuple[int, ...]

MAX_RANK = 8
_MAX_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Blocks:
    """`BlockwiseQuantization`: the indices of the tensors with the scales and the zero points [row, block of the row],
    and the number of elements of a row that one block has. If `zero_points` is below 1, there are no zero points: 0 is
    the default of the file's field."""

    scales: int
    zero_points: int
    size: int
    shape: tuple[int, ...]
    """The sizes of a block of weights along the tensor's axes; empty if the file gives only the number of elements."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """The quantization `real = scale * (code - zero_point)`, elementwise along `axis` if there are several scales."""

    scale: NDArray[np.float32]
    """One scale, or one for each index along the axis, in real units per step, finite and at least 0: converters write
    0 for channels of zeros, and where the scale is not used."""
    zero_point: NDArray[np.int64]
    """The zero points: one for each scale."""
    axis: int
    """The quantized axis; 0 for tensors of rank 0 and 1, whatever the file states, since it is wrong for some
    biases."""
    details: str
    """"NONE", or the kind of a scheme that scale and zero_point do not describe, such as "BlockwiseQuantization"."""
    blocks: Blocks | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    index: int
    name: str
    """The name as stored, which may be empty, or equal to another tensor's."""
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    """The shape with -1 for each unknown dimension; equal to the shape if the file stores none."""
    type: str
    """The element type: "INT8", "FLOAT32", …; "TYPE:n" for a type number newer than the schema relay knows."""
    data: memoryview | None
    """The elements of a constant, little-endian and row-major, as a view of the file; None for other tensors."""
    quantization: Quantization | None
    is_variable: bool
    """Whether the tensor keeps its value from one run of the model to the next."""
    sparsity: Sparsity | None
    """How the sparse data is stored; None if it is dense."""

    @property
    def is_sparse(self) -> bool:
        return self.sparsity is not None

    @property
    def blocks(self) -> Blocks | None:
        """The scales and zero points of a tensor whose rows are divided into blocks with a scale each, and the size of
        a block; None if the tensor is not quantized in blocks."""
        return None if self.quantization is None else self.quantization.blocks

    def __str__(self) -> str:
        return f"tensor {self.index} '{_printable(self.name)}'"

    def to_numpy(self) -> NDArray[Any]:
        """The constant as an array of the tensor's shape, not copied and read-only; it may be unaligned in memory.

        Raises Unsupported if numpy lacks the type (INT4, BFLOAT16, STRING, …) or the data is sparse, InvalidArgument if
        the tensor is no constant, Malformed if a BOOL is neither 0 nor 1.
        """
        if self.data is None and 0 not in self.shape:
            raise InvalidArgument(str(self), "is not a constant", "only tensors with data can be read as an array")
        dtype = _TYPES[self.type].dtype if self.type in _TYPES else ""
        if not dtype:
            raise Unsupported(str(self), f"numpy has no type for {self.type}", "use the tensor's `data`")
        if self.is_sparse:
            raise Unsupported(str(self), "the data is sparse", "store the tensor dense")
        data = self.data if self.data is not None else memoryview(b"")
        if self.type == "BOOL" and data and np.frombuffer(data, np.uint8).max() > 1:
            raise Malformed(str(self), "a BOOL is neither 0 nor 1")
        return np.frombuffer(data, np.dtype(dtype)).reshape(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    index: int
    kind: str
    """The builtin operator's name; "CUSTOM:name"; or "BUILTIN:n" for a number newer than the schema relay knows."""
    version: int
    inputs: tuple[int, ...]
    """The indices of the input tensors; -1 for an omitted optional input."""
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    """The indices of tensors that only describe the types inside the operator (LSTM), without -1."""
    options: Mapping[str, OptionValue]
    """Every field of the options table, with defaults filled in and enums by name; empty if there is no such table."""
    custom_options: bytes
    mutating_variable_inputs: tuple[bool, ...]

    def __str__(self) -> str:
        return f"operator {self.index} {_printable(self.kind)}"


@dataclass(frozen=True, slots=True, eq=False)
class Subgraph:
    name: str
    tensors: Sequence[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]
    """The operators, in an order in which they can run."""


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    name: str
    data: memoryview


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    version: int
    description: str
    subgraphs: tuple[Subgraph, ...]
    """The subgraphs, at least one; the first is the model's main function."""
    metadata: tuple[Metadata, ...]


def read_model(data: bytes | memoryview, name: str = "<bytes>") -> Model:
    """Parse a .tflite file. The weights are not copied: the model keeps `data` alive, and `data` must not change.

    `name` is the file's name in errors. Raises Malformed for invalid bytes, Unsupported if the weights are in another
    file. Source: TFLite schema.fbs, version 3.
    """
    try:
        view = memoryview(data).toreadonly().cast("B")
    except TypeError as error:
        raise InvalidArgument("read_model", f"data is not bytes: {error}", "pass bytes, or a view of them") from error
    return _ModelReader(view, name).model()


_TYPES = {row.name: row for row in schema.TENSOR_TYPES}
_CODE_RANGES = {
    row.name: (int(np.iinfo(row.dtype).min), int(np.iinfo(row.dtype).max))
    for row in schema.TENSOR_TYPES
    if row.name in ("INT8", "UINT8", "INT16", "INT32")
}


class _ModelReader:
    def __init__(self, data: memoryview, where: str) -> None:
        self._data = data
        self._where = where
        self._reader = Reader(data, where)
        self._buffers: list[memoryview] = []
        self._operator_codes: list[tuple[str, int]] = []

    def model(self) -> Model:
        root = self._reader.root(schema.MODEL, b"TFL3", "model")
        version = root.integer("version")
        if version != 3:
            raise Malformed(self._where, f"the schema version is {version}", "only version 3 was ever in use")
        self._buffers = [
            self._buffer(table, index) for index, table in enumerate(root.tables("buffers", schema.BUFFER))
        ] or [memoryview(b"")]
        self._operator_codes = [
            self._operator_code(table) for table in root.tables("operator_codes", schema.OPERATOR_CODE)
        ]
        subgraphs = tuple(
            self._subgraph(table, f"{self._where}: subgraph {index}")
            for index, table in enumerate(root.tables("subgraphs", schema.SUBGRAPH))
        )
        if not subgraphs:
            raise Malformed(self._where, "the model has no subgraph")
        metadata = tuple(
            Metadata(row.string("name"), self._buffers[_index(row, "buffer", len(self._buffers), self._where)])
            for row in root.tables("metadata", schema.METADATA)
        )
        return Model(version, root.string("description"), subgraphs, metadata)

    def _buffer(self, table: Table, index: int) -> memoryview:
        """The bytes of a buffer: in the flatbuffer, or, in files over 2 GB, after it."""
        offset = table.integer("offset")
        if offset > 1:
            return self._behind(offset, table.integer("size"), f"buffer {index}")
        return table.octets("data")

    def _behind(self, offset: int, size: int, what: str) -> memoryview:
        if offset + size > len(self._data):
            raise Malformed(
                f"{self._where}: {what}",
                f"bytes {offset} to {offset + size} are outside the file of {len(self._data)} bytes",
                "the file is truncated or damaged",
            )
        return self._data[offset : offset + size]

    def _operator_code(self, table: Table) -> tuple[str, int]:
        """The kind and version of an operator. Builtin numbers over 127 are in a field of their own; older files only
        have the int8 field."""
        number = max(table.integer("deprecated_builtin_code"), table.integer("builtin_code"))
        if number < 0:
            raise Malformed(f"{self._where}: {table.path}", f"the builtin operator number is {number}")
        if number < len(schema.BUILTIN_OPERATORS):
            kind = schema.BUILTIN_OPERATORS[number]
        else:
            kind = f"BUILTIN:{number}"
        if kind == "CUSTOM":
            kind = f"CUSTOM:{table.string('custom_code')}"
        return kind, table.integer("version")

    def _subgraph(self, table: Table, where: str) -> Subgraph:
        tensors = tuple(
            self._tensor(row, index, where) for index, row in enumerate(table.tables("tensors", schema.TENSOR))
        )
        operators = tuple(
            self._operator(row, index, len(tensors), where)
            for index, row in enumerate(table.tables("operators", schema.OPERATOR))
        )
        inputs = _tensor_indices(table, "inputs", 0, len(tensors), where)
        outputs = _tensor_indices(table, "outputs", 0, len(tensors), where)
        subgraph = Subgraph(table.string("name"), tensors, inputs, outputs, operators)
        _check_order(subgraph, where)
        return subgraph

    def _tensor(self, table: Table, index: int, where: str) -> Tensor:
        name = table.string("name")
        where = f"{where} tensor {index} '{_printable(name)}'"
        shape = table.integers("shape")
        if len(shape) > MAX_RANK or min(shape, default=0) < 0 or math.prod(shape) > MAX_ELEMENTS:
            raise Malformed(where, f"the shape is {_short(shape)}")
        signature = table.integers("shape_signature")
        if signature and (len(signature) != len(shape) or min(signature) < -1):
            raise Malformed(where, f"the shape is {shape} and its signature {_short(signature)}")
        if table.integer("external_buffer"):
            raise Unsupported(where, "the data is in another file", "store the weights in the .tflite file")
        number = table.integer("type")
        type_name = schema.TENSOR_TYPES[number].name if 0 <= number < len(schema.TENSOR_TYPES) else f"TYPE:{number}"
        sparsity = read_sparsity(table.table("sparsity", SPARSITY))
        data = self._buffers[_index(table, "buffer", len(self._buffers), where)]
        if data and sparsity is None:
            _check_size(data, shape, type_name, where)
        return Tensor(
            index=index,
            name=name,
            shape=shape,
            shape_signature=signature or shape,
            type=type_name,
            data=data or None,
            quantization=_quantization(table, shape, type_name, where),
            is_variable=table.boolean("is_variable"),
            sparsity=sparsity,
        )

    def _operator(self, table: Table, index: int, tensor_count: int, where: str) -> Operator:
        where = f"{where} operator {index}"
        kind, version = self._operator_codes[_index(table, "opcode_index", len(self._operator_codes), where)]
        where = f"{where} {_printable(kind)}"
        if offset := table.integer("large_custom_options_offset"):
            custom_options = self._behind(offset, table.integer("large_custom_options_size"), where)
            self._reader.work(len(custom_options), offset, table.path)
        else:
            custom_options = table.raw("custom_options")
        return Operator(
            index=index,
            kind=kind,
            version=version,
            inputs=_tensor_indices(table, "inputs", -1, tensor_count, where),
            outputs=_tensor_indices(table, "outputs", 0, tensor_count, where),
            intermediates=_tensor_indices(table, "intermediates", -1, tensor_count, where),
            options=_options(table, kind, where),
            custom_options=bytes(custom_options),
            mutating_variable_inputs=table.booleans("mutating_variable_inputs"),
        )


def _printable(text: str) -> str:
    """A text of the file for a message, shortened, and without control characters that terminals interpret."""
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")[1:-1]


def _short(values: tuple[int, ...]) -> str:
    """The values for a message, shortened if there are many."""
    return f"({', '.join(map(str, values[:MAX_RANK]))}{', …' if len(values) > MAX_RANK else ''})"


def _index(table: Table, field: str, count: int, where: str) -> int:
    """A field's value that must be an index into `count` elements. Raises Malformed."""
    value = table.integer(field)
    if value >= count:
        raise Malformed(where, f"{table.path}.{field} is {value}, but there are {count}")
    return value


def _tensor_indices(table: Table, field: str, lowest: int, count: int, where: str) -> tuple[int, ...]:
    indices = table.integers(field)
    for index in indices:
        if not lowest <= index < count:
            raise Malformed(where, f"{field} name tensor {index}, but there are {count}")
    return indices


def _check_size(data: memoryview, shape: tuple[int, ...], type_name: str, where: str) -> None:
    """Raise Malformed unless the data has the size that shape and type require; types without a fixed size are not
    checked."""
    bits = _TYPES[type_name].bits if type_name in _TYPES else 0
    size = -(-math.prod(shape) * bits // 8)
    if bits and len(data) != size:
        raise Malformed(where, f"{len(data)} bytes of data for shape {shape} of {type_name}, which takes {size}")


def _quantization(tensor: Table, shape: tuple[int, ...], type_name: str, where: str) -> Quantization | None:
    table = tensor.table("quantization", schema.QUANTIZATION)
    if table is None:
        return None
    details = table.enum("details_type")
    scale = np.frombuffer(table.raw("scale"), np.dtype("<f4"))
    if details == "BlockwiseQuantization" and (found := table.table("details", schema.BLOCKS)) is not None:
        scales, zeros, size = (found.integer(name) for name in ("scales", "zero_points", "block_size"))
        blocks = Blocks(scales, zeros, size, found.integers("block_shape"))
        return Quantization(scale, np.zeros(0, np.int64), 0, details, blocks)
    if not len(scale):
        none = np.zeros(0, np.int64)
        return None if details == "NONE" else Quantization(scale, none, table.integer("quantized_dimension"), details)
    if not (scale.min() >= 0 and scale.max() < np.inf):
        raise Malformed(where, "a scale is negative or not finite")
    zero_point = np.frombuffer(table.raw("zero_point"), np.dtype("<i8"))
    if len(zero_point) not in (0, 1, len(scale)):
        raise Malformed(where, f"{len(scale)} scales, but {len(zero_point)} zero points")
    low, high = _CODE_RANGES.get(type_name, (None, None))
    if low is not None and len(zero_point) and not (zero_point.min() >= low and zero_point.max() <= high):
        raise Malformed(where, f"a zero point is outside {low} to {high}, the range of {type_name}")
    if len(zero_point) != len(scale):
        zero_point = np.full(len(scale), zero_point[0] if len(zero_point) else 0, np.int64)
    axis = table.integer("quantized_dimension") if len(shape) > 1 else 0
    if len(scale) == 1:
        return Quantization(scale, zero_point, axis if 0 <= axis < len(shape) else 0, details)
    if details == "NONE" and not (0 <= axis < len(shape) and shape[axis] == len(scale)):
        raise Malformed(where, f"{len(scale)} scales along dimension {axis} of shape {shape}")
    return Quantization(scale, zero_point, axis, details)


def _options(operator: Table, kind: str, where: str) -> dict[str, OptionValue]:
    row = schema.OPTIONS.get(kind)
    if row is None:
        return {}
    member = operator.integer("builtin_options_type")
    if member not in (0, row.member):
        raise Malformed(where, f"has options number {member}, not {row.member} ({row.name})")
    table = operator.table("builtin_options", row.fields) if member else None
    return {field: _option(table, field, row.fields[field]) for field in row.fields}


def _option(table: Table | None, name: str, field: schema.Field) -> OptionValue:
    if field.kind == "vector":
        return table.integers(name) if table else ()
    if field.kind == "string":
        return table.string(name) if table else ""
    if field.names:
        return table.enum(name) if table else field.names[int(field.default)]
    if table is None:
        return field.default
    if field.kind == "bool":
        return table.boolean(name)
    return table.real(name) if field.kind == "float32" else table.integer(name)


def _check_order(subgraph: Subgraph, where: str) -> None:
    """Raise Malformed unless every tensor is defined at most once (by the file, the caller or an operator), and before
    it is used."""
    tensors = subgraph.tensors
    filled = {t.index for t in tensors if t.data is not None or t.is_variable or 0 in t.shape}
    produced: set[int] = set()
    for index in subgraph.inputs:
        if index in produced:
            raise Malformed(where, f"{tensors[index]} is an input twice")
        produced.add(index)
    for operator in subgraph.operators:
        for index in operator.inputs:
            if index >= 0 and index not in produced and index not in filled:
                raise Malformed(f"{where} {operator}", f"uses {tensors[index]} before anything produces it")
        for index in operator.outputs:
            if index in produced:
                raise Malformed(f"{where} {operator}", f"writes {tensors[index]}, which is already written")
            if tensors[index].data is not None:
                raise Malformed(f"{where} {operator}", f"writes {tensors[index]}, which is a constant")
            produced.add(index)
    for index in subgraph.outputs:
        if index not in produced and index not in filled:
            raise Malformed(where, f"{tensors[index]} is an output, but nothing produces it")
