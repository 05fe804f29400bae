"""Element types of tensors: the list of them, the numpy dtype of each, and how types narrower than a byte are stored.
numpy has no bf16, no floats of 8 bits and less, and no integers of 2 and 4 bits: `ml_dtypes` has them, and is imported
when the first such type is met. Its arrays, and the memory of compiled code, use at least a byte for each element;
files pack integers of 2 and 4 bits (`packed`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache, lru_cache
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatTF32Type,
    IndexType,
    IntegerType,
    ReducedPrecisionFloatType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, TypeAttribute

from relay.errors import InvalidArgument

Array = npt.NDArray[Any]

NUMPY_FLOATS = {
    np.dtype("float16"): Float16Type(),
    np.dtype("float32"): Float32Type(),
    np.dtype("float64"): Float64Type(),
}
"""numpy's own float types."""
NUMPY_TYPES: dict[type[Attribute], np.dtype[Any]] = {
    **{type.__class__: dtype for dtype, type in NUMPY_FLOATS.items()},
    IndexType: np.dtype(np.int64),
}
"""The numpy dtype of each element type class that has exactly one."""


FEW_BITS = ("int2", "int4", "uint2", "uint4")
"""The dtypes of fewer than 8 bits; files pack several of their elements into a byte."""


class StoredType(TypeAttribute, ABC):
    """An element type that a plug-in defines, whose elements are stored as elements of a builtin type."""

    @property
    @abstractmethod
    def storage(self) -> Attribute:
        """The builtin type, such as `i16`, in which the elements are stored: the interpreter and executables take
        arrays of it, and scalar code computes on it."""


@lru_cache(maxsize=4096)
def ranked_type(element: Attribute, shape: tuple[int, ...]) -> TensorType[Attribute]:
    """The tensor type of this element type and shape; cached, because xDSL verifies every attribute that is
    constructed."""
    return TensorType(element, shape)


def element_type(dtype: npt.DTypeLike) -> Attribute:
    """The IR's element type of a numpy dtype: signed integers are signless (`i8`), unsigned ones are `ui8`..."""
    return _element_type(np.dtype(dtype))


@cache
def _element_type(dtype: np.dtype[Any]) -> Attribute:
    if dtype == np.bool_:
        return IntegerType(1)
    if dtype in NUMPY_FLOATS:
        return NUMPY_FLOATS[dtype]
    if is_extended(dtype):
        if (found := _extended().get(dtype)) is not None:
            return found
    elif dtype.kind == "i":
        return IntegerType(8 * dtype.itemsize)
    elif dtype.kind == "u":
        return IntegerType(8 * dtype.itemsize, Signedness.UNSIGNED)
    raise InvalidArgument(f"dtype {dtype}", "has no element type in the IR", "use bool, (u)int8..64 or float16..64")


def dtype_of(type: Attribute) -> np.dtype[Any]:
    """The numpy dtype of an element type; the inverse of `element_type`. `index` is int64."""
    if (known := NUMPY_TYPES.get(type.__class__)) is not None:
        return known
    match type:
        case IntegerType():
            bits = type.width.data
            unsigned = type.signedness.data == Signedness.UNSIGNED
            if (found := _integer_dtype(bits, unsigned)) is not None:
                return found
        case BFloat16Type():
            return _of_ml_dtypes("bfloat16")
        case StoredType():
            return dtype_of(type.storage)
        case ReducedPrecisionFloatType() if not isinstance(type, FloatTF32Type):
            return _of_ml_dtypes(f"float{type.name[1]}_{type.name[2:].lower()}")
        case _:
            pass
    raise InvalidArgument(f"element type {type}", "has no numpy dtype", "use i1, (u)i8..64, f16, f32 or f64")


@cache
def _integer_dtype(bits: int, unsigned: bool) -> np.dtype[Any] | None:
    name = ("uint" if unsigned else "int") + str(bits)
    if bits in (8, 16, 32, 64):
        return np.dtype(name)
    return np.dtype(np.bool_) if bits == 1 else _of_ml_dtypes(name) if bits in (2, 4) else None


