"""Float softmax along the last axis: maximum, exponentials, reciprocal of their sum, products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import tensor
from relay.errors import Unsupported
from relay.lowering.linalg.emitter import Body, Emitter, Operand, axes, identity
from relay.lowering.linalg.reduce import combine, start
from relay.transforms.location import place

EITHER = "relay.either"
"""The attribute of a maximum whose result may be either operand if one is NaN."""
SHORT = 16
"""For rows shorter than this, exponentials are computed for all elements together instead of row by row."""


def operands(e: Emitter, op: Operation, values: Sequence[SSAValue]) -> Sequence[Operand]:
    """Emit the two operands whose product is the softmax: `exp(beta * (x - max))`, and the reciprocal of its sum for
    each row, so that a row needs a single division, which takes as long as an exponential."""
    assert isinstance(op, relay.SoftmaxOp)
    if not op.along_last:
        raise Unsupported(place(op), "is along another axis than the last", "run legalize first")
    data, type = values[0], tensor(op.data)
    element, shape = type.element_type, type.get_shape()
    width = len(shape)
    whole, row = identity(width), axes(width, *range(width - 1))
    beta = e.constant(float(to_numpy(op.beta)), element)

    def along(reduction: type[Operation], value: SSAValue, body: Body) -> SSAValue:
        initial = e.filled(shape[:-1], element, start(reduction, element))
        return e.generic([(value, whole)], [(initial, row)], 1, body)[0]

    def larger(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Emit the maximum. With a NaN, either operand may be the result: the exponential of the difference, the sum
        and so the whole row are NaN in both cases."""
        op = arith.MaximumfOp(args[1], args[0])
        op.attributes[EITHER] = UnitAttr()
        return [e(op)]

    def difference(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [e(arith.MulfOp(e(arith.SubfOp(args[0], args[1])), beta))]

    def power(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [e(math.ExpOp(args[0]))]

    def exponential(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return power(e, difference(e, args))

    read = [(data, whole), (along(relay.MaxOp, data, larger), row)]
    if shape[-1] < SHORT:
        powers = e.map([(e.map(read, shape, [element], difference)[0], whole)], shape, [element], power)[0]
    else:
        powers = e.map(read, shape, [element], exponential)[0]
    rows = identity(width - 1)

    def inverse(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [e(arith.DivfOp(e.constant(1.0, element), args[0]))]

    total = along(relay.SumOp, powers, combine(relay.SumOp, element))
    return [(powers, whole), (e.map([(total, rows)], shape[:-1], [element], inverse)[0], row)]


def normalise(e: Emitter, op: relay.SoftmaxOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [e(arith.MulfOp(xs[0], xs[1]))]
