"""Error bounds of partitioned functions, from the error of each op (`Compiler.off_by`) and its propagation through
later ops.

All errors are in quantization steps: a quantized value that is 2 too large is 2 steps off. If an op's result is at
most `own` steps off the op's formula, then with operands that are at most `e` steps off, the result is at most
`floor(gain * e) + 1 + own` steps off. The gain is an upper bound of the result's change per step of the operands: for a
convolution, the sum of the weights' magnitudes times the multiplier. The 1 stands for the rounding of the result. No
error exceeds the width of the op's clamp, so after some convolutions the bound often says nothing;
`relay.byoc.differences` measures the error instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import inf
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from relay.byoc.compiler import Compiler, Refusal
from relay.byoc.guard import asked, codes
from relay.byoc.quantized import CODE_TYPES, PRODUCTS, Product, Quantization, code_limits, dtype, read_product
from relay.byoc.regions import Kernel, Region
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import Origin, TensorOp, rank, shape
from relay.interpreters.arithmetic import code_range
from relay.partition_report import EXACT

DIFFERENCE = "byoc.difference"
"""The attribute of an external function's declaration that states, as text, by how many codes its results may be off:
"exact", or for example "an op is off by at most 1 code; with all of them result 0 at most 7 codes"."""
FLOATS = "integers are exact; floats may be rounded in another way"
SLACK = 0.01
"""A margin in quantization steps. The integer that an op's formula gives may differ from the exact real result by half
a step, and by slightly more because fixed point and floats are inexact; this bounds the excess."""

Off = Array
"""The error bound of a value in quantization steps: one number, or one for each index of the last axis."""
UNKNOWN: Off = np.array(inf)
"""The error bound of an op for which it is not known how its result depends on errors of its operands."""
Gain = Callable[[Any, Sequence[Off]], Off]
"""A function from the error bounds of the operands to that of the result before rounding."""


def declared(compiler: Compiler, function: FuncOp) -> tuple[int | None, list[int | None]]:
    """The largest error of any single op of a partitioned function given exact operands, and the error bound of each
    result given exact arguments, in quantization steps. None if nothing is known, as for floats of an inexact
    compiler."""
    region = Region(function)
    with asked(compiler.name, "off_by"):
        answers: list[object] = [compiler.off_by(kernel.ops) for kernel in region.kernels]
    own = [codes(compiler.name, answer) for answer in answers]
    said = [number for number in own if number is not None]
    each = max(said, default=0) if len(said) == len(own) else None
    if each == 0 and compiler.exact:
        return 0, [0] * len(region.outputs)
    offs = propagate(region, [inf if number is None else number for number in own])
    found = [float(np.max(offs.get(value, np.zeros(())))) for value in region.outputs]
    pairs = zip(region.outputs, found, strict=True)
    return each, [int(number) if number < inf and is_whole(value) else None for value, number in pairs]


def stated(compiler: Compiler, function: FuncOp) -> str:
    """The bounds of `declared` as text: "exact", or for example "an op is off by at most 1 code; with all of them
    result 0 at most 7 codes"."""
    each, results = declared(compiler, function)
    if each == 0 and not any(results):
        return EXACT if compiler.exact or None not in results else FLOATS
    if each is None:
        return compiler.difference or "how far its integers are off is not said"
    told = [f"result {k} {'by an unknown number' if n is None else most(n)}" for k, n in enumerate(results)]
    return f"an op is off by {most(each)}; with all of them {', '.join(told)}"


def most(number: int) -> str:
    return f"at most {number} code{'' if number == 1 else 's'}"


def keep(compiler: Compiler, function: FuncOp) -> None:
    """Store the error bounds of a partitioned function as an attribute, before its body is removed."""
    function.attributes[DIFFERENCE] = StringAttr(stated(compiler, function))


def is_whole(value: SSAValue) -> bool:
    return dtype(value).kind in "iub"


def propagate(region: Region, own: Sequence[float]) -> dict[SSAValue, Off]:
    """The error bounds of all values of a region; `own` has the maximum error of each kernel for exact operands."""
    offs: dict[SSAValue, Off] = {}

    def of(value: SSAValue) -> Off:
        return offs.get(region.of(value), np.zeros(()))

    for kernel, number in zip(region.kernels, own, strict=True):
        for op, found in computed(kernel, of):
            more = number if op is kernel.root else 0.0
            for result in op.results:
                offs[region.of(result)] = limited(op, result, np.asarray(found + more, np.float64))
    return offs


def computed(kernel: Kernel, of: Callable[[SSAValue], Off]) -> Sequence[tuple[Operation, Off]]:
    """Return the ops of a kernel, each with the error bound of its results before the op's own error is added. A
    convolution or matrix product with bias and requantization counts as one op: only its last op is returned. `of`
    returns the error bound of a value that an earlier kernel computes."""
    root = kernel.root
    if isinstance(kernel.ops[0], PRODUCTS):
        product = read_product(kernel.ops)
        if isinstance(product, Refusal) or product.quantization is None:
            return [(root, UNKNOWN)]
        return [(root, rounded(product_gain(product, product.quantization, of(product.data))))]
    found: list[tuple[Operation, Off]] = []
    inside: dict[SSAValue, Off] = {}
    for op in kernel.ops:
        off = through(op, [inside.get(value, of(value)) for value in op.operands])
        inside |= dict.fromkeys(op.results, off)
        found.append((op, off))
    return found


