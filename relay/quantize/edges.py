"""Replaces the float arguments of a function whose only use is a `qnn.quantize`, and the float results that a
`qnn.dequantize` computes, by quantized arguments and results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from relay import signature
from relay.dialects import qnn
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import tensor
from relay.signature import TensorInfo
from relay.transforms.dead_ops import erase_dead


def codes_at_edges(function: FuncOp) -> None:
    """Remove `qnn.quantize` of arguments that nothing else uses, and `qnn.dequantize` of results; update the
    signature."""
    inputs, outputs = signature.read(function)
    block, last = function.body.block, function.body.block.last_op
    assert isinstance(last, ReturnOp)
    for argument, info in zip(block.args, list(inputs), strict=True):
        users = [use.operation for use in argument.uses]
        if len(users) == 1 and isinstance(op := users[0], qnn.QuantizeOp) and to_numpy(op.scale).size == 1:
            inputs[argument.index] = _as_codes(info, op, op.result)
            op.result.replace_all_uses_with(argument)
            Rewriter.erase_op(op)
            Rewriter.replace_value_with_new_type(argument, tensor(op.result))
    for position, (value, info) in enumerate(zip(list(last.operands), list(outputs), strict=True)):
        if isinstance(op := value.owner, qnn.DequantizeOp) and to_numpy(op.scale).size == 1 and info.kind == "output":
            outputs[position] = _as_codes(info, op, op.input)
            last.operands[position] = op.input
    function.properties["function_type"] = FunctionType.from_lists(
        [argument.type for argument in block.args], [value.type for value in last.operands]
    )
    signature.write(function, inputs, outputs)
    erase_dead(function.body.walk())


def _as_codes(info: TensorInfo, op: qnn.QuantizeOp | qnn.DequantizeOp, codes: SSAValue) -> TensorInfo:
    scale: Array = to_numpy(op.scale)
    return replace(
        info,
        dtype=np.dtype(dtype_of(tensor(codes).element_type)),
        scale=float(scale.reshape(())),
        zero_point=int(to_numpy(op.zero_point).reshape(())),
    )
