"""`mma-pairs`: products of two matrices that are both computed at run time, or of each pair of two batches of such
matrices, by the matrix units of single warps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from xdsl.dialects.builtin import Float32Type, i8
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute

from relay.lowering.gpu.formats import CODES, FLOATS, Format
from relay.lowering.gpu.grids import grid
from relay.lowering.gpu.matrix import SMALLEST, Product, contractions, widest_of
from relay.lowering.gpu.pair_kernel import FOUR, Pair, PairKernel
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.strategies.mma import TILES
from relay.lowering.gpu.strategies.products import holds, multiplied
from relay.lowering.gpu.strategies.strategy import Emission, Kernel, Scheduled, Strategy, powers
from relay.lowering.gpu.tiles import Tile
from relay.lowering.scheduling.affine import dims_of, kinds_of
from relay.lowering.scheduling.contraction import Convolution, operands_of
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import shape_of
from relay.target import GpuTarget

STACKS = {"ppr": ([0, 2], [[1, 2], [2, 1]], [0, 1]), "pppr": ([0, 1, 3], [[0, 2, 3], [0, 3, 2]], [0, 1, 2])}
"""The supported products, by the iterator types of a nest (p: parallel, r: reduction): the dimensions that index the
first factor; those that index the second factor, stored as [columns, depth] or as [depth, columns]; and those that
index the result."""
STAGES = 2
"""The number of stages in shared memory. While one is multiplied, the data of the next step are loaded into registers,
from which they are then written to the other stage."""


@dataclass(frozen=True, kw_only=True)
class PairSchedule(OpSchedule):
    """The decisions about products of two computed factors. `tile`: rows and columns of sums that a block computes;
    `lanes`: neighbouring columns that a thread completes at once; `block`: threads of a block; `shared`: bytes of a
    block's shared memory."""

    strategy = "mma-pairs"
    tile: tuple[int, int]
    lanes: int
    block: int
    shared: int


@dataclass(frozen=True)
class MmaPairs(Strategy[PairSchedule]):
    """Products of two computed factors, neither of which is packed first: of codes, or of floats that may be
    rounded."""

    record = PairSchedule
    tier = 0
    pair: Pair

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or not kernel.target.matrix_units or multiplied(op, kernel) is not None:
            return None
        found = pair_of(op, kernel)
        return None if found is None else cls(found)

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        pair, product = self.pair, self.pair.product
        bytes = product.depth * product.format.data
        options = {tile.shape: cost_of(pair, tile, bytes, kernel) for tile in TILES}
        shape = pick("tile", [*options], min(options, key=lambda shape: options[shape]))
        widest = min(product.widest, 2 * Tile.run)
        lanes = pick("lanes", powers(widest), widest)
        tile = tile_of(shape, bytes)
        pick.only("block", tile.threads)
        pick.only("shared", pair.product.tiled(tile, lanes).shared_bytes)
        sizes = f"{pair.count} times {product.rows} x {product.columns} x {product.depth}"
        why = f"{product.format.name} {sizes}, {round(options[shape])} clocks, {product.format.says(product.depth)}"
        return options[shape], why

    def emit(self, emission: Emission, schedule: PairSchedule) -> None:
        b, product = emission.builder, self.pair.product
        matrix = self.pair.product.tiled(tile_of(schedule.tile, product.depth * product.format.data), schedule.lanes)
        factors = [b.flatten(side.value) for side in (product.conv.data, product.conv.kernel)]
        points = PointEmitter(b, emission.fused.producers, schedule.lanes)
        kernel = PairKernel(b, self.pair, matrix, points, factors)
        with grid(b, self.pair.count * matrix.blocks, schedule.block) as (block, thread):
            kernel.emit_block(block, thread)


def tile_of(shape: tuple[int, int], bytes: int) -> Tile:
    """Return the tile with `shape` (rows, columns) of sums, with no more stages than a depth of `bytes` bytes needs."""
    tile = next(tile for tile in TILES if tile.shape == shape)
    return replace(tile, stages=min(STAGES, -(-bytes // tile.depth)))


def cost_of(pair: Pair, tile: Tile, bytes: int, kernel: Kernel) -> float:
    """Return the approximate clock cycles of all products of `pair`, computed in tiles like `tile`; `bytes`: the bytes
    of a row of a factor, which is the depth."""
    rows = pair.count * -(-pair.product.rows // tile.rows) * tile.rows
    return tile.cost(rows, pair.product.columns, bytes, 1, kernel.target.costs)


def pair_of(op: linalg.GenericOp, kernel: Kernel) -> Pair | None:
    """Return the products that an operation computes, if matrix units can read its factors as stored; else None."""
    nest, producers, costs = kernel.fused.nest(op), kernel.fused.producers, kernel.target.costs
    found = list(contractions(nest, producers))
    sums = found[0] if len(found) == 1 else None
    operands = None if sums is None else operands_of(sums.op)
    if sums is None or operands is None or sums.started[0] is None:
        return None
    left, right, out, accumulator = operands
    maps = [dims_of(map.data) for map in sums.op.indexing_maps]
    first, seconds, result = STACKS.get(kinds_of(sums.op), ([], [], []))
    fits = maps[0] == first and maps[1] in seconds and maps[2] == result
    if not fits or not {left.value, right.value}.isdisjoint(producers):
        return None
    format = format_of({left.element, right.element}, kernel.target)
    *count, rows, columns = shape_of(out)
    depth, turned = shape_of(left.value)[-1], maps[1] == seconds[1]
    if format is None or not holds(format, right.value, kernel.given):
        return None
    if rows < costs.matrix_rows or columns < costs.matrix_columns:
        return None
    if (turned and columns % FOUR) or (format.exact and depth % SMALLEST):
        return None
    conv = Convolution(left, right, out, rows, 1, 1, depth, 1, 1, columns, 1, 1, (1, 1), (1, 1), False, accumulator)
    product = Product(nest, conv, None, sums, None, widest_of(nest, sums, producers, columns), format)
    return Pair(product, count[0] if count else 1, turned)


def format_of(elements: set[Attribute], target: GpuTarget) -> Format | None:
    """Return the format of factors with these element types for the matrix units: codes as they are, or the format to
    which the target rounds floats. None if the units cannot multiply them."""
    if elements == {i8}:
        return CODES
    floats = FLOATS.get(target.matmul)
    return replace(floats, data=floats.weight) if floats is not None and elements == {Float32Type()} else None