def dtype_named(name: str) -> np.dtype[Any]:
    """The dtype with this name in numpy or `ml_dtypes`."""
    return np.dtype(name) if name in np.sctypeDict else _of_ml_dtypes(name)


@cache
def _of_ml_dtypes(name: str) -> np.dtype[Any]:
    import ml_dtypes  # here: few programs meet such a type

    return np.dtype(getattr(ml_dtypes, name))


@cache
def _extended() -> dict[np.dtype[Any], Attribute]:
    """A mapping from each dtype of `ml_dtypes` to its element type."""
    every: list[Attribute] = [cast(Attribute, type()) for type in (BFloat16Type, *_small_floats())]
    every += [IntegerType(bits, sign) for bits in (2, 4) for sign in (Signedness.SIGNLESS, Signedness.UNSIGNED)]
    return {dtype_of(type): type for type in every}


def _small_floats() -> list[type[ReducedPrecisionFloatType]]:
    """The classes of upstream's float types of 4, 6 and 8 bits."""
    return [type for type in ReducedPrecisionFloatType.__subclasses__() if type is not FloatTF32Type]


def signed_floats() -> list[ReducedPrecisionFloatType]:
    """The floats of 4, 6 and 8 bits that have a sign."""
    return [type() for type in _small_floats() if type.SEMANTICS.has_sign]


