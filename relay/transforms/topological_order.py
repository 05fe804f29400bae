"""The order in which passes put the ops of a block back that they grouped or moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import Any, TypeVar

Node = TypeVar("Node", bound=Hashable)


def topological_order(before: Mapping[Node, Iterable[Node]], place: Callable[[Node], Any]) -> list[Node]:
    """The nodes sorted so that each follows those in its row of `before`, otherwise by place. Places are distinct."""
    sorter, order, ready = TopologicalSorter(before), list[Node](), list[tuple[Any, Node]]()
    sorter.prepare()
    while sorter:
        for node in sorter.get_ready():
            heappush(ready, (place(node), node))
        _, node = heappop(ready)
        order.append(node)
        sorter.done(node)
    return order
