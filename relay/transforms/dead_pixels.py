"""The pass `dead-pixels`, which avoids computing pixels of images that no op reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects import relay
from relay.dialects.attributes import int_values, ints
from relay.dialects.op import DYNAMIC, TensorOp, rank, shape
from relay.dialects.relay.nn import NHWC
from relay.passes import Pass
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import inserted
from relay.transforms.legalization import blocks_of

Steps = tuple[int, int]
"""The strides in which rows and columns of an image are read, starting at the first."""
ALL: Steps = (1, 1)


@dataclass(frozen=True)
class DeadPixels(Pass):
    """Do not compute pixels that are never read.

    If an image is read only by windows of one pixel with strides, the op that makes it computes only those pixels, and
    so do elementwise ops, convolutions and pooling before it. A convolution with the strides (1, 1) whose result is
    read only at every second row and column gets the strides (2, 2), and its readers read neighbouring pixels. Where an
    elementwise op needs fewer pixels of an image than other readers do, it reads a `relay.strided_slice` of it. No
    value that is read changes.
    """

    name: ClassVar[str] = "dead-pixels"
    opt_level = 2
    invalidates = ()
    why = "leaves out rows and columns of images that no op reads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        changed = False
        for block in blocks_of(op):
            read = steps_of(block)
            if any(steps != ALL for steps in read.values()):
                Thin(read).run(list(block.ops))
                changed = True
        if changed:
            erase_dead(op.walk())


def steps_of(block: Block) -> dict[SSAValue, Steps]:
    """For each value of the block, the strides in which its rows and columns are read."""
    wanted: dict[SSAValue, Steps] = {}
    found: dict[SSAValue, Steps] = {}
    for op in reversed(list(block.ops)):
        steps = ALL
        if can_thin(op):
            result = op.results[0]
            sizes = shape(result)[1:3]
            rows, columns = (w if size > 1 and w else 1 for w, size in zip(wanted.get(result, ALL), sizes, strict=True))
            found[result] = steps = (rows, columns)
        for operand, reads in zip(op.operands, reads_of(op, steps), strict=True):
            before = wanted.get(operand, (0, 0))
            wanted[operand] = (gcd(before[0], reads[0]), gcd(before[1], reads[1]))
        for inner in (inner for region in op.regions for inner in region.walk()):
            wanted.update(dict.fromkeys(inner.operands, ALL))
    return found


def can_thin(op: Operation) -> bool:
    """Whether the op can be rebuilt so that it computes only every n-th row and column of its result."""
    if not isinstance(op, TensorOp) or len(op.results) != 1 or rank(op.results[0]) != 4:
        return False
    if any(DYNAMIC in shape(value) for value in (*op.operands, op.results[0])):
        return False
    if isinstance(op, relay.Pool2dOp):
        return op.layout == NHWC and op.plain
    if isinstance(op, relay.Conv2dOp):
        return op.data_layout == op.result_layout == NHWC and op.kernel_layout.data in ("OHWI", "HWOI")
    axis = op.properties.get("axis")  # of vectors beside the data
    return op.ELEMENTWISE and (not isinstance(axis, IntegerAttr) or axis.value.data in (-1, 3))


def reads_of(op: Operation, steps: Steps) -> Sequence[Steps]:
    """The strides in which the op reads each operand if its result is read with `steps`; 0, which stands for any
    stride, along an axis of size 1."""
    if not can_thin(op):
        return [ALL] * len(op.operands)
    if isinstance(op, relay.Conv2dOp | relay.Pool2dOp):
        return [window_reads(op, steps), *[ALL] * (len(op.operands) - 1)]
    assert isinstance(op, TensorOp)
    return [at_pixels(value, steps) if value in op.broadcast_operands() else ALL for value in op.operands]


def at_pixels(value: SSAValue, steps: Steps) -> Steps:
    """The strides in which an op reads the operand `value`, which it broadcasts, if its result is read with `steps`.
    Along an axis that the operand lacks, or of size 1, the stride is 0, which stands for any stride."""
    dims = (1, 1, *shape(value))[-3:-1] if rank(value) > 1 else (1, 1)
    return steps[0] if dims[0] > 1 else 0, steps[1] if dims[1] > 1 else 0


def window_reads(op: relay.Conv2dOp | relay.Pool2dOp, steps: Steps) -> Steps:
    """Along each axis, the distance between the pixels of the data that the op reads, if its results are needed at
    every `steps`-th position. 1, which means all pixels, along axes with padding or windows of several pixels."""
    strides, (top, left, bottom, right) = int_values(op.strides), int_values(op.padding)
    if isinstance(op, relay.Pool2dOp):
        taps = int_values(op.pool_size)
    else:
        taps = shape(op.kernel)[:2] if op.depthwise else shape(op.kernel)[1:3]
    padded = (top or bottom, left or right)
    rows, columns = (
        stride * step if tap == 1 and not pad else 1
        for stride, step, tap, pad in zip(strides, steps, taps, padded, strict=True)
    )
    return rows, columns


class Thin:
    """Rewrites operations, in program order, so that they compute and read only the pixels that are needed."""

    def __init__(self, read: dict[SSAValue, Steps]):
        self.read = read
        self.new: dict[SSAValue, SSAValue] = {}

    def steps(self, value: SSAValue) -> Steps:
        return self.read.get(value, ALL)

    def run(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            if any(self.steps(value) != ALL for value in (*op.operands, *op.results)):
                assert isinstance(op, TensorOp)
                self.rewrite(op)

    def rewrite(self, op: TensorOp) -> None:
        """Rebuild the op for the needed pixels, beside the old one; replace the old one if the result has all
        pixels."""
        result = op.results[0]
        steps, properties = self.steps(result), dict[str, Attribute | None](op.properties)
        if isinstance(op, relay.Conv2dOp | relay.Pool2dOp):
            given = self.steps(op.operands[0])
            strides = zip(int_values(op.strides), steps, given, strict=True)
            properties["strides"] = ints([stride * step // before for stride, step, before in strides])
            operands = [self.new.get(op.operands[0], op.operands[0]), *op.operands[1:]]
        else:
            reads = reads_of(op, steps)
            operands = [self.at(value, wanted, op) for value, wanted in zip(op.operands, reads, strict=True)]
        thin = type(op).make(operands, properties, like=op)
        thin.attributes.update(op.attributes)
        Rewriter.insert_op(thin, InsertPoint.before(op))
        thin.results[0].name_hint = result.name_hint
        if steps == ALL:
            result.replace_all_uses_with(thin.results[0])
        else:
            self.new[result] = thin.results[0]

    def at(self, value: SSAValue, wanted: Steps, before: Operation) -> SSAValue:
        """The pixels of a value at the strides `wanted`: the result of the rebuilt op, or a slice of it that is
        inserted before the op `before`."""
        given, now = self.steps(value), self.new.get(value, value)
        factors = [max(want // have, 1) for want, have in zip(wanted, given, strict=True)]
        if factors == [1, 1]:
            return now
        dims = shape(now)
        strides = [1, *factors, 1][-len(dims) :]  # the operand may lack leading axes, which it broadcasts along
        bounds = {"begin": ints([0] * len(dims)), "end": ints(list(dims)), "strides": ints(strides)}
        return inserted(before, relay.StridedSliceOp, [now], bounds)
