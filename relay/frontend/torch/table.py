"""The table of operators that `from_pytorch` can import, with one row per operator, or overload of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from xdsl.ir import SSAValue

from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node, is_value, writes_in_place

T = TypeVar("T")
Result = SSAValue | int | float | bool | None
Convert = Callable[[Importer, Node], Result | Sequence[Result]]
"""Builds the ops of one node and returns its outputs: values, numbers if they are known, None for outputs that are not
computed. Raises Unsupported for nodes without a formula."""
TABLE: dict[str, Convert] = {}
"""The import functions by operator (`aten.add`), or by operator and overload (`aten.max.dim`), which takes precedence.
An in-place operator (`aten.add_`) uses the row of the functional one."""
VIEWS: set[str] = set()
"""Operators whose result is a view of the first argument: a write to the view changes the argument, and a write to the
argument changes the view."""
AUTOCAST = "higher_order.wrap_with_autocast"
REFUSED: dict[str, str] = {}
"""The reasons why known operators are not imported, by operator."""


def op(*targets: str) -> Callable[[Convert], Convert]:
    """A decorator that enters a function in the table under one or more operators."""

    def enter(convert: Convert) -> Convert:
        for target in targets:
            TABLE[target] = convert
        return convert

    return enter


def aten(*names: str) -> Callable[[Convert], Convert]:
    """A decorator that enters a function in the table under one or more ATen operators."""
    return op(*(f"aten.{name}" for name in names))


def of_vectors(convert: Convert) -> Convert:
    """Wrap an import function so that it gets tensors of rank 0, and indices into them, as vectors of one element."""

    def converted(importer: Importer, node: Node) -> Result | Sequence[Result]:
        given = {name: value for name in _FLAT if is_value(value := node.arguments.get(name))}
        scalars = {name: importer.reshape(value, [1]) for name, value in given.items() if not importer.rank(value)}
        if not scalars:
            return convert(importer, node)
        found = convert(importer, replace(node, arguments=node.arguments | scalars))
        results = list(found) if isinstance(found, Sequence) else [found]
        shapes = [importer.shape(given["self"]) if type is None else type.get_shape() for type in node.types]
        pairs = zip(results, shapes, strict=False)
        return [importer.reshape(each, shape) if is_value(each) else each for each, shape in pairs]

    return converted


_FLAT = ("self", "index", "indices", "src", "source")
"""The arguments that `of_vectors` reshapes to vectors if they have rank 0."""


def row(node: Node) -> Convert | None:
    """The import function for a node; None if there is none."""
    return _entry(TABLE, node)


def refusal(node: Node) -> str | None:
    """The reason why a known operator is not imported; None for others."""
    return _entry(REFUSED, node)


def _entry(table: Mapping[str, T], node: Node) -> T | None:
    plain = node.packet.removesuffix("_") if writes_in_place(node.packet) else node.packet
    return table.get(node.target) or table.get(plain)
