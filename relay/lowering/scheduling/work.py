"""How much work a loop is, in cycles of one core: roughly, from its operations and how often they run."""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation

from relay.dialects.attributes import dtype_of, to_numpy
from relay.lowering.shaped import is_vector

ISSUE = 2.0
"""Instructions a cycle."""
STREAM = 32.0
"""Bytes that a vector load gets a cycle, from the second-level cache: on the whole, as many as from the others."""
VECTORIZED = 8.0
"""Turns of an innermost loop over scalars that LLVM makes one of."""
SLOW = 20.0
"""Cycles of a function of the mathematical library."""
FAST_MATH = ("math.fma", "math.absf", "math.copysign", "math.floor", "math.ceil", "math.roundeven", "math.trunc")
FREE = (arith.ConstantOp, scf.YieldOp, scf.ReduceOp, memref.AllocaOp, vector.BitcastOp)


def turns(loop: scf.ForOp) -> int:
    """How often the loop's body runs; 1 if that is not known."""
    ends = [value.owner for value in (loop.lb, loop.ub, loop.step)]
    numbers = [int(to_numpy(op.value)) for op in ends if isinstance(op, arith.ConstantOp)]
    if len(numbers) != 3:
        return 1
    start, stop, step = numbers
    return max(-(-(stop - start) // step), 0)


def cycles(block: Block) -> float:
    """The cycles that the block's operations take once."""
    return sum(cost(op) for op in block.ops)


def cost(op: Operation) -> float:
    """The cycles of one operation."""
    if isinstance(op, scf.ForOp):
        body = cycles(op.body.block)
        return turns(op) * (body / VECTORIZED if scalar(op) else body)
    if isinstance(op, FREE) or all(isinstance(result.type, IndexType) for result in op.results) and op.results:
        return 0.0
    if op.name.startswith("math.") and op.name not in FAST_MATH:
        return SLOW
    if isinstance(op, vector.LoadOp):
        return vector_bytes(op.result.type) / STREAM
    inside = sum(cycles(block) for region in op.regions for block in region.blocks)
    return inside + 1 / ISSUE


def vector_bytes(type: Attribute) -> int:
    """The size of a vector in memory."""
    return prod(type.get_shape()) * dtype_of(type.element_type).itemsize if is_vector(type) else 0


def scalar(loop: scf.ForOp) -> bool:
    """Whether it is an innermost loop that LLVM may turn into one over vectors."""
    return not loop.iter_args and not any(
        op.regions or op.name.startswith("math.") or any(is_vector(value.type) for value in (*op.results, *op.operands))
        for op in loop.body.block.ops
    )
