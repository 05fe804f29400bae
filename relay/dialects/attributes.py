"""Elements attributes: how the IR holds the elements of constant tensors, which numpy reads without a copy.

Small ones are xDSL's `dense<...>`. Everything that may be large is a `WeightAttr`: MLIR's `dense_resource<name>` that
also knows its bytes, so that neither cloning, verifying, hashing nor printing a module walks the weights."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, BuiltinAttribute, Data, TypedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from relay.dialects.element_types import (
    FEW_BITS,
    canonical,
    converted,
    dtype_of,
    element_type,
    is_extended,
    is_float,
    ranked_type,
    wider,
)
from relay.errors import InvalidArgument
from relay.mapping import used

__all__ = [
    "INLINE_BYTES", "Array", "Blob", "BlobAttr", "WeightAttr", "WeightPrinter", "dtype_of", "element_type", "elements",
    "int_values", "ints", "label_of", "print_dense", "scalar_attr", "share_memory", "tensor_type", "to_numpy",
]  # fmt: skip

Array = npt.NDArray[Any]

INLINE_BYTES = 1024
"""Weights up to this size are printed in full; larger ones by name and hash."""


def label_of(handle: str) -> str:
    """The label in a weight's handle, in which "_" replaces each character of the label that a name cannot contain."""
    return handle.removeprefix("w_").rpartition("_")[0]


def share_memory(attr: DenseResourceAttr, array: Array) -> None:
    """Attach an array with the elements to xDSL's `dense_resource` attribute."""
    object.__setattr__(attr, "array", array)


class WeightPrinter(Printer):
    """A printer that writes every weight in full (`dense<"0x...">`)."""

    def print_attribute(self, attribute: Attribute) -> None:
        array = getattr(attribute, "array", None)
        if isinstance(attribute, DenseResourceAttr) and isinstance(array, np.ndarray):
            print_dense(cast(Array, array), attribute.type, self)
            self.print_string(" : ")
            attribute = attribute.type
        super().print_attribute(attribute)


class Blob:
    """The read-only bytes of a tensor, shared without copies; hashed when first needed."""

    def __init__(self, array: Array):
        self.array = array

    @cached_property
    def digest(self) -> str:
        """sha256 of the bytes, in hexadecimal."""
        found = hashlib.sha256(np.ascontiguousarray(self.array).reshape(-1).view(np.uint8).data).hexdigest()
        used(self.array.nbytes)
        return found

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
    """Holds a `Blob`; a part of `WeightAttr` that is never printed by itself."""

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
        """The elements as a read-only array that shares the weight's memory."""
        return self.blob.data.array

    @property
    def handle(self) -> str:
        """The name by which text and side-car files know the weight: its label and the start of its sha256."""
        return re.sub(r"[^A-Za-z0-9_$.]", "_", f"w_{self.label.data}") + "_" + self.blob.data.digest[:12]

    def resource(self) -> DenseResourceAttr:
        """The weight as xDSL's `dense_resource` attribute, for ops that xDSL defines; the elements stay attached."""
        attr = DenseResourceAttr(StringAttr(self.handle), self.type)
        share_memory(attr, self.array)
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
    """Print `dense<...>`: a splat as one value, up to 100 elements as a list, more as one hexadecimal string with a
    byte for each integer of 2 or 4 bits. NaNs of narrow floats are printed in hexadecimal too, since a list would lose
    their sign and payload."""
    flat = np.ascontiguousarray(array).reshape(-1)
    lossy = is_extended(array.dtype) and bool(np.isnan(wider(flat)).any())
    if lossy or (flat.size > 100 and array.dtype != np.bool_ and not bool((flat == flat[0]).all())):
        printer.print_string(f'dense<"0x{flat.tobytes().hex().upper()}">')
        return
    if array.dtype == np.bool_ and flat.size > 100:
        nested = str(array.astype(np.int8).tolist()).replace("1", "true").replace("0", "false")
        printer.print_string(f"dense<{nested}>")
        return
    DenseIntOrFPElementsAttr.new([type, BytesAttr(dense_bytes(flat))]).print_without_type(printer)


def dense_bytes(array: Array) -> bytes:
    """The bytes of the elements as xDSL's `dense<...>` stores them: integers of 2 and 4 bits are extended to a byte."""
    return (wider(array) if array.dtype.name in FEW_BITS else array).tobytes()


def tensor_type(array: Array) -> TensorType[Attribute]:
    """`tensor<shape x element type>` of an array."""
    return ranked_type(element_type(array.dtype), array.shape)


def elements(value: npt.ArrayLike, dtype: npt.DTypeLike | None = None, label: str = "weight") -> WeightAttr:
    """An elements attribute that shares the array's memory; `label` begins the name under which large weights are
    printed and stored."""
    array = canonical(np.asarray(value, dtype=dtype))
    array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    view = array.view()
    view.flags.writeable = False
    return WeightAttr(tensor_type(array), _text(label), BlobAttr(Blob(view)))


@lru_cache(maxsize=64)
def _text(value: str) -> StringAttr:
    return StringAttr(value)


def to_numpy(attr: Attribute) -> Array:
    """The elements of an elements, array or scalar attribute as a read-only array, without a copy where the attribute
    holds bytes."""
    match attr:
        case IntegerAttr() | FloatAttr():
            dtype = dtype_of(attr.type)
            value = attr.value.data
            return converted(np.asarray(value), dtype) if is_extended(dtype) else np.asarray(value, dtype)
        case WeightAttr():
            return attr.array
        case DenseIntOrFPElementsAttr():
            dtype = dtype_of(attr.get_element_type())
            flat = np.frombuffer(attr.data.data, dtype)
            flat = flat.view(np.uint8) != 0 if dtype == np.bool_ else canonical(flat)
            shape = attr.get_shape()
            return np.broadcast_to(flat.reshape(()), shape) if flat.size == 1 else flat.reshape(shape)
        case DenseArrayBase():
            return np.frombuffer(attr.data.data, dtype_of(attr.elt_type))
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
    """A number as an attribute: `5 : i32` or `0.5 : f32`."""
    if type.__class__ is IntegerType or type.__class__ is IndexType:
        return _integer_attr(int(value), cast(IntegerType, type))
    if is_float(type):
        return FloatAttr(float(value), cast(AnyFloat, type))
    raise InvalidArgument(f"element type {type}", "has no scalars", "")


@lru_cache(maxsize=4096)
def _integer_attr(value: int, type: IntegerType) -> Attribute:
    return IntegerAttr(value, type)  # cached: xDSL verifies every attribute that is constructed


def ints(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """`array<i64: ...>`, the form of strides, padding, axes and the like."""
    return DenseArrayBase.from_list(i64, [int(v) for v in values])


def int_values(attr: DenseArrayBase[Any]) -> tuple[int, ...]:
    """The integers of an `array<i64: ...>`."""
    return tuple(int(v) for v in attr.get_values())
