"""The table of layers and operations: what `from_keras` can import, and how. One row per class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.ir import SSAValue

from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer

F = TypeVar("F", bound="Convert")
Result = SSAValue | Sequence[SSAValue]
Convert = Callable[[Importer, Layer], Result]
"""Builds the ops of one call of a layer and returns its outputs. It raises Unsupported for what it has no formula
for."""
TABLE: dict[str, Convert] = {}
"""By class (`Conv2D`), operations of `keras.ops` as `ops.Add`."""
REFUSED: dict[str, str] = {}
"""Classes that are known and not imported: why."""


def layer(*names: str) -> Callable[[F], F]:
    """Enter a function in the table under one or more classes of layers."""

    def enter(convert: F) -> F:
        for name in names:
            TABLE[name] = convert
        return convert

    return enter


def op(*names: str) -> Callable[[F], F]:
    """The same of operations of `keras.ops`."""
    return layer(*(f"ops.{name}" for name in names))
