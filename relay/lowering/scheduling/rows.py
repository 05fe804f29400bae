"""Emits loops over a row of elements in vectors. The elements left by the widest vectors are covered by narrower
vectors, or by one that overlaps the vector before it.

Two kinds of rows have loops of their own elsewhere: those of reductions, which carry partial results from one vector to
the next, and those of micro-kernels, where the elements left are one more iteration of the loop over tiles, so that
they are divided among threads, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import below, minus, remainder, when
from relay.lowering.shaped import Extent, UnknownSize


def in_vectors(
    b: LoopBuilder,
    size: Index,
    widths: Sequence[int],
    body: Callable[[Index, int], None],
    *,
    overlap: int = 0,
    independent: bool = False,
    before: Callable[[int], None] | None = None,
    at_least: bool = False,
) -> None:
    """Run the body with the positions and widths of vectors that cover a row of `size` elements: as many of each width
    as fit into the rest. If elements remain, a vector of at most `overlap` elements ends with the row and overlaps the
    one before it. `before` is called in front of the loop over each width. `at_least`: a row of a size known only at
    run time has at least as many elements as an overlapping vector."""
    if isinstance(size, Extent) or not isinstance(size, int):
        in_vectors_of_any(
            b, size, widths, body, overlap=overlap, independent=independent, before=before, at_least=at_least
        )
        return
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


def in_vectors_of_any(
    b: LoopBuilder,
    size: Index,
    widths: Sequence[int],
    body: Callable[[Index, int], None],
    *,
    overlap: int,
    independent: bool,
    before: Callable[[int], None] | None,
    at_least: bool,
) -> None:
    """Run the body as `in_vectors` does, for a size known only at run time. Raises UnknownSize if no width covers the
    rest."""
    factor, start, end = (size.factor, 0, b.length(size)) if isinstance(size, Extent) else (1, 0, size)
    for lanes in widths:
        if before is not None:
            before(lanes)
        if factor % lanes == 0:
            with b.loop(start, size, lanes, independent=independent) as (k, _):
                body(k, lanes)
            return
        stop = minus(b, end, remainder(b, minus(b, end, start), lanes))
        with b.loop(start, stop, lanes, independent=independent) as (k, _):
            body(k, lanes)
        start = stop
        if 1 < lanes <= overlap:
            if widths[-1] != 1 and not at_least:
                break

            def last(lanes: int = lanes, stop: Index = stop) -> None:
                when(b, below(b, stop, end), lambda: body(minus(b, end, lanes), lanes))

            def few() -> None:
                with b.loop(0, end, independent=independent) as (k, _):
                    body(k, 1)

            if at_least:
                last()
            else:
                when(b, below(b, end, lanes), few, last)
            return
    else:
        return
    raise UnknownSize("schedule", "no narrower vectors take what is left of a row")
