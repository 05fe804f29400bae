"""The sizes of a contraction's register tiles, chosen by a small cost model in cycles of one core.

A tile is `pixels` x `vectors` of 16 accumulators. Each step of the reduction adds a product to each of them, and loads
the vectors of weights and one broadcast per pixel. The model covers the limits of such a step on a core with two
multipliers and two loads per cycle, and the latency of the accumulators, which narrow tiles wait for. It only has to
rank tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.target import LANES, CpuCosts
from relay.target.dots import REGISTER, Dot

WIDEST, MOST_PIXELS = 8, 28
"""The most vectors and the most pixels of a tile that are tried: with more, no target has enough registers."""
MATRICES, WIDEST_MATRICES = 8, 3
"""The number of tile registers of x86 (AMX), and the most vectors of channels of a tile, so that sums, weights and one
register of data fit."""


@dataclass(frozen=True)
class Problem:
    """The dimensions of a contraction: `rows` times `width` pixels times `outputs` channels, each the sum of `steps`
    reduction steps. `registers`: the number of vector registers, of 16 accumulators each; `extra`: operations on a
    pixel's data per step beside the products; `bytes`: the bytes of weights that a step reads per vector. `dot`: a dot
    product instruction that uses only one part of a data register in each step, so that a register has the data of
    several steps; the result of the instruction may be shorter than a vector. `matrix_rows`: the number of pixels in a
    tile register of x86 (AMX) if the accumulators are such registers, else 0."""

    outputs: int
    width: int
    rows: int
    steps: int
    registers: int = 32
    extra: int = 0
    bytes: int = 64
    dot: Dot | None = None
    matrix_rows: int = 0

    @property
    def parts(self) -> int:
        """The number of registers that hold `LANES` accumulators: 1, or more if the result of the instruction `dot` has
        fewer lanes."""
        return 1 if self.dot is None else LANES // self.dot.lanes

    def most_pixels(self, vectors: int) -> int:
        """Return the largest number of pixels for which a tile of `vectors` vectors of channels fits the registers: its
        accumulators, the weights of a step, and the data of one pixel."""
        if self.matrix_rows:
            return self.matrix_rows * ((MATRICES - 1 - vectors) // vectors)
        if self.dot is None:
            return (self.registers - vectors - 1) // (vectors + self.extra)
        room, rows = self.registers * self.parts - 7, self.dot.rows
        return rows * (room // (rows * self.parts * (vectors + self.extra) + 1))


@dataclass(frozen=True)
class Tiles:
    """The chosen tiles: a tile is `pixels[v]` pixels by a block of v vectors of channels. All blocks have `vectors`
    vectors, except that the last one may have fewer."""

    vectors: int
    pixels: tuple[int, ...]
    cycles: float


def choose(problem: Problem, costs: CpuCosts) -> Tiles:
    """Return the cheapest tiles that fit the registers."""
    every = -(-problem.outputs // LANES)
    best: Tiles | None = None
    widest = costs.streamed_vectors if problem.rows * problem.width == 1 else WIDEST
    widest = WIDEST_MATRICES if problem.matrix_rows else widest
    for vectors in range(1, min(widest, every) + 1):
        if vectors + 2 > problem.registers and vectors > 1:
            break
        pixels = [0, *(narrowest(problem, costs, v) for v in range(1, vectors + 1))]
        cycles = cycles_of(problem, costs, pixels)
        if best is None or cycles < best.cycles:
            best = Tiles(vectors, tuple(pixels), cycles)
    assert best is not None
    return best


def cycles_of(problem: Problem, costs: CpuCosts, pixels: Sequence[int]) -> float:
    """Return the cycles with tiles of `pixels[v]` pixels for blocks of v vectors."""
    every, vectors = -(-problem.outputs // LANES), len(pixels) - 1
    blocks = [(vectors, every // vectors), (every % vectors, 1)]
    return sum(
        count * block_cycles(problem, costs, v, min(pixels[v], problem.width)) for v, count in blocks if v and count
    )


def narrowest(problem: Problem, costs: CpuCosts, vectors: int) -> int:
    """Return the number of pixels with which a block of `vectors` vectors is cheapest; of equally cheap ones, the
    smallest."""
    most = max(problem.most_pixels(vectors), 1)
    sizes = range(1, min(most, MOST_PIXELS, problem.width) + 1)
    if problem.matrix_rows:
        sizes = range(problem.matrix_rows, most + 1, problem.matrix_rows)
    return min(sizes, key=lambda pixels: (block_cycles(problem, costs, vectors, pixels), pixels))


def block_cycles(problem: Problem, costs: CpuCosts, vectors: int, pixels: int) -> float:
    """Return the cycles of all pixels of one block of channels: rows of whole tiles, and a smaller tile for the
    rest."""
    whole, rest = divmod(problem.width, pixels)
    cycles = whole * tile_cycles(problem, costs, vectors, pixels)
    return problem.rows * (cycles + (tile_cycles(problem, costs, vectors, rest) if rest else 0.0))


def firsts(pixels: int, rows: int) -> list[int]:
    """Return the first pixel of each tile register of `rows` pixels; the last register ends with the last pixel."""
    return [min(first, pixels - rows) for first in range(0, pixels, rows)]


def tile_cycles(problem: Problem, costs: CpuCosts, vectors: int, pixels: int) -> float:
    """Return the cycles of one tile."""
    if problem.matrix_rows:
        return matrix_cycles(problem, costs, vectors, pixels)
    products, extra = pixels * vectors, pixels * problem.extra
    weights = vectors * problem.bytes
    near = weights * problem.steps <= costs.tile_weight_bytes and problem.rows * problem.width > pixels
    loads, turns = float(pixels + vectors), 1
    if (dot := problem.dot) is not None:
        turns = dot.steps
        products, extra = (-(-n // dot.rows) * dot.rows * problem.parts for n in (products, extra))
        loads = pixels / turns + weights / REGISTER
        extra += (dot.rows > 1) * pixels / turns
    step = max(
        (products + extra) / costs.multiplies_per_cycle,
        loads / costs.loads_per_cycle,
        (products + extra + loads + costs.loop_instructions / turns) / costs.issue_width,
        costs.accumulator_latency,
        0.0 if near else weights / costs.second_level_bandwidth,
    )
    spilled = max(pixels * vectors + costs.finishing_registers - problem.registers, 0)
    start = costs.tile_start / problem.parts + spilled * costs.spilled_vector
    return problem.steps * (step + costs.idle_load * loads) + start


def matrix_cycles(problem: Problem, costs: CpuCosts, vectors: int, pixels: int) -> float:
    """Return the estimated cycles of one tile whose sums are in AMX tile registers. They include loading the initial
    sums, and storing the final sums to memory, from which the epilogue loads them."""
    count, points = -(-pixels // problem.matrix_rows), problem.rows * problem.width
    products, weights, data = count * vectors, vectors * problem.bytes, problem.bytes // LANES
    far = 0.0 if points * data * problem.steps <= costs.tile_weight_bytes else pixels * data
    far += 0.0 if weights * problem.steps <= costs.tile_weight_bytes and points > pixels else weights
    step = max(
        products * costs.matrix_product,
        (count + vectors) * costs.matrix_load,
        costs.matrix_latency,
        far / costs.stream_bandwidth,
    )
    ends = products * (costs.matrix_load + costs.matrix_store) + pixels * vectors / costs.loads_per_cycle
    return problem.steps * step + ends + costs.tile_start
