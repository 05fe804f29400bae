"""Recognises convolutions and products that a GPU's matrix units compute, and packs their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import gcd

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i8
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.lowering.gpu.formats import CODES, Format
from relay.lowering.gpu.points import Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.tiles import WORD, Tile
from relay.lowering.gpu.widths import Narrow, fitting, wide_accesses
from relay.lowering.scheduling.affine import dims_of
from relay.lowering.scheduling.contraction import Convolution, recognise
from relay.lowering.scheduling.depthwise_layout import Borders, image_of
from relay.lowering.scheduling.packing import wrap_i32
from relay.lowering.scheduling.padding import Padding
from relay.lowering.shaped import buffer_of, shape_of
from relay.target.costs import GpuCosts

TAP = 32
"""The bytes of a row that one matrix instruction multiplies."""
SMALLEST = 4
"""The fewest bytes that one asynchronous copy (`cp.async`) to shared memory can copy; the channels of codes must be a
multiple of it."""
PIXEL = 4
"""The number of channels to which the pixels of an image with fewer channels are padded when it is copied
(`Gathered`)."""
ROW = 128
"""The largest size, in bytes, of one row of a tile that the GPU's tensor memory accelerator (TMA) can copy to shared
memory."""
BARRIER_BYTES = 8
"""The bytes of a barrier in shared memory that counts the copies of a stage."""


@dataclass(frozen=True)
class Gathered:
    """Images of few channels that are first copied with their borders, `PIXEL` codes for each pixel, so that a row of a
    window is one contiguous run of codes, like a pixel of many channels."""

    conv: Convolution
    format: Format = CODES

    @property
    def run(self) -> int:
        """The number of elements of a window's row, rounded up to whole chunks."""
        return -(-self.conv.kernel_columns * PIXEL // self.format.chunk) * self.format.chunk

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of the copied images with their borders: images, rows, columns (rounded up to whole chunks of a
        row), and `PIXEL` channels."""
        conv = self.conv
        rows = (conv.out_rows - 1) * conv.strides[0] + (conv.kernel_rows - 1) * conv.dilation[0] + 1
        columns = (conv.out_columns - 1) * conv.strides[1] + self.run // PIXEL
        return conv.images, rows, -(-columns * PIXEL // self.format.chunk) * self.format.chunk // PIXEL, PIXEL

    def product(self) -> Convolution:
        """Return a convolution of the copied images with the same results: a pixel's channels are the elements of a
        whole row of a window, so the convolution's kernel has a single column."""
        _, rows, columns, _ = self.shape
        return replace(self.conv, rows=rows, columns=columns, channels=self.run, kernel_columns=1)

    def kernel(self, kernel: Array) -> Array:
        """Return the convolution's kernel as [output, kernel row, run], where a run is a row of a window in the copied
        images: `PIXEL` channels for each kernel column, filled up to whole chunks. The added channels and columns have
        the zero point as weight, and so contribute nothing."""
        conv = self.conv
        shape = conv.outputs, conv.kernel_rows, conv.kernel_columns, conv.channels
        whole = np.full((*shape[:3], PIXEL), conv.kernel.zero_point, kernel.dtype)
        whole[..., : conv.channels] = kernel.reshape(shape)
        rows = whole.reshape(*shape[:2], -1)
        more = ((0, 0), (0, 0), (0, self.run - rows.shape[-1]))
        return np.pad(rows, more, constant_values=conv.kernel.zero_point)


@dataclass(frozen=True)
class Product:
    """A product of `rows` x `depth` by `depth` x `columns` elements, with the operations that follow its sums, `nest`.
    `widest`: the largest number of neighbouring channels whose sums these operations can process as one vector."""

    nest: Nest
    conv: Convolution
    gathered: Gathered | None
    sums: Nest
    padding: Padding | None
    widest: int
    format: Format

    @property
    def rows(self) -> int:
        return self.conv.images * self.conv.out_rows * self.conv.out_columns

    @property
    def columns(self) -> int:
        return self.conv.outputs

    @property
    def depth(self) -> int:
        return self.conv.kernel_rows * self.conv.kernel_columns * self.conv.channels

    @property
    def pitch(self) -> int:
        """The number of elements from a pixel to the next."""
        return self.conv.channels if self.gathered is None else PIXEL

    @property
    def piece(self) -> int:
        """The number of elements of the data that one instruction copies to shared memory: they are contiguous, and
        aligned to their total size."""
        apart = 1 if self.gathered is None else self.conv.strides[1]
        return gcd(self.format.chunk, self.conv.channels, self.pitch * apart)

    @property
    def image(self) -> tuple[SSAValue, tuple[int, ...], tuple[int, ...]]:
        """The buffer of the images without padding, its shape, and the numbers of padding rows and columns before the
        first row and column of an image."""
        if self.padding is None:
            return self.conv.data.value, shape_of(self.conv.data.value), (0, 0)
        return self.padding.source, shape_of(self.padding.source), self.padding.low[1:3]

    @property
    def corners(self) -> tuple[int, int, int] | None:
        """The parameters with which the copy engine addresses windows itself (im2col): the offset of the first window
        relative to the image's first row and column, the offset of the last window relative to the image's last row and
        column, and the stride; None if the engine cannot address them. Elements outside the image are copied as 0."""
        conv, (_, shape, (top, left)) = self.conv, self.image
        places = ((conv.out_rows, shape[1]), (conv.out_columns, shape[2])) if len(shape) == 4 else ()
        ends = {-top + (count - 1) * conv.strides[0] - (size - 1) for count, size in places}
        channels, (stride, other) = conv.channels, conv.strides
        whole = channels % ROW == 0 or channels in (ROW // 2, ROW // 4)
        far = max((conv.kernel_rows + ROW // 32) * conv.dilation[0], conv.kernel_columns * conv.dilation[1])
        if not whole or conv.others or len(ends) != 1 or top != left or stride != other or stride > 8 or far > 255:
            return None
        if self.padding is not None and not isinstance(self.padding.value.owner, arith.ConstantOp):
            return None
        (end,) = ends
        return (-top, end, stride) if top <= 128 and -128 <= end <= 127 else None

    @property
    def borders(self) -> Borders:
        """The positions at which windows reach outside their images."""
        return Borders(self.conv, image_of(self.conv, self.padding))

    def tiled(self, tile: Tile, lanes: int, splits: int = 1, part_lanes: int = 1, bulk: bool = False) -> Matrix:
        """Return the product divided into tiles; for the other arguments, see `Matrix`."""
        parts = {field.name: getattr(self, field.name) for field in fields(Product)}
        return Matrix(**parts, tile=tile, splits=splits, bulk=bulk, lanes=lanes, part_lanes=part_lanes)


@dataclass(frozen=True)
class Matrix(Product):
    """A product divided into tiles. `splits`: the number of parts of the depth, which separate blocks compute; `bulk`:
    the copy engine copies tiles of both factors, which are matrices in memory. `lanes`: the number of neighbouring
    channels for which a thread computes the epilogue at once; `part_lanes`: the same in the kernel that adds the
    splits."""

    tile: Tile
    splits: int
    bulk: bool
    lanes: int
    part_lanes: int

    @property
    def windows(self) -> bool:
        """Whether the copy engine copies windows, not rows of a matrix."""
        return self.bulk and not (self.conv.pointwise and self.padding is None)

    @property
    def piece_bytes(self) -> int:
        """The number of bytes that the tensor memory accelerator (TMA) copies to shared memory for one row of a tile of
        the data: the depth of a stage, or the channels of one tap of a window if they are fewer."""
        return min(self.tile.depth, self.conv.channels) if self.windows else self.tile.depth

    @property
    def bordered(self) -> bool:
        """Whether the initial values of the sums depend on which taps of a window lie outside the image."""
        return self.windows and len(self.borders.row_spans) * len(self.borders.column_spans) > 1

    @property
    def deep(self) -> int:
        """The number of elements of a row of the data in one stage in shared memory."""
        return self.tile.depth // self.format.data

    @property
    def steps(self) -> int:
        """The number of iterations of the loop over the depth. Splits divide the depth among blocks, and slices divide
        a block's part among groups of warps; an iteration multiplies one stage of a slice."""
        return -(-self.depth // (self.deep * self.splits * self.tile.slices))

    @property
    def shared_bytes(self) -> int:
        """The bytes of a block's shared memory: stages, and the barriers that count their bytes and their readers."""
        barriers = self.tile.barriers if self.bulk else 0
        exchanged = self.tile.slices * self.tile.rows * self.tile.columns * WORD if self.tile.slices > 1 else 0
        stages = self.tile.slices * self.tile.stages * self.tile.stage_bytes
        return max(stages, exchanged) + barriers * BARRIER_BYTES

    @property
    def blocks(self) -> int:
        """The number of tiles of the result times the number of parts of a split reduction dimension. Each is computed
        by one thread block, unless blocks are persistent and compute several."""
        return -(-self.rows // self.tile.rows) * (self.packed_columns // self.tile.columns) * self.splits

    @property
    def packed_columns(self) -> int:
        """The number of columns of the result, rounded up to whole tiles. Each column is a row of the packed
        weights."""
        return -(-self.columns // self.tile.columns) * self.tile.columns

    @property
    def packed_depth(self) -> int:
        return self.splits * self.tile.slices * self.steps * self.deep

    def pack(self, kernel: Array) -> list[Array]:
        """Return the packed weights, `int8[packed_columns, packed_depth]`, padded with zeros, and an array of the
        numbers that are added to the channels' sums. A channel's number is `count zx zw - zx sum w` (zero points zx of
        the data and zw of the weights w; `count` weights). If windows reach outside images, the array has a row of
        numbers for each kind of border; they also contain the products of the padding's code and the weights outside
        the image, since the padding is not copied. Float weights are returned alone, as bytes.

        A row has the weights of one channel; rows are in the order in which shared memory holds them. Of each 8 n rows,
        n being the tile's `run`, row `8 i + 2 t + j` has channel `2 n t + 2 i + j` (i < n, t < 4, j < 2), so that the
        sums of lane t of a quad belong to 2 n neighbouring channels.
        """
        codes = (kernel if self.gathered is None else self.gathered.kernel(kernel)).reshape(self.columns, self.depth)
        if not self.format.exact:
            return self.pack_floats(codes)
        zx, zw = self.conv.data.zero_point, self.conv.kernel.zero_point
        offsets = zx * (self.depth * zw - codes.astype(np.int64).sum(axis=1))
        if self.bordered:
            shape = self.columns, self.conv.kernel_rows, self.conv.kernel_columns, self.conv.channels
            offsets = offsets + self.padded * outside(self.borders, codes.reshape(shape))
        more = self.packed_columns - self.columns
        whole = np.pad(codes.view(np.int8), ((0, more), (0, self.packed_depth - self.depth)))
        return [self.ordered(whole), wrap_i32(np.pad(offsets, [(0, 0)] * (offsets.ndim - 1) + [(0, more)]))]

    @property
    def padded(self) -> int:
        """The quantized value with which the images are padded, from 0 to 255 if the data are unsigned."""
        assert self.padding is not None and isinstance(self.padding.value.owner, arith.ConstantOp)
        found = int(to_numpy(self.padding.value.owner.value))
        return found & 0xFF if self.conv.data.unsigned else found

    def ordered(self, whole: Array) -> Array:
        """Return the rows of the packed weights, one for each channel, in the order that `pack` describes."""
        ordered = whole.reshape(-1, 4, self.tile.run, 2, self.packed_depth).transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(ordered).reshape(whole.shape)

    def pack_floats(self, kernel: Array) -> list[Array]:
        """Round float weights [columns, depth] to the format, and return them packed, as one array of bytes. For 16-bit
        formats, elements i and i + 4 of every 8 along the depth share a 32-bit word, as they do when a lane rounds the
        data. Each column of the weights is a row of the packed ones; every 64 bytes hold 16 elements of one packed row
        and the same 16 of the next row."""
        more = ((0, self.packed_columns - self.columns), (0, self.packed_depth - self.depth))
        rounded = self.format.rounded(np.pad(kernel, more))
        assert rounded is not None
        rows = self.ordered(rounded).reshape(self.packed_columns, -1, self.deep)
        if self.format.fold == 2:
            rows = rows.reshape(-1, 2, rows.shape[1], 2, 2, 4).transpose(0, 2, 1, 3, 5, 4)
        return [np.ascontiguousarray(rows).reshape(-1).view(np.int8)]


def outside(borders: Borders, kernel: Array) -> Array:
    """Return an array [pair, channel]: the sums of the weights whose taps are outside the image, where the device's
    copies yield zeros instead of the padding's code. A span is a range of output rows, or of output columns, whose
    windows have the same taps inside the image; each span of rows forms a pair with each span of columns. `kernel`: the
    weights, [channel, row, column, depth]."""
    taps = kernel.astype(np.int64).sum(axis=3)
    inside = [
        taps[:, top:bottom, left:right].sum(axis=(1, 2))
        for _, _, top, bottom in borders.row_spans
        for _, _, left, right in borders.column_spans
    ]
    return taps.sum(axis=(1, 2)) - np.stack(inside)


def product_of(
    nest: Nest, producers: Mapping[SSAValue, Producer], floats: Format | None, costs: GpuCosts
) -> Product | None:
    """Return the product of codes, or of floats if `floats` is their format, that the nest and the operations around it
    compute, if matrix units can compute it; else None."""
    found = list(contractions(nest, producers))
    if len(found) != 1 or (sums := found[0]) is None:
        return None
    conv = recognise(sums.op)
    if conv is None or conv.depthwise or sums.started[0] is None or conv.kernel.value in producers:
        return None
    codes = conv.data.element == conv.kernel.element == i8
    format = CODES if codes else floats if conv.is_float else None
    if format is None:
        return None
    padding = producers.get(conv.data.value)
    if isinstance(padding, Nest) or (padding is not None and (padding.source in producers or not padding.of_image)):
        return None
    gathered = None
    if conv.channels % SMALLEST if codes else conv.channels < PIXEL:
        if conv.channels > PIXEL or conv.kernel_columns == 1 or conv.dilation[1] != 1:
            return None
        gathered = Gathered(conv, format)
        conv, padding = gathered.product(), None
    rows = conv.images * conv.out_rows * conv.out_columns
    if rows < costs.matrix_rows or conv.outputs < costs.matrix_columns:
        return None
    return Product(nest, conv, gathered, sums, padding, widest_of(nest, sums, producers, conv.outputs), format)


def contractions(nest: Nest, producers: Mapping[SSAValue, Producer]) -> Iterator[Nest | None]:
    """Yield the nest if it is a reduction, else the reductions that it inlines. None stands for a nest whose results
    are not indexed by its parallel loops in order, or whose reader reads them at other indices than those of its own
    loops."""
    if nest.output_dims != list(range(len(nest.parallel))):
        yield None
    elif nest.reduction:
        yield nest
    else:
        for value, map in zip(nest.op.inputs, nest.maps, strict=False):
            if isinstance(inner := producers.get(value), Nest):
                same = dims_of(map) == list(range(len(nest.sizes)))
                yield from (found if same else None for found in contractions(inner, producers))


def widest_of(nest: Nest, sums: Nest, producers: Mapping[SSAValue, Producer], columns: int) -> int:
    """Return the largest number of neighbouring channels, at most 16, whose sums the operations after the product can
    process as one vector."""
    types = [buffer_of(output) for output in nest.op.outputs]
    if nest.op is not sums.op:
        others = {value: producer for value, producer in producers.items() if value not in tuple(sums.op.outputs)}
        try:
            types += wide_accesses(nest, others, len(nest.sizes) - 1)
        except Narrow:
            return 1
    return fitting(columns, types, 16)
