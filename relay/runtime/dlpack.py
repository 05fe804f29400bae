"""Exchanges arrays on a device with other libraries, by DLPack and `__cuda_array_interface__`.

Sources: dlpack.h of DLPack 0.8, whose capsules are called `dltensor`; the CUDA array interface, version 3.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_void_p,
    pythonapi,
)
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relay.errors import InvalidArgument, Unsupported
from relay.runtime.memory import Array, dtype_named

CPU, CUDA, PINNED, MANAGED = 1, 2, 3, 13
"""DLPack's device type codes; the host can read memory of the types CPU and PINNED."""
LEGACY_STREAM = 1
"""The number of CUDA's default stream in DLPack and in `__cuda_array_interface__`; the driver's handle of it is 0."""
NAME, USED = b"dltensor", b"used_dltensor"
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""DLPack's type codes by numpy's `dtype.kind`."""
KINDS = {code: kind for kind, code in CODES.items()}
NAMES = {
    4: "bfloat16",
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
}
"""The `ml_dtypes` names of DLPack's type codes that numpy lacks. Source: dlpack.h of 1.1."""


class Dlpack(Protocol):
    """The DLPack methods of an array of another library."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class CudaArray(Protocol):
    """The `__cuda_array_interface__` of an array in CUDA device memory."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]: ...


Given = npt.ArrayLike | Dlpack | CudaArray
"""The types that an input may have."""


class Device(Structure):
    """DLPack's struct DLDevice."""

    _fields_ = [("kind", c_int32), ("number", c_int32)]


class Tensor(Structure):
    """DLPack's struct DLTensor; strides are counted in elements, and null for a contiguous array."""

    _fields_ = [
        ("data", c_void_p),
        ("device", Device),
        ("ndim", c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(Structure):
    """DLPack's struct DLManagedTensor."""

    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p)]


new_capsule = PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
is_valid = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", pythonapi))
pointer_of = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", pythonapi))
Deleter = CFUNCTYPE(None, c_void_p)
Destructor = PYFUNCTYPE(None, c_void_p)


