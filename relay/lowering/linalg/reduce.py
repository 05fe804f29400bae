"""Reductions over axes; the index of the first extreme element."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.dialects import relay
from relay.dialects.op import tensor
from relay.lowering.linalg.emitter import Body, Emitter, axes, dims, highest, kind, lowest, signless
from relay.lowering.linalg.scalar import BINARY, COMPARE

COMBINE: dict[type[Operation], type[relay.BinaryOp]] = {
    relay.SumOp: relay.AddOp,
    relay.MaxOp: relay.MaximumOp,
    relay.MinOp: relay.MinimumOp,
}
"""The elementwise op that a reduction repeats."""

PREDICATE: dict[type[Operation], type[relay.CompareOp]] = {
    relay.ArgmaxOp: relay.GreaterOp,
    relay.ArgminOp: relay.LessOp,
}
"""A later element is taken only if it compares so with the best one: the first one wins."""


def start(op: type[Operation], type: Attribute) -> float | int:
    """What a reduction starts from."""
    if op is relay.SumOp:
        return 0
    return lowest(type) if op in (relay.MaxOp, relay.ArgmaxOp) else highest(type)


def kept_first(op: relay.ReduceOp) -> tuple[AffineMap, AffineMap, list[int], int]:
    """Maps of input and output over (kept axes, reduced axes), the kept shape, and the number of reduced axes."""
    shape, reduced = tensor(op.input).get_shape(), op.axes()
    kept = [a for a in range(len(shape)) if a not in reduced]
    order = [*kept, *reduced]
    read = axes(len(shape), *(order.index(a) for a in range(len(shape))))
    return read, axes(len(shape), *range(len(kept))), [shape[a] for a in kept], len(reduced)


def combine(op: type[Operation], type: Attribute) -> Body:
    make = BINARY[COMBINE[op]][kind(type)]
    return lambda e, args: [e(make(args[1], args[0]))]


def reduce(e: Emitter, op: relay.ReduceOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    type = tensor(op.input).element_type
    read, write, shape, count = kept_first(op)
    initial = e.filled(shape, signless(type), start(op.__class__, type))
    body = combine(op.__class__, type)
    result = e.generic([(operands[0], read)], [(initial, write)], count, body)[0]
    return [e.reshape(result, tensor(op.result).get_shape())]


def arg(e: Emitter, op: relay.ArgOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Two outputs: the best value and its index."""
    type = tensor(op.input).element_type
    predicate = COMPARE[PREDICATE[op.__class__]][kind(type)]
    make = arith.CmpfOp if isinstance(type, AnyFloat) else arith.CmpiOp
    read, write, shape, count = kept_first(op)
    best = e.filled(shape, signless(type), start(op.__class__, type))
    index = e.filled(shape, op.dtype, 0)
    position = len(dims(operands[0])) - 1

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value, known, at = args
        better = e(make(value, known, predicate))
        here = e(arith.IndexCastOp(e.index(position), op.dtype))
        return [e(arith.SelectOp(better, value, known)), e(arith.SelectOp(better, here, at))]

    result = e.generic([(operands[0], read)], [(best, write), (index, write)], count, body)[1]
    return [e.reshape(result, tensor(op.result).get_shape())]
