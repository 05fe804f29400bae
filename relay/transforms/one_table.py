"""Replaces elementwise ops whose result depends on a single 8-bit code by a lookup in one table of 256 results."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import TensorOp, is_tensor, shape, tensor
from relay.dialects.op import is_code as is_byte
from relay.interpreters import evaluate
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import Expansion, known_numbers

COSTLY = (relay.LookupOp, relay.MultiplyOp, relay.FixedPointMultiplyOp)
"""Only kernels with one of these ops are slower than a lookup table; vectorized float functions are fast, too."""
MOST = 32
"""The largest number of ops that are followed backwards from a result to the code that it depends on."""
ENTRIES = 256


class OneTable(RewritePattern):
    """relay.cast (f %x, relay.lookup %x, t) to 8 bits, where f is elementwise and all other operands are scalars =>
    relay.lookup %x, u

    So `x * sigmoid(x)` of quantized values, two operators in a model file, becomes one lookup.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.CastOp, rewriter: PatternRewriter) -> None:
        cone = cone_of(op)
        if cone is not None and any(isinstance(inner, relay.LookupOp) for inner in cone[1]):
            tabulate(op, *cone, rewriter)


def kernel_as_table(kernel: FuncOp) -> None:
    """relay.cast (f %x) to 8 bits  =>  relay.lookup %x, t, if the kernel consists of the ops of f and the cast only,
    they are elementwise, their other operands are scalar constants, and one is a multiplication or lookup

    For targets that look up many codes at once; cheaper kernels are faster without a table.
    """
    block = kernel.body.block
    end = block.last_op
    last = end.arguments[0].owner if isinstance(end, ReturnOp) and len(end.arguments) == 1 else None
    cone = cone_of(last) if isinstance(last, relay.CastOp) else None
    if not isinstance(last, relay.CastOp) or cone is None or prod(shape(last.result)) < ENTRIES:
        return
    inside = {op for op in block.ops if not isinstance(op, relay.ConstantOp | ReturnOp)}
    if inside == set(cone[1]) and any(isinstance(op, COSTLY) for op in inside):
        tabulate(last, *cone, PatternRewriter(last))
        erase_dead(kernel.body.walk())


def tabulate(op: relay.CastOp, code: SSAValue, ops: Sequence[Operation], rewriter: PatternRewriter) -> None:
    """Replace `op` by a lookup in a table of its results for every value of `code`. `ops` compute the result from the
    code, in order, and end with `op`."""
    dtype = dtype_of(tensor(code).element_type)
    lowest = np.iinfo(dtype).min
    known: dict[SSAValue, Array] = {code: np.arange(lowest, lowest + ENTRIES).astype(dtype)}
    for inner in ops:
        given = [known[value] if value in known else number_of(value, inner) for value in inner.operands]
        (known[inner.results[0]],) = evaluate(inner, [array for array in given if array is not None])
    table, new = known[op.result], Expansion(op)
    new.replace(rewriter, new.lookup(code, table, table.dtype))


def cone_of(op: relay.CastOp) -> tuple[SSAValue, list[Operation]] | None:
    """The only code on which the op's result depends, and the ops that compute the result from it, in order; None if
    there are several."""
    if not is_code(op.result) or is_code(op.input):
        return None
    ops: dict[Operation, None] = {}
    codes: dict[SSAValue, None] = {}
    entered = set[Operation]()

    def visit(inner: Operation) -> bool:
        if inner in ops:
            return True
        entered.add(inner)
        if not is_pointwise(inner) or shape(inner.results[0]) != dims or len(entered) > MOST:
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

    dims = shape(op.result)
    if not visit(op) or len(codes) != 1:
        return None
    (code,) = codes
    return (code, list(ops)) if shape(code) == dims else None


def is_pointwise(op: Operation) -> bool:
    """Whether each element of the op's result depends only on the operands' elements at the same index, by a function
    that is the same for all indices."""
    if not isinstance(op, TensorOp) or not op.ELEMENTWISE or len(op.results) != 1:
        return False
    along = [op.properties[name] for name in op.ALONG_AXIS if name in op.properties]
    return all(to_numpy(numbers).ndim == 0 for numbers in along)


def is_code(value: SSAValue) -> bool:
    """Whether the value is a tensor of 8-bit integers."""
    return is_tensor(value.type) and is_byte(value.type.element_type, 8)


def number_of(value: SSAValue, user: Operation) -> Array | None:
    """The array of a constant operand `value` of the op `user`: the whole table if it is the table of a lookup, else a
    scalar if it has one element. None for any other value."""
    array = known_numbers(value)
    if array is None or (isinstance(user, relay.LookupOp) and value is user.table):
        return array
    return array.reshape(()) if array.size == 1 else None
