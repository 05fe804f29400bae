"""Comparison of attributes and types with Python values: `groups=1`, `"int8"`, `(1, None, 4)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, i1
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.irdl import IRDLOperation
from xdsl.utils.hints import isa

from relay.arguments import is_list
from relay.dialects.attributes import dtype_of, to_numpy
from relay.dialects.op import is_tensor
from relay.errors import InvalidArgument


def attribute(op: Operation, name: str) -> Attribute | None:
    """A property or attribute of the op, with a property's default if it is not set; None if there is none."""
    found = op.properties.get(name, op.attributes.get(name))
    if found is None and isinstance(op, IRDLOperation):
        definition = op.get_irdl_definition().properties.get(name)
        return None if definition is None else definition.default_value
    return found


def equal(attr: Attribute | None, wanted: object) -> bool:
    """Whether an attribute equals a number, text, dtype or list; None requires that it is absent."""
    if attr is None or wanted is None:
        return attr is wanted
    if isinstance(wanted, Attribute):
        return attr == wanted
    match attr:
        case StringAttr():
            return attr.data == wanted
        case IntegerAttr():
            return (bool(attr.value.data) if attr.type == i1 else attr.value.data) == wanted
        case FloatAttr():
            return isinstance(wanted, int | float | np.generic) and bool(
                to_numpy(attr) == dtype_of(attr.type).type(wanted)
            )
        case ArrayAttr():
            items = list(attr.data) if isa(attr, ArrayAttr[Attribute]) else []
            return is_list(wanted) and len(items) == len(wanted) and all(map(equal, items, wanted))
        case TypeAttribute():
            return isinstance(wanted, str | type) and has_dtype(attr, wanted)
        case _:
            return np.array_equal(to_numpy(attr), np.asarray(wanted))


def has_dtype(type: Attribute, wanted: object) -> bool:
    """Whether a tensor's element type, or the type itself, is the dtype: `"int8"`, `"i8"`, `np.int8`."""
    element = type.element_type if is_tensor(type) else type
    if isinstance(wanted, Attribute):
        return element == wanted
    if isinstance(wanted, str) and str(element) == wanted:
        return True
    try:
        return dtype_of(element) == dtype(wanted)
    except InvalidArgument:
        return False


SPELLED = {"i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64"} | {
    f"{sign}{bits}": f"{kind}{bits}" for sign, kind in (("i", "int"), ("ui", "uint")) for bits in (8, 16, 32, 64)
}


def dtype(wanted: object) -> np.dtype[Any]:
    """The numpy dtype of `"int8"`, `"i8"` or `np.int8`. Raises InvalidArgument for any other value."""
    name = SPELLED.get(wanted, wanted) if isinstance(wanted, str) else wanted
    try:
        return np.dtype(cast(str, name))
    except TypeError:
        raise InvalidArgument("has_dtype", f"{wanted!r} is no dtype", "write for example 'int8'") from None


def has_shape(type: Attribute, wanted: Sequence[int | None]) -> bool:
    """Whether a tensor has this shape; None stands for any size."""
    if not is_tensor(type):
        return False
    found = type.get_shape()
    return len(found) == len(wanted) and all(w is None or w == d for d, w in zip(found, wanted, strict=True))