def is_extended(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is one of `ml_dtypes`: numpy's own rules of promotion and `dtype.kind` do not hold for
    these."""
    return dtype.isbuiltin == 2


def is_float(type: Attribute) -> bool:
    """Whether the element type is a float one, of any width."""
    return isinstance(type, AnyFloat)


def is_narrow(type: Attribute) -> bool:
    """Whether elements of the type are only stored in it, and computed in a wider one: bf16, floats of 8 bits and less,
    integers of 2 and 4 bits."""
    if type.__class__ is IntegerType:
        return cast(IntegerType, type).width.data in (2, 4)
    return type.__class__ not in NUMPY_TYPES and isinstance(type, BFloat16Type | ReducedPrecisionFloatType)


def wide_type(type: Attribute) -> Attribute:
    """The type in which elements of a narrow type are computed: f32, i8 or ui8."""
    return element_type(wider_dtype(dtype_of(type)))


def storage_type(type: Attribute) -> IntegerType:
    """The signless integer type in which compiled code stores an element of a narrow type."""
    return IntegerType(16 if isinstance(type, BFloat16Type) else 8)


def bits_of(type: Attribute) -> int:
    """The width of one element in bits; 8 for `i1`, which fills a byte."""
    if isinstance(type, BFloat16Type | ReducedPrecisionFloatType):
        return type.bitwidth
    dtype = dtype_of(type)
    return int(dtype.name[-1]) if dtype.name in FEW_BITS else 8 * dtype.itemsize


def wider(array: Array) -> Array:
    """An array of an `ml_dtypes` dtype converted exactly to a dtype of numpy's own: float32, int8 or uint8; any other
    array unchanged."""
    return array.astype(wider_dtype(array.dtype)) if is_extended(array.dtype) else array


def wider_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to which `wider` converts, in which elements of this dtype are computed."""
    if not is_extended(dtype):
        return dtype
    return np.dtype("float32" if dtype.name not in FEW_BITS else "int8" if dtype.name.startswith("i") else "uint8")


def converted(array: Array, dtype: np.dtype[Any], saturate: bool = False) -> Array:
    """Convert an array to another dtype, rounding each element once.

    Integers wrap, floats become integers towards zero, float rounding is half to even. Values beyond the largest finite
    one of a float type become infinity, NaN where the type has no infinity, the largest value where it has neither;
    with `saturate` always the largest."""
    array = wider(array)
    if not is_extended(dtype):
        return array.astype(dtype)
    if dtype.name in FEW_BITS:
        return (array.astype(np.int64) if array.dtype.kind == "f" else array).astype(dtype)
    if saturate:
        most = largest(dtype)
        array = np.where(np.isnan(array), array, np.clip(array, -most, most))
    return _rounded_to_odd(array).astype(dtype)


def largest(dtype: np.dtype[Any]) -> float:
    """The largest finite value of an `ml_dtypes` float dtype."""
    codes = np.arange(1 << 8 * dtype.itemsize, dtype=f"uint{8 * dtype.itemsize}").view(dtype).astype(np.float32)
    return float(codes[np.isfinite(codes)].max())


def _rounded_to_odd(array: Array) -> Array:
    """Round to float32 with the last bit set where bits were lost ("round to odd"), so that rounding the result to
    fewer bits equals rounding the original once."""
    if array.dtype.kind != "f" and array.dtype.itemsize == 8:
        lost = (array & array.dtype.type(1023)) != 0
        whole = (array >> array.dtype.type(10)) | lost.astype(array.dtype)
        large = whole.astype(np.float64) * 1024.0
        small = (array < 2**53) if array.dtype.kind == "u" else (np.abs(array) < 2**53)
        array = np.where(small, array.astype(np.float64), large)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 4 or array.dtype.itemsize <= 2:
        return array.astype(np.float32)
    exact = np.asarray(array, np.float64)
    near = exact.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(exact)
    below = np.where(beyond & np.isfinite(exact), np.nextafter(near, np.float32(0)), near)
    inexact = np.isfinite(exact) & (below.astype(np.float64) != exact)
    bits = below.view(np.uint32) | inexact.astype(np.uint32)
    return bits.view(np.float32)


SAFETENSORS = {
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
"""A mapping from safetensors' dtype names to numpy's. Arrays of other dtypes are stored as bytes."""


def as_stored(array: Array) -> Array:
    """The array as safetensors stores it: itself, or as bytes if safetensors lacks the dtype; elements of 2 or 4 bits
    are packed."""
    array = np.ascontiguousarray(array)
    if array.dtype.name in SAFETENSORS.values():
        return array
    return packed(array) if array.dtype.name in FEW_BITS else array.view(np.uint8)


def from_stored(array: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The inverse of `as_stored`: the array of this dtype and shape, or the stored array unchanged if it does not fit
    them."""
    if array.dtype != np.uint8 or dtype.name in SAFETENSORS.values():
        return array
    if dtype.name not in FEW_BITS:
        return array.view(dtype)
    count = 8 // int(dtype.name[-1])
    return unpacked(array, dtype, prod(shape)).reshape(shape) if array.size == -(-prod(shape) // count) else array


def packed(array: Array) -> npt.NDArray[np.uint8]:
    """Pack elements of 2 or 4 bits into bytes, the first in the lowest bits, as ONNX does."""
    bits = int(array.dtype.name[-1])
    count = 8 // bits
    codes = array.reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    rows = np.pad(codes, (0, -codes.size % count)).reshape(-1, count)
    shifts = np.arange(count, dtype=np.uint8) * np.uint8(bits)
    return np.bitwise_or.reduce(rows << shifts, axis=1, dtype=np.uint8)


def unpacked(data: npt.NDArray[np.uint8], dtype: np.dtype[Any], size: int) -> Array:
    """Unpack the first `size` elements of 2 or 4 bits from these bytes; the inverse of `packed`."""
    bits = int(dtype.name[-1])
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    codes = (data.reshape(-1, 1) >> shifts) & np.uint8((1 << bits) - 1)
    return np.ascontiguousarray(codes.reshape(-1)[:size]).view(dtype)


def canonical(array: Array) -> Array:
    """The array with zeros in unused bits of each byte, so that equal numbers have equal bytes."""
    if not is_extended(array.dtype) or array.dtype.name not in FEW_BITS:  # numpy makes the name anew each time
        return array
    codes = array.view(np.uint8)
    mask = np.uint8((1 << int(array.dtype.name[-1])) - 1)
    return array if not bool((codes > mask).any()) else np.asarray(codes & mask).view(array.dtype)
