"""Attention over a cache with room for more tokens than were generated so far: loops over keys end at the position, an
input of the kernel that says how many keys are visible.

A mask replaces the scores of keys behind the position by a number so low that their softmax weights are 0. The kernel
reads the position when it is called, and accesses neither keys nor values behind it. Buffers get sizes that are known
only at run time, as for sequences of any length (`relay.lowering.lengths`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, math, memref
from xdsl.dialects.arith import CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from relay.dialects.attributes import ints, to_numpy
from relay.lowering.builder import INDEX, LoopBuilder
from relay.lowering.indices import below, minus
from relay.lowering.lengths import set_extents
from relay.lowering.scheduling.affine import dims_of, kinds_of
from relay.lowering.scheduling.contraction import match_product
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.shaped import is_buffer, shape_of

OFFSETS = {"sle": 1, "ule": 1, "slt": 0, "ult": 0}
"""The number of visible keys minus the position, by the predicate of `key <predicate> position`."""
SWAPPED = {"sge": "sle", "uge": "ule", "sgt": "slt", "ugt": "ult"}
LOW, WEIGHTLESS = -1e8, 1e6
"""A masked score is at most LOW, and, scaled as the argument of the exponential, at least WEIGHTLESS below the others,
so that its weight is 0. Unmasked scores are assumed to be smaller than 1e8 in magnitude."""


@dataclass(frozen=True)
class SeenKeys:
    """An attention whose visible keys are known at run time. `position`: a buffer of one number; the first `position +
    offset` of `most` keys are visible. `axes`: the axes of each buffer that index keys."""

    position: SSAValue
    offset: int
    most: int
    axes: dict[SSAValue, list[int]]

    def open(self) -> None:
        """Set the buffers' types so that the number of keys is known only at run time."""
        for value, axes in self.axes.items():
            set_extents(value, ints(axes))

    def count(self, b: LoopBuilder) -> SSAValue:
        """Emit the computation of the number of attention keys over which the kernel loops: the visible ones; all
        `most` keys if no key is visible, or if the number exceeds `most`."""
        zero = [0] * len(shape_of(self.position))
        seen = b.plus(b.add(arith.IndexCastOp(b.load(self.position, zero), INDEX)).result, self.offset)
        return b.select(below(b, minus(b, seen, 1), self.most), b.index(seen), b.index(self.most))


def seen_keys(block: Block, given: GivenConstants) -> SeenKeys | None:
    """Find an attention in the kernel that masks the scores of all keys behind a position and sums values weighted by
    the softmax of the scores. Return None if there is none, or if anything else in the kernel depends on its keys."""
    for op in block.ops:
        if isinstance(op, linalg.GenericOp) and (found := compared(op, given)) is not None:
            position, offset = found
            masked = only_user(op.outputs[0], op)
            sums = None if masked is None else summed(masked, op.outputs[0])
            axes = None if sums is None else axes_of(op, sums)
            if axes is not None:
                return SeenKeys(position, offset, shape_of(op.outputs[0])[0], axes)
    return None


def compared(op: linalg.GenericOp, given: GivenConstants) -> tuple[SSAValue, int] | None:
    """Match an op that compares two arguments of the kernel: a constant vector n, n + 1, n + 2, ..., which numbers the
    keys, and a position. Return the position, and the number to add to it to get the number of keys for which the
    comparison holds; None for other ops."""
    block = op.body.block
    found, end = block.first_op, block.last_op
    if kinds_of(op) != "p" or len(op.inputs) != 2 or not isinstance(found, arith.CmpiOp) or found.next_op is not end:
        return None
    predicate, sides = CMPI_COMPARISON_OPERATIONS[found.predicate.value.data], [found.lhs, found.rhs]
    if predicate in SWAPPED:
        predicate, sides = SWAPPED[predicate], sides[::-1]
    if predicate not in OFFSETS or not all(isinstance(side, BlockArgument) for side in sides):
        return None
    keys, position = (op.operands[side.index] for side in sides if isinstance(side, BlockArgument))
    if not isinstance(keys, BlockArgument) or not isinstance(position, BlockArgument):
        return None
    if len(shape_of(keys)) != 1 or {*shape_of(position)} - {1}:
        return None
    constants = given.arrays_of(keys) if given.constant(keys) else []
    first = int(constants[0][0]) if constants else 0
    counts = constants and all(np.array_equal(each, np.arange(first, first + each.size)) for each in constants)
    return (position, OFFSETS[predicate] - first) if counts else None


def only_user(value: SSAValue, writer: Operation) -> linalg.GenericOp | None:
    """Return the only op that reads a value, except its writer, if it is a generic and the value is a local buffer;
    else None."""
    users = {use.operation for use in value.uses} - {writer}
    found = users.pop() if len(users) == 1 else None
    return found if isinstance(found, linalg.GenericOp) and isinstance(value.owner, memref.AllocOp) else None


