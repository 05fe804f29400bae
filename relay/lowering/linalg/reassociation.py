"""Groups the dimensions of a shape into the dimensions of a shape of lower rank."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64


def reassociation(low: Sequence[int], high: Sequence[int]) -> list[list[int]] | None:
    """Return, for each dimension of `low`, the neighbouring dimensions of `high` whose product it is; None if there is
    no grouping."""
    groups: list[list[int]] = []
    position = 0
    for size in low:
        group: list[int] = []
        product = 1
        while position < len(high) and (not group or product < size):
            group.append(position)
            product *= high[position]
            position += 1
        if product != size or not group:
            return None
        groups.append(group)
    rest = list(range(position, len(high)))
    if any(high[p] != 1 for p in rest):
        return None
    if groups:
        groups[-1] += rest
    return groups


def attribute(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    """Return the property `reassociation` of `tensor.collapse_shape` and `tensor.expand_shape`."""
    return ArrayAttr([ArrayAttr([IntegerAttr(i, i64) for i in group]) for group in groups])
