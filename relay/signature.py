"""Descriptions of a function's arguments and results (names, quantisation, initial states), stored on the function.

`relay.inputs` and `relay.outputs` are discardable attributes of a `func.func`: an array with one dictionary per
argument (or result):

- `name`: string, the name that users see; unique among the inputs and among the outputs;
- `kind`: "input"; "output"; "state": a tensor kept from one run to the next, both an argument and a result of that
  name; or "count": a result that holds how many indices of other results are valid;
- `dtype`: the element type, stored because lowered functions are signless;
- `scale` (f32) and `zero_point` (i64), absent if the tensor has no scale or several;
- `initial`, for states: the initial value, as one number for all elements or as a tensor;
- `count` and `axis`, for outputs: the name of the result of kind "count", and the axis whose length it gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ShapedType,
    StringAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from relay.dialects.attributes import Array, dtype_of, element_type, elements, scalar_attr, to_numpy
from relay.dialects.element_types import wider_dtype
from relay.errors import InvalidArgument, Malformed

INPUTS = "relay.inputs"
OUTPUTS = "relay.outputs"
KINDS = ("input", "state", "output", "count")


@dataclass(frozen=True, slots=True, eq=False)
class TensorInfo:
    """The description of one argument or result of a function."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    kind: str = "input"
    """"input", "state", "output", or "count": an output that says how many indices of other outputs are valid."""
    scale: float | None = None
    """Real units per step: `real = scale * (code - zero_point)`; None if the elements are no quantized values."""
    zero_point: int = 0
    initial: Array | None = None
    """For states, the value before the first run, in the tensor's shape."""
    count: str = ""
    """For outputs, the name of the output that says how many indices along `axis` are valid; elements beyond are
    undefined."""
    axis: int = 0