def through(op: Operation, offs: Sequence[Off]) -> Off:
    """The error bound of an op's result if the op itself is computed exactly."""
    if not any(off.any() for off in offs) and any(map(is_whole, op.results)):
        return np.zeros(())
    if isinstance(op, relay.ReshapeOp):
        before, after = shape(op.input), shape(op.result)
        same = bool(before and after) and before[-1] == after[-1]
        return offs[0] if same else widest(offs)
    if isinstance(op, TensorOp) and op.origin in (Origin.MOVED, Origin.SELECTED):
        return picked(op, offs)
    off = GAINS.get(type(op), lambda op, offs: UNKNOWN)(op, offs)
    return off if isinstance(op, qnn.DequantizeOp) else rounded(off)


def picked(op: TensorOp, offs: Sequence[Off]) -> Off:
    """The error bound of an op whose results are elements of its data: the bounds of the data for each index of the
    last axis if the op keeps this axis, else their maximum."""
    data = op.data_operands()
    parameters = [off for value, off in zip(op.operands, offs, strict=True) if value not in data]
    if any(off.any() for off in parameters):
        return UNKNOWN
    last = rank(op.results[0]) - 1
    return largest(offs) if last >= 0 and op.independent_along(last) else widest(offs)


def largest(offs: Sequence[Off]) -> Off:
    return reduce(np.maximum, offs, np.zeros(()))


def widest(offs: Sequence[Off]) -> Off:
    """The maximum of all error bounds, as one number."""
    return np.array(max(float(np.max(off)) for off in offs))


def rounded(off: Off) -> Off:
    """Return the error bound, in quantization steps, of values after rounding to integers: the largest integer by which
    two rounded values can differ if they differed by at most `off` before rounding; 0 where `off` is 0."""
    return np.where(off > 0, np.floor(off + 1 + SLACK), 0.0)


def limited(op: Operation, result: SSAValue, off: Off) -> Off:
    """The error bound limited to the width of the op's clamp or of the quantized type."""
    type = dtype(result)
    if type not in CODE_TYPES:
        return off
    clamped = isinstance(op, qnn.RequantizeOp | qnn.QnnBinaryOp)
    low, high = code_limits(op) if clamped else code_range(type)
    return np.minimum(off, high - low)


def product_gain(product: Product, quantization: Quantization, off: Off) -> Off:
    """The largest error of each output channel of a product, in steps of the result and before the result is rounded,
    if the data are off by at most `off` steps."""
    weights = np.abs(product.kernel.astype(np.float64) - quantization.kernel_zero_point)
    if product.depthwise:
        taps = weights.sum((0, 1))
        sums = (taps * np.broadcast_to(off, taps.shape[:1])[:, None]).reshape(-1)
    else:
        taps = weights.reshape(weights.shape[0], -1, weights.shape[-1]).sum(1)
        part = np.broadcast_to(off, (product.groups * taps.shape[1],)).reshape(product.groups, -1)
        sums = (taps * np.repeat(part, taps.shape[0] // product.groups, axis=0)).sum(1)
    return sums * np.broadcast_to(quantization.real_multipliers, sums.shape)


def sum_gain(op: qnn.QnnAddBase, offs: Sequence[Off]) -> Off:
    lhs, rhs, out = (attr.value.data for attr in (op.lhs_scale, op.rhs_scale, op.output_scale))
    return (lhs * offs[0] + rhs * offs[1]) / out


def mul_gain(op: qnn.MulOp, offs: Sequence[Off]) -> Off:
    lhs, rhs, out = (attr.value.data for attr in (op.lhs_scale, op.rhs_scale, op.output_scale))
    low, high = code_range(dtype(op.result))
    a, b = (max(zero.value.data - low, high - zero.value.data) for zero in (op.lhs_zero_point, op.rhs_zero_point))
    return lhs * rhs / out * (a * offs[1] + b * offs[0] + offs[0] * offs[1])


def scaled(op: qnn.MeanOp | qnn.QnnUnaryOp, offs: Sequence[Off]) -> Off:
    return widest(offs) * op.input_scale.value.data / op.output_scale.value.data


def requantize_gain(op: qnn.RequantizeOp, offs: Sequence[Off]) -> Off:
    return widest(offs) * float(np.max(to_numpy(op.input_scale))) / float(np.max(to_numpy(op.output_scale)))


def concatenation_gain(op: qnn.ConcatenateOp, offs: Sequence[Off]) -> Off:
    pairs = zip(offs, to_numpy(op.input_scales), strict=True)
    return np.array(max(float(np.max(off)) * float(scale) for off, scale in pairs) / op.output_scale.value.data)


def softmax_gain(op: qnn.SoftmaxOp, offs: Sequence[Off]) -> Off:
    """The error bound of a softmax before rounding. An element p has the derivative `p (1 - p)`, at most 1/4, by its
    own input, and as much, negated, by all other inputs together. So an error `e` of the inputs changes p by at most `e
    / 2`, which is `128 e` steps of 1/256."""
    return 128 * op.input_scale.value.data * op.beta.value.data * widest(offs)


GAINS: Mapping[type[Operation], Gain] = {
    qnn.AddOp: sum_gain,
    qnn.SubtractOp: sum_gain,
    qnn.MulOp: mul_gain,
    qnn.MeanOp: scaled,
    qnn.TanhOp: scaled,
    qnn.SigmoidOp: lambda op, offs: scaled(op, offs) / 4,
    qnn.SoftmaxOp: softmax_gain,
    qnn.RequantizeOp: requantize_gain,
    qnn.ConcatenateOp: concatenation_gain,
    qnn.DequantizeOp: lambda op, offs: widest(offs) * float(np.max(to_numpy(op.scale))),
    qnn.QuantizeOp: lambda op, offs: widest(offs) / float(np.min(to_numpy(op.scale))),
    relay.AvgPool2dOp: lambda op, offs: largest(offs),
    relay.Resize2dOp: lambda op, offs: largest(offs),
}
