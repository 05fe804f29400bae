"""`wgmma`: products of codes by groups of four warps, with both factors copied to shared memory by threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.lowering.gpu.matrix import Product
from relay.lowering.gpu.strategies.products import Products, ProductSchedule
from relay.lowering.gpu.strategies.strategy import Kernel
from relay.lowering.gpu.tiles import GroupTile, Tile

GROUP_TILES = (
    GroupTile(128, 256, 8, 1, 4),
    GroupTile(128, 128, 8, 1, 4),
    GroupTile(128, 64, 8, 1, 4),
)
"""Tiles for large products. A multiprocessor runs one block at a time that computes one of the first two tiles, or two
blocks that compute the last tile, the smallest."""


@dataclass(frozen=True, kw_only=True)
class WgmmaSchedule(ProductSchedule):
    strategy = "wgmma"


@dataclass(frozen=True)
class Wgmma(Products):
    """Products of codes by `wgmma` (m64nNk32), if the number of channels is a multiple of the codes that are copied at
    once (`Product.chunk`), and the weights have no zero point."""

    record = WgmmaSchedule
    kind = GroupTile

    @classmethod
    def takes(cls, product: Product, kernel: Kernel) -> bool:
        whole = product.gathered is None and not product.conv.channels % product.chunk
        exact = product.format.exact and not product.conv.kernel.zero_point
        return kernel.target.warpgroups and whole and exact and product.widest > 1

    @classmethod
    def tiles(cls, product: Product, kernel: Kernel) -> Sequence[Tile]:
        return GROUP_TILES
