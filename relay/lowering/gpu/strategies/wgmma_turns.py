"""`wgmma-turns`: products of codes by persistent blocks, whose two groups of four warps alternate between multiplying
and completing a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.lowering.gpu.matrix import Matrix, Product
from relay.lowering.gpu.strategies.products import ProductSchedule
from relay.lowering.gpu.strategies.strategy import Kernel
from relay.lowering.gpu.strategies.wgmma_tma import WgmmaTma
from relay.lowering.gpu.tiles import Tile, TurnTile
from relay.lowering.gpu.turn_kernel import TurnKernel
from relay.lowering.scheduling.picks import Picks

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
