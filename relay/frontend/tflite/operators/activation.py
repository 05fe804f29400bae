"""Functions of one tensor."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import qnn
from relay.dialects.relay import SoftmaxOp
from relay.frontend.tflite.graph import Importer, multiplier_attrs, real
from relay.frontend.tflite.node import CODES, Node
from relay.frontend.tflite.scales import quantize_multiplier
from relay.frontend.tflite.table import operator


@operator("SOFTMAX", versions=(1, 3), inputs=(1, 1))
def softmax(importer: Importer, node: Node) -> list[SSAValue]:
    """Along the last axis. Codes: fixed point with 26 fraction bits; the output's scale is 1/256."""
    data, out = node.input(0), node.output()
    beta = node.real("beta")
    if beta <= 0:
        raise node.unsupported(f"beta is {beta}")
    value = importer.value(data)
    if data.type == out.type == "FLOAT32":
        return [importer.emit(SoftmaxOp, [value], {"beta": real(beta)}).result]
    if data.type != out.type or data.type not in CODES:
        raise node.refuse_types(data, out)
    source, target = node.codes(data), node.codes(out)
    if target.scale != np.float32(1 / 256) or target.zero_point != target.low:
        raise node.malformed(f"the output's scale and zero point are {target.scale} and {target.zero_point}")
    scaled = np.float64(np.float32(beta)) * np.float64(source.scale) * (1 << 26)
    multiplier = quantize_multiplier(min(float(scaled), float((1 << 31) - 1)))
    properties = {"beta": real(beta), "input_scale": real(source.scale), **multiplier_attrs(multiplier)}
    return [importer.emit(qnn.SoftmaxOp, [value], properties).result]
