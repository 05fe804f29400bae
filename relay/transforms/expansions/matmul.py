"""Expansions of matrix products: to `relay.nn.dense` where the second operand is one matrix."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import AnyFloat, Float32Type, IntegerAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import int_values, to_numpy
from relay.dialects.element_types import wider
from relay.dialects.op import is_code, rank, shape, tensor
from relay.target import LANES, Target
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions
from relay.transforms.half_products import of_halves

WHOLE_WORDS = 16
"""The number of codes of a block must be a multiple of this number, so that codes of 2 bits and more fill whole 32-bit
words."""


def swapped(new: Expansion, x: SSAValue, wanted: bool) -> SSAValue:
    """Exchange the last two axes of x, if wanted."""
    last = rank(x) - 1
    return new.transpose(x, [*range(last - 1), last, last - 1]) if wanted else x


def dense(new: Expansion, op: relay.MatmulOp | relay.BatchMatmulOp) -> SSAValue | None:
    """relay.nn.matmul %a, %b  =>  relay.nn.dense %a, transpose %b; relay.nn.batch_matmul likewise if %b has one matrix
    only"""
    a, b, result = op.tensor_a, op.tensor_b, shape(op.result)
    if prod(shape(b)[:-2]) != 1:
        return leading(new, op)
    a = swapped(new, a, bool(op.transpose_a.value.data))
    b = swapped(new, new.reshape(b, shape(b)[-2:]), not op.transpose_b.value.data)
    properties = {name: op.properties.get(name) for name in ("out_dtype", "input_zero_point", "kernel_zero_point")}
    return new.reshape(new.value(relay.DenseOp, a, b, properties=properties), result)


def leading(new: Expansion, op: relay.MatmulOp | relay.BatchMatmulOp) -> SSAValue | None:
    """relay.nn.batch_matmul of any leading axes  =>  relay.nn.batch_matmul of one leading axis, equal in both operands

    A %b stored as [..., columns, inner] is transposed to [..., inner, columns], so that the innermost loop reads
    neighbours, unless kernels pack it or sum along its rows. Where kernels sum along the rows of %b, a transpose of its
    last two axes is removed, and the product reads the value before the transpose.
    """
    outer = shape(op.result)[:-2]
    along = sums_along_rows(op, new.target)
    if along and not op.transpose_b.value.data and (rows := before_transpose(op.tensor_b)) is not None:
        properties = {**op.properties, "transpose_b": IntegerAttr.from_bool(True)}
        rows = new.reshape(rows, (*shape(op.tensor_b)[:-2], *shape(rows)[-2:]))
        return new.value(relay.BatchMatmulOp, op.tensor_a, rows, properties=properties)
    turned = bool(op.transpose_b.value.data) and not along and not packs(op, new.target)
    if not turned and len(outer) == 1 and shape(op.tensor_a)[:-2] == shape(op.tensor_b)[:-2] == outer:
        return None
    a, b = (stacked(new, value, outer) for value in (op.tensor_a, op.tensor_b))
    properties = {**op.properties, **({"transpose_b": IntegerAttr.from_bool(False)} if turned else {})}
    return new.reshape(
        new.value(relay.BatchMatmulOp, a, swapped(new, b, turned), properties=properties), shape(op.result)
    )


def packs(op: relay.MatmulOp | relay.BatchMatmulOp, target: Target) -> bool:
    """Whether kernels accept the second matrix in either layout: they pack it, or copy it into shared memory."""
    (rows, inner), (_, columns) = op.matrices()
    types = [tensor(side).element_type for side in (op.tensor_a, op.tensor_b)]
    if rows < target.packed_rows(isinstance(types[0], AnyFloat)) or columns < LANES:
        return False
    if of_halves(op):
        return True
    codes = all(is_code(type, 8) for type in types) and inner % 4 == 0
    return isinstance(types[0], Float32Type) or (codes and target.multiplies_rows_by_rows)


def sums_along_rows(op: relay.MatmulOp | relay.BatchMatmulOp, target: Target) -> bool:
    """Whether kernels read the second matrix as [n, k], since the first has few rows, and sum along the rows of
    both."""
    (_, inner), (_, columns) = op.matrices()
    return has_few_rows(op, target) and min(inner, columns) >= LANES


def has_few_rows(op: relay.MatmulOp | relay.BatchMatmulOp, target: Target) -> bool:
    """Whether the first matrix has so few rows of float32 that the target's kernels do not pack the second one."""
    floats = all(isinstance(tensor(side).element_type, Float32Type) for side in (op.tensor_a, op.tensor_b))
    few = op.matrices()[0][0] < target.packed_rows(floats) and not op.transpose_a.value.data
    return target.sums_along_rows and floats and few


def before_transpose(x: SSAValue) -> SSAValue | None:
    """The value before a transpose of its last two axes, perhaps also before its leading axes were merged; None if
    there is no such transpose, or something else reads its result."""
    op = x.owner
    if isinstance(op, relay.ReshapeOp) and shape(op.input)[-2:] == shape(x)[-2:] and x.has_one_use():
        op = op.input.owner
    if not isinstance(op, relay.TransposeOp) or not op.result.has_one_use():
        return None
    last = rank(op.input) - 1
    exchanged = (*range(last - 1), last, last - 1)
    return op.input if int_values(op.axes) == exchanged else None


def stacked(new: Expansion, x: SSAValue, outer: tuple[int, ...]) -> SSAValue:
    """Broadcast x to these leading axes, and merge them into one."""
    matrix = shape(x)[-2:]
    return new.reshape(new.broadcast(x, [*outer, *matrix]), [prod(outer), *matrix])


def weight_only_dense(new: Expansion, op: relay.WeightOnlyDenseOp) -> SSAValue | None:
    """relay.nn.weight_only_dense %x, %w, %s, %z  =>  itself where kernels read such weights, else relay.nn.dense of
    floats"""
    units, blocks, block = shape(op.codes)
    constant = all(isinstance(value.owner, relay.ConstantOp) or is_kernels(value) for value in op.operands[1:])
    if new.target.takes_weights_in_blocks and constant and block % WHOLE_WORDS == 0 and is_finite(op.codes):
        return None
    codes, zeros = (new.value(relay.CastOp, x, properties={"dtype": f32}) for x in (op.codes, op.zero_points))
    zeros, scales = (new.reshape(x, [units, blocks, 1]) for x in (zeros, op.scales))
    weights = new.value(relay.MultiplyOp, new.value(relay.SubtractOp, codes, zeros), scales)
    kernel = new.reshape(weights, [units, blocks * block])
    return new.value(relay.DenseOp, op.data, kernel, properties={"out_dtype": f32})


def is_finite(codes: SSAValue) -> bool:
    """Whether a constant has no code that stands for an infinity or NaN, as floats of few bits may have."""
    owner = codes.owner
    return not isinstance(owner, relay.ConstantOp) or bool(np.isfinite(wider(to_numpy(owner.value))).all())


def is_kernels(value: SSAValue) -> bool:
    """Whether the value is an argument of an outlined kernel function."""
    function = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    return isinstance(function, FuncOp) and function.sym_visibility is not None


EXPANSIONS: Expansions = {relay.WeightOnlyDenseOp: weight_only_dense, relay.MatmulOp: dense, relay.BatchMatmulOp: dense}
