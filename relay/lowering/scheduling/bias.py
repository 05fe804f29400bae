"""Finds a bias that the epilogue adds to the accumulators first, so that it can be folded into their initial values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.attributes import Array
from relay.lowering.scheduling.affine import dims_of
from relay.lowering.scheduling.packed import Packed
from relay.lowering.scheduling.packing import padded
from relay.lowering.shaped import is_buffer


@dataclass(frozen=True)
class Bias:
    """A bias in an epilogue. `sum`: the op that adds the elements of the buffer `value`, one per channel, to the
    accumulators, before any other op of the epilogue."""

    value: SSAValue
    sum: arith.AddiOp | arith.AddfOp
    accumulator: BlockArgument

    def drop(self) -> None:
        """Remove the addition from the epilogue."""
        self.sum.result.replace_all_uses_with(self.accumulator)
        Rewriter.erase_op(self.sum)


def find_bias(epilogue: linalg.GenericOp | None, accumulator: SSAValue) -> Bias | None:
    """Return the bias, if the first op of the epilogue adds one to the accumulators; else None."""
    if epilogue is None or accumulator not in tuple(epilogue.operands):
        return None
    args, maps = epilogue.body.block.args, [m.data for m in epilogue.indexing_maps]
    argument = args[list(epilogue.operands).index(accumulator)]
    uses = list(argument.uses)
    if len(uses) != 1 or not isinstance(sum := uses[0].operation, arith.AddiOp | arith.AddfOp):
        return None
    other = sum.rhs if sum.lhs is argument else sum.lhs
    if not isinstance(other, BlockArgument) or other.owner is not argument.owner or not other.has_one_use():
        return None
    value = epilogue.operands[other.index]
    if not is_buffer(value.type) or dims_of(maps[other.index]) != [maps[0].num_dims - 1]:
        return None
    return Bias(value, sum, argument)


def concatenated(every: Sequence[Packed], biases: Sequence[Array] | None) -> Packed:
    """Concatenate the packed constants of several convolutions, each with its bias added to its initial
    accumulators."""
    if biases is not None:
        every = [add_bias(one, part) for one, part in zip(every, biases, strict=True)]
    weights, initial, *more = (np.concatenate(column) for column in zip(*(one.columns for one in every), strict=True))
    return Packed(weights, initial, tuple(more))


def add_bias(packed: Packed, bias: Array) -> Packed:
    """Return the packed constants of a call with its bias added to the initial accumulators. There is a set of these,
    one for each output channel, for each span of result rows with the same kernel rows inside the image; the bias is
    added to every set."""
    vector = padded(bias.reshape(-1))
    initial = packed.initial.reshape(-1, vector.size) + vector.astype(packed.initial.dtype)
    return Packed(packed.weights, initial.reshape(-1), packed.more)
