"""Sorts what a pass has grouped or moved, such as the ops of a block, so that each follows those that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import Any, TypeVar

Node = TypeVar("Node", bound=Hashable)


def topological_order(before: Mapping[Node, Iterable[Node]], place: Callable[[Node], Any]) -> list[Node]:
    """Sort the nodes so that each follows the nodes that `before` lists for it; of the nodes that may come next, the
    one with the least `place` does. No two nodes have the same place."""
    sorter, order, ready = TopologicalSorter(before), list[Node](), list[tuple[Any, Node]]()
    sorter.prepare()
    while sorter:
        for node in sorter.get_ready():
            heappush(ready, (place(node), node))
        _, node = heappop(ready)
        order.append(node)
        sorter.done(node)
    return order
