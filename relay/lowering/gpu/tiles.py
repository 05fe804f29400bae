"""The tiles that blocks of threads compute of a product, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import ClassVar, NamedTuple

from relay.target.costs import GpuCosts

CHUNK = 16
"""Bytes of one copy, at most: the longest that `cp.async` has."""
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Parts of the depth that are tried."""
SLICES = (1, 2, 4)
"""Slices of a block's depth that are tried."""
WORD = 4
LONGEST = 256
"""Rows or columns of a tile, which a device's own copies count in 8 bits."""


@dataclass(frozen=True)
class Tile:
    """What a block of threads computes: `rows` x `columns` sums by `down` x `across` warps, with so many stages; as
    many other warps for each of `slices` of the depth, which add what they have in the end."""

    rows: int
    columns: int
    down: int
    across: int
    stages: int
    slices: int = 1
    depth: ClassVar[int] = 64
    """Bytes of a row that are in shared memory at once, for each stage of the pipeline."""
    run: ClassVar[int] = 4
    """Products of 8 columns whose sums are of neighbours, two of each: a warp has as many, or a multiple."""
    fewest_stages: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    @property
    def warps(self) -> tuple[int, int]:
        return self.down, self.across

    @property
    def threads(self) -> int:
        """Threads that share the sums of a slice."""
        return 32 * self.down * self.across

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.slices

    @property
    def warp_rows(self) -> int:
        """Rows from a warp's first one to the next warp's."""
        return self.rows // self.down

    @property
    def step_rows(self) -> int:
        """Rows from a warp's product of 16 rows to its next one."""
        return 16

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
        """Shared memory of a stage of a slice."""
        return (self.rows + self.columns) * self.depth

    def legal(self, fold: int, room: int, costs: GpuCosts) -> bool:
        """Whether the tile is shared evenly: by its warps, and by its threads' copies of rows of both factors; `fold`
        columns of packed weights are one row. A block must fit into a processor's registers, its stages into so many
        bytes."""
        if self.resident(costs) < 1 or self.fewest_stages * (self.stage_bytes + CHUNK) > room:
            return False
        even = not (self.rows % (16 * self.down) or self.columns % (8 * self.run * self.across))
        fitting = self.sums <= costs.thread_sums and self.threads <= costs.largest_block
        return even and fitting and self.copied_evenly(fold)

    def copied_evenly(self, fold: int) -> bool:
        """Whether each thread copies as many chunks of both factors."""
        together = self.threads * CHUNK // self.depth
        return not (self.rows % together or self.columns % (fold * together))

    @property
    def barriers(self) -> int:
        """Barriers in shared memory, where the device copies stages."""
        return self.stages

    @property
    def starts(self) -> int:
        """Tables of what sums start from: one for each of a thread's rows that are multiplied by themselves, in whose
        registers it is read."""
        return 1

    def useful_stages(self, steps: int) -> int:
        """Stages at most that a block of so many steps can fill."""
        return min(self.stages, steps)

    def speed(self, costs: GpuCosts) -> int:
        """Products of codes, or bytes of floats, of a processor in a clock."""
        return costs.matrix_speed

    def resident(self, costs: GpuCosts) -> int:
        """Blocks that a processor has at once, by their registers."""
        return costs.registers // (costs.thread_registers * self.threads + self.rows * self.columns) // self.slices

    def finished(self, costs: GpuCosts) -> float:
        """Clocks for what follows a sum, with a part of what its warp reads for its column."""
        return costs.finished_sum + costs.finished_column * self.down / self.rows

    def cost(self, rows: int, columns: int, depth: int, splits: int, costs: GpuCosts) -> float:
        """Clocks that a product takes, about: of the busiest processor, whose blocks multiply and copy at once, and of
        the kernel that adds the parts. `depth`: bytes of a row of the data."""
        blocks = -(-rows // self.rows) * -(-columns // self.columns) * splits
        steps = -(-depth // (self.depth * splits * self.slices))
        time = self.busiest(-(-blocks // costs.processors), steps, splits == 1, costs)
        if splits == 1:
            return time
        parts = rows * columns / costs.processors * (costs.finished_sum + 2 * 4 * splits / costs.memory_bandwidth)
        return time + costs.launch + parts

    def work(self, costs: GpuCosts) -> int:
        """Clocks in which a processor multiplies a step, and copies the next one."""
        products = self.rows * self.columns * self.depth // self.speed(costs)
        return max(products, self.stage_bytes // costs.copy_bandwidth)

    def busiest(self, each: int, steps: int, finished: bool, costs: GpuCosts) -> float:
        """Clocks of a processor that computes so many tiles; `finished`: with what follows their sums."""
        together = max(min(each, self.resident(costs)), 1)
        time = costs.block + steps * max(costs.step * self.depth, together * self.slices * self.work(costs))
        if self.slices > 1:
            words = 2 * self.slices * self.rows * self.columns
            time += costs.exchange + together * words * WORD / costs.shared_bandwidth
        if finished:
            time += self.finished(costs) * together * self.rows * self.columns
        return -(-each // together) * time


@dataclass(frozen=True)
class GroupTile(Tile):
    """What groups of four warps compute, each 64 rows of the tile, by `wgmma`: both factors are read from shared
    memory, in rows of 128 bytes, while the warps go on."""

    depth: ClassVar[int] = 128
    run: ClassVar[int] = 8
    fewest_stages: ClassVar[int] = 3

    @property
    def warp_rows(self) -> int:
        return 16

    @property
    def step_rows(self) -> int:
        return 16 * self.down

    def legal(self, fold: int, room: int, costs: GpuCosts) -> bool:
        groups = self.across == 1 and self.down % 4 == 0 and self.rows == 16 * self.down
        return groups and super().legal(fold, room, costs)

    def speed(self, costs: GpuCosts) -> int:
        return costs.warpgroup_speed

    def resident(self, costs: GpuCosts) -> int:
        """Blocks that a processor has at once, by their registers and their shared memory."""
        return min(super().resident(costs), costs.shared_bytes // (self.stages * self.stage_bytes))


@dataclass(frozen=True)
class BulkTile(GroupTile):
    """The same, of factors that the device copies."""

    def copied_evenly(self, fold: int) -> bool:
        return max(self.rows, self.columns) <= LONGEST


GROUPS = 2
"""Groups of four warps that multiply and finish in turns."""


@dataclass(frozen=True)
class TurnTile(BulkTile):
    """What one of two groups of four warps computes, while the other finishes its own: `wgmma` of 64 rows after the
    other. A block stays and takes tile after tile; a warp of a third group, which gives its registers to the others,
    asks for copies."""

    @property
    def block(self) -> int:
        return (GROUPS + 1) * self.threads

    @property
    def barriers(self) -> int:
        return 2 * self.stages + GROUPS

    @property
    def starts(self) -> int:
        return self.row_steps

    def useful_stages(self, steps: int) -> int:
        return self.stages

    def legal(self, fold: int, room: int, costs: GpuCosts) -> bool:
        one = self.across == 1 and self.down == 4 and self.rows % (16 * self.down) == 0
        return one and self.block <= costs.largest_block and Tile.legal(self, fold, room, costs)

    def resident(self, costs: GpuCosts) -> int:
        return 1

    def busiest(self, each: int, steps: int, finished: bool, costs: GpuCosts) -> float:
        """Of two groups, one multiplies while the other finishes: the longer of both bounds, or what a group does for
        a tile, one after the other, where that takes more than two tiles of the other group."""
        products, alone = steps * self.work(costs), steps * max(costs.step * self.depth, self.work(costs))
        after = self.finished(costs) * self.rows * self.columns if finished else 0
        turn = max(products, after, (alone + after + costs.turn) / GROUPS)
        return costs.block + alone + (each - 1) * turn + after


class Choice(NamedTuple):
    """A tile and the parts of the depth, and the clocks that they take."""

    cost: float
    tile: Tile
    splits: int

    def agrees(self, given: Mapping[str, object]) -> bool:
        """Whether it is what is given, as far as something is."""
        own = {"tile": self.tile.shape, "warps": self.tile.warps, "splits": self.splits, "slices": self.tile.slices}
        return all(given.get(name, value) == value for name, value in own.items())


def choices(tiles: Sequence[Tile], rows: int, columns: int, depth: int, costs: GpuCosts) -> list[Choice]:
    """Each tile with each number of parts of the depth that have two steps at least. `depth`: bytes of a row."""
    return [
        Choice(tile.cost(rows, columns, depth, splits, costs), tile, splits)
        for splits in SPLITS
        for tile in tiles
        if splits * tile.slices == 1 or 2 * splits * tile.slices * tile.depth <= depth
    ]


def cheapest(choices: Sequence[Choice]) -> Choice:
    """The first of those that cost least."""
    return min(choices, key=lambda choice: choice.cost)


@lru_cache
def shapes(kind: type[Tile], fold: int, room: int, costs: GpuCosts) -> tuple[tuple[int, int], ...]:
    """Rows and columns of all legal tiles."""
    sides = product(range(16, LONGEST + 1, 16), range(8 * kind.run, LONGEST + 1, 8 * kind.run))
    return tuple(shape for shape in sides if layouts(kind, shape, fold, room, costs))


@lru_cache
def layouts(
    kind: type[Tile], shape: tuple[int, int], fold: int, room: int, costs: GpuCosts
) -> tuple[tuple[int, int], ...]:
    """How many warps can share the rows of a tile, and how many its columns."""
    warps = product((1, 2, 4, 8, 12, 16), repeat=2)
    tiles = [kind(*shape, down, across, kind.fewest_stages) for down, across in warps]
    return tuple(tile.warps for tile in tiles if tile.legal(fold, room, costs))


def usual(possible: Sequence[tuple[int, int]], costs: GpuCosts) -> tuple[int, int]:
    """Those of possible warps that are nearest to the usual number of warps."""
    return min(possible, key=lambda warps: abs(prod(warps) - costs.usual_warps))
