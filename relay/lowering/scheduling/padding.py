"""Padded copies of images: kernels that do not need a copy omit it, others write it row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i8, i16
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.attributes import int_values, to_numpy
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.loops import in_vectors
from relay.lowering.shaped import Extent, at_most, leads, shape_of, vector_of
from relay.target import CpuCosts

Extend = type[ExtSIOp] | type[ExtUIOp]
"""The op that extends codes to 16 bits."""
Conversion = tuple[int, Extend | None]
"""How a copy converts codes: the number with which each is XORed, and the op that extends it, if any."""


@dataclass(frozen=True)
class Padding:
    """A padded copy: `buffer` contains `source` with `low` elements of `value` before each axis, and `value` after it
    up to the buffer's size."""

    buffer: SSAValue
    source: SSAValue
    low: tuple[int, ...]
    value: SSAValue
    ops: tuple[Operation, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.buffer)

    @property
    def of_image(self) -> bool:
        """Whether only height and width of NHWC data are padded."""
        inner, outer = shape_of(self.source), self.shape
        return len(inner) == 4 and (inner[0], inner[3]) == (outer[0], outer[3]) and contiguous(self.source.type)


def padding_of(buffer: SSAValue) -> Padding | None:
    """Return the buffer as a padded copy, if it is written by a fill and a copy into a subview; else None."""
    users = [use.operation for use in buffer.uses]
    fills = [op for op in users if isinstance(op, linalg.FillOp)]
    views = [op for op in users if isinstance(op, memref.SubviewOp)]
    if len(fills) != 1 or len(views) != 1 or views[0].offsets or set(int_values(views[0].static_strides)) - {1}:
        return None
    copies = [use.operation for use in views[0].result.uses]
    if len(copies) != 1 or not isinstance(copies[0], memref.CopyOp) or copies[0].destination is not views[0].result:
        return None
    source, low = copies[0].source, tuple(int_values(views[0].static_offsets))
    if len(shape_of(source)) != len(low):
        return None
    return Padding(buffer, source, low, fills[0].inputs[0], (fills[0], views[0], copies[0]))


def find_paddings(ops: Sequence[Operation]) -> dict[SSAValue, Padding]:
    """Return the padded copies among the operations: buffers that are allocated, filled, partly overwritten by one
    copy, then only read."""
    found: dict[SSAValue, Padding] = {}
    for fill in ops:
        if not isinstance(fill, linalg.FillOp) or not isinstance(fill.outputs[0].owner, memref.AllocOp):
            continue
        buffer, padding = fill.outputs[0], padding_of(fill.outputs[0])
        users = [use.operation for use in buffer.uses]
        written = any(isinstance(op, linalg.GenericOp) and buffer in tuple(op.outputs) for op in users)
        if padding is not None and not written and isinstance(padding.value.owner, arith.ConstantOp):
            found[buffer] = padding
    return found


def emit_padding(b: LoopBuilder, padding: Padding) -> None:
    """Emit the padded copy of an image."""
    source, target = b.flatten(padding.source), b.flatten(padding.buffer)

    def copy(read: Index, write: Index, count: int) -> None:
        with b.loop(0, count) as (k, _):
            b.store(b.load(source, [b.plus(read, k)]), target, [b.plus(write, k)])

    emit_bordered(b, padding, target, padding.value, copy)


def emit_bordered(
    b: LoopBuilder, padding: Padding, target: SSAValue, value: SSAValue, copy: Callable[[Index, Index, int], None]
) -> None:
    """Emit a padded copy: the rows above, then for each row its left edge, elements and right edge, then the rows
    below. `copy(read, write, count)` copies `count` elements."""
    images, height, width, channels = shape_of(padding.source)
    _, rows, columns, _ = shape_of(padding.buffer)
    top, left, line, row = padding.low[1], padding.low[2], columns * channels, width * channels

    def fill(start: Index, count: int) -> None:
        if count:
            with b.loop(0, count) as (k, _):
                b.store(value, target, [b.plus(start, k)])

    with b.loop(0, images, independent=True) as (n, _):
        image = b.times(n, rows * line)
        fill(image, top * line)
        with b.loop(0, height, independent=True) as (y, _):
            start = b.plus(b.plus(image, top * line), b.times(y, line))
            fill(start, left * channels)
            begin = b.plus(start, left * channels)
            copy(b.times(b.plus(b.times(n, height), y), row), begin, row)
            fill(b.plus(begin, row), line - left * channels - row)
        fill(b.plus(image, (top + height) * line), (rows - top - height) * line)


CHUNK = 64
"""The number of bytes that are copied at once."""


