"""Selects the bf16 products that an instruction of the target sums in pairs; all other bf16 products are computed in
f32."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Operation, SSAValue

from relay.dialects import relay
from relay.dialects.op import DYNAMIC, TensorOp, shape, tensor
from relay.target import LANES, CpuTarget, Target
from relay.target.dots import half_dot

PRODUCTS = relay.DenseOp | relay.MatmulOp | relay.BatchMatmulOp | relay.Conv1dOp | relay.Conv2dOp
"""Ops whose kernels can sum products in pairs."""


def of_halves(op: Operation) -> bool:
    """Whether the op sums bf16 products in f32; such an op has a lowering."""
    if not isinstance(op, PRODUCTS) or tensor(op.result).element_type != f32:
        return False
    return all(tensor(value).element_type == bf16 for value in op.operands)


def takes_pairs(op: Operation, target: Target) -> bool:
    """Whether the target's kernels can sum pairs of the op's products, if both operands are bf16. Each sum must have an
    even number of adjacent elements (`inner_size`), and either the second operand is constant weights, or the result
    has so many rows and columns that kernels pack the second operand."""
    if not isinstance(op, PRODUCTS) or not isinstance(target, CpuTarget) or half_dot(target.features) is None:
        return False
    if has_weights(op):
        return inner_size(op) % 2 == 0
    if isinstance(op, relay.Conv1dOp | relay.Conv2dOp) or any(DYNAMIC in shape(value) for value in op.operands):
        return False
    columns = shape(op.result)[-1]
    rows = prod(shape(op.result)) // columns if prod(shape(op.operands[1])[:-2]) == 1 else shape(op.result)[-2]
    turned = not isinstance(op, relay.DenseOp) and bool(op.transpose_a.value.data)
    packed = rows >= target.packed_rows(floats=True) and columns >= LANES
    return packed and inner_size(op) % 2 == 0 and not turned


def has_weights(op: Operation) -> bool:
    """Whether the op multiplies data by a constant matrix or by constant convolution weights."""
    if not isinstance(op, PRODUCTS) or not is_computed_once(op.operands[1]):
        return False
    if isinstance(op, relay.MatmulOp | relay.BatchMatmulOp):
        return prod(shape(op.tensor_b)[:-2]) == 1 and not op.transpose_a.value.data
    return not isinstance(op, relay.Conv2dOp) or not op.depthwise


def inner_size(op: PRODUCTS) -> int:
    """The number of adjacent elements of an operand that are summed into one result: its channels, or a row."""
    if isinstance(op, relay.DenseOp):
        return shape(op.kernel)[1]
    if isinstance(op, relay.MatmulOp | relay.BatchMatmulOp):
        return op.matrices()[1][0]
    letters = op.kernel_layout.data if isinstance(op, relay.Conv2dOp) else str(op.kernel_axes)
    return dict(zip(letters, shape(op.kernel), strict=True))["I"]


def is_computed_once(value: SSAValue) -> bool:
    """Whether the value is a constant, or is computed from constants only."""
    owner = value.owner
    return isinstance(owner, TensorOp) and all(map(is_computed_once, owner.operands))
