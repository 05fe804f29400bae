"""The pass `quantize-realize`: replaces marked float ops by integer ops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from relay import signature
from relay.dialects import qnn
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import tensor
from relay.errors import InvalidArgument
from relay.passes import Pass
from relay.quantize import marks
from relay.quantize.insert_qdq import Insertion
from relay.quantize.observing import observed
from relay.quantize.qdq_to_integer import QdqToInteger
from relay.signature import TensorInfo
from relay.transforms.dead_ops import erase_dead

IO = ("float", "codes")


@dataclass(frozen=True)
class QuantizeRealize(Pass):
    """Replace the ops that `quantize-annotate` marked by integer ones. The scales are those that `quantize-calibrate`
    chose.

    First `qnn.quantize` and `qnn.dequantize` are inserted around every marked op; with `simulate` the pass stops there,
    with a float module that simulates quantization. Then `qdq-to-integer` replaces them by the integer ops to which
    pre-quantised models are imported. With `io=codes`, arguments of `@main` that are quantized first, and results that
    are dequantized last, are quantized values themselves; the module's signature has their parameters.
    """

    name: ClassVar[str] = "quantize-realize"
    requires = ("quantize-calibrate",)
    invalidates = None
    why = "replaces annotated float ops by integer ones"
    simulate: bool = False
    io: str = "float"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_io(self.io, self.name)
        function = marks.main_of(op, self.name)
        values = observed(function)
        if not values:
            return
        dtype = marks.text(function.attributes, marks.DTYPE) or "int8"
        missing = [name for name, value in values.items() if marks.parameters(value, dtype) is None]
        if missing:
            raise InvalidArgument(self.name, f"values {', '.join(missing[:5])} have no scale", "run quantize-calibrate")
        Insertion(function, dtype).run()
        marks.clear(function)
        erase_dead(function.body.walk())
        if not self.simulate:
            QdqToInteger().apply(ctx, op)
            if self.io == "codes":
                codes_at_edges(function)


def check_io(io: str, where: str) -> str:
    """The form of arguments and results, if it is one of `IO`. Raises InvalidArgument otherwise."""
    if io not in IO:
        raise InvalidArgument(where, f"io {io!r} is unknown", f"use {', '.join(IO)}")
    return io


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
    function.update_function_type()
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
