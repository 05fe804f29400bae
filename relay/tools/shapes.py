"""Parsing of input shapes in command-line options."""

from __future__ import annotations

from relay.errors import InvalidArgument


def shape_of(text: str) -> tuple[str, list[int]]:
    """Parse `NAME=1x1280` into the input's name and its sizes. Raises InvalidArgument."""
    name, equals, sizes = text.rpartition("=")
    numbers = sizes.split("x")
    if not equals or not all(number.isdecimal() and len(number) < 16 for number in numbers):
        raise InvalidArgument("--shape", f"{text!r} names no input and sizes", "write --shape NAME=1x1280")
    return name, [int(number) for number in numbers]