def summed(masked: linalg.GenericOp, mask: SSAValue) -> Sequence[Operation] | None:
    """Return the three reductions over keys that follow the masking of scores by the op `masked`: the maximum of the
    scores and the sum of exponentials, both of the softmax, and the sums of values in the product after it. Return None
    if `masked` does not select between scores and a low constant by `mask`, or if other ops follow it."""
    end = masked.body.block.last_op
    chosen = None if end is None or len(masked.outputs) != 1 else end.operands[0].owner
    if not isinstance(chosen, arith.SelectOp) or not isinstance(low := chosen.rhs.owner, arith.ConstantOp):
        return None
    if chosen.cond is not masked.body.block.args[masked.operands.index(mask)] or to_numpy(low.value) > LOW:
        return None
    most = joined(masked.outputs[0], masked, arith.MaximumfOp)
    powers = None if most is None else most[1]
    if powers is None or not weightless(powers, float(to_numpy(low.value))):
        return None
    total = joined(powers.outputs[0], powers, arith.AddfOp)
    weights = None if total is None else total[1]
    scaled = None if weights is None else weights.body.block.first_op
    if most is None or total is None or weights is None or not isinstance(scaled, arith.MulfOp | arith.DivfOp):
        return None
    if scaled.lhs is not weights.body.block.args[0] or scaled.next_op is not weights.body.block.last_op:
        return None
    values = only_user(weights.outputs[0], weights)
    if values is None or match_product(values.body.block) is None or values.inputs[0] is not weights.outputs[0]:
        return None
    return most[0], total[0], values


def joined(
    rows: SSAValue, writer: Operation, join: type[Operation]
) -> tuple[linalg.GenericOp, linalg.GenericOp] | None:
    """Return the two ops that read a buffer of rows: the one that reduces each row by `join`, and the other; else
    None."""
    users = list(dict.fromkeys(use.operation for use in rows.uses if use.operation is not writer))
    generics = [op for op in users if isinstance(op, linalg.GenericOp)]
    if len(users) != 2 or len(generics) != 2 or not isinstance(rows.owner, memref.AllocOp):
        return None
    first, other = sorted(generics, key=lambda op: "r" not in kinds_of(op))
    if kinds_of(first).strip("p") != "r" or "r" in kinds_of(other) or other.inputs[0] is not rows:
        return None
    return (first, other) if isinstance(first.body.block.first_op, join) else None


def weightless(powers: linalg.GenericOp, low: float) -> bool:
    """Whether the operation is `exp((score - m) * factor)`, m being the maximum of the scores, and yields 0 for scores
    of at most `low`."""
    block = powers.body.block
    found = None if block.last_op is None else block.last_op.operands[0].owner
    inner, factor = found.operands[0].owner if isinstance(found, math.ExpOp) else None, 1.0
    if isinstance(inner, arith.MulfOp) and isinstance(constant := inner.rhs.owner, arith.ConstantOp):
        inner, factor = inner.lhs.owner, float(to_numpy(constant.value))
    right = isinstance(inner, arith.SubfOp) and (inner.lhs, inner.rhs) == tuple(block.args[:2])
    return right and -low * factor >= WEIGHTLESS


def axes_of(first: linalg.GenericOp, sums: Sequence[Operation]) -> dict[SSAValue, list[int]] | None:
    """Return, for each buffer of an attention that has axes over the keys, those axes. They are found by following uses
    from the mask, a vector over the keys that the comparison `first` computes. None if one of the kernel's results has
    such an axis, if an op that is not among the reductions `sums` reduces along one, or if an op is not understood."""
    found: dict[SSAValue, list[int]] = {first.outputs[0]: [0]}
    waiting = [first.outputs[0]]
    while waiting:
        value = waiting.pop()
        for op in dict.fromkeys(use.operation for use in value.uses):
            if isinstance(op, linalg.FillOp):
                continue
            if not isinstance(op, linalg.GenericOp):
                return None
            maps = [dims_of(map.data) for map in op.indexing_maps]
            loops = {maps[n][axis] for n, each in enumerate(op.operands) if each is value for axis in found[value]}
            loop = loops.pop() if len(loops) == 1 else None
            if loop is None or (kinds_of(op)[loop] == "r" and op not in sums):
                return None
            for n, each in enumerate(op.operands):
                axes = [axis for axis, dim in enumerate(maps[n]) if dim == loop]
                written = n >= len(op.inputs) and not isinstance(each.owner, memref.AllocOp)
                if axes and (not is_buffer(each.type) or written or found.get(each, axes) != axes):
                    return None
                if axes and each not in found:
                    found[each] = axes
                    waiting.append(each)
    return found
