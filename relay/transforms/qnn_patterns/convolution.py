"""Products that accumulate: only the zero points are left of the quantisation."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from relay.dialects import qnn, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import TensorOp, tensor
from relay.transforms.expansion import Expansion, limits
from relay.transforms.legalization import Legalization


class Product(Legalization):
    """qnn.conv2d, conv2d_transpose, dense, batch_matmul  =>  relay.nn.* {zero points that are not 0}; sums of i64 that
    fit i32, whatever the data, are i32 ones, cast"""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: qnn.Conv2dOp | qnn.Conv2dTransposeOp | qnn.DenseOp | qnn.BatchMatmulOp, rewriter: PatternRewriter
    ) -> None:
        new, properties = Expansion(op), kept(op)
        if fits_i32(op):
            properties["out_dtype"] = i32
        result = new.value(PLAIN[type(op)], *op.operands, properties=properties)
        new.replace(rewriter, new.cast(result, op.out_dtype))


PLAIN: dict[type[Operation], type[TensorOp]] = {
    qnn.Conv2dOp: relay.Conv2dOp,
    qnn.Conv2dTransposeOp: relay.Conv2dTransposeOp,
    qnn.DenseOp: relay.DenseOp,
    qnn.BatchMatmulOp: relay.BatchMatmulOp,
}


def fits_i32(op: qnn.Conv2dOp | qnn.Conv2dTransposeOp | qnn.DenseOp | qnn.BatchMatmulOp) -> bool:
    """Whether no sum of products with constant weights can leave i32: the largest code times each output's weights."""
    data, kernel = op.operands
    if op.out_dtype != i64 or not isinstance(kernel.owner, relay.ConstantOp):
        return False
    weights = np.abs(to_numpy(kernel.owner.value).astype(np.int64) - op.kernel_zero_point.value.data)
    match op:
        case qnn.BatchMatmulOp():
            axes: tuple[int, ...] = (-1 if op.transpose_b.value.data else -2,)
        case qnn.Conv2dOp():
            inner = "HW" if op.depthwise else "HWI"
            axes = tuple(axis for axis, letter in enumerate(op.kernel_layout.data) if letter in inner)
        case qnn.Conv2dTransposeOp():
            axes = tuple(axis for axis, letter in enumerate(str(op.kernel_axes)) if letter in "HWI")
        case _:
            axes = (1,)
    low, high = limits(tensor(data).element_type)
    largest = max(high - op.input_zero_point.value.data, op.input_zero_point.value.data - low)
    return int(weights.sum(axis=axes).max(initial=0)) * largest < 1 << 31


def kept(op: Operation) -> dict[str, Attribute | None]:
    """The properties without scales and without zero points of 0."""
    return {
        name: attr
        for name, attr in op.properties.items()
        if not name.endswith("_scale")
        and not (name.endswith("_zero_point") and isinstance(attr, IntegerAttr) and attr.value.data == 0)
    }


PATTERNS: list[type[Legalization]] = [Product]
