"""Checks of arguments of public functions, so that a wrong one raises an error about the argument and not one inside
relay's code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, SupportsIndex, TypeGuard, TypeVar, cast

from relay.errors import InvalidArgument

T = TypeVar("T")

WIDTH = 60
"""The maximum length of a value in an error message, in characters."""


def shown(value: object) -> str:
    """The value's repr on one line, cut to `WIDTH` characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # the repr of a caller's class may raise anything
        text = f"of type {type(value).__name__}"
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def text(value: object, where: str, hint: str = "") -> str:
    """The value, if it is a string. Raises InvalidArgument otherwise."""
    if not isinstance(value, str):
        raise InvalidArgument(where, f"{shown(value)} is no text", hint)
    return value


def names(value: object, where: str) -> list[str]:
    """The strings of a list. Raises InvalidArgument for a string instead of a list, and for an item that is no
    string."""
    if isinstance(value, str):
        raise InvalidArgument(where, f"is the text '{value}'", f"write {where}=['{value}']")
    return [text(item, where, "passes are told by their names") for item in every(value, where)]


def whole(value: object) -> object:
    """An integer of another library (such as numpy) as a Python int; any other value unchanged."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return value
    try:
        return index(value)
    except TypeError:  # an array with more than one element
        return value


def positive(value: object) -> int:
    """The value as an int if it is an integer of at least 1; otherwise 0."""
    number = whole(value)
    return number if type(number) is int and number > 0 else 0


def size_name(name: str, where: str) -> str:
    """The name of a size. Raises InvalidArgument if it is empty, or a number as text."""
    if not name or name.isdecimal():
        raise InvalidArgument(
            where, f"{shown(name)} is text, and names no size", "give a number, or a name such as 'n'"
        )
    return name


def every(value: object, where: str, hint: str = "give a list") -> list[object]:
    """The items of a list or another iterable. Raises InvalidArgument for a value that is not iterable."""
    if not is_iterable(value):
        raise InvalidArgument(where, f"{shown(value)} is no list", hint)
    return list(value)


def mapping(value: object, where: str, example: str) -> dict[str, object]:
    """The entries of a mapping with string keys. Raises InvalidArgument for any other value; `example` is shown in the
    hint."""
    if not is_mapping(value):
        raise InvalidArgument(where, f"{shown(value)} is no mapping", f"write {where}={example}")
    return {text(key, f"{where}, key", f"write {where}={example}"): item for key, item in value.items()}


def instance(value: object, cls: type[T], where: str, hint: str) -> T:
    """The value, if it is an instance of `cls`. Raises InvalidArgument otherwise."""
    if not isinstance(value, cls):
        raise InvalidArgument(where, f"{shown(value)} is no {cls.__name__}", hint)
    return value


def path(value: object, where: str) -> Path:
    """The value as a path. Raises InvalidArgument if it is neither a string nor a path."""
    if not isinstance(value, str | PathLike):
        raise InvalidArgument(where, f"{shown(value)} is no path")
    return Path(cast("PathLike[str]", value))


def is_iterable(value: object) -> TypeGuard[Iterable[object]]:
    """Whether the value's type is iterable."""
    return isinstance(value, Iterable)


def is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether the value is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, object]]:
    """Whether the value is a mapping, with keys of any type."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Whether the value is a sequence; a string is one, too."""
    return isinstance(value, Sequence)
