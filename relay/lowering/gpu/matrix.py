"""Which convolutions and products a GPU's matrix units compute, and in which tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import MemRefType, i8
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array
from relay.lowering.builder import contiguous
from relay.lowering.gpu.formats import CODES, Format
from relay.lowering.gpu.points import Producer
from relay.lowering.gpu.producers import Nest, Padded
from relay.lowering.gpu.widths import Narrow, fits, is_wide, reads
from relay.lowering.scheduling.affine import dims_of
from relay.lowering.scheduling.body import can_lift
from relay.lowering.scheduling.contraction import Convolution, recognise
from relay.lowering.scheduling.packing import wrap_i32
from relay.lowering.shaped import buffer_of, is_buffer, shape_of

FEATURES = frozenset({"mma", "async-copy"})
"""What a target must have."""
GROUPS = "wgmma"
"""What a target must have whose warps multiply in groups of four."""
CHUNK = 16
"""Bytes of one copy, at most."""
TAP = 32
"""Bytes of a row that one product takes."""
SMALLEST = 4
"""Bytes of one copy, at least."""
PIXEL = 4
"""Channels of a pixel of few channels, once it is copied."""
FEWEST_ROWS, FEWEST_COLUMNS = 8, 8
"""Smaller products stay sums of dot products: most of a tile would be empty."""
COPIED = 32
"""Bytes that come into a processor's shared memory in a clock."""
STEP, BLOCK, LAUNCH = 256, 1500, 2500
"""Clocks that a step takes where there is little to multiply, that a block takes besides its steps, and that another
kernel takes that waits for this one: chosen, not measured."""
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Parts of the depth that have blocks of their own."""
PARTS_LANES = 4
"""Neighbouring sums whose parts a thread adds at once."""
REGISTERS = 1 << 16
MOST_SUMS = 64
"""Sums of a thread that are too many beside the places of pieces: registers would not do."""
BARRIER_BYTES = 8
"""Of a barrier in shared memory, that copies of a stage are counted by."""
SHARED_BYTES = 227 << 10
"""Shared memory of a processor that has wgmma."""
FINISHED = 1 / 8
"""Clocks of a processor for what follows a sum: 8 instructions at 64 a clock (docs/gpu.md counts them)."""


@dataclass(frozen=True)
class Tile:
    """What a block of threads computes: `rows` x `columns` sums by `down` x `across` warps, with so many stages."""

    rows: int
    columns: int
    down: int
    across: int
    stages: int
    depth: ClassVar[int] = 64
    """Bytes of a row that are in shared memory at once, for each stage of the pipeline."""
    speed: ClassVar[int] = 2048
    """Products of codes, or bytes of floats, of a processor in a clock."""
    run: ClassVar[int] = 4
    """Products of 8 columns whose sums are of neighbours, two of each: a warp has as many, or a multiple."""
    fewest_stages: ClassVar[int] = 2

    @property
    def threads(self) -> int:
        return 32 * self.down * self.across

    @property
    def sums(self) -> int:
        """Sums of a thread."""
        return self.rows * self.columns // self.threads

    @property
    def row_steps(self) -> int:
        """Products of 16 rows of a warp."""
        return self.rows // self.down // 16

    @property
    def column_steps(self) -> int:
        """Products of 8 columns of a warp."""
        return self.columns // self.across // 8

    @property
    def stage_bytes(self) -> int:
        """Shared memory of a stage."""
        return (self.rows + self.columns) * self.depth

    @property
    def resident(self) -> int:
        """Blocks that a processor has at once, by their registers."""
        return REGISTERS // (60 * self.threads + self.rows * self.columns)

    def cost(self, rows: int, columns: int, depth: int, splits: int, processors: int) -> float:
        """Clocks that a product takes on so many processors, about: of the busiest of them, whose blocks multiply and
        copy at once, and of the kernel that adds the parts. `depth`: bytes of a row of the data."""
        blocks = -(-rows // self.rows) * -(-columns // self.columns) * splits
        each = -(-blocks // processors)
        together = min(each, self.resident)
        work = max(self.rows * self.columns * self.depth // self.speed, self.stage_bytes // COPIED)
        steps = -(-depth // (self.depth * splits))
        waves, time = -(-each // together), BLOCK + steps * max(STEP, together * work)
        if splits == 1:
            return waves * (time + FINISHED * together * self.rows * self.columns)
        parts = rows * columns / processors * (FINISHED + 2 * 4 * splits / COPIED)
        return waves * time + LAUNCH + parts


TILES = (Tile(128, 128, 2, 4, 3), Tile(128, 64, 2, 2, 4), Tile(64, 64, 2, 2, 4), Tile(64, 32, 4, 1, 4))
"""All fit into the 48 KiB of shared memory that need not be asked for."""


@dataclass(frozen=True)
class GroupTile(Tile):
    """What groups of four warps compute, each 64 rows of the tile, by `wgmma`: both factors are read from shared
    memory, in rows of 128 bytes, while the warps go on."""

    depth: ClassVar[int] = 128
    speed: ClassVar[int] = 4096
    run: ClassVar[int] = 8
    fewest_stages: ClassVar[int] = 3

    @property
    def resident(self) -> int:
        """Blocks that a processor has at once, by their registers and their shared memory."""
        return min(super().resident, SHARED_BYTES // (self.stages * self.stage_bytes))


GROUP_TILES = (GroupTile(128, 256, 8, 1, 4), GroupTile(128, 128, 8, 1, 4))
"""For large products: one block on each processor."""


@dataclass(frozen=True)
class Gathered:
    """Images of few channels, which are first copied with their borders, `PIXEL` codes for each: so a row of a window
    is one run of codes, as many channels of one pixel would be."""

    conv: Convolution
    format: Format = CODES

    @property
    def chunk(self) -> int:
        """Numbers of one copy."""
        return CHUNK // self.format.data

    @property
    def run(self) -> int:
        """Numbers of a row of a window, and what follows them up to a whole chunk."""
        return -(-self.conv.kernel_columns * PIXEL // self.chunk) * self.chunk

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The copy's shape."""
        conv = self.conv
        rows = (conv.out_rows - 1) * conv.strides[0] + (conv.kernel_rows - 1) * conv.dilation[0] + 1
        columns = (conv.out_columns - 1) * conv.strides[1] + self.run // PIXEL
        return conv.images, rows, -(-columns * PIXEL // self.chunk) * self.chunk // PIXEL, PIXEL

    def product(self) -> Convolution:
        """The convolution of the copy."""
        _, rows, columns, _ = self.shape
        return replace(self.conv, rows=rows, columns=columns, channels=self.run, kernel_columns=1)

    def kernel(self, kernel: Array) -> Array:
        """Weights of the copy: those of what does not belong to a window are the zero point."""
        conv = self.conv
        shape = conv.outputs, conv.kernel_rows, conv.kernel_columns, conv.channels
        whole = np.full((*shape[:3], PIXEL), conv.kernel.zero_point, kernel.dtype)
        whole[..., : conv.channels] = kernel.reshape(shape)
        rows = whole.reshape(*shape[:2], -1)
        more = ((0, 0), (0, 0), (0, self.run - rows.shape[-1]))
        return np.pad(rows, more, constant_values=conv.kernel.zero_point)


@dataclass(frozen=True)
class Matrix:
    """A product of `rows` x `depth` by `depth` x `columns` numbers, with what is done to its sums: `nest`."""

    nest: Nest
    conv: Convolution
    gathered: Gathered | None
    sums: Nest
    padding: Padded | None
    lanes: int
    tile: Tile
    splits: int
    format: Format = CODES

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
        """Numbers from a pixel to the next."""
        return self.conv.channels if self.gathered is None else PIXEL

    @property
    def chunk(self) -> int:
        """Numbers of a chunk."""
        return CHUNK // self.format.data

    @property
    def deep(self) -> int:
        """Numbers of a row that are in shared memory at once."""
        return self.tile.depth // self.format.data

    @property
    def piece(self) -> int:
        """Numbers that are copied at once: they lie together, at a multiple of their size."""
        return gcd(self.chunk, self.conv.channels, self.pitch * (1 if self.gathered is None else self.conv.strides[1]))

    @property
    def steps(self) -> int:
        """Turns of a block's loop over its part of the depth."""
        return -(-self.depth // (self.deep * self.splits))

    @property
    def stages(self) -> int:
        """Stages of the pipeline that there is something for."""
        return max(self.tile.fewest_stages, min(self.tile.stages, self.steps))

    @property
    def bulk(self) -> bool:
        """Whether groups of warps multiply whole tiles of two matrices in memory, which the device copies by itself."""
        return isinstance(self.tile, GroupTile) and self.conv.pointwise and self.padding is None

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: stages, and what counts their bytes."""
        return self.stages * (self.tile.stage_bytes + (BARRIER_BYTES if self.bulk else 0))

    @property
    def packed_columns(self) -> int:
        """Rows of the packed weights."""
        return -(-self.columns // self.tile.columns) * self.tile.columns

    @property
    def packed_depth(self) -> int:
        return self.splits * self.steps * self.deep

    @property
    def reason(self) -> str:
        """What was chosen, and what it costs in accuracy."""
        tile, parts = f"{self.tile.rows} x {self.tile.columns}", f" in {self.splits} parts" if self.splits > 1 else ""
        sizes = f"{self.rows} x {self.columns} x {self.depth}{parts}"
        return f"{self.format.name} {sizes}, tile {tile}: {self.format.says(self.depth + self.splits)}"

    def pack(self, kernel: Array) -> list[Array] | None:
        """The weights as `int8[packed_columns, packed_depth]` with zeros behind, and for each channel what its sums
        are off by: `count zx zw - zx sum w`. Those of floats alone, as bytes; None if one is too large.

        Rows are in the order of shared memory: of each 8 n rows, n the tile's `run`, row 8 i + 2 t + j has channel
        2 n t + 2 i + j. So the sums that lane t has are of 2 n neighbours.
        """
        codes = (kernel if self.gathered is None else self.gathered.kernel(kernel)).reshape(self.columns, self.depth)
        if not self.format.exact:
            return self.pack_floats(codes)
        zx, zw = self.conv.data.zero_point, self.conv.kernel.zero_point
        offsets = wrap_i32(zx * (self.depth * zw - codes.astype(np.int64).sum(axis=1)))
        more = self.packed_columns - self.columns
        whole = np.pad(codes.view(np.int8), ((0, more), (0, self.packed_depth - self.depth)))
        return [self.ordered(whole), np.pad(offsets, (0, more))]

    def ordered(self, whole: Array) -> Array:
        """Rows in the order of shared memory."""
        ordered = whole.reshape(-1, 4, self.tile.run, 2, self.packed_depth).transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(ordered).reshape(whole.shape)

    def pack_floats(self, kernel: Array) -> list[Array] | None:
        """Half words lie in the order in which a lane has numbers of the data that it rounds to a word, and two rows
        beside each other: in 64 bytes, 16 numbers of both."""
        more = ((0, self.packed_columns - self.columns), (0, self.packed_depth - self.depth))
        rounded = self.format.rounded(np.pad(kernel, more))
        if rounded is None:
            return None
        rows = self.ordered(rounded).reshape(self.packed_columns, -1, self.deep)
        if self.format.fold == 2:
            rows = rows.reshape(-1, 2, rows.shape[1], 2, 2, 4).transpose(0, 2, 1, 3, 5, 4)
        return [np.ascontiguousarray(rows).reshape(-1).view(np.int8)]


def matrix_of(
    nest: Nest, producers: Mapping[SSAValue, Producer], processors: int, floats: Format | None, groups: bool
) -> Matrix | None:
    """The nest as what follows a product of codes, or of floats if there is a format for them, if it is that and matrix
    units can compute it. The tile and the parts of the depth are those that so many processors should take the least
    time for. `groups`: four warps may multiply together."""
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
    if isinstance(padding, Nest) or (padding is not None and not is_spatial(padding, producers)):
        return None
    gathered = None
    if conv.channels % SMALLEST if codes else conv.channels < PIXEL:
        if conv.channels > PIXEL or conv.kernel_columns == 1 or conv.dilation[1] != 1:
            return None
        gathered = Gathered(conv, format)
        conv, padding = gathered.product(), None
    rows = conv.images * conv.out_rows * conv.out_columns
    if rows < FEWEST_ROWS or conv.outputs < FEWEST_COLUMNS:
        return None
    widest = widest_of(nest, sums, producers, conv.outputs)
    tiles = [tile for tile in TILES if tile.columns * tile.depth // CHUNK >= tile.threads * format.fold] or TILES
    tiles = tiles if widest > 1 else tiles[-1:]
    if gathered is not None or conv.channels % (CHUNK // format.data):
        tiles = [tile for tile in tiles if tile.sums < MOST_SUMS]
    elif groups and codes and widest > 1 and not conv.kernel.zero_point:
        tiles = [*(tile for tile in tiles if tile.sums < MOST_SUMS), *GROUP_TILES]
    depth = conv.kernel_rows * conv.kernel_columns * conv.channels * format.data
    tile, splits = chosen(tiles, rows, conv.outputs, depth, processors)
    return Matrix(nest, conv, gathered, sums, padding, min(widest, 2 * tile.run), tile, splits, format)


def chosen(tiles: Sequence[Tile], rows: int, columns: int, depth: int, processors: int) -> tuple[Tile, int]:
    """The tile and the parts of the depth that cost least."""
    choices = [(tile, splits) for splits in SPLITS for tile in tiles if splits == 1 or 2 * splits * tile.depth <= depth]
    return min(choices, key=lambda choice: choice[0].cost(rows, columns, depth, choice[1], processors))


def contractions(nest: Nest, producers: Mapping[SSAValue, Producer]) -> Iterator[Nest | None]:
    """The sums that the nest reads, itself included; None for one that it does not read point by point."""
    if nest.output_dims != list(range(len(nest.parallel))):
        yield None
    elif nest.reduction:
        yield nest
    else:
        for value, map in zip(nest.op.inputs, nest.maps, strict=False):
            if isinstance(inner := producers.get(value), Nest):
                same = dims_of(map) == list(range(len(nest.sizes)))
                yield from (found if same else None for found in contractions(inner, producers))


def is_spatial(padding: Padded, producers: Mapping[SSAValue, Producer]) -> bool:
    """Whether rows and columns are added to images that lie in memory."""
    inner, outer = shape_of(padding.source), padding.shape
    same = len(outer) == 4 and inner[0] == outer[0] and inner[3] == outer[3]
    return same and padding.source not in producers and contiguous(padding.source.type)


def widest_of(nest: Nest, sums: Nest, producers: Mapping[SSAValue, Producer], columns: int) -> int:
    """How many neighbouring channels can be computed from their sums at once."""
    try:
        types = [*accesses(nest, sums, producers), *(buffer_of(output) for output in nest.op.outputs)]
    except Narrow:
        return 1
    lanes = 16
    while lanes > 1 and (columns % lanes or not all(fits(type, lanes) for type in types)):
        lanes //= 2
    return lanes


def accesses(nest: Nest, sums: Nest, producers: Mapping[SSAValue, Producer]) -> Iterator[MemRefType]:
    """The types of buffers that are read with neighbouring channels in the lanes, besides those of the sums."""
    if nest is sums or nest.op is sums.op:
        return
    if not can_lift(nest.op.body.block):
        raise Narrow
    last = len(nest.sizes) - 1
    for value, map, argument in zip(nest.op.inputs, nest.maps, nest.op.body.block.args, strict=False):
        if not any(argument.uses) or not is_buffer(value.type) or not is_wide(map, last):
            continue
        inner = producers.get(value)
        if isinstance(inner, Nest):
            yield from accesses(inner, sums, producers)
        else:
            yield from reads(value, producers)
