"""Imports products of floats that are quantized at run time."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import onnx
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.operators.quantized.products import UNSCALED, product_sums
from relay.frontend.onnx.operators.recurrent import Direction, in_directions
from relay.frontend.onnx.table import MICROSOFT, op


@op("DynamicQuantizeLinear", since=11)
def dynamic_quantize(importer: Importer, node: Node) -> list[SSAValue]:
    return list(importer.several(qnn.DynamicQuantizeLinearOp, node.input(0)))


def scaled(importer: Importer, sums: SSAValue, scales: tuple[SSAValue, SSAValue], bias: SSAValue | None) -> SSAValue:
    """`f32(sums) * (scales[0] * scales[1]) + bias`, with each operation rounded to float32. `scales`: those of the two
    factors; without a bias (None), nothing is added."""
    factor = importer.call(relay.MultiplyOp, *scales)
    if importer.shape(factor) == (1,):
        factor = importer.reshape(factor, [])
    return importer.add(importer.call(relay.MultiplyOp, importer.cast(sums, f32), factor), bias)


@op("MatMulIntegerToFloat", domain=MICROSOFT)
def product_to_float(importer: Importer, node: Node) -> SSAValue:
    zeros = node.optional(4), node.optional(5)
    sums = product_sums(importer, (node.input(0), node.input(1)), zeros, node.proto.input[1], UNSCALED)
    return scaled(importer, sums, (node.input(2), node.input(3)), node.optional(6))


class _QuantizedDirection(Direction):
    """A direction of a recurrent layer with quantized kernels [inner, gates * hidden]; the data of each product is
    quantized at run time."""

    HIDDEN: ClassVar[int] = 1

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        importer, node = self.importer, self.node
        slot = 8 if b is self.weight else 10
        codes, scale, zero = importer.several(qnn.DynamicQuantizeLinearOp, a)
        other, point = (self.of(node.input(number), self.number) for number in (slot, slot + 1))
        sums = product_sums(importer, (codes, b), (zero, point), node.proto.input[slot // 5], UNSCALED)
        return scaled(importer, sums, (scale, other), None)


@op("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_lstm(importer: Importer, node: Node) -> list[SSAValue]:
    proto = onnx.NodeProto(op_type="LSTM", name=node.proto.name, input=node.proto.input, output=node.proto.output)
    return in_directions(importer, replace(node, proto=proto, domain="", version=14), _QuantizedDirection)


@op("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_product(importer: Importer, node: Node) -> SSAValue:
    codes, scale, zero = importer.several(qnn.DynamicQuantizeLinearOp, node.input(0))
    sums = product_sums(importer, (codes, node.input(1)), (zero, node.optional(3)), node.proto.input[1], UNSCALED)
    return scaled(importer, sums, (scale, node.input(2)), node.optional(4))
