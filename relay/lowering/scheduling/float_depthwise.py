"""Depthwise convolution of floats: 16 channels in the lanes, neighbouring pixels in registers, the image not padded
unless its borders are of many kinds.

Of each output row, tiles of pixels take all blocks of channels in turn: memory is read and written in order. A tile
reads each column of the image once. At the borders, taps outside the image are left out: they would add zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, vector
from xdsl.ir import SSAValue

from relay.dialects.attributes import to_numpy
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.packing import LANES
from relay.lowering.scheduling.padding import Padding, Span, spans
from relay.lowering.shaped import shape_of

KINDS = 5
"""Kinds of border rows, or columns, that code is written for."""
MOST_TAPS = 128
"""Taps that code is written for: all of them, of each kind of row and column."""
ACCUMULATORS = {32: 8, 8: 3}
"""Pixels of a tile, by how many vectors of 16 the registers hold; 1 elsewhere."""


class FloatDepthwise:
    """One depthwise convolution of float32 and how its borders lie."""

    def __init__(self, conv: Convolution, padding: Padding | None):
        self.conv = conv
        self.data = conv.data.value if padding is None else padding.source
        _, self.rows, self.columns, _ = shape_of(self.data)
        self.top, self.left = (0, 0) if padding is None else padding.low[1:3]

    @property
    def row_spans(self) -> list[Span]:
        conv = self.conv
        return spans(self.rows, conv.kernel_rows, conv.strides[0], conv.dilation[0], self.top, conv.out_rows)

    @property
    def column_spans(self) -> list[Span]:
        conv = self.conv
        return spans(self.columns, conv.kernel_columns, conv.strides[1], conv.dilation[1], self.left, conv.out_columns)

    @property
    def fits(self) -> bool:
        """Whether the borders are of few kinds, and the taps few."""
        kinds = max(len(self.row_spans), len(self.column_spans))
        return self.conv.kernel_rows * self.conv.kernel_columns <= MOST_TAPS and kinds <= KINDS


def float_depthwise(conv: Convolution, padding: Padding | None) -> FloatDepthwise | None:
    """This schedule for the convolution, if it suits it: floats, padded with zeros or not."""
    if not conv.is_float or not conv.depthwise:
        return None
    if padding is not None:
        constant = padding.value.owner
        zeros = isinstance(constant, arith.ConstantOp) and float(to_numpy(constant.value)) == 0.0
        if not padding.of_image or not zeros:
            return None
    found = FloatDepthwise(conv, padding)
    return found if found.fits else None


class FloatDepthwiseEmitter:
    """Emits one depthwise convolution with its epilogue. Weights are [block of 16 channels][tap][16]."""

    def __init__(
        self,
        builder: LoopBuilder,
        schedule: FloatDepthwise,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
        registers: int,
    ):
        self.b, self.schedule, self.conv, self.epilogue = builder, schedule, schedule.conv, epilogue
        self.data = builder.flatten(schedule.data)
        self.weights, self.initial = constants
        self.pixels = ACCUMULATORS.get(registers, 1)

    def emit(self) -> None:
        conv, b = self.conv, self.b
        with b.loop(0, conv.images, independent=True) as (n, _):
            for top, bottom, *down in self.schedule.row_spans:
                with b.loop(top, bottom, independent=True) as (y, _):
                    for left, right, *across in self.schedule.column_spans:
                        tile = min(self.pixels, right - left)
                        cut = left + (right - left) // tile * tile
                        taps = (range(*down), range(*across))
                        with b.loop(left, cut, tile) as (x, _):
                            self.all_channels((n, y, x), tile, *taps)
                        if cut < right:
                            self.all_channels((n, y, cut), right - cut, *taps)

    def all_channels(self, point: tuple[Index, Index, Index], pixels: int, rows: range, columns: range) -> None:
        """All blocks of channels of some neighbouring pixels."""
        whole = self.conv.outputs // LANES * LANES
        if whole:
            with self.b.loop(0, whole, LANES) as (channel, _):
                self.tile(point, channel, LANES, pixels, rows, columns)
        if whole < self.conv.outputs:
            self.tile(point, whole, self.conv.outputs - whole, pixels, rows, columns)

    def tile(
        self,
        point: tuple[Index, Index, Index],
        channel: Index,
        lanes: int,
        pixels: int,
        rows: range,
        columns: range,
    ) -> None:
        """`pixels` neighbours of 16 (or the first `lanes`) channels."""
        b, conv, image = self.b, self.conv, self.schedule
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
