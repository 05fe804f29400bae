"""The tiles of a product that blocks of threads compute, and their costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import ClassVar, NamedTuple

from relay.target.costs import GpuCosts

CHUNK = 16
"""The most bytes of one copy, which `cp.async` limits."""
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
"""The numbers of splits of the depth that are tried."""
SLICES = (1, 2, 4)
"""The numbers of slices of a block's depth that are tried."""
WORD = 4
LONGEST = 256
"""The most rows or columns of a tile, which the copy engine counts in 8 bits."""


@dataclass(frozen=True)
class Tile:
    """The tile of a block of threads: `rows` x `columns` sums, computed by `down` x `across` warps, with `stages`
    stages in shared memory. If the depth is divided into several `slices`, each slice has `down` x `across` warps of
    its own, and the sums of all slices are added at the end."""

    rows: int
    columns: int
    down: int
    across: int
    stages: int
    slices: int = 1
    depth: ClassVar[int] = 64
    """The bytes of a row that are in shared memory at once, in each stage of the pipeline."""
    run: ClassVar[int] = 4
    """The number of matrix instructions whose results are stored together. Each has 8 columns, and gives a thread two
    sums of a row; with those of `run` instructions, a thread has 8 neighbouring columns. The number of instructions of
    a warp along the columns is a multiple of `run`."""
    fewest_stages: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    @property
    def warps(self) -> tuple[int, int]:
        return self.down, self.across

    @property
    def threads(self) -> int:
        """The number of threads that compute one slice (a part of the axis that is summed): they divide the tile's sums
        among themselves, and each slice has threads of its own."""
        return 32 * self.down * self.across

    @property
    def block(self) -> int:
        """The number of threads of a block."""
        return self.threads * self.slices

    @property
    def warp_rows(self) -> int:
        """The number of rows from a warp's first row to the next warp's."""
        return self.rows // self.down

    @property
    def step_rows(self) -> int:
        """The distance in rows between two consecutive matrix instructions of a warp, each of which computes 16
        rows."""
        return 16

    @property
    def sums(self) -> int:
        """The number of sums of a thread."""
        return self.rows * self.columns // self.threads

    @property
    def row_steps(self) -> int:
        """The number of instructions, of 16 rows each, that cover the rows of a warp."""
        return self.rows // self.down // 16

    @property
    def column_steps(self) -> int:
        """The number of instructions, of 8 columns each, that cover the columns of a warp."""
        return self.columns // self.across // 8

    @property
    def stage_bytes(self) -> int:
        """The number of bytes of shared memory that one stage of the pipeline takes in one slice of the reduction:
        `depth` bytes for each row and each column of the tile."""
        return (self.rows + self.columns) * self.depth

    def legal(self, fold: int, room: int, costs: GpuCosts) -> bool:
        """Whether warps divide the tile evenly, threads divide the copies of both factors' rows evenly, the sums fit
        the registers, and the stages fit `room` bytes. `fold`: columns of packed weights that form one row."""
        if self.resident(costs) < 1 or self.fewest_stages * (self.stage_bytes + CHUNK) > room:
            return False
        even = not (self.rows % (16 * self.down) or self.columns % (8 * self.run * self.across))
        fitting = self.sums <= costs.thread_sums and self.threads <= costs.largest_block
        return even and fitting and self.copied_evenly(fold)

    def copied_evenly(self, fold: int) -> bool:
        """Whether all threads copy the same number of chunks of both factors."""
        together = self.threads * CHUNK // self.depth
        return not (self.rows % together or self.columns % (fold * together))

    @property
    def barriers(self) -> int:
        """The number of barriers in shared memory, if the copy engine copies stages."""
        return self.stages

    @property
    def starts(self) -> int:
        """The number of copies of the initial sums that their constant buffer holds: 1 if a thread's matrix
        instructions share the loaded registers, else one for each instruction along the rows."""
        return 1

    def useful_stages(self, steps: int) -> int:
        """Return the most stages that a block with `steps` steps can use."""
        return min(self.stages, steps)

    def speed(self, costs: GpuCosts) -> int:
        """Return how many products of codes a processor computes per clock cycle; for floats, how many bytes of factors
        it multiplies."""
        return costs.matrix_speed

    def resident(self, costs: GpuCosts) -> int:
        """Return the number of blocks of threads for which a multiprocessor has enough registers at once."""
        return costs.registers // (costs.thread_registers * self.threads + self.rows * self.columns) // self.slices

    def finished(self, costs: GpuCosts) -> float:
        """Return the clock cycles for the operations that follow a sum, with a share of the cycles in which its warp
        reads the constants of the sum's column, such as the bias."""
        return costs.finished_sum + costs.finished_column * self.down / self.rows

    def cost(self, rows: int, columns: int, depth: int, splits: int, costs: GpuCosts) -> float:
        """Estimate the clock cycles of a product: those of the multiprocessor with the most blocks, which copies while
        it multiplies, plus those of the kernel that adds the parts if the depth is split. `depth`: the bytes of a row
        of the data."""
        blocks = -(-rows // self.rows) * -(-columns // self.columns) * splits
        steps = -(-depth // (self.depth * splits * self.slices))
        time = self.busiest(-(-blocks // costs.processors), steps, splits == 1, costs)
        if splits == 1:
            return time
        parts = rows * columns / costs.processors * (costs.finished_sum + 2 * 4 * splits / costs.memory_bandwidth)
        return time + costs.launch + parts

    def work(self, costs: GpuCosts) -> int:
        """Return the clock cycles of one step of one slice of the reduction: those in which a multiprocessor multiplies
        the `depth` elements of the step, or those in which it copies the next ones, whichever is longer, since both
        happen at the same time."""
        products = self.rows * self.columns * self.depth // self.speed(costs)
        return max(products, self.stage_bytes // costs.copy_bandwidth)

    def busiest(self, each: int, steps: int, finished: bool, costs: GpuCosts) -> float:
        """Return the clock cycles of a processor that computes `each` tiles; `finished`: including the operations that
        follow the sums."""
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
    """A tile that groups of four warps compute by `wgmma`, 64 rows each. The instruction reads both factors from shared
    memory asynchronously, in rows of 128 bytes."""

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
        """Return the number of blocks that a processor executes at once, as limited by registers and shared memory."""
        return min(super().resident(costs), costs.shared_bytes // (self.stages * self.stage_bytes))


@dataclass(frozen=True)
class BulkTile(GroupTile):
    """A tile of groups of four warps whose factors the copy engine copies."""

    def copied_evenly(self, fold: int) -> bool:
        return max(self.rows, self.columns) <= LONGEST


GROUPS = 2
"""The number of groups of four warps that alternate between multiplying and completing tiles."""


@dataclass(frozen=True)
class TurnTile(BulkTile):
    """The tile that one of two groups of four warps computes, by a `wgmma` for each 64 rows, while the other completes
    its own. A block is persistent and computes tile after tile; a warp of a third group, which gives its registers to
    the others, requests copies."""

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
        """Return the clock cycles of a multiprocessor that computes `each` tiles; `finished`: including the operations
        that follow the sums. Its two groups of warps alternate: one multiplies while the other completes its tile, so a
        tile takes the longer of these two times, or half of a group's total time for a tile if that is longer."""
        products, alone = steps * self.work(costs), steps * max(costs.step * self.depth, self.work(costs))
        after = self.finished(costs) * self.rows * self.columns if finished else 0
        turn = max(products, after, (alone + after + costs.turn) / GROUPS)
        return costs.block + alone + (each - 1) * turn + after


class Choice(NamedTuple):
    """A tile and a number of splits of the depth, with their cost in clock cycles."""

    cost: float
    tile: Tile
    splits: int

    def agrees(self, given: Mapping[str, object]) -> bool:
        """Whether the choice has each of the values that `given` prescribes."""
        own = {"tile": self.tile.shape, "warps": self.tile.warps, "splits": self.splits, "slices": self.tile.slices}
        return all(given.get(name, value) == value for name, value in own.items())


def choices(tiles: Sequence[Tile], rows: int, columns: int, depth: int, costs: GpuCosts) -> list[Choice]:
    """Return each tile with each number of parts (`splits`) into which the depth of the product can be divided: 1, or a
    number for which each part still takes at least two steps of the tile. `depth`: the bytes of a row of the data."""
    return [
        Choice(tile.cost(rows, columns, depth, splits, costs), tile, splits)
        for splits in SPLITS
        for tile in tiles
        if splits * tile.slices == 1 or 2 * splits * tile.slices * tile.depth <= depth
    ]


def cheapest(choices: Sequence[Choice]) -> Choice:
    """Return the first of the cheapest choices."""
    return min(choices, key=lambda choice: choice.cost)


@lru_cache
def shapes(kind: type[Tile], fold: int, room: int, costs: GpuCosts) -> tuple[tuple[int, int], ...]:
    """Return the (rows, columns) of all tiles of the class `kind` that are legal for some numbers of warps. `fold`:
    columns of packed weights that form one row; `room`: the bytes of shared memory that a block's stages may use."""
    sides = product(range(16, LONGEST + 1, 16), range(8 * kind.run, LONGEST + 1, 8 * kind.run))
    return tuple(shape for shape in sides if layouts(kind, shape, fold, room, costs))


@lru_cache
def layouts(
    kind: type[Tile], shape: tuple[int, int], fold: int, room: int, costs: GpuCosts
) -> tuple[tuple[int, int], ...]:
    """Return the possible numbers of warps for the rows and for the columns of a tile."""
    warps = product((1, 2, 4, 8, 12, 16), repeat=2)
    tiles = [kind(*shape, down, across, kind.fewest_stages) for down, across in warps]
    return tuple(tile.warps for tile in tiles if tile.legal(fold, room, costs))


def usual(possible: Sequence[tuple[int, int]], costs: GpuCosts) -> tuple[int, int]:
    """Return the possible numbers of warps whose product is closest to the usual number of warps."""
    return min(possible, key=lambda warps: abs(prod(warps) - costs.usual_warps))
