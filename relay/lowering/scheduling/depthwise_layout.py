"""The constants of the depthwise convolution by dot products: weights, initial accumulators, and tables of offsets.

A block is a register of codes, of 64 or 16 lanes. A block of 64 lanes holds 64 channels of one pixel or, for the
channels that remain, 32 channels of one pixel in each of two output rows, or 16 channels of one pixel in each of four.
So whole registers are used for any number of channels. A block has four vectors of accumulators: lane i of 128-bit part
p of vector s belongs to lane 16 * p + 4 * s + i of the codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.dialects.builtin import i8

from relay.dialects.attributes import Array
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.packed import Packed
from relay.lowering.scheduling.packing import wrap_i32
from relay.lowering.scheduling.padding import Padding, Span, spans
from relay.lowering.shaped import shape_of
from relay.target import LANES, CpuCosts, CpuTarget

GROUP = 4
VECTORS = 4
"""The number of accumulator vectors of a block (a register of 8-bit codes): each has 32-bit sums for a quarter of the
codes."""


@dataclass(frozen=True)
class Image:
    """The image without padding, as the convolution reads it; `top` and `left`: border rows above and columns left of
    it."""

    rows: int
    columns: int
    top: int
    left: int


def image_of(conv: Convolution, padding: Padding | None) -> Image:
    """Return the size of the image without padding, and the padding above it and to its left. If `padding` is None, the
    convolution reads its operand as it is: the size is that of the operand, and the padding is 0."""
    if padding is None:
        return Image(conv.rows, conv.columns, 0, 0)
    _, rows, columns, _ = shape_of(padding.source)
    return Image(rows, columns, padding.low[1], padding.low[2])


@dataclass(frozen=True)
class Borders:
    """Which taps of a convolution's windows lie inside the image, excluding its padding, for each range of output rows
    and columns."""

    conv: Convolution
    image: Image

    @property
    def row_spans(self) -> tuple[Span, ...]:
        """Spans of output rows for which the same taps are inside the image."""
        conv, image = self.conv, self.image
        return spans(image.rows, conv.kernel_rows, conv.strides[0], conv.dilation[0], image.top, conv.out_rows)

    @property
    def column_spans(self) -> tuple[Span, ...]:
        """Spans of output columns for which the same taps are inside the image."""
        conv, size = self.conv, self.image
        return spans(size.columns, conv.kernel_columns, conv.strides[1], conv.dilation[1], size.left, conv.out_columns)


@dataclass(frozen=True)
class Section:
    """A range of channels, starting at `first`, that is processed in `blocks` blocks of `width` lanes. The lanes of a
    block hold `width / rows` channels of one pixel in each of `rows` output rows. `lanes`: the number of lanes in use
    of each 16; less than 16 only if the convolution has fewer channels than that."""

    width: int
    first: int
    blocks: int
    rows: int
    lanes: int = LANES

    @property
    def channels(self) -> int:
        """The number of channels that one block of the section covers: its lanes divided by its pixel rows."""
        return self.width // self.rows

    def part(self, number: int) -> tuple[int, int]:
        """Return where part number `number` of a block starts: the number of its output row among the block's `rows`,
        and its first channel relative to the block's. A part has 16 lanes."""
        return number * LANES // self.channels, number * LANES % self.channels


