"""Imports SOFTMAX, LOGISTIC and TANH of 16-bit quantized values, and SUM of quantized values."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import qnn
from relay.frontend.importing.builder import multiplier_attrs, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.operators.quantised_functions import BYTES, ONE, scales_of
from relay.frontend.tflite.table import quantised
from relay.interpreters.arithmetic import quantize_multiplier

UNIT = np.float32(1 / (1 << 15))
"""The output scale of 16-bit softmax, logistic and tanh."""


def check_unit(node: Node) -> None:
    """Raise Unsupported unless the output is in Q0.15."""
    _, target, _ = scales_of(node)
    if target.scale != UNIT:
        raise node.malformed(f"the output's scale is {target.scale}, not 2^-15")


@quantised("LOGISTIC", types="INT16", versions=(1, 3), inputs=ONE)
def logistic(importer: Importer, node: Node) -> list[SSAValue]:
    return [_curve(importer, node, qnn.SigmoidOp)]


@quantised("TANH", types="INT16", versions=(1, 3), inputs=ONE)
def tanh(importer: Importer, node: Node) -> list[SSAValue]:
    return [_curve(importer, node, qnn.TanhOp)]


def _curve(importer: Importer, node: Node, op: type[qnn.SigmoidOp] | type[qnn.TanhOp]) -> SSAValue:
    check_unit(node)
    _, _, properties = scales_of(node)
    return importer.call(op, importer.value(node.input(0)), **properties)


@quantised("SOFTMAX", types="INT16", versions=(1, 3), inputs=ONE)
def softmax(importer: Importer, node: Node) -> list[SSAValue]:
    """Import 16-bit SOFTMAX along the last axis; the product with beta is computed in float32."""
    check_unit(node)
    source, _, _ = scales_of(node)
    beta = np.float32(node.real("beta"))
    if beta <= 0:
        raise node.unsupported(f"beta is {beta}")
    factor = quantize_multiplier(float(np.float64(source.scale * beta) / (10.0 / 65535.0)))
    properties = {"beta": real(beta), "input_scale": real(source.scale), **multiplier_attrs(factor)}
    return [importer.call(qnn.SoftmaxOp, importer.value(node.input(0)), **properties)]


@quantised("SUM", types=f"{BYTES} INT16", versions=(1, 2), inputs=(2, 2))
def total(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized SUM: a MEAN without the division. LiteRT's reference kernel is only correct for uint8, since it
    reads all types as uint8."""
    source, target, properties = scales_of(node)
    shape = node.input(0).shape
    axes = node.axes(node.input(1), len(shape))
    if not axes or 0 in shape:
        raise node.unsupported("nothing is reduced")
    factor = quantize_multiplier(float(np.float64(source.scale) / np.float64(target.scale)))
    properties |= multiplier_attrs(factor)
    keepdims = node.flag("keep_dims")
    return [importer.call(qnn.SumOp, importer.value(node.input(0)), axis=axes, keepdims=keepdims, **properties)]
