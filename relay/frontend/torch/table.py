"""The table of operators: what `from_pytorch` can import, and how. One row per operator, or overload of one."""

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
"""Builds the ops of one node and returns its outputs: values, numbers where they are known, None for what is not
computed. It raises Unsupported for what it has no formula for."""
TABLE: dict[str, Convert] = {}
"""By operator (`aten.add`), or operator and overload (`aten.max.dim`), which goes first. The row of one that writes in
place (`aten.add_`) is that of the one that does not."""
VIEWS: set[str] = set()
"""Operators whose result has the elements of the first argument: what is written to one is seen in the other."""
AUTOCAST = "higher_order.wrap_with_autocast"
REFUSED: dict[str, str] = {}
"""Operators that are known and not imported: why."""


def op(*targets: str) -> Callable[[Convert], Convert]:
    """Enter a function in the table under one or more operators."""

    def enter(convert: Convert) -> Convert:
        for target in targets:
            TABLE[target] = convert
        return convert

    return enter


def aten(*names: str) -> Callable[[Convert], Convert]:
    """The same of operators of ATen."""
    return op(*(f"aten.{name}" for name in names))


def of_vectors(convert: Convert) -> Convert:
    """A row that takes tensors of rank 0, and indices of such, as vectors of one element."""

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
"""Arguments that are of rank 0 together."""


def row(node: Node) -> Convert | None:
    """The function for a node."""
    return _entry(TABLE, node)


def refusal(node: Node) -> str | None:
    """Why an operator is not imported, if it is known."""
    return _entry(REFUSED, node)


def _entry(table: Mapping[str, T], node: Node) -> T | None:
    plain = node.packet.removesuffix("_") if writes_in_place(node.packet) else node.packet
    return table.get(node.target) or table.get(plain)