def sections(channels: int, width: int) -> list[Section]:
    """Divide the channels into sections of blocks of `width` lanes. If fewer than 16 channels remain, the last block
    has the last 16 channels, some of which the block before it has, too."""
    whole, left = divmod(channels, width)
    result = [Section(width, 0, whole, 1)] if whole else []
    for rows in (2, 4):
        if left >= width // rows >= LANES:
            result.append(Section(width, channels - left, 1, rows))
            left -= width // rows
    if left:
        result.append(Section(width, max(channels - LANES, 0), 1, width // LANES, min(channels, LANES)))
    return result


@dataclass(frozen=True)
class Layout(Borders):
    """How a convolution reads its image and weights. Rows of taps are processed in groups of four. If the last group
    has fewer rows and contains row `copied`, the data of that row are multiplied twice, so that each of its weights
    that exceeds 8 bits can be the sum of two weights. `second`: the taps (group, column) that need a second dot product
    because other weights exceed 8 bits. `strip`: the number of output rows that all blocks of channels process while
    the image rows are cached. `width`: the lanes of a block; `unsigned`: whether the dot product's data operand is
    unsigned."""

    copied: int
    second: frozenset[tuple[int, int]]
    strip: int = 1
    width: int = 64
    unsigned: bool = True

    @property
    def parts(self) -> int:
        """The number of 128-bit parts of a register of codes."""
        return self.width // LANES

    @property
    def sections(self) -> list[Section]:
        """The sections (ranges of channels that are processed in blocks of equal form) that cover all output
        channels."""
        return sections(self.conv.outputs, self.width)

    @property
    def offset(self) -> int:
        """The amount that is added to codes to fit the signedness of the dot product's data operand: 128, 0 or -128."""
        return 128 * (self.unsigned - self.conv.data.unsigned)

    @property
    def groups(self) -> int:
        return -(-self.conv.kernel_rows // GROUP)

    @property
    def strips(self) -> int:
        return -(-self.conv.out_rows // self.strip)

    def steps(self, section: Section) -> int:
        """Return the number of iterations in which a block of the section's channels computes a strip of `self.strip`
        output rows: each iteration computes `section.rows` of them."""
        return -(-self.strip // section.rows)

    def rows(self, section: Section, strip: int, step: int) -> list[int]:
        """Return the output rows that iteration `step` of strip number `strip` computes; the last rows of a strip, or
        of the image, may be computed twice."""
        first = min(strip * self.strip, self.conv.out_rows - self.strip)
        return [first + min(step + p * self.steps(section), self.strip - 1) for p in range(section.rows)]

    def kind(self, row: int) -> int:
        return next(n for n, (first, end, _, _) in enumerate(self.row_spans) if first <= row < end)

    @property
    def block_sums(self) -> int:
        """The number of initial accumulators of a block of channels, for output rows at which the same rows of taps are
        inside the image: the block's `width` lanes for each span of output columns at which the same columns of taps
        are inside."""
        return len(self.column_spans) * self.width

    @property
    def block_bytes(self) -> int:
        """The size in bytes of one block's packed weights: the 8-bit weights, then the additional weights of the taps
        in `second`. There is a copy of this size for each set of output rows with the same taps inside the image."""
        return (self.groups * self.conv.kernel_columns + len(self.second)) * GROUP * self.width

    def record(self, section: Section) -> int:
        """Return the number of entries of the table of offsets that one iteration over a section of the channels
        reads."""
        return 2 + section.rows * (1 + self.conv.kernel_rows)

    def table_of(self, section: Section) -> int:
        """Return at which entry of the packed table of offsets (of weights, accumulators and image rows, for each
        iteration) the entries of the section's iterations begin."""
        every = self.sections
        return sum(self.strips * self.steps(s) * self.record(s) for s in every[: every.index(section)])


def width_of(conv: Convolution, target: CpuTarget) -> int:
    """Return the number of lanes (channels) of a block of a depthwise convolution by dot products; 0 if the target
    lacks dot-product instructions for it, or if other instructions are faster."""
    if target.packs and target.whole_dots:
        return 64
    dot = target.dot(GROUP)
    return LANES if dot is not None and dot.by_lane and conv.kernel_rows > 1 else 0


def fits(conv: Convolution, image: Image, target: CpuTarget) -> bool:
    """Whether the depthwise convolution can be computed by dot products: it has 8-bit codes and at most 8 x 8 taps, the
    target has the instructions, and at least one row and one column of taps is inside the image at each result."""
    codes = not conv.is_float and conv.data.element == conv.kernel.element == i8
    if not codes or not width_of(conv, target) or conv.kernel_rows > 8 or conv.kernel_columns > 8:
        return False
    if not conv.kernel.unsigned and conv.kernel.zero_point != 0:
        return False
    layout = Layout(conv, image, 0, frozenset())
    kinds = layout.row_spans + layout.column_spans
    return len(layout.column_spans) <= 5 and all(end > first for _, _, first, end in kinds)


def best_strip(conv: Convolution, image: Image, target: CpuTarget) -> int:
    """Return the number of output rows of a strip: rows that all blocks of channels compute while the image rows are in
    the cache. It is the cheapest number up to a limit: the rows that fit the cache, but at least those that one block
    computes at once."""
    costs, width = target.costs, width_of(conv, target)
    row = (image.columns * conv.strides[0] + conv.out_columns) * conv.channels
    together = max(section.rows for section in sections(conv.outputs, width))
    most = max(min(conv.out_rows // costs.least_strips, costs.strip_bytes // row), min(together, conv.out_rows))
    return min(range(most, 0, -1), key=lambda strip: rows_done(conv, costs, strip, width))


def rows_done(conv: Convolution, costs: CpuCosts, strip: int, width: int) -> float:
    """Return the cost of strips of `strip` output rows: the rows that all blocks of channels compute, plus the cost of
    starting each strip, expressed as a number of rows."""
    strips, every = -(-conv.out_rows // strip), sections(conv.outputs, width)
    return strips * sum(s.blocks * (-(-strip // s.rows) * s.rows + costs.strip_start_rows) / s.rows for s in every)


def layout_of(
    conv: Convolution, image: Image, kernels: Sequence[Array], strip: int, width: int, unsigned: bool
) -> Layout:
    """Return the layout for these weights. As the kernel row `copied`, whose data the dot products can multiply twice,
    it takes the row with the most weights that exceed 8 bits."""
    outside = np.zeros((conv.kernel_rows, conv.kernel_columns), np.int64)
    for kernel in kernels:
        true = kernel.astype(np.int64) - conv.kernel.zero_point
        outside += ((true < -128) | (true > 127)).sum(axis=2)
    copied = int(outside.sum(axis=1).argmax())
    left = outside.copy()
    if conv.kernel_rows % GROUP and copied // GROUP == conv.kernel_rows // GROUP:
        left[copied] = 0
    second = {(int(i) // GROUP, int(j)) for i, j in zip(*np.nonzero(left), strict=True)}
    return Layout(conv, image, copied, frozenset(second), strip, width, unsigned)


def pack_depthwise_dot(layout: Layout, kernel: Array, bias: Array | None) -> Packed:
    """Pack a depthwise convolution's weights and initial accumulators. Iterations of the loop over a section of the
    channels share them if their output rows overlap the image's border in the same way. The packed table has an entry
    per iteration: the offsets of its weights and accumulators, and for each output row its number and, for each row of
    the kernel, the offset of the image row that is read."""
    conv = layout.conv
    true = kernel.astype(np.int64) - conv.kernel.zero_point
    weights: list[Array] = []
    tables: list[Array] = []
    initial: list[Array] = []
    sums = _sums(layout, true, np.zeros(conv.outputs, np.int32) if bias is None else bias.reshape(-1))
    for section in layout.sections:
        places: dict[tuple[int, ...], tuple[int, int]] = {}
        for strip, step in product(range(layout.strips), range(layout.steps(section))):
            rows = layout.rows(section, strip, step)
            kinds = tuple(layout.kind(row) for row in rows)
            if kinds not in places:
                places[kinds] = sum(w.size for w in weights), sum(i.size for i in initial)
                weights.append(_weights(layout, section, kinds, true))
                initial.append(_initial(layout, section, kinds, sums))
            entry = [*places[kinds]]
            for row in rows:
                entry += [row, *_lines(layout, row)]
            tables.append(np.array(entry, np.int32))
    return Packed(np.concatenate(weights), np.concatenate(initial), (np.concatenate(tables),))


def _lines(layout: Layout, row: int) -> list[int]:
    """Return, for each row of the kernel, the offset in elements of the image row that it reads for the output row
    `row`. A kernel row outside the image, where its weights are packed as zeros, gets the nearest image row."""
    conv, image = layout.conv, layout.image
    inside = [row * conv.strides[0] + i * conv.dilation[0] - image.top for i in range(conv.kernel_rows)]
    return [min(max(line, 0), image.rows - 1) * image.columns * conv.channels for line in inside]


def _sums(layout: Layout, true: Array, bias: Array) -> Array:
    """Return the initial sums as an array [row span, column span, channel]; the output rows (or columns) of a span have
    the same taps inside the image. A sum is the channel's bias minus the data's zero point times the sum of the weights
    of these taps. `true`: the weights minus their zero point."""
    zero_point = layout.conv.data.zero_point + layout.offset
    sums = [
        [true[first:end, left:right].sum(axis=(0, 1)) for _, _, left, right in layout.column_spans]
        for _, _, first, end in layout.row_spans
    ]
    return wrap_i32(bias.astype(np.int64) - zero_point * np.array(sums))


def _channels(section: Section, part: int) -> Array:
    """Return the channel numbers of part number `part`, 16 lanes, of each block of the section, as an array [block,
    lane]; those of unused lanes can exceed the last channel."""
    start = section.first + section.part(part)[1]
    return start + np.arange(section.blocks)[:, None] * section.channels + np.arange(LANES)


def _initial(layout: Layout, section: Section, kinds: Sequence[int], sums: Array) -> Array:
    """Return the initial accumulators of a section, block by block, in the order [column kind][vector][part][lane].
    Output rows or columns are of one kind if the same taps are inside the image: a kind is an index of
    `layout.row_spans` or `column_spans`. `kinds`: the kind of each pixel row of a block; `sums`: the accumulators as
    [row kind, column kind, channel]."""
    parts: list[Array] = []
    for part in range(layout.parts):
        chosen = np.minimum(_channels(section, part), layout.conv.outputs - 1)
        parts.append(sums[kinds[section.part(part)[0]]][:, chosen])
    lanes = np.array(parts).reshape(layout.parts, -1, section.blocks, VECTORS, LANES // VECTORS)
    return lanes.transpose(2, 1, 3, 0, 4).reshape(-1)


def _weights(layout: Layout, section: Section, kinds: Sequence[int], true: Array) -> Array:
    """Return the packed weights of a section's channels, a block of channels after another, as
    [group][column][vector][part][lane][row], zero for taps outside the image. A group is four rows of the kernel, which
    a dot product sums. Weights that exceed 8 bits are clipped, and the remainders are weights, too: of the copied row
    (`layout.copied`), or of the second dot products (`layout.second`), which follow at the end of each block. `kinds`:
    for each pixel row of a block, the number of its span in `layout.row_spans`; `true`: the weights minus their zero
    point."""
    conv = layout.conv
    _, columns, channels = true.shape
    by_row = np.zeros((layout.groups * GROUP, columns, layout.parts, section.blocks, LANES), np.int64)
    for part in range(layout.parts):
        _, _, first, end = layout.row_spans[kinds[section.part(part)[0]]]
        chosen = _channels(section, part)
        taken = np.where(chosen < channels, true[:, :, np.minimum(chosen, channels - 1)], 0)
        by_row[first:end, :, part] = taken[first:end]
    fitting = np.clip(by_row, -128, 127)
    missing = by_row - fitting
    free = conv.kernel_rows
    if free % GROUP and layout.copied // GROUP == free // GROUP:
        fitting[free] = missing[layout.copied]
        missing[layout.copied] = 0
    second = [missing.reshape(layout.groups, GROUP, *missing.shape[1:])[g, :, j] for g, j in sorted(layout.second)]
    plain = fitting.reshape(layout.groups, GROUP, *fitting.shape[1:]).transpose(0, 2, 1, 3, 4, 5)
    every = np.concatenate([plain.reshape(-1, *plain.shape[2:]), np.array(second).reshape(-1, *plain.shape[2:])])
    lanes = every.reshape(len(every), GROUP, layout.parts, section.blocks, VECTORS, LANES // VECTORS)
    return lanes.transpose(3, 0, 4, 2, 5, 1).astype(np.int8).reshape(-1)
