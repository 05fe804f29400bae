"""Imports type conversions: QUANTIZE, DEQUANTIZE and CAST."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, f32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.attributes import elements
from relay.dialects.relay import CastOp, LessOp, MaximumOp, WhereOp
from relay.frontend.importing.builder import multiplier_attrs, number, parameters, scale_attr
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
        return [importer.call(CastOp, importer.value(data), dtype=f32)]
    if data.type not in ALL_CODES or out.type != "FLOAT32":
        raise node.refuse_types(data, out)
    return [importer.call(qnn.DequantizeOp, importer.value(data), **_parameters(node, data))]


def _parameters(node: Node, tensor: Tensor) -> dict[str, Attribute]:
    """The properties with the scale and zero point of a tensor, one or one per index of an axis."""
    found = node.quantization(tensor)
    zero_point = found.zero_point
    return {
        "scale": scale_attr(found.scale),
        "zero_point": number(int(zero_point[0]))
        if len(zero_point) == 1
        else elements(zero_point, np.int32, label="zero_point"),
        "axis": IntegerAttr(found.axis if len(zero_point) > 1 else -1, i64),
    }


@operator("CAST", versions=(1, 9), inputs=(1, 1), known=EVERYWHERE)
def cast(importer: Importer, node: Node) -> list[SSAValue]:
    """Import CAST: integers wrap, floats are rounded towards zero; floats out of range become the nearest integer of
    the type, NaN the largest."""
    data, out = node.input(0), node.output()
    value, dtype = importer.value(data), {"dtype": importer.element(out)}
    if data.type not in ("FLOAT32", "FLOAT16") or out.type not in (*ALL_CODES, *INDICES):
        return [importer.call(CastOp, value, **dtype)]
    if data.type == "FLOAT16":
        value = importer.call(CastOp, value, dtype=f32)
    info = np.iinfo(numpy_type(out))
    fits = importer.call(LessOp, value, importer.scalar(float(info.max + 1), value))
    known = importer.call(WhereOp, fits, value, importer.scalar(0.0, value))
    bounded = importer.call(MaximumOp, known, importer.scalar(float(info.min), value))
    whole = importer.call(CastOp, bounded, **dtype)
    return [importer.call(WhereOp, fits, whole, importer.scalar(info.max, whole))]
