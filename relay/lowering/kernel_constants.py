"""Turns constants inside kernels into arguments, so that all weights are in one constant area."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType

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
    inputs = [a.type for a in block.args]
    function.properties["function_type"] = FunctionType.from_lists(inputs, list(function.function_type.outputs))
    function.properties.pop("arg_attrs", None)
    for call in calls:
        parent = call.parent
        assert parent is not None
        copies = [constant.clone() for constant in constants]
        parent.insert_ops_before(copies, call)
        new = func.CallOp(call.callee, [*call.operands, *(c.result for c in copies)], call.result_types)
        new.location = call.location
        parent.insert_op_before(new, call)
        for old, result in zip(call.results, new.results, strict=True):
            old.replace_all_uses_with(result)
        call.detach()
        call.erase()
    for constant in constants:
        constant.erase()
