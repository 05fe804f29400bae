"""Attention in one launch: a product of computed codes, operations on rows of its sums, and a product of these rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import to_numpy
from relay.lowering.gpu.attention_kernel import SCORES, Attention, AttentionKernel, Scores
from relay.lowering.gpu.grids import grid
from relay.lowering.gpu.pair_kernel import FOUR, Pair
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.row_emitter import is_read_elsewhere
from relay.lowering.gpu.strategies.mma_pairs import pair_of
from relay.lowering.gpu.strategies.rows import Rows
from relay.lowering.gpu.strategies.strategy import (
    Decision,
    Emission,
    Kernel,
    Scheduled,
    Strategy,
    powers,
    transfer,
)
from relay.lowering.gpu.tiles import Tile
from relay.lowering.gpu.widths import Narrow, fits
from relay.lowering.scheduling.in_turn import Chain
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import shape_of

ROWS = 16
"""Queries of a warp."""
WARPS = 4
"""Warps of a block at most."""
WIDTH = 32
"""Columns that a warp's sums come in: keys, and channels of values."""


@dataclass(frozen=True, kw_only=True)
class AttentionSchedule(OpSchedule):
    """`warps` of a block, with 16 queries each; `lanes`: neighbouring results that a thread finishes at once;
    `block`: threads of a block; `shared`: bytes of a block's shared memory."""

    strategy = "attention"
    warps: int
    lanes: int
    block: int
    shared: int


@dataclass(frozen=True)
class OneAttention(Strategy[AttentionSchedule]):
    """Two products of codes and the operations on rows between them, whose keys are few enough for registers."""

    record = AttentionSchedule
    tier = 0
    parts: Attention

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        parts = kernel.attentions.get(op)
        return None if parts is None else cls(parts)

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[AttentionSchedule]:
        product, count, costs = self.parts.scores.product, self.parts.scores.count, kernel.target.costs
        options = [warps for warps in powers(WARPS) if count * -(-product.rows // (ROWS * warps)) >= costs.processors]
        warps = pick("warps", powers(WARPS), options[0] if options else 1)
        widest = min(self.parts.values.product.widest, SCORES)
        lanes = pick("lanes", powers(widest), widest)
        first, second = self.tiles(warps)
        block = pick("block", (first.threads,), first.threads)
        size = max(first.stages * first.stage_bytes, second.stage_bytes)
        shared = pick("shared", (size,), size)
        buffers = [*self.inputs, *self.parts.values.product.nest.op.outputs]
        cost = transfer(buffers, costs)
        why = f"{count} times {product.rows} queries and {product.columns} keys, whose scores stay in registers"
        return Decision(
            cost, AttentionSchedule(warps=warps, lanes=lanes, block=block, shared=shared, cycles=cost, why=why)
        )

    @property
    def inputs(self) -> list[SSAValue]:
        """Queries, keys and values."""
        first, second = self.parts.scores.product.conv, self.parts.values.product.conv
        return [first.data.value, first.kernel.value, second.kernel.value]

    def tiles(self, warps: int) -> tuple[Tile, Tile]:
        """Of scores, with two stages where queries and keys are longer than one; of results."""
        first, second = self.parts.scores.product, self.parts.values.product
        stages = 1 if first.depth <= Tile.depth else 2
        rows, widths = ROWS * warps, [-(-each.columns // WIDTH) * WIDTH for each in (first, second)]
        return Tile(rows, widths[0], warps, 1, stages), Tile(rows, widths[1], warps, 1, 1)

    def emit(self, emission: Emission, schedule: AttentionSchedule) -> None:
        b, producers, parts = emission.builder, emission.fused.producers, self.parts
        first, second = self.tiles(schedule.warps)
        weights = parts.values.product.conv.data.value
        scores = Scores(parts.scores, parts.scores.tiled(first, 1), parts.chain, parts.op.outputs[0], weights)
        factors = [b.flatten(value) for value in self.inputs]
        matrix, points = parts.values.tiled(second, schedule.lanes), PointEmitter(b, producers, schedule.lanes)
        kernel = AttentionKernel(b, scores, parts.values, matrix, points, factors)
        with grid(b, parts.values.count * matrix.blocks, schedule.block) as (block, thread):
            kernel.emit_block(block, thread)


def attentions_of(kernel: Kernel, launched: Sequence[Operation]) -> Iterator[tuple[Operation, Attention]]:
    """Each attention by its last operation."""
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
                parts = Attention(op, chain, pair, found[1])
                if fits_registers(parts, kernel):
                    yield found[0], parts


def chain_inputs(chain: Chain) -> set[SSAValue]:
    """What the chain reads and does not write."""
    return {value for op in chain.ops for value in op.inputs} - chain.written


def fits_registers(parts: Attention, kernel: Kernel) -> bool:
    """Whether the chain alone reads the first product's sums, which start from 0, and the second product alone what it
    gives, and threads can have 8 neighbours of each row."""
    chain, first, second = parts.chain, parts.scores.product, parts.values.product
    sums, weights, start = parts.op.outputs[0], second.conv.data.value, first.sums.started[0]
    rows = shape_of(sums) == (*chain.outer, chain.size) == (parts.scores.count, first.rows, first.columns)
    if not rows or first.sums.op is not parts.op or not isinstance(sums.owner, memref.AllocOp):
        return False
    if not (first.format.exact and second.format.exact and parts.values.turned):
        return False
    zero = start is not None and isinstance(start.owner, arith.ConstantOp) and not np.any(to_numpy(start.owner.value))
    ours = {*chain.ops, parts.op, *(use.operation for use in sums.uses if isinstance(use.operation, linalg.FillOp))}
    alone = all(use.operation in ours for use in sums.uses)
    alone &= sum(use.operation not in ours for use in weights.uses) == 1
    kept = [buffer for buffer in chain.written if buffer is not weights and is_read_elsewhere(buffer, chain)]
    small = first.columns <= kernel.target.costs.most_keys and first.columns % SCORES == 0 and second.columns <= 128
    return zero and alone and not kept and small and second.columns % FOUR == 0 and reads_lanes(parts, kernel)


def reads_lanes(parts: Attention, kernel: Kernel) -> bool:
    """Whether what the chain reads from memory can be read 8 neighbours at a time."""
    try:
        return all(fits(type, SCORES) for type in Rows(parts.chain).accesses(kernel.fused.producers))
    except Narrow:
        return False
