"""Elements attributes: how tensors of numbers are held by the IR, and seen by numpy without a copy.

Small ones are xDSL's `dense<...>`. Everything that may be large is a `WeightAttr`: upstream's `dense_resource<name>`
that also knows its bytes, so that neither cloning, verifying, hashing nor printing a module walks the weights.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
    Signedness,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, BuiltinAttribute, Data, TypedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from relay.errors import InvalidArgument

Array = npt.NDArray[Any]

INLINE_BYTES = 1024
"""Weights up to this size are printed in full; larger ones by name and hash."""


def label_of(handle: str) -> str:
    """The label in a weight's handle, other characters than those of names as "_"."""
    return handle.removeprefix("w_").rpartition("_")[0]


class WeightPrinter(Printer):
    """A printer that spells every weight in full (`dense<"0x...">`), whatever its size."""

    def print_attribute(self, attribute: Attribute) -> None:
        array = getattr(attribute, "array", None)
        if isinstance(attribute, DenseResourceAttr) and isinstance(array, np.ndarray):
            print_dense(cast(Array, array), attribute.type, self)
            self.print_string(" : ")
            attribute = attribute.type
        super().print_attribute(attribute)


class Blob:
    """Read-only bytes of a tensor, shared and never copied; hashed once, when first needed."""

    def __init__(self, array: Array):
        self.array = array

    @cached_property
    def digest(self) -> str:
        """sha256 of the bytes, in hexadecimal."""
        return hashlib.sha256(np.ascontiguousarray(self.array).data).hexdigest()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Blob) or self.array.nbytes != other.array.nbytes:
            return False
        same_memory = self.array.ctypes.data == other.array.ctypes.data and self.array.nbytes > 0
        return same_memory or self.digest == other.digest

    def __hash__(self) -> int:
        return hash((self.array.nbytes, self.array.reshape(-1)[:16].tobytes()))


@irdl_attr_definition
class BlobAttr(Data[Blob]):
    """Holds a `Blob`; part of `WeightAttr`, never spelled by itself."""

    name = "relay.blob"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Blob:
        parser.raise_error("a blob has no spelling of its own; write dense<...> or dense_resource<...>")

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string_literal(self.data.digest)


@irdl_attr_definition
class WeightAttr(TypedAttribute, BuiltinAttribute):
    """A constant tensor that shares the memory of an array: printed `dense<...>` up to `INLINE_BYTES`, then
    `dense_resource<name_hash>`. Two weights are equal when their types, labels and bytes are."""

    name = "relay.weight"
    type: TensorType[Attribute]
    label: StringAttr
    blob: BlobAttr

    @property
    def array(self) -> Array:
        """The numbers, zero-copy, read-only."""
        return self.blob.data.array

    @property
    def handle(self) -> str:
        """The name by which text and side-car files know the weight: its label and the start of its sha256."""
        return re.sub(r"[^A-Za-z0-9_$.]", "_", f"w_{self.label.data}") + "_" + self.blob.data.digest[:12]

    def resource(self) -> DenseResourceAttr:
        """The same as upstream's `dense_resource`, for upstream's ops; it remembers the numbers."""
        attr = DenseResourceAttr(StringAttr(self.handle), self.type)
        object.__setattr__(attr, "array", self.array)
        return attr

    def print_without_type(self, printer: Printer) -> None:
        if self.array.nbytes <= INLINE_BYTES or isinstance(printer, WeightPrinter):
            print_dense(self.array, self.type, printer)
        else:
            printer.print_string(f"dense_resource<{self.handle}>")

    def print_builtin(self, printer: Printer) -> None:
        self.print_without_type(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.type)


