"""Rows of elements in vectors: whole ones, then narrower ones, or one that has elements of the one before it again.

Two kinds of rows have loops of their own: a reduction's carry partial results from one vector to the next, and what is
left of a micro-kernel's row is a turn of the loop over its tiles, so that threads share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.lowering.builder import Index, LoopBuilder


def in_vectors(
    b: LoopBuilder,
    size: int,
    widths: Sequence[int],
    body: Callable[[Index, int], None],
    *,
    overlap: int = 0,
    independent: bool = False,
    before: Callable[[int], None] | None = None,
) -> None:
    """Run the body on places and widths of vectors that cover a row of `size` elements: as many of each width as are
    left. A vector of at most `overlap` elements is the last one, ending with the row, where some are left behind it.
    `before` runs in front of the loop over each width."""
    start = 0
    for lanes in widths:
        end = start + (size - start) // lanes * lanes
        if start < end:
            if before is not None:
                before(lanes)
            with b.loop(start, end, lanes, independent=independent) as (k, _):
                body(k, lanes)
        start = end
        if start < size and 1 < lanes <= min(overlap, size):
            body(size - lanes, lanes)
            return
