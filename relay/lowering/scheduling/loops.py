"""Loops over tiles, and loops that fill and copy buffers element by element, which LLVM vectorizes."""

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
from relay.lowering.indices import below, when
from relay.lowering.shaped import leads, shape_of

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
    """Divide `count` elements into parts of `size` and a smaller rest; return (start, number of parts, part size) of
    the equal parts and of the rest, without those of which there are none."""
    whole, rest = divmod(count, size)
    every = [(0, whole, size), (whole * size, 1, rest)]
    return [(start, number, each) for start, number, each in every if number and each]
