"""Expansions of ops that create tensors: ranges and fills become constants, one-hot codes and masks become comparisons
with constants, and cumulative ops become sums or products with shifted copies of the tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, int_values, scalar_attr, to_numpy
from relay.dialects.op import TensorOp, axis_of, rank, shape, tensor
from relay.interpreters.creation import arange, diagonal_places
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.rearrange import padded
from relay.transforms.expansions.steps import Expansions


def everywhere(number: int) -> Callable[[Expansion, relay.ZerosOp | relay.OnesOp], Sequence[SSAValue]]:
    """Return an expansion that fills a tensor of the op's shape and type with `number`."""
    return lambda new, op: [new.broadcast(new.constant(number, dtype_of(op.dtype)), int_values(op.shape))]


def full(new: Expansion, op: relay.FullOp | relay.FullLikeOp) -> Sequence[SSAValue]:
    return [new.broadcast(op.fill_value, shape(op.result))]


def constant_range(new: Expansion, op: relay.ArangeOp) -> Sequence[SSAValue]:
    numbers = arange(op)
    return [new.constant(numbers, numbers.dtype)]


def places(new: Expansion, like: SSAValue, count: int, axis: int, width: int) -> SSAValue:
    """Add a constant of rank `width` that holds 0, 1, …, `count` - 1 along `axis`; all other axes have size 1, and the
    element type is that of `like`."""
    numbers: Array = np.arange(count).reshape([-1 if a == axis else 1 for a in range(width)])
    return new.constant_like(numbers, like)


def one_hot(new: Expansion, op: relay.OneHotOp) -> Sequence[SSAValue]:
    """Compare indices with a range along the new axis, in 64 bits so that any depth fits, and choose `on_value` or
    `off_value`."""
    dims = list(shape(op.result))
    axis, depth = axis_of(op.axis.value.data, len(dims), op.name), op.depth.value.data
    dims[axis] = 1
    wide = new.cast(new.reshape(op.indices, dims), i64)
    hit = new.value(relay.EqualOp, wide, places(new, wide, depth, axis, len(dims)))
    return [new.value(relay.WhereOp, hit, op.on_value, op.off_value)]


def shifted(new: Expansion, x: SSAValue, axis: int, distance: int, filler: int) -> SSAValue:
    """x shifted by `distance` along an axis; the vacated elements are `filler`."""
    widths = [(0, 0)] * axis + [(distance, 0)]
    wide = padded(new, x, widths, scalar_attr(filler, tensor(x).element_type))
    return new.sliced(wide, axis, 0, shape(x)[axis])


def cumulative(kind: type[TensorOp], neutral: int) -> Callable[[Expansion, relay.CumulativeOp], Sequence[SSAValue]]:
    """Return an expansion of a cumulative op to log2(size) steps: they combine each element with the element 1, 2, 4, …
    positions before it."""

    def scan(new: Expansion, op: relay.CumulativeOp) -> Sequence[SSAValue]:
        axis = axis_of(op.axis.value.data, rank(op.input), op.name)
        size, x, distance = shape(op.input)[axis], op.input, 1
        if op.exclusive.value.data and size:
            x = shifted(new, x, axis, 1, neutral)
        while distance < size:
            x = new.value(kind, x, shifted(new, x, axis, distance, neutral))
            distance *= 2
        return [x]

    return scan


def sequence_mask(new: Expansion, op: relay.SequenceMaskOp) -> Sequence[SSAValue]:
    dims, axis = shape(op.input), op.axis.value.data
    lengths = new.reshape(op.valid_length, [dims[1 - axis] if a == 1 - axis else 1 for a in range(len(dims))])
    wide = new.cast(lengths, i64)
    valid = new.value(relay.LessOp, places(new, wide, dims[axis], axis, len(dims)), wide)
    filler = new.constant_like(to_numpy(op.mask_value), op.input)
    return [new.value(relay.WhereOp, valid, op.input, filler)]


def matrix_set_diag(new: Expansion, op: relay.MatrixSetDiagOp) -> Sequence[SSAValue]:
    """relay.matrix_set_diag %x, %d  =>  relay.where inside, (relay.take %d, at), %x

    `inside` and `at` are constants: for each position of the matrix, whether it is on one of the diagonals, and the
    index of its element in the flattened diagonals."""
    low, high = op.diagonals()
    given = shape(op.diagonal)
    outer = given[: len(given) - (1 if low == high else 2)]
    flat = new.reshape(op.diagonal, [*outer, given[-1] * (high - low + 1)])
    inside, at = diagonal_places(op)
    properties = {"axis": IntegerAttr(len(outer), i64)}
    taken = new.value(relay.TakeOp, flat, new.constant(at, np.int32), properties=properties)
    return [new.value(relay.WhereOp, new.constant(inside, np.bool_), taken, op.input)]


EXPANSIONS: Expansions = {
    relay.ZerosOp: everywhere(0),
    relay.OnesOp: everywhere(1),
    relay.FullOp: full,
    relay.FullLikeOp: full,
    relay.ArangeOp: constant_range,
    relay.OneHotOp: one_hot,
    relay.CumsumOp: cumulative(relay.AddOp, 0),
    relay.CumprodOp: cumulative(relay.MultiplyOp, 1),
    relay.SequenceMaskOp: sequence_mask,
    relay.MatrixSetDiagOp: matrix_set_diag,
}
