"""What is computed from one code alone, partly by a table, as one table."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import is_tensor, tensor
from relay.interpreters import evaluate
from relay.module import is_constant
from relay.transforms.expansion import Expansion

POINTWISE = (
    relay.LookupOp,
    relay.CastOp,
    relay.ClipOp,
    relay.AddOp,
    relay.SubtractOp,
    relay.MultiplyOp,
    relay.MaximumOp,
    relay.MinimumOp,
    relay.FixedPointMultiplyOp,
)
MOST = 32
"""Operations that are looked through."""


class OneTable(RewritePattern):
    """relay.cast (f %x, relay.lookup %x, t) to 8 bits, where f is elementwise and all else is one number  =>
    relay.lookup %x, u

    So `x * sigmoid(x)` of codes, which importers see as two operators, is one lookup.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.CastOp, rewriter: PatternRewriter) -> None:
        cone = cone_of(op)
        if cone is None:
            return
        code, ops = cone
        dtype = dtype_of(tensor(code).element_type)
        lowest = np.iinfo(dtype).min
        known: dict[SSAValue, Array] = {code: np.arange(lowest, lowest + 256).astype(dtype)}
        for inner in ops:
            given = [known[value] if value in known else number_of(value, inner) for value in inner.operands]
            (known[inner.results[0]],) = evaluate(inner, [array for array in given if array is not None])
        table, new = known[op.result], Expansion(op)
        new.replace(rewriter, new.lookup(code, table, table.dtype))


def cone_of(op: relay.CastOp) -> tuple[SSAValue, list[Operation]] | None:
    """The code that the operation's result depends on alone, and what computes it, in order."""
    if not is_code(op.result) or is_code(op.input):
        return None
    ops: dict[Operation, None] = {}
    codes: dict[SSAValue, None] = {}
    entered = set[Operation]()

    def visit(inner: Operation) -> bool:
        if inner in ops:
            return True
        entered.add(inner)
        if not isinstance(inner, POINTWISE) or tensor(inner.results[0]).get_shape() != shape or len(entered) > MOST:
            return False
        if isinstance(inner, relay.LookupOp) and number_of(inner.table, inner) is None:
            return False
        for value in inner.operands:
            if number_of(value, inner) is not None:
                continue
            if is_code(value) and not isinstance(value.owner, relay.LookupOp):
                codes[value] = None
            elif not isinstance(value.owner, Operation) or not visit(value.owner):
                return False
        ops[inner] = None
        return True

    shape = tensor(op.result).get_shape()
    if not visit(op) or len(codes) != 1 or not any(isinstance(inner, relay.LookupOp) for inner in ops):
        return None
    (code,) = codes
    return (code, list(ops)) if tensor(code).get_shape() == shape else None


def is_code(value: SSAValue) -> bool:
    """Whether the value is a tensor of 8 bits."""
    return is_tensor(value.type) and dtype_of(tensor(value).element_type).name in ("int8", "uint8")


def number_of(value: SSAValue, user: Operation) -> Array | None:
    """A constant of one number, as that; or the table of a lookup."""
    constant = value.owner
    if not isinstance(constant, relay.ConstantOp) or not is_constant(constant):
        return None
    array = to_numpy(constant.value)
    if isinstance(user, relay.LookupOp) and value is user.table:
        return array
    return array.reshape(()) if array.size == 1 else None
