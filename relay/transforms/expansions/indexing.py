"""Expansions of indexing ops to other ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.dialects.op import broadcast, shape
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions


def adv_index(new: Expansion, op: relay.AdvIndexOp) -> Sequence[SSAValue]:
    """`relay.gather_nd` with the broadcast indices as coordinates along a new last axis."""
    outer = broadcast(op.name, *(shape(value) for value in op.indices))
    columns = [new.reshape(new.broadcast(value, outer), [*outer, 1]) for value in op.indices]
    return [new.value(relay.GatherNdOp, op.inputs[0], new.joined(columns, len(outer)))]


def invert_permutation(new: Expansion, op: relay.InvertPermutationOp) -> Sequence[SSAValue]:
    """Scatter 0, 1, … to the positions that the permutation gives."""
    (size,) = shape(op.input)
    zeros, numbers = new.constant_like(np.zeros(size), op.input), new.constant_like(np.arange(size), op.input)
    return [new.value(relay.ScatterOp, zeros, op.input, numbers)]


def unravel_index(new: Expansion, op: relay.UnravelIndexOp) -> Sequence[SSAValue]:
    """Take remainders and quotients by the sizes, from the last axis to the first."""
    rest, found, row = op.indices, list[SSAValue](), [1, *shape(op.indices)]
    for size in reversed(int_values(op.shape)):
        number = new.constant_like(size, rest)
        found.append(new.reshape(new.value(relay.FloorModOp, rest, number), row))
        rest = new.value(relay.FloorDivideOp, rest, number)
    return [new.joined(found[::-1], 0)]


EXPANSIONS: Expansions = {
    relay.AdvIndexOp: adv_index,
    relay.InvertPermutationOp: invert_permutation,
    relay.UnravelIndexOp: unravel_index,
}
