"""Python values as attributes, and back: numbers, strings, lists and dictionaries of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute

from relay.errors import InvalidArgument


def to_attribute(value: object, where: str) -> Attribute:
    """Convert a Python value to `true`, `1 : i64`, `0.5 : f64`, `"text"`, `[...]` or `{...}`; an attribute is returned
    unchanged. Raises InvalidArgument, at `where`, for anything else."""
    match value:
        case Attribute():
            return value
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case list() | tuple():
            return ArrayAttr([to_attribute(item, where) for item in cast(Sequence[object], value)])
        case dict():
            rows = cast(Mapping[str, object], value)
            return DictionaryAttr({key: to_attribute(item, f"{where} {key}") for key, item in rows.items()})
        case _:
            raise InvalidArgument(where, f"is {value!r}", "give numbers, texts, or lists of them")


def from_attribute(attr: Attribute, where: str) -> object:
    """The Python value of an attribute that `to_attribute` makes; lists become tuples. Raises InvalidArgument for
    others."""
    match attr:
        case StringAttr():
            return attr.data
        case IntegerAttr():
            return bool(attr.value.data) if attr.type == i1 else attr.value.data
        case FloatAttr():
            return attr.value.data
        case ArrayAttr():
            return tuple(from_attribute(item, where) for item in attr)
        case DictionaryAttr():
            return {key: from_attribute(item, f"{where} {key}") for key, item in attr.data.items()}
        case _:
            raise InvalidArgument(where, f"is {attr}", "give numbers, texts, or lists of them")
