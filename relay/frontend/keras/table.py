"""The table of Keras layers and operations that `from_keras` can import, with one row per class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.ir import SSAValue

from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Argument, Layer, is_row

F = TypeVar("F", bound="Convert")
Result = SSAValue | Sequence[SSAValue]
Convert = Callable[[Importer, Layer], Result]
"""Builds the ops of one call of a layer and returns its outputs. Raises Unsupported for configurations without a
formula."""
TABLE: dict[str, Convert] = {}
"""The import functions by class (`Conv2D`); operations of `keras.ops` as `ops.Add`."""
REFUSED: dict[str, str] = {}
"""The reasons why known classes cannot be imported, by class."""


def layer(*names: str) -> Callable[[F], F]:
    """A decorator that enters a function in the table under one or more layer classes."""

    def enter(convert: F) -> F:
        TABLE.update(dict.fromkeys(names, convert))
        return convert

    return enter


def op(*names: str) -> Callable[[F], F]:
    """A decorator that enters a function in the table under one or more operations of `keras.ops`."""
    return layer(*(f"ops.{name}" for name in names))


def wrapped(node: Layer, name: str, part: str, *arguments: Argument) -> Layer:
    """A call, with these arguments, of the layer that `node` wraps: its description is the entry `name` of the node's
    configuration, and Keras stores its variables under the attribute name `part`."""
    row = node.entry(name)
    if not is_row(row) or not str(row.get("module")).startswith("keras") or str(row["class_name"]) not in TABLE:
        what = row.get("class_name") if is_row(row) else row
        raise node.unsupported(f"has the {name} {str(what)[:80]!r}", "the class is not supported")
    return node.inner(str(row["class_name"]), part, row["config"], *arguments)


def output(importer: Importer, inner: Layer) -> SSAValue:
    """The single output of a nested layer."""
    found = TABLE[inner.kind](importer, inner)
    values = [found] if isinstance(found, SSAValue) else found
    if len(values) != 1:
        raise inner.unsupported("has several outputs or steps, and is wrapped")
    return values[0]
