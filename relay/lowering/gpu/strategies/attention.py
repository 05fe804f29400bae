"""Attention in one launch: two products of computed factors, with operations on rows between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.lowering.gpu.attention_kernel import SCORES, WIDTH, Attention, AttentionKernel, shared_bytes
from relay.lowering.gpu.grids import grid
from relay.lowering.gpu.matrix import Matrix
from relay.lowering.gpu.online_softmax import OnlineSoftmax
from relay.lowering.gpu.pair_kernel import FOUR, Pair
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.row_emitter import is_read_elsewhere
from relay.lowering.gpu.score_tiles import Scores
from relay.lowering.gpu.strategies.mma_pairs import pair_of
from relay.lowering.gpu.strategies.rows import Rows
from relay.lowering.gpu.strategies.strategy import Emission, Kernel, Strategy, powers, transfer
from relay.lowering.gpu.tiles import Tile
from relay.lowering.gpu.widths import Narrow
from relay.lowering.gpu.widths import fits as is_readable
from relay.lowering.scheduling.in_turn import Chain
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import shape_of
from relay.target.costs import GpuCosts
from relay.target.record import WARP

ROWS = 16
"""The number of queries of a warp."""
WARPS = 4
"""The most warps of a block."""
KEYS = 64
"""The default number of keys of a tile, if the keys are divided into several tiles. The 32 threads of a warp share the
scores of `ROWS` queries and these keys, so each has `KEYS / 2` scores in registers."""
CHANNELS = 128
"""The most channels of an attention's values. The 32 threads of a warp share the sums of `ROWS` queries and these
channels, so each has up to `CHANNELS / 2` sums in registers."""


@dataclass(frozen=True, kw_only=True)
class AttentionSchedule(OpSchedule):
    """The decisions about an attention. `warps` of a block, with 16 queries each; `keys` of a tile, whose scores are in
    registers at once; `lanes`: neighbouring results that a thread completes at once; `block`: threads of a block;
    `shared`: bytes of a block's shared memory."""

    strategy = "attention"
    warps: int
    keys: int
    lanes: int
    block: int
    shared: int


