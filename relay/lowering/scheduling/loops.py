"""Loops over tiles, loops over a row of elements in vectors, and loops that fill and copy buffers element by element,
which LLVM vectorizes.

The elements of a row that the widest vectors leave are covered by narrower vectors, or by one that overlaps the vector
before it (`in_vectors`). Two kinds of rows have loops of their own elsewhere: those of reductions, which carry partial
results from one vector to the next, and those of micro-kernels, where the elements left are one more iteration of the
loop over tiles (`in_one_loop`), so that they are divided among threads, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import SSAValue

from relay.dialects.attributes import int_values
from relay.dialects.op import DYNAMIC
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.indices import below, minus, remainder, when
from relay.lowering.shaped import Extent, UnknownSize, leads, shape_of

Piece = Callable[[Index, int], None]
"""Emits a piece of a row: takes its first element and its number of elements."""


def can_flatten(*buffers: SSAValue) -> bool:
    """Whether one loop can run over all elements of each of the buffers."""
    return all(contiguous(buffer.type) and leads(shape_of(buffer)) for buffer in buffers)


def emit_fill(builder: LoopBuilder, op: linalg.FillOp, *, flat: bool | None = None) -> None:
    """Emit `linalg.fill`. `flat`: as a loop over one dimension; by default, if the buffer is contiguous."""
    target = op.outputs[0]
    if can_flatten(target) if flat is None else flat:
        target = builder.flatten(target)
    with builder.loops(shape_of(target)) as indices:
        builder.store(op.inputs[0], target, indices)


def emit_copy(builder: LoopBuilder, op: memref.CopyOp, *, flat: bool | None = None) -> None:
    """Emit `memref.copy` as loops over its elements. `flat`: whether one loop runs over all dimensions; None if it
    shall when both buffers are contiguous."""
    source, target = op.source, op.destination
    fixed = not isinstance(view := target.owner, memref.SubviewOp) or not view.offsets
    rows = can_flatten(source, target) if flat is None else flat
    if fixed and rows:
        source, target = builder.flatten(source), builder.flatten(target)
    with builder.loops(shape_of(source)) as places:
        store(builder, builder.load(source, places), target, places)


def store(builder: LoopBuilder, value: SSAValue, target: SSAValue, places: Sequence[Index]) -> None:
    """Store an element; for a subview with computed offsets, store it in the subview's source at these offsets."""
    if isinstance(view := target.owner, memref.SubviewOp) and view.offsets:
        offsets = get_dynamic_index_list(int_values(view.static_offsets), view.offsets, DYNAMIC)
        target, places = view.source, [builder.plus(at, place) for at, place in zip(offsets, places, strict=True)]
    builder.store(value, target, places)


def over(b: LoopBuilder, count: int, size: int, body: Piece, *, independent: bool = False) -> None:
    """Divide a row of `count` elements into tiles of `size`, and emit a loop of `body` over the whole tiles, then
    `body` once for a smaller last tile, if there is one. `body` gets the start and the size of the tile; `independent`:
    the loop's iterations can be executed in any order."""
    size = max(min(size, count), 1)
    whole = count // size * size
    with b.loop(0, whole, size, independent=independent) as (start, _):
        body(start, size)
    if whole < count:
        body(whole, count - whole)


def in_one_loop(
    b: LoopBuilder, count: int, size: int, body: Piece, *, independent: bool, apart: DictionaryAttr
) -> None:
    """Emit the body for tiles of `size` elements of a row of `count` elements, as `over` does, but with the rest as the
    last iteration of the same loop, so that threads share all tiles. `independent`, `apart`: see `LoopBuilder.loop`."""
    whole, rest = divmod(count, size)
    with b.loop(0, whole + bool(rest), independent=independent, apart=apart) as (number, _):
        start = b.times(number, size)
        inside = below(b, number, whole) if rest else None
        when(b, inside, lambda: body(start, size), lambda: body(whole * size, rest))


def parts(count: int, size: int) -> list[tuple[int, int, int]]:
    """Divide `count` elements into parts of `size` and a smaller rest. Return (start, number of parts, part size) for
    the equal parts and for the rest; the entry of either is left out if it is empty."""
    whole, rest = divmod(count, size)
    every = [(0, whole, size), (whole * size, 1, rest)]
    return [(start, number, each) for start, number, each in every if number and each]


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
    run time has at least as many elements as an overlapping vector. Raises UnknownSize if no width covers the rest of
    such a row."""
    if isinstance(size, int) and not isinstance(size, Extent):
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
        return
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
                raise UnknownSize("schedule", "no narrower vectors take what is left of a row")

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
