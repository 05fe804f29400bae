"""Infers the scale of every quantized tensor in a region. In the IR, an op states scales only if it needs them to
compute.

Formats such as .tflite have one scale and zero point per tensor. An op that only moves or compares elements (reshape,
pad, max_pool2d, ...) states none in the IR: its result has the scale of its operand. If that is unknown, the operand
has the scale of the result, which an op that reads the result states.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from xdsl.ir import Operation, SSAValue

from relay.byoc.quantized import CODE_TYPES, Codes, codes, codes_of, parts_of
from relay.byoc.regions import Region
from relay.dialects import qnn
from relay.dialects.attributes import dtype_of, to_numpy
from relay.dialects.op import Origin, TensorOp, is_tensor

UNKNOWN = Codes(1.0, 0)
"""The parameters of quantized tensors whose scale no op needs."""


def declared(op: Operation) -> Mapping[SSAValue, Codes]:
    """The quantization parameters that an op's properties give for its operands and results."""
    match op:
        case qnn.Conv2dOp() | qnn.DenseOp():
            return {op.data: codes(op.input_scale, op.input_zero_point)}
        case qnn.RequantizeOp():
            found: dict[SSAValue, Codes] = {op.result: codes(op.output_scale, op.output_zero_point)}
            if to_numpy(op.input_scale).size == 1:
                found[op.input] = codes(op.input_scale, op.input_zero_point)
            return found
        case qnn.QuantizeOp() if to_numpy(op.scale).size == 1:
            return {op.result: codes(op.scale, op.zero_point)}
        case qnn.DequantizeOp() if to_numpy(op.scale).size == 1:
            return {op.input: codes(op.scale, op.zero_point)}
        case qnn.QnnBinaryOp():
            return dict(zip((op.lhs, op.rhs, op.result), codes_of(op, "lhs", "rhs", "output"), strict=True))
        case qnn.MeanOp() | qnn.QnnUnaryOp():
            return dict(zip((op.input, op.result), codes_of(op, "input", "output"), strict=True))
        case qnn.SoftmaxOp():
            lowest = 0 if dtype_of(op.result.type.element_type).kind == "u" else -128
            return {op.result: Codes(1 / 256, lowest)}
        case qnn.ConcatenateOp():
            return dict([*parts_of(op), (op.result, codes(op.output_scale, op.output_zero_point))])
        case _:
            return {}


def is_codes(value: SSAValue) -> bool:
    """Whether the value is a tensor of 8-bit integers."""
    return is_tensor(value.type) and dtype_of(value.type.element_type) in CODE_TYPES


def find_scales(region: Region) -> dict[SSAValue, Codes]:
    """The quantization parameters of each quantized tensor: those given by the op that computes it, else those of its
    operands, else those required by its readers."""
    found: dict[SSAValue, Codes] = {}
    ops = list(region.ops)

    def learn(value: SSAValue, scale: Codes | None) -> None:
        value = region.of(value)
        if scale is not None and is_codes(value):
            found.setdefault(value, scale)

    def forward(op: Operation) -> None:
        said = declared(op)
        for result in op.results:
            learn(result, said.get(result))
        for operand, result in kept(op):
            learn(result, found.get(region.of(operand)))

    def backward(op: Operation) -> None:
        for operand, scale in declared(op).items():
            learn(operand, scale)
        if isinstance(op, qnn.SoftmaxOp):
            learn(op.input, Codes(float(np.float32(op.input_scale.value.data)), 0))
        for operand, result in kept(op):
            learn(operand, found.get(region.of(result)))

    for op in ops:
        forward(op)
    for op in reversed(ops):
        backward(op)
    for op in ops:
        forward(op)
        for value in (*op.operands, *op.results):
            learn(value, UNKNOWN)
    for value in region.inputs:
        learn(value, UNKNOWN)
    return found


def kept(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """The pairs of an operand and a result of an op that share one scale."""
    if not isinstance(op, TensorOp) or op.origin is Origin.COMPUTED:
        return []
    data = op.data_operands()
    if len(data) > 1 < len(op.results):  # result k of a meshgrid comes from operand k alone
        return []
    return list(product(data, op.results))