def print_dense(array: Array, type: ShapedType, printer: Printer) -> None:
    """Print `dense<...>`: a splat by its value, up to 100 elements as a list, more as one hexadecimal string."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size > 100 and array.dtype != np.bool_ and not bool((flat == flat[0]).all()):
        printer.print_string(f'dense<"0x{flat.tobytes().hex().upper()}">')
        return
    if array.dtype == np.bool_ and flat.size > 100:
        nested = str(array.astype(np.int8).tolist()).replace("1", "true").replace("0", "false")
        printer.print_string(f"dense<{nested}>")
        return
    DenseIntOrFPElementsAttr.new([type, BytesAttr(flat.tobytes())]).print_without_type(printer)


_FLOATS = {np.dtype("float16"): Float16Type(), np.dtype("float32"): Float32Type(), np.dtype("float64"): Float64Type()}


def element_type(dtype: npt.DTypeLike) -> Attribute:
    """The IR's element type of a numpy dtype: signed integers are signless (`i8`), unsigned ones are `ui8`..."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return IntegerType(1)
    if dtype in _FLOATS:
        return _FLOATS[dtype]
    if dtype.kind == "i":
        return IntegerType(8 * dtype.itemsize)
    if dtype.kind == "u":
        return IntegerType(8 * dtype.itemsize, Signedness.UNSIGNED)
    raise InvalidArgument(f"dtype {dtype}", "has no element type in the IR", "use bool, (u)int8..64 or float16..64")


def dtype_of(type: Attribute) -> np.dtype[Any]:
    """The numpy dtype of an element type; the inverse of `element_type`. `index` is int64."""
    match type:
        case IntegerType():
            bits = type.width.data
            if bits == 1:
                return np.dtype(np.bool_)
            if bits in (8, 16, 32, 64):
                return np.dtype(("uint" if type.signedness.data == Signedness.UNSIGNED else "int") + str(bits))
        case IndexType():
            return np.dtype(np.int64)
        case Float16Type():
            return np.dtype(np.float16)
        case Float32Type():
            return np.dtype(np.float32)
        case Float64Type():
            return np.dtype(np.float64)
        case _:
            pass
    raise InvalidArgument(f"element type {type}", "has no numpy dtype", "use i1, (u)i8..64, f16, f32 or f64")


def tensor_type(array: Array) -> TensorType[Attribute]:
    """`tensor<shape x element type>` of an array."""
    return TensorType(element_type(array.dtype), array.shape)


def elements(value: npt.ArrayLike, dtype: npt.DTypeLike | None = None, label: str = "weight") -> WeightAttr:
    """An elements attribute that shares the array's memory (rank 0 and up)."""
    array = np.asarray(value, dtype=dtype)
    array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    view = array.view()
    view.flags.writeable = False
    return WeightAttr(tensor_type(array), StringAttr(label), BlobAttr(Blob(view)))


def to_numpy(attr: Attribute) -> Array:
    """The numbers of an elements, array or scalar attribute as a read-only array; zero-copy where it holds bytes."""
    match attr:
        case WeightAttr():
            return attr.array
        case DenseIntOrFPElementsAttr():
            dtype = dtype_of(attr.get_element_type())
            flat = np.frombuffer(attr.data.data, dtype)
            shape = attr.get_shape()
            return np.broadcast_to(flat.reshape(()), shape) if flat.size == 1 else flat.reshape(shape)
        case DenseArrayBase():
            return np.frombuffer(attr.data.data, dtype_of(attr.elt_type))
        case IntegerAttr():
            return np.asarray(attr.value.data, dtype_of(attr.type))
        case FloatAttr():
            return np.asarray(attr.value.data, dtype_of(attr.type))
        case DenseResourceAttr():
            array = getattr(attr, "array", None)
            if isinstance(array, np.ndarray):
                return cast(Array, array)
            raise InvalidArgument(
                f"weight {attr.resource_handle.data}",
                "is named by the text but its bytes are not there",
                "give the side-car file that holds it, or print the module with its weights",
            )
        case _:
            raise InvalidArgument(f"attribute {attr}", "holds no numbers", "")


def scalar_attr(value: float | int | np.generic, type: Attribute) -> Attribute:
    """`5 : i32` or `0.5 : f32`."""
    if isinstance(type, IndexType):
        return IntegerAttr(int(value), type)
    if isinstance(type, IntegerType):
        return IntegerAttr(int(value), cast(IntegerType, type))
    if isinstance(type, Float16Type | Float32Type | Float64Type):
        return FloatAttr(float(value), type)
    raise InvalidArgument(f"element type {type}", "has no scalars", "")


def ints(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """`array<i64: ...>`, the form of strides, padding, axes and the like."""
    return DenseArrayBase.from_list(i64, [int(v) for v in values])


def int_values(attr: DenseArrayBase[Any]) -> tuple[int, ...]:
    """The numbers of an `array<i64: ...>`."""
    return tuple(int(v) for v in attr.get_values())
