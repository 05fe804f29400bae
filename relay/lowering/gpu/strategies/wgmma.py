"""Products of codes by groups of four warps. `wgmma`: threads copy both factors to shared memory; `wgmma-tma`: the
device's copy engine (TMA) copies tiles of both; `wgmma-turns`: blocks are persistent, too, and their two groups of four
warps alternate between multiplying and completing a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.lowering.gpu.matrix import Matrix, Product
from relay.lowering.gpu.strategies.products import Products, ProductSchedule
from relay.lowering.gpu.strategies.strategy import Kernel
from relay.lowering.gpu.tiles import BulkTile, GroupTile, Tile, TurnTile
from relay.lowering.gpu.turn_kernel import TurnKernel
from relay.lowering.scheduling.picks import Picks

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
    once (`Format.chunk`), and the weights have no zero point."""

    record = WgmmaSchedule
    kind = GroupTile

    @classmethod
    def takes(cls, product: Product, kernel: Kernel) -> bool:
        whole = product.gathered is None and not product.conv.channels % product.format.chunk
        exact = product.format.exact and not product.conv.kernel.zero_point
        return kernel.target.warpgroups and whole and exact and product.widest > 1

    @classmethod
    def tiles(cls, product: Product, kernel: Kernel) -> Sequence[Tile]:
        return GROUP_TILES


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


TURN_TILES = (TurnTile(128, 128, 4, 1, 6), TurnTile(64, 256, 4, 1, 5), TurnTile(128, 64, 4, 1, 8))
"""The tiles that `wgmma-turns` tries: rows, columns, warps along the rows, warps along the columns, and stages in
shared memory. With each of them, one block uses all registers and shared memory of a multiprocessor."""


@dataclass(frozen=True, kw_only=True)
class WgmmaTurnsSchedule(ProductSchedule):
    """The decisions about a product by persistent blocks. `blocks`: the number of blocks; block n computes the tiles n,
    n + `blocks`, n + 2 * `blocks`, ..."""

    strategy = "wgmma-turns"
    blocks: int


@dataclass(frozen=True)
class WgmmaTurns(WgmmaTma):
    """Products whose factors the copy engine copies, by persistent blocks (ping-pong)."""

    record = WgmmaTurnsSchedule
    kind = TurnTile
    emitter = TurnKernel

    @classmethod
    def tiles(cls, product: Product, kernel: Kernel) -> Sequence[Tile]:
        return TURN_TILES

    def further(self, matrix: Matrix, kernel: Kernel, pick: Picks) -> None:
        usual = min(matrix.blocks, kernel.target.processors)
        pick("blocks", range(1, matrix.blocks + 1), usual)

    def blocks(self, matrix: Matrix, schedule: ProductSchedule) -> int:
        assert isinstance(schedule, WgmmaTurnsSchedule)
        return schedule.blocks
