"""Incremental softmax: for keys in tiles, each row keeps the greatest score and the sum of exponentials so far.

Where a tile has a greater score, earlier sums are scaled down. (Milakov, Gimelshein, Online normalizer calculation for
softmax, 2018; Dao et al., FlashAttention, 2022.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.lowering.gpu.teams import join_of
from relay.lowering.linalg.emitter import number
from relay.lowering.scheduling.in_turn import Chain, is_number, is_reduction
from relay.lowering.shaped import buffer_of


@dataclass(frozen=True)
class OnlineSoftmax:
    """A chain `m = max s; p = exp(c (s - m)); l = sum p; r = 1 / l; w = p r`, with any operations on a row before `s`.
    `chosen`: at the end, a select replaces some w by 0. The fields are the operations of m, p, l and w, and the buffer
    of r."""

    most: linalg.GenericOp
    powers: linalg.GenericOp
    sums: linalg.GenericOp
    inverse: SSAValue
    weights: linalg.GenericOp
    chosen: bool

    @classmethod
    def of(cls, chain: Chain) -> Self | None:
        """Return the operations of the incremental softmax that the chain computes (see the class), or None if it
        computes something else."""
        generics = [op for op in chain.ops if isinstance(op, linalg.GenericOp)]
        reductions, weights = [op for op in generics if is_reduction(op)], generics[-1]
        if [join_of(op) for op in reductions] != [arith.MaximumfOp, arith.AddfOp]:
            return None
        most, sums = reductions
        powers = [op for op in generics if len(op.outputs) == 1 and op.outputs[0] is sums.inputs[0]]
        inverses = [op for op in generics if is_number(op, chain.outer) and tuple(op.inputs) == (sums.outputs[0],)]
        if len(powers) != 1 or len(inverses) != 1 or not all(len(op.inputs) == 1 for op in reductions):
            return None
        if not all(yields_argument(op) for op in reductions) or not is_inverse(inverses[0]):
            return None
        if tuple(powers[0].inputs) != (most.inputs[0], most.outputs[0]) or not is_power(powers[0]):
            return None
        chosen = scales(weights, powers[0].outputs[0], inverses[0].outputs[0])
        numbers = (most.outputs[0], sums.outputs[0], inverses[0].outputs[0])
        users = {use.operation for value in numbers for use in value.uses}
        others = [op for op in users - {most, *powers, sums, *inverses, weights} if not isinstance(op, linalg.FillOp)]
        if chosen is None or others:
            return None
        return cls(most, powers[0], sums, inverses[0].outputs[0], weights, chosen)


def yields_argument(op: linalg.GenericOp) -> bool:
    """Whether a reduction combines its operand's elements without computing on them first."""
    return len(op.body.block.ops) == 2


def is_inverse(op: linalg.GenericOp) -> bool:
    """Whether the operation yields `1 / x`."""
    first, *rest = op.body.block.ops
    divides = isinstance(first, arith.DivfOp) and first.rhs is op.body.block.args[0] and len(rest) == 1
    return divides and number(first.operands[0]) == 1


def is_power(op: linalg.GenericOp) -> bool:
    """Whether the operation yields `exp(c (x - y))` with a constant c that is not negative."""
    *ops, _ = op.body.block.ops
    kinds, arguments = [type(each) for each in ops], tuple(op.body.block.args[:2])
    if kinds not in ([arith.SubfOp, math.ExpOp], [arith.SubfOp, arith.MulfOp, math.ExpOp]):
        return False
    if tuple(ops[0].operands) != arguments or any(c.operands[0] is not a.results[0] for a, c in pairwise(ops)):
        return False
    return len(ops) == 2 or (number(ops[1].operands[1]) or 0) > 0


def scales(op: linalg.GenericOp, powers: SSAValue, inverse: SSAValue) -> bool | None:
    """Return None unless the operation yields the product of the buffers `powers` and `inverse`; otherwise return
    whether a select replaces some of the products by 0."""
    pairs: dict[SSAValue, SSAValue] = dict(zip(op.body.block.args, op.inputs, strict=False))
    uses = [use.operation for argument, value in pairs.items() if value in (powers, inverse) for use in argument.uses]
    if len(op.outputs) != 1 or buffer_of(op.outputs[0]).element_type != f32 or len(set(uses)) != 1:
        return None
    current: Operation = uses[0]
    if not isinstance(current, arith.MulfOp) or {pairs.get(value) for value in current.operands} != {powers, inverse}:
        return None
    chosen = False
    while not isinstance(current, linalg.YieldOp):
        if not current.results[0].has_one_use():
            return None
        value, current = current.results[0], next(use.operation for use in current.results[0].uses)
        if isinstance(current, arith.SelectOp):
            chosen, others = True, [each for each in current.operands[1:] if each is not value]
            if [number(other) for other in others] != [0]:
                return None
        elif not isinstance(current, linalg.YieldOp):
            return None
    return chosen
