"""Turns constants inside kernels into arguments, so that all weights are in one constant area."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects.op import is_tensor


def hoist_constants(function: func.FuncOp, calls: Sequence[func.CallOp]) -> None:
    """Replace the tensor constants of a kernel by arguments, which every call passes."""
    block = function.body.block
    constants = [op for op in function.walk() if isinstance(op, arith.ConstantOp) and is_tensor(op.result.type)]
    if not constants:
        return
    for constant in constants:
        argument = block.insert_arg(constant.result.type, len(block.args))
        constant.result.replace_all_uses_with(argument)
        constant.detach()
    function.update_function_type()
    function.properties.pop("arg_attrs", None)
    for call in calls:
        copies = [constant.clone() for constant in constants]
        new = func.CallOp(call.callee, [*call.operands, *(c.result for c in copies)], call.result_types)
        new.location = call.location
        Rewriter.insert_op([*copies, new], InsertPoint.before(call))
        Rewriter.replace_op(call, [], new.results)
    for constant in constants:
        constant.erase()
