"""`mma`: products by the matrix units of single warps, with both factors copied to shared memory by threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relay.lowering.gpu.matrix import Product
from relay.lowering.gpu.strategies.products import Products, ProductSchedule
from relay.lowering.gpu.strategies.strategy import Kernel
from relay.lowering.gpu.strategies.wgmma import Wgmma
from relay.lowering.gpu.tiles import CHUNK, SLICES, WORD, Tile

TILES = (Tile(128, 128, 2, 4, 3), Tile(128, 64, 2, 2, 4), Tile(64, 64, 2, 2, 4), Tile(64, 32, 4, 1, 4))
"""The tiles, all of which fit into the 48 KiB of shared memory that are available without an opt-in."""
FILLED = 3
"""A block's depth is only divided into slices if this many stages (parts of the factors in shared memory) fit for each
slice: with fewer, each step of the product waits for its copies."""


@dataclass(frozen=True, kw_only=True)
class MmaSchedule(ProductSchedule):
    strategy = "mma"


@dataclass(frozen=True)
class Mma(Products):
    """All products that matrix units compute: of codes (`mma.sync` m16n8k32), or of rounded floats."""

    record = MmaSchedule
    kind = Tile

    @classmethod
    def tiles(cls, product: Product, kernel: Kernel) -> Sequence[Tile]:
        """Return the tiles to choose from. Tiles with many sums are omitted in two cases: if the data are not copied in
        whole chunks of neighbouring channels, since the addresses would not fit into the registers, and if warpgroups
        can compute the product. If results are stored one by one instead of as vectors, only the smallest tile
        remains."""
        fold, most = product.format.fold, kernel.target.costs.most_sums
        found = [tile for tile in TILES if tile.columns * tile.depth // CHUNK >= tile.threads * fold] or [*TILES]
        found = found if product.widest > 1 else found[-1:]
        pieces = product.gathered is not None or product.conv.channels % product.format.chunk
        if pieces or Wgmma.takes(product, kernel):
            found = [tile for tile in found if tile.sums < most]
        room = kernel.target.costs.shared_bytes if kernel.target.warpgroups else kernel.target.costs.plain_shared_bytes
        sliced = [replace(tile, slices=n) for tile in found for n in cls.slices(product, kernel, tile)[1:]]
        return found + [tile for tile in sliced if tile.slices * FILLED * tile.stage_bytes <= room]

    @classmethod
    def slices(cls, product: Product, kernel: Kernel, tile: Tile) -> Sequence[int]:
        """Return the possible numbers of slices into which a block's warps divide the depth: only 1 if the sums depend
        on the order of additions, or if sums of the data's codes are needed because the kernel has a zero point."""
        if not product.format.exact or product.conv.kernel.zero_point:
            return (1,)
        costs = kernel.target.costs
        bytes = max(tile.fewest_stages * tile.stage_bytes, WORD * tile.rows * tile.columns)
        tiles = (replace(tile, slices=n) for n in SLICES)
        legal = (each for each in tiles if each.resident(costs) >= 1 and each.block <= costs.largest_block)
        return [each.slices for each in legal if each.slices * bytes <= costs.shared_bytes]
