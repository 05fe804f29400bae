"""Imports functions of one tensor."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import qnn
from relay.dialects.relay import (
    AbsOp,
    ExpOp,
    FloorOp,
    LogOp,
    MaximumOp,
    NegativeOp,
    RsqrtOp,
    SigmoidOp,
    SoftmaxOp,
    SqrtOp,
    TanhOp,
    UnaryOp,
)
from relay.frontend.importing.builder import multiplier_attrs, parameters, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, CODES, INDICES, Node
from relay.frontend.tflite.operators.quantize import rescale
from relay.frontend.tflite.table import operator
from relay.interpreters.arithmetic import quantize_multiplier


@operator("SOFTMAX", versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
def softmax(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SOFTMAX along the last axis. Quantized values are processed in fixed point with 26 fraction bits, and the
    output's scale must be 1/256; for uint8 the file's output scale is ignored."""
    data, out = node.input(0), node.output()
    beta = node.real("beta")
    if beta <= 0:
        raise node.unsupported(f"beta is {beta}")
    value = importer.value(data)
    if data.type == out.type == "FLOAT32":
        return [importer.call(SoftmaxOp, value, beta=beta)]
    if data.type != out.type or data.type not in CODES:
        raise node.refuse_types(data, out)
    source, target = node.codes(data), node.codes(out)
    if data.type == "INT8" and (target.scale != np.float32(1 / 256) or target.zero_point != target.low):
        raise node.malformed(f"the output's scale and zero point are {target.scale} and {target.zero_point}")
    scaled = np.float64(np.float32(beta)) * np.float64(source.scale) * (1 << 26)
    multiplier = quantize_multiplier(min(float(scaled), float((1 << 31) - 1)))
    properties = {"beta": real(beta), "input_scale": real(source.scale), **multiplier_attrs(multiplier)}
    return [importer.call(qnn.SoftmaxOp, value, **properties)]


@operator("LOGISTIC", versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
def logistic(importer: Importer, node: Node) -> list[SSAValue]:
    return [_curve(importer, node, SigmoidOp, qnn.SigmoidOp)]


@operator("TANH", versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
def tanh(importer: Importer, node: Node) -> list[SSAValue]:
    return [_curve(importer, node, TanhOp, qnn.TanhOp)]


def _curve(
    importer: Importer, node: Node, plain: type[UnaryOp], quantised: type[qnn.SigmoidOp] | type[qnn.TanhOp]
) -> SSAValue:
    data, out = node.input(0), node.output()
    value = importer.value(data)
    if data.type == out.type == "FLOAT32":
        return importer.call(plain, value)
    if data.type != out.type or data.type not in CODES:
        raise node.refuse_types(data, out)
    source, target = node.codes(data), node.codes(out)
    properties = parameters(input=source, output=target)
    return importer.call(quantised, value, **properties, numerics=importer.numerics.curves)


@operator("RELU", versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
def relu(importer: Importer, node: Node) -> list[SSAValue]:
    return [_clamp(importer, node, "RELU")]


@operator("RELU6", versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
def relu6(importer: Importer, node: Node) -> list[SSAValue]:
    return [_clamp(importer, node, "RELU6")]


@operator("RELU_N1_TO_1", "RELU_0_TO_1", versions=(1, 1), inputs=(1, 1))
def relu_of_units(importer: Importer, node: Node) -> list[SSAValue]:
    return [_clamp(importer, node, node.operator.kind)]


def _clamp(importer: Importer, node: Node, activation: str) -> SSAValue:
    """The input clamped by an activation; quantized values are rescaled by `float32(scale / output scale)` and then
    clamped."""
    data, out = node.input(0), node.output()
    if data.type == out.type == "FLOAT32":
        value = importer.value(data)
        if activation == "RELU":
            return importer.call(MaximumOp, value, importer.scalar(0.0, value))
        return importer.clip_reals(value, activation)
    if data.type != out.type or data.type not in ALL_CODES:
        raise node.refuse_types(data, out)
    source, target = node.codes(data), node.codes(out)
    bounds = node.bounds(target, activation)
    return rescale(importer, node, (source, target), float(source.scale / target.scale), bounds)


_FLOAT_FUNCTIONS: dict[str, type[UnaryOp]] = {
    "ABS": AbsOp,
    "EXP": ExpOp,
    "FLOOR": FloorOp,
    "LOG": LogOp,
    "NEG": NegativeOp,
    "RSQRT": RsqrtOp,
    "SQRT": SqrtOp,
}


@operator(*_FLOAT_FUNCTIONS, versions=(1, 2), inputs=(1, 1))
def float_function(importer: Importer, node: Node) -> list[SSAValue]:
    """Import an elementwise function of a float tensor; NEG and ABS also of integers."""
    data, out = node.input(0), node.output()
    types = ("FLOAT32", *{"NEG": INDICES, "ABS": ("INT32",)}.get(node.operator.kind, ()))
    if data.type not in types or data.type != out.type:
        raise node.refuse_types(data, out)
    return [importer.call(_FLOAT_FUNCTIONS[node.operator.kind], importer.value(data))]
