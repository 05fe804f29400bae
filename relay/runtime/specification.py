"""`TensorSpec`: describes an input or output of a compiled model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relay.errors import InvalidArgument, Unsupported
from relay.runtime.memory import Array, dtype_named

if TYPE_CHECKING:
    from relay.runtime.dlpack import Given


class Size(int):
    """A size of a tensor that is not known before a run, such as a batch size: the integer -1, printed as its name."""

    name: str

    def __new__(cls, name: str) -> Size:
        size = super().__new__(cls, -1)
        size.name = name
        return size

    def __repr__(self) -> str:
        return self.name


class TensorSpec(NamedTuple):
    """An input or output: real = scale * (code - zero_point) where a scale is given. `kind`: input, output or state."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: float | None
    zero_point: int
    kind: str

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> TensorSpec:
        """Make the specification from its JSON form: an entry of `inputs` or `outputs` in the description (graph) of an
        executable."""
        return TensorSpec(
            str(entry["name"]),
            tuple(Size(d) if isinstance(d, str) else int(d) for d in entry["shape"]),
            dtype_named(entry["dtype"]),
            None if entry.get("scale") is None else float(entry["scale"]),
            int(entry.get("zero_point") or 0),
            str(entry["kind"]),
        )

    def __str__(self) -> str:
        scale = "" if self.scale is None else f", real = {self.scale:.9g} * (code - {self.zero_point})"
        return f"{self.name!r} {self.dtype} {self._shown()}{scale}"

    def cells(self) -> tuple[str, ...]:
        """The texts that describe the tensor in a row of a table: kind, name, type, shape, scale, zero point."""
        scale = ("", "") if self.scale is None else (f"{self.scale:.9g}", str(self.zero_point))
        return self.kind, self.name, str(self.dtype), self._shown(), *scale

    def _shown(self) -> str:
        open = any(isinstance(size, Size) for size in self.shape)
        return (" x " if open else "x").join(map(str, self.shape)) or "scalar"

    def dequantize(self, codes: npt.ArrayLike) -> Array:
        """The real numbers of quantized values, in float32; unchanged if the tensor has no scale. Raises
        InvalidArgument for values that are no numbers."""
        given = self._numbers("dequantize", codes)
        if self.scale is None:
            return given
        return (given.astype(np.float32) - np.float32(self.zero_point)) * np.float32(self.scale)

    def quantize(self, real: npt.ArrayLike) -> Array:
        """Quantize real numbers, rounding halves to even, and saturate; without a scale, convert to the tensor's
        dtype. Raises InvalidArgument for NaN, which no quantized value stands for, and values that are no numbers."""
        given = self._numbers("quantize", real)
        if self.scale is None:
            return given.astype(self.dtype)
        if given.dtype.kind not in "biu" and given.dtype.itemsize < 4:
            given = given.astype(np.float32)  # in 16 bits the quotient would be rounded, too
        limits = np.iinfo(self.dtype)
        codes = np.clip(np.rint(given / self.scale) + self.zero_point, limits.min, limits.max)
        if np.isnan(codes).any():
            raise InvalidArgument(f"quantize for '{self.name}'", "NaN has no quantized value", "numpy.nan_to_num(x)")
        return codes.astype(self.dtype)

    def _numbers(self, doing: str, given: npt.ArrayLike) -> Array:
        """The values `given` as an array. Raises InvalidArgument unless they are real numbers; `doing` is the name of
        the method that the message names."""
        try:
            found: Array = np.asarray(given)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"{doing} for '{self.name}'", f"is given no array: {error}") from None
        if found.dtype.kind in "OSUMmc":
            raise InvalidArgument(f"{doing} for '{self.name}'", f"is given {found.dtype}, which are no real numbers")
        return found

    def to_json(self) -> dict[str, Any]:
        """The form that `from_json` reads."""
        shape = [size.name if isinstance(size, Size) else size for size in self.shape]
        return self._asdict() | {"shape": shape, "dtype": str(self.dtype)}

    def take(self, value: Given) -> Array:
        """Convert the value to a contiguous array that native code can read. Raises InvalidArgument for another dtype
        or shape, or an array that is not on the host; Unsupported if there is no memory for a contiguous copy."""
        where = f"input '{self.name}'"
        try:
            given: object = value
            if isinstance(given, Mapping):
                raise InvalidArgument(where, "is a mapping of names", "give inputs by name: run(**inputs)")
            if not isinstance(given, np.ndarray):
                from relay.runtime.dlpack import on_host  # here: most inputs are numpy's

                given = on_host(given, where)
            array = np.asarray(given)
        except InvalidArgument:
            raise
        except (TypeError, ValueError, BufferError) as error:
            raise InvalidArgument(where, f"is no array: {error}") from None
        self.check(array.shape, array.dtype)
        try:
            return np.require(array, requirements=["C", "A"])
        except MemoryError:
            what = f"is not contiguous, and there is no memory for a copy of {array.nbytes} bytes"
            raise Unsupported(where, what, "give a contiguous array") from None

    def check(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Raise InvalidArgument unless dtype and shape are those of the input."""
        where = f"input '{self.name}'"
        if dtype != self.dtype:
            raise InvalidArgument(where, f"has dtype {dtype}; {self.dtype} is needed", self._conversion(dtype))
        if shape != self.shape and not self._is_open_for(shape):
            raise InvalidArgument(where, f"has shape {list(shape)}; {list(self.shape)} is needed")

    def _is_open_for(self, shape: tuple[int, ...]) -> bool:
        """Whether the shape differs from that of the specification at most in sizes that are open, that is, chosen by
        the caller of each run."""
        same = len(shape) == len(self.shape)
        return same and all(a == b or isinstance(b, Size) for a, b in zip(shape, self.shape, strict=True))

    def _conversion(self, dtype: np.dtype[Any]) -> str:
        if self.scale is not None and dtype.kind == "f":
            formula = f"round(x / {self.scale:g}) + {self.zero_point}"
            return f"quantise it by quantize(x) of its entry of executable.inputs: {formula}, saturated"
        return f"convert it with .astype('{self.dtype}')"


def random_array(shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator) -> Array:
    """Random test data: integers of up to 16 bits over their whole range; 0 and 1 for wider ones, which may be counts
    or positions; normally distributed floats."""
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    low, high = 0, 1
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
    return random.integers(low, high, shape, endpoint=True).astype(dtype)
