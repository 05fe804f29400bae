"""Normalizations along the last axis: per row, a sum of squares, and the reciprocal of the root of their mean."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import tensor
from relay.errors import Unsupported
from relay.lowering.linalg.emitter import Body, Emitter, Operand, axes, identity
from relay.transforms.location import place

Norm = relay.LayerNormOp | relay.RmsNormOp


def operands(e: Emitter, op: Operation, values: Sequence[SSAValue]) -> Sequence[Operand]:
    """Emit the operands of the normalization: the data; for a layer norm the mean of each row (an RMS norm subtracts
    none); the reciprocal of each row's deviation; and gamma and beta if they are used."""
    assert isinstance(op, Norm)
    if not op.along_last:
        raise Unsupported(place(op), "is along another axis than the last", "run simplify-inference first")
    data, type = values[0], tensor(op.data)
    element, shape = type.element_type, type.get_shape()
    width = len(shape)
    whole, row, rows = identity(width), axes(width, *range(width - 1)), identity(width - 1)
    count, epsilon = e.constant(shape[-1], element), e.constant(float(to_numpy(op.epsilon)), element)

    def total(inputs: Sequence[Operand], body: Body) -> SSAValue:
        return e.generic(inputs, [(e.filled(shape[:-1], element, 0), row)], 1, body)[0]

    def square(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        centred = e(arith.SubfOp(args[0], args[1])) if len(args) > 2 else args[0]
        return [e(arith.AddfOp(args[-1], e(arith.MulfOp(centred, centred))))]

    def mean(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [e(arith.DivfOp(args[0], count))]

    def inverse(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        variance = e(arith.DivfOp(args[0], count))
        return [e(arith.DivfOp(e.constant(1.0, element), e(math.SqrtOp(e(arith.AddfOp(variance, epsilon))))))]

    read: list[Operand] = [(data, whole)]
    if isinstance(op, relay.LayerNormOp):
        sums = total(read, lambda e, args: [e(arith.AddfOp(args[1], args[0]))])
        read.append((e.map([(sums, rows)], shape[:-1], [element], mean)[0], row))
    factors = e.map([(total(read, square), rows)], shape[:-1], [element], inverse)[0]
    channel = axes(width, width - 1)
    return [*read, (factors, row), *((value, channel) for value in used(op, values[1:]))]


def used(op: Norm, vectors: Sequence[SSAValue]) -> list[SSAValue]:
    """Return gamma and beta, without those that are disabled and so count as 1 and 0."""
    if isinstance(op, relay.RmsNormOp):
        return list(vectors)
    return [value for value, flag in zip(vectors, (op.scale, op.center), strict=True) if flag.value.data]


def normalise(e: Emitter, op: relay.LayerNormOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x, mean, factor, *given = xs
    found = e(arith.MulfOp(e(arith.SubfOp(x, mean)), factor))
    if op.scale.value.data:
        found = e(arith.MulfOp(found, given.pop(0)))
    return [e(arith.AddfOp(found, given[0])) if op.center.value.data else found]


def normalise_by_root(e: Emitter, op: relay.RmsNormOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x, factor, gamma = xs
    return [e(arith.MulfOp(e(arith.MulfOp(x, factor)), gamma))]
