"""The integer op that replaces a float op between dequantize and quantize: one function per kind of op. The integer ops
are those that the TFLite importer makes.

Scales are computed as in TFLite's kernels: see `relay.frontend.tflite.operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.builtin import FloatAttr, StringAttr, f64, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, elements, scalar_attr, to_numpy
from relay.dialects.op import TensorOp, rank, shape, tensor
from relay.frontend.importing.builder import (
    aligned_sum,
    multiplier_attrs,
    multiplier_vectors,
    number,
    parameters,
    product_parameters,
    real,
    scale_attr,
)
from relay.interpreters.arithmetic import quantize_multiplier, quantize_multipliers, round_away
from relay.quantize.fused_sums import Stays
from relay.quantize.layers import channel_axis, clamp_bounds, constant_before, is_float
from relay.quantize.parameters import FIXED, Parameters
from relay.quantize.rules import BINARY, mean_of, same_scale

Properties = dict[str, Attribute]
FLOAT_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Target:
    """The quantized result that is wanted: its `qnn.quantize`, its parameters and its clamp."""

    quantize: qnn.QuantizeOp
    codes: Parameters
    new: list[Operation]
    """The ops that compute the result, in order."""
    bounds: tuple[float, float] | None = None
    """The bounds of a clamp before the quantization, as real numbers."""

    def add(self, op: TensorOp) -> SSAValue:
        """Append an op to the new ones, and return its result."""
        self.new.append(op)
        return op.results[0]

    def limits(self) -> tuple[int, int]:
        """The lowest and highest quantized value that the clamp lets through (TFLite's
        CalculateActivationRangeQuantized)."""
        if self.bounds is None:
            return self.codes.low, self.codes.high
        low, high = self.bounds
        least = self.codes.low if low <= -FLOAT_MAX else max(self.codes.low, self._code(low))
        most = self.codes.high if high >= FLOAT_MAX else min(self.codes.high, self._code(high))
        return min(least, most), most

    def _code(self, value: float) -> int:
        steps = np.clip(np.float64(np.float32(value)) / self.codes.scale, -(2.0**30), 2.0**30).astype(np.float32)
        return self.codes.zero_point + int(round_away(np.asarray(steps)))

    def clamped(self) -> Properties:
        low, high = self.limits()
        return {"min": number(low), "max": number(high)}


def parameters_of(op: qnn.QuantizeOp | qnn.DequantizeOp, codes: SSAValue) -> Parameters | None:
    """The parameters of quantized values with a single scale; None if there are several."""
    scale, zero_point = to_numpy(op.scale), to_numpy(op.zero_point)
    element = tensor(codes).element_type
    if scale.size != 1 or zero_point.size != 1:
        return None
    return Parameters(float(scale.reshape(())), int(zero_point.reshape(())), str(dtype_of(element)))


def source(value: SSAValue) -> tuple[SSAValue, Parameters] | None:
    """If a `qnn.dequantize` computes the float value: the quantized value that it reads, and its parameters. None for
    other values."""
    if isinstance(op := value.owner, qnn.DequantizeOp) and (found := parameters_of(op, op.input)) is not None:
        return op.input, found
    return None


def fold(quantize: qnn.QuantizeOp, new: list[Operation]) -> SSAValue:
    """Append to `new` the integer ops that compute the result of a `qnn.quantize` without floats, and return their
    result. Raises Stays, with the reason, if there are none."""
    target = parameters_of(quantize, quantize.result)
    last = quantize.input.owner
    if target is None or not isinstance(last, Operation):
        raise Stays(quantize, "it quantises what is not computed here, or per axis")
    if isinstance(last, qnn.DequantizeOp):
        return rescaled(Target(quantize, target, new), last.input, parameters_of(last, last.input))
    bounds = clamp_bounds(last)
    if bounds is not None:
        if (read := source(last.operands[0])) is not None:
            return rescaled(Target(quantize, target, new, bounds), *read)
        inner = last.operands[0].owner
        if not isinstance(inner, Operation):
            raise Stays(last, "its operand is no dequantised code")
        if not last.operands[0].has_one_use():
            raise Stays(inner, "its result is used without the clamp, too")
        return _fold(inner, Target(quantize, target, new, bounds))
    return _fold(last, Target(quantize, target, new))


def _fold(op: Operation, target: Target) -> SSAValue:
    if isinstance(op, relay.BiasAddOp | relay.Conv2dOp | relay.DenseOp):
        return layer(op, target)
    if isinstance(op, relay.DivideOp | relay.MultiplyOp) and isinstance(total := op.lhs.owner, relay.SumOp):
        if mean_of(total) is op:
            return mean(op, total, target)
    if isinstance(op, BINARY):
        return binary(op, target)
    if target.bounds is not None:
        raise Stays(op, f"a clamp after {op.name} has no form on codes")
    if (function := CURVES.get(type(op))) is not None:
        return function(op, target)
    if same_scale(op):
        return moved(op, target)
    raise Stays(op, f"{op.name} has no form on codes")


def rescaled(target: Target, codes: SSAValue, found: Parameters | None) -> SSAValue:
    """qnn.quantize (clamp? (qnn.dequantize %x))  =>  qnn.requantize %x, or just %x"""
    quantize = target.quantize
    if found is None:
        raise Stays(quantize, "its operand has a scale per axis")
    wide = "int16" in (found.dtype, target.codes.dtype) and found.dtype != target.codes.dtype
    if found.dtype not in ("int8", "uint8", "int16") or wide:
        raise Stays(quantize, f"there is no form from {found.dtype} to {target.codes.dtype}")
    if found == target.codes and target.limits() == (found.low, found.high):
        return codes
    ratio = float(np.float64(found.scale) / np.float64(target.codes.scale))
    if target.bounds is not None:
        ratio = float(np.float32(found.scale) / np.float32(target.codes.scale))
    properties: Properties = {
        **parameters(input=found, output=target.codes),
        **multiplier_attrs(quantize_multiplier(ratio)),
        **target.clamped(),
        "out_dtype": target.codes.element,
    }
    return target.add(qnn.RequantizeOp.make([codes], properties, like=quantize))


def layer(op: relay.BiasAddOp | relay.Conv2dOp | relay.DenseOp, target: Target) -> SSAValue:
    """qnn.quantize (clamp? (bias_add? (conv (dequantize %x), (dequantize %w)), (dequantize %b)))  =>
    qnn.requantize (bias_add? (qnn.conv %x, %w), %b)"""
    bias = op if isinstance(op, relay.BiasAddOp) else None
    anchor = op.data.owner if isinstance(op, relay.BiasAddOp) else op
    if not isinstance(anchor, relay.Conv2dOp | relay.DenseOp) or not is_float(anchor.data):
        raise Stays(op, "it adds a bias to something else than a convolution or product")
    if bias is not None and not anchor.result.has_one_use():
        raise Stays(anchor, "its result is used without the bias, too")
    if bias is not None and bias.axis.value.data % rank(bias.data) != rank(bias.data) - 1:
        raise Stays(bias, "its bias does not lie along the channels")
    data, kernel = source(anchor.data), kernel_source(anchor)
    if data is None or kernel is None:
        raise Stays(anchor, "its data or its kernel are no codes, or its kernel's codes are not per output channel")
    codes, found = data
    if found.dtype != target.codes.dtype:
        raise Stays(anchor, f"its data are {found.dtype}, its result is {target.codes.dtype}")
    weights, scales, zero_point = kernel
    vector = None
    if bias is not None:
        vector = bias_source(bias, found, scales)
        if vector is None:
            raise Stays(anchor, "its bias has another scale than its sums")
    properties: Properties = dict(anchor.properties)
    properties |= product_parameters(found, scales, zero_point, i64 if found.dtype == "int16" else i32)
    dense = isinstance(anchor, relay.DenseOp)
    kind = qnn.DenseOp if dense else qnn.Conv2dOp
    sums = target.add(kind.make([codes, weights], properties, like=anchor))
    if vector is not None:
        sums = target.add(relay.BiasAddOp.make([sums, vector], like=bias))
    return requantized(sums, found, scales, target, dense)


def requantized(sums: SSAValue, data: Parameters, scales: Array, target: Target, dense: bool) -> SSAValue:
    """Requantize sums of products of `data` and weights with these `scales`, in the arithmetic of TFLite's kernels:
    scales are multiplied in float64, but in float32 for uint8 convolutions. `dense`: whether the op is a matrix
    product."""
    if data.dtype == "uint8" and not dense:
        products = (np.float32(data.scale) * scales).astype(np.float64)
    else:
        products = np.float64(data.scale) * scales.astype(np.float64)
    reals = products / np.float64(target.codes.scale)
    properties: Properties = {
        "input_scale": scale_attr((np.float32(data.scale) * scales).astype(np.float32)),
        **parameters(output=target.codes),
        **target.clamped(),
        "out_dtype": target.codes.element,
        **multiplier_vectors(quantize_multipliers(reals)),
    }
    if dense:
        exact = FloatAttr(float(reals[0]), f64) if reals.size == 1 else elements(reals, label="real_multiplier")
        properties |= {"rounding": StringAttr("f64_away"), "real_multiplier": exact}
    return target.add(qnn.RequantizeOp.make([sums], properties, like=target.quantize))


def kernel_source(anchor: relay.Conv2dOp | relay.DenseOp) -> tuple[SSAValue, Array, int] | None:
    """The quantized kernel, reshaped as the op takes it, its scales, and its zero point; None if the kernel is no
    constant quantized per output channel or per tensor."""
    value = anchor.kernel
    reshape = value.owner if isinstance(value.owner, relay.ReshapeOp) else None
    op = (reshape.input if reshape is not None else value).owner
    if not isinstance(op, qnn.DequantizeOp) or (reshape is not None and channel_axis(anchor) != 2):
        return None
    constant = constant_of(op.input)
    scales, zero_points = np.atleast_1d(to_numpy(op.scale)), np.atleast_1d(to_numpy(op.zero_point))
    if constant is None or constant.dtype.itemsize != 1 or len({*zero_points.tolist()}) != 1:
        return None
    if scales.size > 1:
        axis = op.axis.value.data % constant.ndim
        flat = constant.ndim == 3 or channel_axis(anchor) == 0
        wanted = channel_axis(anchor) if flat else 2 if constant.shape[3] == 1 else 3 if constant.shape[2] == 1 else -1
        if axis != wanted or int(zero_points[0]) != 0:
            return None
    kernel = op.input
    if constant.shape != shape(value):
        kernel = constant_before(anchor, constant.reshape(shape(value)), op.input)
    return kernel, scales.astype(np.float32), int(zero_points[0])


def bias_source(bias: relay.BiasAddOp, data: Parameters, scales: Array) -> SSAValue | None:
    """The quantized bias, if its scale is that of the sums; None otherwise."""
    op = bias.bias.owner
    if not isinstance(op, qnn.DequantizeOp) or np.any(to_numpy(op.zero_point) != 0):
        return None
    wanted = (np.float32(data.scale) * scales).astype(np.float32)
    found = np.atleast_1d(to_numpy(op.scale)).astype(np.float32)
    if found.size not in (1, wanted.size) or not np.allclose(found, wanted, rtol=1e-6, atol=0):
        return None
    return op.input if tensor(op.input).element_type == (i64 if data.dtype == "int16" else i32) else None


def binary(op: relay.AddOp | relay.SubtractOp | relay.MultiplyOp, target: Target) -> SSAValue:
    """qnn.quantize (clamp? (op (dequantize %a), (dequantize %b)))  =>  qnn.op %a, %b"""
    lhs, rhs = source(op.lhs), source(op.rhs)
    if lhs is None or rhs is None:
        raise Stays(op, "an operand is no dequantised code of one scale")
    a, b, out = lhs[1], rhs[1], target.codes
    if not a.dtype == b.dtype == out.dtype:
        raise Stays(op, f"its codes are {a.dtype}, {b.dtype} and {out.dtype}")
    properties: Properties = parameters(lhs=a, rhs=b, output=out) | target.clamped()
    operands = [lhs[0], rhs[0]]
    if isinstance(op, relay.MultiplyOp):
        ratio = float(np.float32(a.scale) * np.float32(b.scale) / np.float32(out.scale))
        properties |= multiplier_attrs(quantize_multiplier(ratio))
        return target.add(qnn.MulOp.make(operands, properties, like=op))
    properties |= aligned_sum(a, b, out, 15 if out.dtype == "int16" else 20)
    kind = qnn.AddOp if isinstance(op, relay.AddOp) else qnn.SubtractOp
    return target.add(kind.make(operands, properties, like=op))


def mean(op: Operation, total: relay.SumOp, target: Target) -> SSAValue:
    """qnn.quantize (sum (dequantize %x) / count)  =>  qnn.mean %x"""
    if (read := source(total.input)) is None:
        raise Stays(total, "its operand is no dequantised code of one scale")
    codes, found = read
    if found.dtype != target.codes.dtype or found.dtype == "int16":
        raise Stays(total, f"there is no mean from {found.dtype} to {target.codes.dtype}")
    count = prod(shape(total.input)[axis] for axis in total.axes())
    ratio = float(np.float64(found.scale) / np.float64(target.codes.scale))
    multiplier, shift = quantize_multiplier(ratio)
    doublings = min(count.bit_length() - 1, 32, 31 + shift)
    properties: Properties = {
        "axis": total.axis,
        "keepdims": total.keepdims,
        **parameters(input=found, output=target.codes),
        **multiplier_attrs(((multiplier << doublings) // count, shift - doublings)),
    }
    result = target.add(qnn.MeanOp.make([codes], properties, like=op))
    if target.bounds is None:
        return result
    low, high = (scalar_attr(bound, target.codes.element) for bound in target.limits())
    return target.add(relay.ClipOp.make([result], {"a_min": low, "a_max": high}, like=op))


def softmax(op: Operation, target: Target) -> SSAValue:
    """qnn.quantize (softmax (dequantize %x)), with scale 1/256 and the lowest zero point  =>  qnn.softmax %x"""
    assert isinstance(op, relay.SoftmaxOp)
    read = source(op.data)
    if read is None or target.codes != FIXED[op.name].get(read[1].dtype):
        raise Stays(op, "its operand is no 8-bit code, or its result's scale is not 1/256 from the lowest code")
    beta = float(to_numpy(op.beta))
    scaled = np.float64(np.float32(beta)) * np.float64(read[1].scale) * (1 << 26)
    multiplier = quantize_multiplier(min(float(scaled), float((1 << 31) - 1)))
    properties = {"beta": real(beta), "input_scale": real(read[1].scale), **multiplier_attrs(multiplier)}
    return target.add(qnn.SoftmaxOp.make([read[0]], properties, like=op))


def curve(op: Operation, target: Target) -> SSAValue:
    """qnn.quantize (sigmoid (dequantize %x))  =>  qnn.sigmoid %x; tanh likewise"""
    read = source(op.operands[0])
    if read is None or read[1].dtype != target.codes.dtype or read[1].dtype == "int16":
        raise Stays(op, "its operand is no 8-bit code of the result's type")
    kind = qnn.SigmoidOp if isinstance(op, relay.SigmoidOp) else qnn.TanhOp
    return target.add(kind.make([read[0]], parameters(input=read[1], output=target.codes), like=op))


CURVES: dict[type[Operation], Callable[[Operation, Target], SSAValue]] = {
    relay.SoftmaxOp: softmax,
    relay.SigmoidOp: curve,
    relay.TanhOp: curve,
}


def moved(op: Operation, target: Target) -> SSAValue:
    """qnn.quantize (op (dequantize %x)), if operands and result have one scale  =>  op %x"""
    assert isinstance(op, TensorOp)
    operands: dict[SSAValue, SSAValue] = {}
    for value in same_scale(op):
        found = source(value)
        if found is None or found[1] != target.codes:
            raise Stays(op, "its operands and its result have not one scale")
        operands[value] = found[0]
    if target.codes.dtype == "int16" and isinstance(op, relay.Resize2dOp):
        raise Stays(op, "it has no form on 16-bit codes")
    properties: Properties = dict(op.properties)
    for name in op.FILLS:
        if float(to_numpy(op.properties[name])) != 0.0:
            raise Stays(op, "it pads with another number than 0")
        properties[name] = scalar_attr(target.codes.zero_point, target.codes.element)
    return target.add(type(op).make([operands.get(value, value) for value in op.operands], properties, like=op))


def fold_index(op: relay.ArgOp, dequantize: qnn.DequantizeOp) -> Operation | None:
    """argmax (dequantize %x)  =>  argmax %x, if the operand has one scale"""
    if parameters_of(dequantize, dequantize.input) is None:
        return None
    return type(op).make([dequantize.input], dict(op.properties), like=op)


__all__: Sequence[str] = ["fold", "fold_index"]
