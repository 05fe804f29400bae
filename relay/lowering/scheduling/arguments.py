"""Finds where a kernel's arguments come from: constants that its callers pass."""

from __future__ import annotations

from xdsl.dialects import arith, bufferization, func, memref
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects.attributes import Array, elements
from relay.lowering.bufferize import read_only_buffer
from relay.mapping import spilled


def argument_of(value: SSAValue) -> BlockArgument | None:
    """Return the function argument that the value is, or is a reshape of, if nothing else uses it; else None."""
    while not isinstance(value, BlockArgument):
        op = value.owner
        if not isinstance(op, memref.CollapseShapeOp | memref.ExpandShapeOp) or not value.has_one_use():
            return None
        value = op.src
    return value if value.has_one_use() else None


def constant_of(value: SSAValue) -> arith.ConstantOp | None:
    """Return the constant that the value is a buffer of (`bufferization.to_buffer`); None for any other value."""
    op = value.owner
    if isinstance(op, bufferization.ToBufferOp) and isinstance(op.tensor.owner, arith.ConstantOp):
        return op.tensor.owner
    return None


def constant_buffer(call: func.CallOp, array: Array, name: str, location: LocationAttr) -> SSAValue:
    """Insert a constant and its buffer before the call; return the buffer."""
    attr = elements(spilled(array), label=name).resource()
    constant = arith.ConstantOp.create(result_types=[attr.type], properties={"value": attr}, location=location)
    constant.result.name_hint = name
    buffer = read_only_buffer(constant)
    Rewriter.insert_op([constant, buffer], InsertPoint.before(call))
    return buffer.memref
