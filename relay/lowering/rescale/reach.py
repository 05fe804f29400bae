"""The range of the integers that a rescale may receive, derived from codes, weights and biases, channel by channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerType, TensorType, i16, i32
from xdsl.dialects.linalg.ops import FillOp, GenericOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.dialects.attributes import Array, to_numpy
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import dims, element
from relay.lowering.rescale.values import tensors
from relay.lowering.scheduling.affine import dims_of, is_identity
from relay.lowering.scheduling.contraction import match_product

FULL = (np.array([-(2**31)]), np.array([2**31 - 1]))

Range = tuple[Array, Array]
"""The least and the greatest number, each of one element or one per channel: int64, without wrap-around."""


def reach(value: SSAValue, calls: CallGraph) -> list[Range]:
    """Return the range of an i32 inside a `linalg.generic`, one entry for each call of the function, or a single one if
    the range is the same in all calls."""
    if isinstance(value.owner, arith.ConstantOp):
        number = to_numpy(value.owner.value).reshape(1).astype(np.int64)
        return [(number, number)]
    if isinstance(value, BlockArgument):
        return [_fitting(found) for found in _argument(value, calls)]
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name not in RULES or value.type != i32:
        return [FULL]
    if owner.name in ("arith.extsi", "arith.extui"):
        return [codes(owner.name == "arith.extui") if owner.operands[0].type == IntegerType(8) else FULL]
    parts = [reach(operand, calls) for operand in owner.operands]
    count = max(len(part) for part in parts)
    rule = RULES[owner.name]
    return [_fitting(rule(*(part[i if len(part) > 1 else 0] for part in parts))) for i in range(count)]


def codes(unsigned: bool, bits: int = 8) -> Range:
    """Return the range of codes of `bits` bits."""
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return np.array([low]), np.array([high])


def add(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def subtract(a: Range, b: Range) -> Range:
    return a[0] - b[1], a[1] - b[0]


def multiply(a: Range, b: Range) -> Range:
    products = [x * y for x in a for y in b]
    return np.minimum.reduce(products), np.maximum.reduce(products)


def larger(a: Range, b: Range) -> Range:
    return np.maximum(a[0], b[0]), np.maximum(a[1], b[1])


def smaller(a: Range, b: Range) -> Range:
    return np.minimum(a[0], b[0]), np.minimum(a[1], b[1])


RULES: dict[str, Callable[..., Range]] = {
    "arith.extsi": add,
    "arith.extui": add,
    "arith.addi": add,
    "arith.subi": subtract,
    "arith.muli": multiply,
    "arith.maxsi": larger,
    "arith.minsi": smaller,
}


def _fitting(found: Range) -> Range:
    """Return the range, or the range of all i32 if it does not fit i32, since the computation could wrap around."""
    low, high = found
    return found if int(low.min()) >= -(2**31) and int(high.max()) < 2**31 else FULL


def _argument(argument: BlockArgument, calls: CallGraph) -> list[Range]:
    """Return the range of the elements that a `linalg.generic` reads as this argument of its body: one for each call of
    the function, or a single one for all calls."""
    generic = argument.owner.parent_op()
    if not isinstance(generic, GenericOp) or argument.index >= len(generic.inputs) or argument.type != i32:
        return [FULL]
    value, map = generic.inputs[argument.index], generic.indexing_maps.data[argument.index].data
    if not isinstance(value.type, TensorType):  # a buffer: writes to it are not tracked
        return [FULL]
    if is_identity(map, map.num_dims) and (found := accumulators(value, calls)) is not None:
        return found if dims(value) else [FULL]
    arrays = tensors(value, calls)
    if arrays is None:
        return [FULL]
    per_channel = dims_of(map) == [map.num_dims - 1]
    return [_of_array(array.reshape(-1).astype(np.int64), per_channel) for array in arrays]


def _of_array(array: Array, per_channel: bool) -> Range:
    return (array, array) if per_channel else (array.min(keepdims=True), array.max(keepdims=True))


def accumulators(value: SSAValue, calls: CallGraph) -> list[Range] | None:
    """Return the range of sums of products of codes and constant weights, per channel (the tensor's innermost index);
    None for other values."""
    last = dims(value)[-1] if dims(value) else 1
    while isinstance(value.owner, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        value = value.owner.operands[0]
    generic = value.owner
    if not isinstance(generic, GenericOp) or len(generic.inputs) != 2 or element(value) != i32:
        return None
    product = match_product(generic.body.block)
    if product is None or not _starts_at_zero(generic.outputs[0]) or any(given for _, _, given in product):
        return None
    maps = [m.data for m in generic.indexing_maps]
    axes = channel_axes(maps[1], maps[2])
    kernels = constant_kernels(generic.inputs[1], calls)
    if axes is None or kernels is None:
        return None
    (unsigned, zero_point, _), (unsigned_kernel, kernel_zero_point, _) = product
    least, greatest = (bound - zero_point for bound in codes(unsigned, 16 if element(generic.inputs[0]) == i16 else 8))
    found: list[Range] = []
    for kernel in kernels:
        kernel = kernel.view(np.uint8) if unsigned_kernel else kernel
        if prod(kernel.shape[axis] for axis in axes) != last:
            return None
        above, below = _sums(kernel, kernel_zero_point, axes)
        found.append(_fitting((above * least + below * greatest, above * greatest + below * least)))
    return found


def _starts_at_zero(value: SSAValue) -> bool:
    fill = value.owner
    if not isinstance(fill, FillOp) or not isinstance(fill.inputs[0].owner, arith.ConstantOp):
        return False
    return int(to_numpy(fill.inputs[0].owner.value)) == 0


def channel_axes(kernel: AffineMap, out: AffineMap) -> list[int] | None:
    """Return the kernel's axes that index the result's last axes, in their order; None if the result is indexed
    otherwise."""
    positions, results = dims_of(kernel), dims_of(out)
    if None in positions or not results or not is_identity(out, len(results)):
        return None
    shared = sorted(p for p in positions if p is not None and p < len(results))
    if shared != list(range(len(results) - len(shared), len(results))):
        return None
    return [positions.index(p) for p in shared]


def _sums(kernel: Array, zero_point: int, axes: Sequence[int]) -> tuple[Array, Array]:
    """Return two sums per channel: of `weight - zero point` over the weights above the zero point, and over those below
    it."""
    rest = tuple(axis for axis in range(kernel.ndim) if axis not in axes)
    count = prod(kernel.shape[axis] for axis in rest)
    order = [sorted(axes).index(axis) for axis in axes]
    zero = np.array(zero_point, kernel.dtype)
    above, below = (
        np.transpose(part.sum(axis=rest, dtype=np.int32), order).reshape(-1).astype(np.int64) - count * zero_point
        for part in (np.maximum(kernel, zero), np.minimum(kernel, zero))
    )
    return above, below


def constant_kernels(value: SSAValue, calls: CallGraph) -> list[Array] | None:
    """Return the constant weights of every call, in the shape in which they are read; None if they are not
    constants."""
    shape = dims(value)
    while isinstance(value.owner, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        value = value.owner.operands[0]
    found = tensors(value, calls)
    return None if found is None else [array.reshape(shape) for array in found]