@dataclass(frozen=True)
class View:
    """An array in another owner's memory, which stays valid as long as `keep` is referenced."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    keep: object


def device_of(value: object) -> tuple[int, int] | None:
    """The DLPack type and number of the device on which an array is; None if the object does not tell, or if the host
    can read its memory."""
    if isinstance(value, np.ndarray):
        return None
    if (asked := getattr(value, "__dlpack_device__", None)) is not None:
        kind, number = asked()
        return None if kind in (CPU, PINNED) else (int(kind), int(number))
    return (CUDA, -1) if hasattr(value, "__cuda_array_interface__") else None


def on_host(value: Any, where: str) -> object:
    """The value in a form for `numpy.asarray`; objects that only have DLPack are converted. Raises InvalidArgument for
    arrays on a device."""
    if (place := device_of(value)) is not None:
        hint = "copy it to the host, or build the model for that device"
        raise InvalidArgument(where, f"lies on a device (DLPack's kind {place[0]})", hint)
    if not hasattr(value, "__dlpack__"):
        return value
    plain = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    try:
        array: Array = np.asarray(value) if plain else np.from_dlpack(value)
        return array
    except (BufferError, RuntimeError, TypeError):
        view = of_capsule(value.__dlpack__(), where)
        if view.dtype.isbuiltin == 1:
            raise
        return array_of(view)


def array_of(view: View) -> Array:
    """The host memory of a view as an array, which keeps the owner alive."""
    block = (c_char * (prod(view.shape) * view.dtype.itemsize)).from_address(view.address)
    object.__setattr__(block, "keep", view.keep)
    return np.ndarray(view.shape, view.dtype, memoryview(block))


def view_of(value: Any, device: tuple[int, int], stream: int, where: str) -> tuple[View, int | None]:
    """A view of an array on this device for use in `stream`, and another stream for which `stream` must wait first. The
    latter is None if there is none to wait for; for DLPack, the array's owner makes `stream` wait. Raises
    InvalidArgument for an array on another device, or one that is not contiguous."""
    kind, number = device_of(value) or (CPU, 0)
    if kind == MANAGED:
        kind, number = device
    if kind != device[0] or number not in (-1, device[1]):
        hint = "copy it there, or run the model on its device with .on(device)"
        raise InvalidArgument(
            where, f"lies on device {number} (DLPack's kind {kind}); the model runs on {device[1]}", hint
        )
    if number == -1:
        return of_interface(value.__cuda_array_interface__, value, where)
    return of_capsule(value.__dlpack__(stream=stream or LEGACY_STREAM), where), None


def of_capsule(capsule: object, where: str) -> View:
    """The array in a DLPack capsule. The capsule stays unconsumed: its owner frees the memory with it."""
    address = pointer_of(id(capsule), NAME) if is_valid(id(capsule), NAME) else None
    if not address:
        raise InvalidArgument(where, "gives no capsule of DLPack")
    tensor = Managed.from_address(address).tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    kind = KINDS.get(tensor.code)
    if (kind is None and tensor.code not in NAMES) or tensor.lanes != 1 or tensor.bits % 8:
        raise InvalidArgument(where, f"has elements of DLPack's kind {tensor.code}, {tensor.bits} bits")
    dtype = dtype_named(NAMES[tensor.code] if kind is None else f"{kind}{tensor.bits // 8}")
    dense(shape, strides and [step * dtype.itemsize for step in strides], dtype, where)
    return View(int(tensor.data or 0) + int(tensor.byte_offset), shape, dtype, capsule)


def of_interface(row: Mapping[str, Any], owner: object, where: str) -> tuple[View, int | None]:
    """The array that a `__cuda_array_interface__` describes, and the stream to wait for (None if there is none)."""
    shape, dtype = tuple(int(d) for d in row["shape"]), np.dtype(row["typestr"])
    dense(shape, row.get("strides"), dtype, where)
    stream = row.get("stream")
    return View(int(row["data"][0] or 0), shape, dtype, owner), None if stream is None else int(stream)


def dense(shape: Sequence[int], strides: Sequence[int] | None, dtype: np.dtype[Any], where: str) -> None:
    """Raise InvalidArgument for an array that is not contiguous in row-major order; strides are in bytes."""
    if strides is None or not prod(shape):
        return
    step = dtype.itemsize
    for size, found in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and found != step:
            raise InvalidArgument(where, "has gaps, or rows in another order", "make it contiguous on its device")
        step *= size


EXPORTED: dict[int, tuple[Managed, object, object]] = {}
"""Exported arrays by address, with their shape and the owner of their memory."""


@Deleter
def delete(address: int) -> None:
    """The DLManagedTensor's deleter: called when its consumer no longer reads the array."""
    EXPORTED.pop(address, None)


@Destructor
def drop(capsule: int) -> None:
    """PyCapsule destructor: frees the DLManagedTensor unless a consumer took it (a consumer renames the capsule)."""
    if is_valid(capsule, NAME):
        delete(pointer_of(capsule, NAME) or 0)


def capsule_of(
    address: int, shape: Sequence[int], dtype: np.dtype[Any], device: tuple[int, int], keep: object
) -> object:
    """A DLPack capsule of this array, whose memory lives as long as `keep`."""
    codes = {name: code for code, name in NAMES.items()}
    code = CODES.get(dtype.kind) if dtype.isbuiltin == 1 else codes.get(dtype.name)
    if code is None:
        raise Unsupported(f"an array of {dtype}", "has no name in DLPack")
    sizes = (c_int64 * max(len(shape), 1))(*shape)
    tensor = Tensor(address, Device(*device), len(shape), code, 8 * dtype.itemsize, 1, sizes, None, 0)
    managed = Managed(tensor, None, ctypes.cast(delete, c_void_p))
    where = ctypes.addressof(managed)
    EXPORTED[where] = (managed, sizes, keep)
    return new_capsule(where, NAME, ctypes.cast(drop, c_void_p))
