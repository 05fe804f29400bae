"""Imports type conversions: QUANTIZE, DEQUANTIZE and CAST."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.frontend.importing.builder import linear_parameters, multiplier_attrs, number, parameters
from relay.frontend.importing.formulas import Scalar
from relay.frontend.tflite.builder import Importer, numpy_type
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import ALL_CODES, INDICES, Node
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import EVERYWHERE, operator
from relay.interpreters.arithmetic import quantize_multiplier


@operator("QUANTIZE", versions=(1, 6), inputs=(1, 1), known={"tflm": "INT8 UINT8 INT16"})
def quantize(importer: Importer, node: Node) -> list[SSAValue]:
    """Import QUANTIZE: floats to quantized values, or quantized values to another scale (`double(scale) / double(output
    scale)`)."""
    data, out = node.input(0), node.output()
    value = importer.value(data)
    if data.type == "FLOAT32" and out.type in ALL_CODES:
        properties = _parameters(node, out) | {"out_dtype": importer.element(out)}
        return [importer.call(qnn.QuantizeOp, value, **properties)]
    if data.type not in ALL_CODES or out.type not in ALL_CODES:
        raise node.refuse_types(data, out)
    source, target = node.codes(data), node.codes(out)
    factor = quantize_multiplier(float(np.float64(source.scale) / np.float64(target.scale)))
    return [rescale(importer, node, value, source, (target.low, target.high), **multiplier_attrs(factor))]


def rescale(
    importer: Importer, node: Node, value: SSAValue, source: Codes, bounds: tuple[int, int], **factor: Attribute
) -> SSAValue:
    """Quantized values, or their products, requantized to the node's output and clamped; `factor` are the properties
    with the multiplier and how it rounds."""
    properties: dict[str, Attribute] = {
        **parameters(input=source, output=node.codes(node.output())),
        **factor,
        "min": number(bounds[0]),
        "max": number(bounds[1]),
        "out_dtype": importer.element(node.output()),
    }
    return importer.call(qnn.RequantizeOp, value, **properties)


@operator("DEQUANTIZE", versions=(1, 9), inputs=(1, 1), known=EVERYWHERE)
def dequantize(importer: Importer, node: Node) -> list[SSAValue]:
    """Import DEQUANTIZE of quantized values, or of 16-bit floats."""
    data, out = node.input(0), node.output()
    if (data.type, out.type) == ("FLOAT16", "FLOAT32"):
        return [importer.call(relay.CastOp, importer.value(data), dtype=f32)]
    if data.type not in ALL_CODES or out.type != "FLOAT32":
        raise node.refuse_types(data, out)
    return [importer.call(qnn.DequantizeOp, importer.value(data), **_parameters(node, data))]


def _parameters(node: Node, tensor: Tensor) -> dict[str, Attribute]:
    """The properties with the scale and zero point of a tensor, one or one per index of an axis."""
    found = node.quantization(tensor)
    return linear_parameters(found.scale, found.zero_point, found.axis if len(found.scale) > 1 else None)


@operator("CAST", versions=(1, 9), inputs=(1, 1), known=EVERYWHERE)
def cast(importer: Importer, node: Node) -> list[SSAValue]:
    """Import CAST: integers wrap, floats are rounded towards zero; floats out of range become the nearest integer of
    the type, NaN the largest."""
    data, out = node.input(0), node.output()
    value, dtype = importer.value(data), {"dtype": importer.element(out)}
    if data.type not in ("FLOAT32", "FLOAT16") or out.type not in (*ALL_CODES, *INDICES):
        return [importer.call(relay.CastOp, value, **dtype)]
    if data.type == "FLOAT16":
        value = importer.call(relay.CastOp, value, dtype=f32)
    x, info = Scalar(importer, value), np.iinfo(numpy_type(out))
    fits = x < float(info.max + 1)
    whole = fits.choose(x, 0.0, x).of(relay.MaximumOp, float(info.min)).of(relay.CastOp, **dtype)
    return [fits.choose(whole, info.max, whole).value]
