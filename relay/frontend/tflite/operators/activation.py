"""Imports functions of one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.op import TensorOp
from relay.frontend.importing.builder import multiplier_attrs, parameters, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, CODES, Node
from relay.frontend.tflite.operators.quantize import rescale
from relay.frontend.tflite.table import Convert, operator
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
        return [importer.call(relay.SoftmaxOp, value, beta=beta)]
    node.one_type(CODES, data, out)
    source, target = node.codes(data), node.codes(out)
    if data.type == "INT8" and (target.scale != np.float32(1 / 256) or target.zero_point != target.low):
        raise node.malformed(f"the output's scale and zero point are {target.scale} and {target.zero_point}")
    scaled = np.float64(np.float32(beta)) * np.float64(source.scale) * (1 << 26)
    multiplier = quantize_multiplier(min(float(scaled), float((1 << 31) - 1)))
    properties = {"beta": real(beta), "input_scale": real(source.scale), **multiplier_attrs(multiplier)}
    return [importer.call(qnn.SoftmaxOp, value, **properties)]


_CURVES: dict[str, tuple[type[relay.UnaryOp], type[TensorOp]]] = {
    "LOGISTIC": (relay.SigmoidOp, qnn.SigmoidOp),
    "TANH": (relay.TanhOp, qnn.TanhOp),
}


@operator(*_CURVES, versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
def curve(importer: Importer, node: Node) -> list[SSAValue]:
    data, out = node.input(0), node.output()
    value, (plain, quantised) = importer.value(data), _CURVES[node.operator.kind]
    if data.type == out.type == "FLOAT32":
        return [importer.call(plain, value)]
    node.one_type(CODES, data, out)
    source, target = node.codes(data), node.codes(out)
    properties = parameters(input=source, output=target)
    return [importer.call(quantised, value, **properties, numerics=importer.numerics.curves)]


@operator("RELU", "RELU6", versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
@operator("RELU_N1_TO_1", "RELU_0_TO_1", versions=(1, 1), inputs=(1, 1))
def clamp(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a clamp; quantized values are rescaled by `float32(scale / output scale)` and then clamped."""
    data, out, activation = node.input(0), node.output(), node.operator.kind
    value = importer.value(data)
    if data.type == out.type == "FLOAT32":
        if activation == "RELU":
            return [importer.call(relay.MaximumOp, value, importer.scalar(0.0, value))]
        return [importer.clip_reals(value, activation)]
    node.one_type(ALL_CODES, data, out)
    source, target = node.codes(data), node.codes(out)
    bounds, factor = node.bounds(target, activation), quantize_multiplier(float(source.scale / target.scale))
    return [rescale(importer, node, value, source, bounds, **multiplier_attrs(factor))]


def relu6_of_tflm(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized RELU6 as TFLite Micro computes it: values are clamped to 0..6 in the input's scale; the output's
    scale is ignored (`activations.cc`)."""
    data, out = node.input(0), node.output()
    if data.type != out.type or data.type == "FLOAT32":
        return clamp(importer, node)
    source = node.codes(data)
    return [importer.clip_codes(importer.value(data), source, node.bounds(source, "RELU6"))]


TFLM: dict[str, Convert] = {"RELU6": relu6_of_tflm}
"""The operators here that TFLite Micro computes differently."""
