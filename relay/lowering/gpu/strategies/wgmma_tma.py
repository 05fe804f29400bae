"""`wgmma-tma`: products of codes by groups of four warps, with tiles of both factors copied by the device's copy engine
(TMA)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.lowering.gpu.matrix import Product
from relay.lowering.gpu.strategies.products import ProductSchedule
from relay.lowering.gpu.strategies.strategy import Kernel
from relay.lowering.gpu.strategies.wgmma import GROUP_TILES, Wgmma
from relay.lowering.gpu.tiles import BulkTile, Tile

BULK_TILES = (*GROUP_TILES, BulkTile(192, 128, 12, 1, 5))
"""The tiles to choose from. The last one, of three groups of four warps, suits products whose blocks of other tiles
would fill the 132 processors of an H100 one and a half times: its blocks, which are larger, run all at once."""


@dataclass(frozen=True, kw_only=True)
class WgmmaTmaSchedule(ProductSchedule):
    strategy = "wgmma-tma"


@dataclass(frozen=True)
class WgmmaTma(Wgmma):
    """Products whose data is a matrix in memory (dense, and 1 x 1 without stride and padding), or windows that the copy
    engine addresses itself (im2col)."""

    record = WgmmaTmaSchedule
    kind = BulkTile
    bulk = True

    @classmethod
    def takes(cls, product: Product, kernel: Kernel) -> bool:
        plain = product.conv.pointwise and product.padding is None
        return super().takes(product, kernel) and (plain or product.corners is not None)

    @classmethod
    def tiles(cls, product: Product, kernel: Kernel) -> Sequence[Tile]:
        return BULK_TILES
