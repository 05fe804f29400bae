"""What the public functions were given: checked where Python would say something about relay's own code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, SupportsIndex, TypeGuard, TypeVar, cast

from relay.errors import InvalidArgument

T = TypeVar("T")

WIDTH = 60
"""Characters of a value that an error shows."""


def shown(value: object) -> str:
    """A value on one line, cut where it is long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a repr of the caller's own may raise anything
        text = f"of type {type(value).__name__}"
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def text(value: object, where: str, hint: str = "") -> str:
    """The value, a text. Raises InvalidArgument for anything else."""
    if not isinstance(value, str):
        raise InvalidArgument(where, f"{shown(value)} is no text", hint)
    return value


def names(value: object, where: str) -> list[str]:
    """The texts of a list. Raises InvalidArgument for a text instead of a list, and for what is no text."""
    if isinstance(value, str):
        raise InvalidArgument(where, f"is the text '{value}'", f"write {where}=['{value}']")
    return [text(item, where, "passes are told by their names") for item in every(value, where)]


def whole(value: object) -> object:
    """A whole number of another library as Python's own; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return value
    try:
        return index(value)
    except TypeError:  # an array that is no number
        return value


def positive(value: object) -> int:
    """The value, a whole number of at least 1; 0 for anything else."""
    number = whole(value)
    return number if type(number) is int and number > 0 else 0


def every(value: object, where: str, hint: str = "give a list") -> list[object]:
    """The items of a list or another iterable. Raises InvalidArgument for what is none."""
    if not is_iterable(value):
        raise InvalidArgument(where, f"{shown(value)} is no list", hint)
    return list(value)


def mapping(value: object, where: str, example: str) -> dict[str, object]:
    """The entries of a mapping by text. Raises InvalidArgument for what is none."""
    if not is_mapping(value):
        raise InvalidArgument(where, f"{shown(value)} is no mapping", f"write {where}={example}")
    return {text(key, f"{where}, key", f"write {where}={example}"): item for key, item in value.items()}


def instance(value: object, cls: type[T], where: str, hint: str) -> T:
    """The value, of this class. Raises InvalidArgument for anything else."""
    if not isinstance(value, cls):
        raise InvalidArgument(where, f"{shown(value)} is no {cls.__name__}", hint)
    return value


def path(value: object, where: str) -> Path:
    """The path. Raises InvalidArgument for what is none."""
    if not isinstance(value, str | PathLike):
        raise InvalidArgument(where, f"{shown(value)} is no path")
    return Path(cast("PathLike[str]", value))


def is_iterable(value: object) -> TypeGuard[Iterable[object]]:
    """Whether the value can be iterated over, as far as its type says."""
    return isinstance(value, Iterable)


def is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether the value is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, object]]:
    """Whether the value is a mapping, of any keys."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Whether the value is a sequence; a text is one too."""
    return isinstance(value, Sequence)