def copy_codes(
    b: LoopBuilder, source: SSAValue, read: Index, target: SSAValue, write: Index, count: Index, conversion: Conversion
) -> None:
    """Emit a copy of `count` codes from index `read` of `source` to index `write` of `target`. `conversion` says which
    bits of each code are inverted, and whether codes are extended to 16 bits. Codes are copied in chunks of up to 64;
    the last chunk may overlap the one before it."""
    flip, extend = conversion
    known = isinstance(count, int) and not isinstance(count, Extent)
    size = next((s for s in (CHUNK, 16) if isinstance(count, int) and s <= count), 1) if known else CHUNK

    def move(at: Index, lanes: int) -> None:
        alone, place = lanes == 1 and not known, [b.plus(read, at)]
        code = b.load(source, place) if alone else b.vector_load(source, place, lanes)
        if flip:
            mask = b.constant(flip, i8) if alone else vector_constant(b, flip, i8, lanes)
            code = b.add(arith.XOrIOp(code, mask)).result
        if extend is not None:
            code = b.add(extend(code, i16 if alone else vector_of(i16, lanes))).result
        (b.store if alone else b.vector_store)(code, target, [b.plus(write, at)])

    in_vectors(b, count, [size] if known else [size, 16, 1], move, overlap=size, independent=True)


def copy_rows(b: LoopBuilder, shape: Sequence[int], copy: Callable[[Index, Index], None], start: Index = 0) -> None:
    """Emit a copy of all elements by calling `copy` with the start and size of contiguous rows: a single row, unless a
    dimension after the first has a size that is known only at run time."""
    if leads(tuple(shape)):
        copy(start, prod(shape))
        return
    with b.loop(0, shape[0], independent=True) as (number, _):
        copy_rows(b, shape[1:], copy, b.plus(start, b.times(number, prod(map(at_most, shape[1:])))))


def emit_codes(b: LoopBuilder, image: SSAValue, padding: Padding | None, conversion: Conversion) -> SSAValue:
    """Emit a converted copy of 8-bit data to a flat buffer and return the buffer. If `padding` pads only the height and
    width of images, the copy adds it; otherwise it has the shape of `image`. `CHUNK` further elements follow, so that a
    kernel's last step may read beyond the data."""
    flip, extend = conversion
    element = i8 if extend is None else i16
    if padding is None or not padding.of_image:
        flat = b.flatten(image)
        shape = shape_of(image)
        room = b.add(memref.AllocOp.get(element, 64, [prod(map(at_most, shape)) + CHUNK])).memref
        copy_rows(b, shape, lambda at, size: copy_codes(b, flat, at, room, at, size, conversion))
        return room
    source = b.flatten(padding.source)
    room = b.add(memref.AllocOp.get(element, 64, [prod(shape_of(padding.buffer)) + CHUNK])).memref
    constant = padding.value.owner
    assert isinstance(constant, arith.ConstantOp)
    code = int(to_numpy(constant.value)) ^ flip
    value = b.constant(code & 255 if extend is ExtUIOp else code, element)

    def copy(read: Index, write: Index, count: int) -> None:
        copy_codes(b, source, read, room, write, count, conversion)

    emit_bordered(b, padding, room, value, copy)
    return room


Point = tuple[Index, Index, Index]
"""A pixel of a result: the indices of its image, row and column."""
Span = tuple[int, int, int, int]
"""A span of output positions, and the taps that are inside the image there: (first, end, first tap, end tap)."""


@lru_cache(maxsize=256)
def spans(size: int, window: int, stride: int, dilation: int, before: int, outputs: int) -> tuple[Span, ...]:
    """Return maximal spans of output positions for whose windows the same taps are inside the image."""
    result: list[Span] = []
    for position in range(outputs):
        start = position * stride - before
        inside = [t for t in range(window) if 0 <= start + t * dilation < size]
        first, end = (inside[0], inside[-1] + 1) if inside else (0, 0)
        if result and result[-1][2:] == (first, end):
            result[-1] = (result[-1][0], position + 1, first, end)
        else:
            result.append((position, position + 1, first, end))
    return tuple(result)


def is_border(padding: Padding, conv: Convolution) -> bool:
    """Whether products with the padding are zero: its value is zero, or the zero point."""
    if not padding.of_image or not isinstance(padding.value.owner, arith.ConstantOp):
        return False
    apart = to_numpy(padding.value.owner.value).item() - conv.data.zero_point
    return not (apart % 256 if conv.data.element == i8 else apart)


def border_runs(conv: Convolution, padding: Padding | None) -> tuple[Span, ...]:
    """Divide the result's rows into spans, each with the kernel rows that lie inside the image for all its rows.
    Returns no spans if products with the padding are not zero, if there are more spans than kernel rows, or if a span's
    whole kernel is outside."""
    if padding is None or not is_border(padding, conv):
        return ()
    rows, before = shape_of(padding.source)[1], padding.low[1]
    runs = spans(rows, conv.kernel_rows, conv.strides[0], conv.dilation[0], before, conv.out_rows)
    few = len(runs) <= conv.kernel_rows and all(start < stop for _, _, start, stop in runs)
    return runs if few else ()


def skipping_pays(conv: Convolution, runs: Sequence[Span], costs: CpuCosts) -> bool:
    """Whether so many kernel rows of a convolution lie outside the image that it pays to skip them. `runs`: the spans
    of result rows, each with the kernel rows that are inside the image for all of them."""
    inside = sum((end - first) * (stop - start) for first, end, start, stop in runs)
    every = conv.out_rows * conv.kernel_rows
    return bool(runs) and (every - inside) * costs.rows_per_skipped >= every
