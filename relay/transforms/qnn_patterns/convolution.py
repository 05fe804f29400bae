"""Patterns that replace quantized convolutions and matrix products, whose results are integer sums, by ops of `relay`:
of the quantization parameters, these keep only the zero points."""

from __future__ import annotations

from itertools import starmap

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import TensorOp, tensor
from relay.transforms.expansion import Expansion, limits
from relay.transforms.legalization import Legalization, pattern

Products = qnn.Conv2dOp | qnn.Conv2dTransposeOp | qnn.DenseOp | qnn.BatchMatmulOp

PLAIN: dict[type[Operation], type[TensorOp]] = {
    qnn.Conv2dOp: relay.Conv2dOp,
    qnn.Conv2dTransposeOp: relay.Conv2dTransposeOp,
    qnn.DenseOp: relay.DenseOp,
    qnn.BatchMatmulOp: relay.BatchMatmulOp,
}
PIECES = 16
"""The largest number of ranges of input channels into which the i64 sums of a product are split, so that the sum over
each range fits i32."""


@pattern
def product(new: Expansion, op: Products) -> SSAValue:
    """qnn.conv2d, conv2d_transpose, dense, batch_matmul  =>  relay.nn.* {zero points that are not 0}

    i64 sums that fit i32 for all data become i32 sums, cast. A dense op or a convolution may also be split into i32
    sums over ranges of input channels, which are then added in i64.
    """
    properties = kept(op)
    weights = constant_weights(op) if op.out_dtype == i64 else None
    parts = [] if weights is None else parts_that_fit(op, weights)
    if weights is None or not parts:
        return new.value(PLAIN[type(op)], *op.operands, properties=properties)
    data, kernel = op.operands

    def sums(begin: int, end: int) -> SSAValue:
        operands = [data, kernel]
        if len(parts) > 1:
            operands = [new.sliced(data, -1, begin, end), new.constant(weights[..., begin:end], weights.dtype)]
        return new.cast(new.value(PLAIN[type(op)], *operands, properties=properties | {"out_dtype": i32}), i64)

    return new.total(starmap(sums, parts))


def constant_weights(op: Products) -> npt.NDArray[np.generic] | None:
    """The numbers of the kernel, if it is constant."""
    owner = op.operands[1].owner
    return to_numpy(owner.value) if isinstance(owner, relay.ConstantOp) else None


def parts_that_fit(op: Products, weights: npt.NDArray[np.generic]) -> list[tuple[int, int]]:
    """The fewest ranges of input channels over which no sum can overflow i32. The bound of a sum is the largest
    magnitude of the data's codes minus their zero point, times the sum of the magnitudes of an output's weights.

    One range if no sum can overflow; an empty list if the sums cannot be split, or not into at most `PIECES` ranges.
    """
    low, high = limits(tensor(op.operands[0]).element_type)
    largest = max(high - op.input_zero_point.value.data, op.input_zero_point.value.data - low)
    room = ((1 << 31) - 1) // max(largest, 1)
    magnitude = np.abs(weights.astype(np.int64) - op.kernel_zero_point.value.data)
    if int(magnitude.sum(axis=inner_axes(op)).max(initial=0)) <= room:
        return [(0, weights.shape[-1])]
    splits = isinstance(op, qnn.DenseOp) or (
        isinstance(op, qnn.Conv2dOp) and (op.kernel_layout.data, op.data_layout.data) == ("OHWI", "NHWC")
    )
    if not splits or (isinstance(op, qnn.Conv2dOp) and op.groups.value.data != 1):
        return []
    columns = magnitude.sum(axis=tuple(range(1, magnitude.ndim - 1)))
    for count in range(2, PIECES + 1):
        size = -(-weights.shape[-1] // (2 * count)) * 2
        ends = [*range(0, weights.shape[-1], size), weights.shape[-1]]
        parts = list(zip(ends[:-1], ends[1:], strict=True))
        if all(int(columns[:, begin:end].sum(axis=1).max(initial=0)) <= room for begin, end in parts):
            return parts
    return []


def inner_axes(op: Products) -> tuple[int, ...]:
    """The axes of the kernel over which the product sums."""
    match op:
        case qnn.BatchMatmulOp():
            return (-1,) if op.transpose_b.value.data else (-2,)
        case qnn.Conv2dOp():
            inner = "HW" if op.depthwise else "HWI"
            return tuple(axis for axis, letter in enumerate(op.kernel_layout.data) if letter in inner)
        case qnn.Conv2dTransposeOp():
            return tuple(axis for axis, letter in enumerate(str(op.kernel_axes)) if letter in "HWI")
        case qnn.DenseOp():
            return (1,)


def kept(op: Operation) -> dict[str, Attribute | None]:
    """The properties, without scales and without zero points that are 0."""
    return {
        name: attr
        for name, attr in op.properties.items()
        if not name.endswith("_scale")
        and not (name.endswith("_zero_point") and isinstance(attr, IntegerAttr) and attr.value.data == 0)
    }


PATTERNS: list[type[Legalization]] = [product]
