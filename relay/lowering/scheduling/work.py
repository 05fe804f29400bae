"""Estimates the work of a loop, in cycles of one core, from its operations and iteration counts."""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation

from relay.dialects.amx import TileLoadOp, TileMulIOp, TileStoreOp
from relay.dialects.attributes import dtype_of, to_numpy
from relay.lowering.builder import TURNS
from relay.lowering.shaped import is_vector
from relay.target import CpuCosts

FAST_MATH = ("math.fma", "math.absf", "math.copysign", "math.floor", "math.ceil", "math.roundeven", "math.trunc")
FREE = frozenset({"arith.constant", "scf.yield", "linalg.yield", "scf.reduce", "memref.alloca", "vector.bitcast"})


def range_of(loop: scf.ForOp) -> range | None:
    """Return the values of a loop's variable; None if a bound or the step is known only at run time."""
    ends = [value.owner for value in (loop.lb, loop.ub, loop.step)]
    numbers = [int(to_numpy(op.value)) for op in ends if isinstance(op, arith.ConstantOp)]
    return range(*numbers) if len(numbers) == 3 else None


def turns(loop: scf.ForOp) -> int:
    """Return the number of iterations of a loop, or the most it may have; 1 if that is unknown."""
    if isinstance(most := loop.attributes.get(TURNS), IntegerAttr):
        return most.value.data
    found = range_of(loop)
    return 1 if found is None else len(found)


class Costs:
    """The costs of operations in cycles; those of loops are cached, which is valid while the IR does not change."""

    def __init__(self, costs: CpuCosts) -> None:
        self.costs = costs
        self.loops: dict[Operation, tuple[float, float]] = {}
        self.tiles = {
            TileMulIOp.name: costs.matrix_product,
            TileLoadOp.name: costs.matrix_load,
            TileStoreOp.name: costs.matrix_store,
        }

    def of_loop(self, loop: scf.ForOp) -> tuple[float, float]:
        """Return the cycles of one iteration of a loop, and of all iterations."""
        if (known := self.loops.get(loop)) is not None:
            return known
        turn = self.block(loop.body.block)
        self.loops[loop] = found = (turn, turns(loop) * (turn / self.costs.vectorized_turns if scalar(loop) else turn))
        return found

    def block(self, block: Block) -> float:
        """Return the cycles of one execution of the block."""
        return sum(map(self.of, block.ops))

    def of(self, op: Operation) -> float:
        """Return the cycles of one operation."""
        name = op.name
        if name in FREE:
            return 0.0
        if name == scf.ForOp.name and isinstance(op, scf.ForOp):
            return self.of_loop(op)[1]
        if op.results and all(result.type.__class__ is IndexType for result in op.results):
            return 0.0
        if name.startswith("math.") and name not in FAST_MATH:
            return self.costs.library_call
        if (cycles := self.tiles.get(name)) is not None:
            return cycles
        if name == vector.LoadOp.name:
            return vector_bytes(op.results[0].type) / self.costs.stream_bandwidth
        inside = [sum(map(self.block, region.blocks)) for region in op.regions]
        return max(inside, default=0.0) + 1 / self.costs.loop_issue_width


def vector_bytes(type: Attribute) -> int:
    """Return the size of a vector in bytes; 0 for other types."""
    return prod(type.get_shape()) * dtype_of(type.element_type).itemsize if is_vector(type) else 0


def scalar(loop: scf.ForOp) -> bool:
    """Whether a loop is an innermost loop without vectors, which LLVM may vectorize."""
    return not loop.iter_args and not any(
        op.regions or op.name.startswith("math.") or any(is_vector(value.type) for value in (*op.results, *op.operands))
        for op in loop.body.block.ops
    )