@dataclass(frozen=True)
class OneAttention(Strategy[AttentionSchedule]):
    """Attention in one launch: the product of queries and keys, the operations on its rows, and the product with the
    values. Matrix units multiply codes, or floats if these may be rounded to the units' precision."""

    record = AttentionSchedule
    tier = 0
    parts: Attention

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        product, count, costs = self.parts.scores.product, self.parts.scores.count, kernel.target.costs
        keys = pick("keys", self.tiles(costs), self.best_tile(costs))
        fitting = [each for each in powers(WARPS) if self.shared(each, keys) <= costs.plain_shared_bytes]
        busy = [each for each in fitting if count * -(-product.rows // (ROWS * each)) >= costs.processors]
        possible = [each for each in powers(WARPS) if self.shared(each, keys) <= costs.shared_bytes]
        warps = pick("warps", possible, [*busy, fitting[-1] if fitting else possible[-1]][0])
        widest = min(self.parts.values.product.widest, SCORES)
        pick("lanes", powers(widest), widest)
        pick.only("block", WARP * warps)
        pick.only("shared", self.shared(warps, keys))
        buffers = [*self.inputs, *self.parts.values.product.nest.op.outputs]
        tiles = -(-product.columns // keys)
        passes = "in registers" if tiles == 1 else "in tiles" if self.parts.online else "computed for each reduction"
        why = f"{count} times {product.rows} queries and {product.columns} keys, scores {passes}"
        return transfer(buffers, costs), why

    def tiles(self, costs: GpuCosts) -> list[int]:
        """Return the possible numbers of keys of a tile."""
        fewest, most = self.fewest, min(self.all_keys, whole(costs.most_keys))
        return [keys for keys in range(WIDTH, most + 1, WIDTH) if keys % fewest == 0 or keys == self.all_keys]

    @property
    def all_keys(self) -> int:
        """The number of keys of the attention, rounded up to a multiple of `WIDTH` (the keys whose scores the four
        lanes of a quad hold together): the size of a tile that contains all keys."""
        return whole(self.parts.scores.product.columns)

    @property
    def fewest(self) -> int:
        """The number of keys of a tile must be a multiple of this number, unless the tile has all keys. It is the
        number of keys that one step of the product of softmax weights and values sums over, but at least `WIDTH`, the
        keys whose scores the four lanes of a quad hold together."""
        return max(Tile.depth // self.parts.values.product.format.data, WIDTH)

    def best_tile(self, costs: GpuCosts) -> int:
        """Return the best number of keys of a tile: all keys if their scores fit the registers, else `KEYS`."""
        most = costs.most_keys if self.parts.online is None else KEYS
        return self.all_keys if self.all_keys <= most else KEYS

    @property
    def inputs(self) -> list[SSAValue]:
        """The buffers of queries, keys and values."""
        first, second = self.parts.scores.product.conv, self.parts.values.product.conv
        return [first.data.value, first.kernel.value, second.kernel.value]

    def matrices(self, warps: int, keys: int, lanes: int = 1) -> tuple[Scores, Matrix]:
        """Return both products divided into tiles."""
        parts, rows = self.parts, ROWS * warps
        width = whole(parts.values.product.columns)
        scores, values = Tile(rows, keys, warps, 1, 1), Tile(rows, width, warps, 1, 1)
        weights = parts.values.product.conv.data.value
        first = Scores(parts.scores, parts.scores.product.tiled(scores, 1), parts.chain, parts.op.outputs[0], weights)
        return first, parts.values.product.tiled(values, lanes)

    def shared(self, warps: int, keys: int) -> int:
        """Return the bytes of a block's shared memory."""
        return shared_bytes(*self.matrices(warps, keys))

    def has_room(self, costs: GpuCosts) -> bool:
        """Whether one warp's queries fit into the shared memory that every chip has."""
        return self.shared(1, self.best_tile(costs)) <= costs.plain_shared_bytes

    def emit(self, emission: Emission, schedule: AttentionSchedule) -> None:
        b, producers, parts = emission.builder, emission.fused.producers, self.parts
        scores, matrix = self.matrices(schedule.warps, schedule.keys, schedule.lanes)
        factors = [b.flatten(value) for value in self.inputs]
        points = PointEmitter(b, producers, schedule.lanes)
        kernel = AttentionKernel(b, scores, parts.online, parts.values, matrix, points, factors)
        with grid(b, parts.values.count * matrix.blocks, schedule.block) as (block, thread):
            kernel.emit_block(block, thread)


def whole(columns: int) -> int:
    """Return `columns` (a number of keys, or of channels of the values) rounded up to a multiple of `WIDTH`, the number
    of keys whose scores the four lanes of a quad hold together."""
    return -(-columns // WIDTH) * WIDTH


def attentions_of(kernel: Kernel, launched: Sequence[Operation]) -> Iterator[tuple[Operation, OneAttention]]:
    """Yield each attention for matrix units: its last operation, and its strategy."""
    if not kernel.target.matrix_units:
        return
    pairs: Mapping[SSAValue, tuple[linalg.GenericOp, Pair]] = {
        pair.product.conv.data.value: (op, pair)
        for op in launched
        if isinstance(op, linalg.GenericOp) and (pair := pair_of(op, kernel)) is not None
    }
    for last, chain in kernel.fused.rows.items():
        found = pairs.get(chain.ops[-1].outputs[0])
        if found is None or last not in launched or len(chain.ops[-1].outputs) != 1:
            continue
        for op, pair in pairs.values():
            if op.outputs[0] in chain_inputs(chain):
                parts = Attention(op, chain, pair, found[1], OnlineSoftmax.of(chain))
                strategy = OneAttention(parts)
                if fits(parts) and reads_lanes(parts, kernel) and strategy.has_room(kernel.target.costs):
                    yield found[0], strategy


def chain_inputs(chain: Chain) -> set[SSAValue]:
    """Return the values that the chain reads and does not write."""
    return {value for op in chain.ops for value in op.inputs} - chain.written


def fits(parts: Attention) -> bool:
    """Whether the two products of an attention can be one kernel: only the row operations between them (`parts.chain`)
    read the sums of the first, which start at 0, only the second product reads their result, and threads can process 8
    neighbours of each row."""
    chain, first, second = parts.chain, parts.scores.product, parts.values.product
    sums, weights = parts.op.outputs[0], second.conv.data.value
    rows = shape_of(sums) == (*chain.outer, chain.size) == (parts.scores.count, first.rows, first.columns)
    if not rows or first.sums.op is not parts.op or not isinstance(sums.owner, memref.AllocOp):
        return False
    if first.format != second.format or not parts.values.turned:
        return False
    ours = {*chain.ops, parts.op, *(use.operation for use in sums.uses if isinstance(use.operation, linalg.FillOp))}
    alone = all(use.operation in ours for use in sums.uses)
    alone &= sum(use.operation not in ours for use in weights.uses) == 1
    kept = [buffer for buffer in chain.written if buffer is not weights and is_read_elsewhere(buffer, chain)]
    narrow = second.columns <= CHANNELS and first.columns % SCORES == 0 and second.columns % FOUR == 0
    return first.sums.starts_at_zero and alone and not kept and narrow


def reads_lanes(parts: Attention, kernel: Kernel) -> bool:
    """Whether the inputs of the operations between the two products can be read from memory as vectors of 8
    neighbouring elements."""
    try:
        return all(is_readable(type, SCORES) for type in Rows(parts.chain).accesses(kernel.fused.producers))
    except Narrow:
        return False
