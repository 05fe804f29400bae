"""Conversion of a user's calibration samples to the arrays that the compiled model takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.signature import TensorInfo

Sample = npt.ArrayLike | Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]
"""One array, arrays in the order of the inputs, or arrays by input name."""


def arrange(sample: Sample, inputs: Sequence[TensorInfo], number: int) -> list[Array]:
    """The arrays of a sample in the order of the inputs; a state that is not given has its initial value.

    float64 is converted to float32. Raises InvalidArgument for a wrong name, count, shape or dtype.
    """
    where = f"sample {number}"
    given: dict[str, object] = {}
    if isinstance(sample, Mapping):
        given.update(sample)
    elif isinstance(sample, list | tuple):
        values = cast(Sequence[object], sample)
        if len(values) > len(inputs):
            raise InvalidArgument(where, f"has {len(values)} arrays", f"the model has {len(inputs)} inputs")
        given.update(zip((info.name for info in inputs), values, strict=False))
    elif inputs:
        given[inputs[0].name] = sample
    names = [info.name for info in inputs]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InvalidArgument(where, f"there is no input {unknown[0]!r}", f"the inputs are {', '.join(names)}")
    return [_take(given.get(info.name, info.initial), info, where) for info in inputs]


def _take(value: object, info: TensorInfo, where: str) -> Array:
    if value is None:
        raise InvalidArgument(where, f"input {info.name!r} is missing")
    array = np.asarray(value)
    if array.dtype == np.float64 and info.dtype == np.float32:
        array = array.astype(np.float32)
    pairs = zip(array.shape, info.shape, strict=False)
    fits = array.ndim == len(info.shape) and all(size == own or own < 0 for size, own in pairs)
    if not fits or array.dtype != info.dtype:
        sizes = ", ".join("?" if size < 0 else str(size) for size in info.shape)
        wanted = f"{info.dtype}[{sizes}]"
        raise InvalidArgument(where, f"input {info.name!r} is {array.dtype}{list(array.shape)}; {wanted} is needed")
    return np.ascontiguousarray(array)
