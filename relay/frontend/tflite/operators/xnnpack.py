"""Quantized operators that XNNPACK computes differently from TFLite's reference kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects.relay import CastOp, MultiplyOp, SubtractOp
from relay.frontend.importing.builder import multiplier_attrs
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import CODES, Node
from relay.frontend.tflite.operators.quantize import rescale
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import TABLE, Convert
from relay.interpreters.arithmetic import quantize_multiplier

_FRACTION = 1 << 8
"""The denominator of QUANTIZE's multiplier, a fixed-point number with 8 fraction bits."""


def multiply(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized MUL: `rint(float(product) * (scale * scale / output scale))`, with halves to even (qs8-vmul)."""
    tensors = node.input(0), node.input(1), node.output()
    if tensors[0].type not in CODES or len({tensor.type for tensor in tensors}) != 1:
        return TABLE["MUL"].convert(importer, node)
    lhs, rhs, target = (node.codes(tensor) for tensor in tensors)
    product = importer.call(MultiplyOp, *(_steps(importer, node, t) for t in tensors[:2]))
    scale = lhs.scale * rhs.scale
    found = quantize_multiplier(float(np.float64(scale) / np.float64(target.scale)))
    factor: dict[str, Attribute] = {"rounding": StringAttr("f32_even"), **multiplier_attrs(found)}
    return [rescale(importer, node, product, Codes(scale, 0, 0, 0), node.bounds(target), **factor)]


def _steps(importer: Importer, node: Node, tensor: Tensor) -> SSAValue:
    """Quantized values minus their zero point, in i32."""
    value = importer.call(CastOp, importer.value(tensor), dtype=i32)
    zero_point = node.codes(tensor).zero_point
    return importer.call(SubtractOp, value, importer.scalar(zero_point, value)) if zero_point else value


def quantize(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import QUANTIZE between quantized values of one type, for a factor from 2^-8 to 2^7: `(x * rint(256 scale) + 128)
    >> 8` (qs8-vcvt)."""
    data, out = node.input(0), node.output()
    if data.type not in CODES or out.type != data.type:
        return TABLE["QUANTIZE"].convert(importer, node)
    source, target = node.codes(data), node.codes(out)
    factor = source.scale / target.scale
    if not 1 / _FRACTION <= factor <= _FRACTION / 2:
        return TABLE["QUANTIZE"].convert(importer, node)
    found = quantize_multiplier(float(np.rint(np.float32(_FRACTION) * factor)) / _FRACTION)
    extra: dict[str, Attribute] = {"rounding": StringAttr("upward"), **multiplier_attrs(found)}
    return [rescale(importer, node, importer.value(data), source, (target.low, target.high), **extra)]


ROWS: dict[str, Convert] = {"MUL": multiply, "QUANTIZE": quantize}
