"""Tables as text."""

from __future__ import annotations

from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """A line of text for each row of cells, with aligned columns; the columns whose indices are in `right` are aligned
    right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (
        [cell.rjust(width) if n in right else cell.ljust(width) for n, (cell, width) in enumerate(cells)]
        for cells in (zip(row, widths, strict=True) for row in rows)
    )
    return ["  ".join(cells).rstrip() for cells in padded]