def write(function: FuncOp, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
    """Store descriptions of the arguments and results on the function; shapes are not stored, since its type has them.
    Raises InvalidArgument if their number is wrong."""
    for infos, types, what in (
        (inputs, function.function_type.inputs, "arguments"),
        (outputs, function.function_type.outputs, "results"),
    ):
        if len(infos) != len(types):
            where = f"function {function.sym_name.data}"
            raise InvalidArgument(where, f"has {len(types)} {what}, but {len(infos)} descriptions are given")
    function.attributes[INPUTS] = ArrayAttr([_to_attribute(info) for info in inputs])
    function.attributes[OUTPUTS] = ArrayAttr([_to_attribute(info) for info in outputs])


def read(function: FuncOp) -> tuple[list[TensorInfo], list[TensorInfo]]:
    """The descriptions of all arguments and results; without a stored description names are arg0, ... and out0, ....
    Raises Malformed."""
    types = function.function_type
    return (
        _read(function, INPUTS, list(types.inputs), "arg", "input"),
        _read(function, OUTPUTS, list(types.outputs), "out", "output"),
    )


def cut(results: Sequence[Array], infos: Sequence[TensorInfo]) -> tuple[Array, ...]:
    """The results that a caller gets. A result whose info names another result as its `count` is cut along its `axis`
    to that number of indices; the results of kind "count" themselves are left out."""
    numbers = {info.name: int(array) for info, array in zip(infos, results, strict=True) if info.kind == "count"}
    pairs = zip(infos, results, strict=True)
    return tuple(
        np.take(array, range(numbers[info.count]), info.axis) if info.count else array
        for info, array in pairs if info.kind != "count"
    )  # fmt: skip


def check(function: FuncOp) -> None:
    """Raise Malformed if a description's dtype differs in size or kind from the type of its argument or result, as when
    a pass changes the type but not the description."""
    for infos, types in zip(
        read(function), (function.function_type.inputs, function.function_type.outputs), strict=True
    ):
        for info, type in zip(infos, types, strict=True):
            dtype = dtype_of(cast(TensorType[Attribute], type).element_type if isinstance(type, ShapedType) else type)
            known, described = ((each.itemsize, wider_dtype(each).kind == "f") for each in (dtype, info.dtype))
            if known != described:
                where = f"function {function.sym_name.data}"
                said = f"{info.name} is {dtype}, but described as {info.dtype}"
                raise Malformed(where, said, "relay.signature.write says what arguments and results stand for")


def _read(function: FuncOp, key: str, types: list[Attribute], prefix: str, kind: str) -> list[TensorInfo]:
    where = f"function {function.sym_name.data}"
    rows: list[Attribute] = [DictionaryAttr({}) for _ in types]
    if (attr := function.attributes.get(key)) is not None:
        if not isinstance(attr, ArrayAttr):
            raise Malformed(where, f"{key} is no array")
        rows = list(cast(ArrayAttr[Attribute], attr))
        if len(rows) != len(types):
            raise Malformed(where, f"{key} describes {len(rows)} tensors, the function has {len(types)}")
    infos = [
        _from_attribute(row, type, f"{prefix}{number}", kind, where)
        for number, (row, type) in enumerate(zip(rows, types, strict=True))
    ]
    names = [info.name for info in infos]
    if len(set(names)) != len(names):
        raise Malformed(where, f"{key} has a name twice")
    counts = {info.name for info in infos if info.kind == "count"}
    for info in infos:
        if info.count and info.count not in counts:
            raise Malformed(where, f"{info.name} is counted by {info.count!r}, which is no output of the kind count")
    return infos


def _to_attribute(info: TensorInfo) -> DictionaryAttr:
    row: dict[str, Attribute] = {
        "name": StringAttr(info.name),
        "kind": StringAttr(info.kind),
        "dtype": element_type(info.dtype),
    }
    if info.scale is not None:
        row["scale"] = FloatAttr(info.scale, f32)
        row["zero_point"] = IntegerAttr(info.zero_point, i64)
    if info.count:
        row["count"], row["axis"] = StringAttr(info.count), IntegerAttr(info.axis, i64)
    if info.initial is not None:
        flat = info.initial.reshape(-1)
        if flat.size and bool((flat == flat[0]).all()):
            row["initial"] = scalar_attr(flat[0], element_type(info.dtype))
        else:
            row["initial"] = elements(info.initial, label=info.name)
    return DictionaryAttr(row)


def _from_attribute(row: Attribute, type: Attribute, name: str, kind: str, where: str) -> TensorInfo:
    if not isinstance(row, DictionaryAttr):
        raise Malformed(where, f"{row} describes no tensor")
    if isinstance(type, ShapedType):
        shape, element = type.get_shape(), cast(TensorType[Attribute], type).element_type
    else:
        shape, element = (), type
    name, kind = _text(row, "name", name, where), _text(row, "kind", kind, where)
    if kind not in KINDS:
        raise Malformed(where, f"the kind of {name} is {kind!r}", f"it is one of {', '.join(KINDS)}")
    try:
        dtype = dtype_of(row.data.get("dtype", element))
        scale, zero_point, initial, axis = (_number(row, key) for key in ("scale", "zero_point", "initial", "axis"))
        return TensorInfo(
            name,
            shape,
            dtype,
            kind,
            None if scale is None else float(scale),
            0 if zero_point is None else int(zero_point),
            None if initial is None else np.broadcast_to(initial.astype(dtype), shape),
            _text(row, "count", "", where),
            0 if axis is None else int(axis),
        )
    except (InvalidArgument, TypeError, ValueError) as error:
        raise Malformed(f"{where}: {name}", f"dtype, scale, zero_point or initial is wrong: {error}") from None


def _number(row: DictionaryAttr, key: str) -> Array | None:
    attr = row.data.get(key)
    return None if attr is None else to_numpy(attr)


def _text(row: DictionaryAttr, key: str, default: str, where: str) -> str:
    attr = row.data.get(key, StringAttr(default))
    if not isinstance(attr, StringAttr):
        raise Malformed(where, f"the {key} {attr} is no string")
    return attr.data
