"""Depthwise convolution of floats: 16 channels in the lanes, neighbouring pixels in registers.

Each tile of pixels of an output row processes all blocks of channels, so that memory is read and written in order. A
tile loads each column of the image once. At the borders of the image, separate code skips the taps outside, as they
would add zeros. Result rows for which the same taps are inside the image are of one kind, and so are result columns;
each kind needs code of its own. If there are more than `KINDS` kinds of rows or of columns, the image is padded
instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from xdsl.dialects import vector
from xdsl.ir import Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.contractions import OfWeights, weighted_of
from relay.lowering.scheduling.depthwise import depthwise_cycles, pack_depthwise
from relay.lowering.scheduling.depthwise_layout import Borders, Image, image_of
from relay.lowering.scheduling.epilogue import Epilogue, pick_masks
from relay.lowering.scheduling.loops import over
from relay.lowering.scheduling.padding import Padding, Point, is_border
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel
from relay.target import LANES

KINDS = 5
"""The most kinds of result rows, or of result columns, for which separate code is emitted. Rows are of one kind if the
same kernel rows lie inside the image there."""
MOST_TAPS = 128
"""The largest window, in taps, of a convolution that this strategy takes. It bounds the size of the code, which
contains all taps once for each different case of border rows and columns."""
MOST_PIXELS = 16
"""The most pixels of a tile."""


@dataclass(frozen=True, kw_only=True)
class FloatDepthwiseSchedule(OpSchedule):
    """The decisions about a depthwise convolution of floats. `pixels`: the number of pixels of a tile; `one_row`:
    images of one column are viewed as images of one row; `padded`: the padded copy is read, not the image without
    borders; `masks`: see `pick_masks`."""

    strategy = "depthwise_float"
    keeps_order = frozenset({"pixels"})
    pixels: int
    one_row: bool
    padded: bool
    masks: bool


@dataclass(frozen=True)
class FloatDepthwise(OfWeights[FloatDepthwiseSchedule]):
    """A depthwise convolution of floats: rows of pixels, 16 channels at a time."""

    record = FloatDepthwiseSchedule
    padding: Padding | None

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found = weighted_of(op, kernel)
        if found is None or not found.conv.depthwise or not found.conv.is_float:
            return None
        one = cls(found.op, found, kernel.waiting.get(found.conv.data.value))
        return one if one.possible(one.found.row is not None) else None

    def borders(self, one_row: bool, padded: bool) -> Borders:
        """Return at which borders of the image the convolution's windows extend beyond it, or beyond its padded copy if
        `padded`. With `one_row`, the convolution is `found.row`, whose image has rows and columns exchanged."""
        found, image = self.found, image_of(self.found.conv, None if padded else self.padding)
        if not one_row or found.row is None:
            return Borders(found.conv, image)
        return Borders(found.row, Image(image.columns, image.rows, image.left, image.top))

    def possible(self, one_row: bool) -> Sequence[bool]:
        """Return the possible values of the decision `padded`, the best first: True if the kernel reads a padded copy
        of the image, False if it reads the image itself. Empty if neither is possible."""
        forms: tuple[bool, ...] = (False,)
        if self.padding is not None:
            forms = (False, True) if is_border(self.padding, self.found.conv) else (True,)
        return [padded for padded in forms if fits(self.borders(one_row, padded))]

    def decide(self, kernel: Kernel, pick: Picks) -> FloatDepthwiseSchedule:
        row, conv = self.found.row, self.found.conv
        ways = [way for way in ((True, False) if row else (False,)) if self.possible(way)]
        one_row = pick("one_row", ways, ways[0])
        pick("padded", self.possible(one_row), self.possible(one_row)[0])
        most = min(MOST_PIXELS, (conv if not one_row or row is None else row).out_columns)
        held = (kernel.target.vector_registers - 1) // 2  # registers: one for weights, two per pixel (data, sums)
        best = max(min(held, kernel.target.costs.depthwise_pixels, most), 1)
        pick("pixels", range(1, most + 1), best)
        cycles = depthwise_cycles(kernel, self.op, conv, 1)
        pick_masks(pick, kernel.target, conv.outputs)
        return pick.schedule(FloatDepthwiseSchedule, cycles, "rows of pixels, 16 channels at a time")

    def emit(self, emission: Emission, schedule: FloatDepthwiseSchedule) -> None:
        b, found = emission.builder, self.found
        epilogue, data = found.start(emission, schedule.masks), found.conv.data.value
        borders = self.borders(schedule.one_row, schedule.padded)
        if schedule.one_row:
            epilogue.turn_points()
        if schedule.padded:
            emission.write(data)
        elif self.padding is not None:
            data = self.padding.source
        conv, image = borders.conv, borders.image
        if schedule.one_row:
            data = b.view(data, [conv.images, image.rows, image.columns, conv.channels])
        kernels = found.form(schedule.one_row)[1]
        arguments = found.give(emission, found.biased([pack_depthwise(conv, array) for array in kernels]))
        FloatDepthwiseEmitter(b, borders, data, arguments, epilogue, schedule.pixels).emit()


def fits(borders: Borders) -> bool:
    """Whether code may be emitted for each kind of border with all taps unrolled: there are at most `KINDS` kinds of
    border rows and of border columns, and at most `MOST_TAPS` taps."""
    kinds = max(len(borders.row_spans), len(borders.column_spans))
    return borders.conv.kernel_rows * borders.conv.kernel_columns <= MOST_TAPS and kinds <= KINDS


class FloatDepthwiseEmitter:
    """Emits one depthwise convolution with its epilogue. Weights are [block of 16 channels][tap][16]."""

    def __init__(
        self,
        builder: LoopBuilder,
        borders: Borders,
        data: SSAValue,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
        pixels: int,
    ):
        self.b, self.borders, self.conv, self.epilogue = builder, borders, borders.conv, epilogue
        self.data, self.pixels = builder.flatten(data), pixels
        self.weights, self.initial = constants

    def emit(self) -> None:
        conv, b = self.conv, self.b
        with b.loop(0, conv.images, independent=True) as (n, _):
            for top, bottom, *down in self.borders.row_spans:
                with b.loop(top, bottom, independent=True) as (y, _):
                    for left, right, *across in self.borders.column_spans:
                        tile = min(self.pixels, right - left)
                        cut = left + (right - left) // tile * tile
                        taps = (range(*down), range(*across))
                        with b.loop(left, cut, tile) as (x, _):
                            self.all_channels((n, y, x), tile, *taps)
                        if cut < right:
                            self.all_channels((n, y, cut), right - cut, *taps)

    def all_channels(self, point: Point, pixels: int, rows: range, columns: range) -> None:
        """Emit the computation of all channels, 16 at a time, of `pixels` neighbouring output pixels from `point` on.
        `rows` and `columns`: the rows and columns of the kernel that lie inside the image there."""

        def tile(channel: Index, lanes: int) -> None:
            self.tile(point, channel, lanes, pixels, rows, columns)

        over(self.b, self.conv.outputs, LANES, tile)

    def tile(self, point: Point, channel: Index, lanes: int, pixels: int, rows: range, columns: range) -> None:
        """Emit the results of `pixels` neighbouring pixels of a row, from `point` on, for 16 channels (or the first
        `lanes` of them) from `channel` on. Only the taps in `rows` and `columns` of the kernel are summed."""
        b, conv, image = self.b, self.conv, self.borders.image
        n, y, x = point
        row = b.plus(b.times(n, image.rows), b.times(y, conv.strides[0]))
        base = b.plus(b.times(row, image.columns), b.times(x, conv.strides[1]))
        base = b.plus(b.times(base, conv.channels), channel)
        block = b.times(channel, conv.kernel_rows * conv.kernel_columns)
        totals = [b.vector_load(self.initial, [channel], LANES)] * pixels
        for i in rows:
            known: dict[int, SSAValue] = {}
            line = (i * conv.dilation[0] - image.top) * image.columns - image.left
            for j in columns:
                weight = b.vector_load(self.weights, [b.plus(block, (i * conv.kernel_columns + j) * LANES)], LANES)
                for m in range(pixels):
                    ahead = m * conv.strides[1] + j * conv.dilation[1]
                    if ahead not in known:
                        at = b.plus(base, (line + ahead) * conv.channels)
                        known[ahead] = self.epilogue.load(self.data, [at], lanes)
                    totals[m] = b.add(vector.FMAOp(known[ahead], weight, totals[m])).results[0]
        for m, total in enumerate(totals):
            self.epilogue.apply(total, [n, y, b.plus(x, m)], channel, lanes)
