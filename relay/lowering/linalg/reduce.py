"""Reductions over axes, and the index of the first extreme element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, f32, i16, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.op import tensor
from relay.lowering.linalg.emitter import Body, Emitter, axes, dims, highest, identity, kind, lowest, signless
from relay.lowering.linalg.scalar import BINARY, COMPARE

COMBINE: dict[type[Operation], type[relay.BinaryOp]] = {
    relay.SumOp: relay.AddOp,
    relay.MaxOp: relay.MaximumOp,
    relay.MinOp: relay.MinimumOp,
    relay.ProdOp: relay.MultiplyOp,
    relay.AllOp: relay.LogicalAndOp,
    relay.AnyOp: relay.LogicalOrOp,
}
"""The elementwise op that combines the elements of a reduction."""

NEUTRAL: dict[type[Operation], int] = {relay.SumOp: 0, relay.ProdOp: 1, relay.AllOp: 1, relay.AnyOp: 0}
"""The neutral element of reductions for which it does not depend on the type."""

PREDICATE: dict[type[Operation], type[relay.CompareOp]] = {
    relay.ArgmaxOp: relay.GreaterOp,
    relay.ArgminOp: relay.LessOp,
}
"""The comparison by which a later element replaces the best one so far; it is strict, so that the first extreme element
wins."""


def start(op: type[Operation], type: Attribute) -> float | int:
    """Return the initial value of a reduction."""
    if (neutral := NEUTRAL.get(op)) is not None:
        return neutral
    return lowest(type) if op in (relay.MaxOp, relay.ArgmaxOp) else highest(type)


def kept_first(op: relay.ReduceOp) -> tuple[AffineMap, AffineMap, list[int], int]:
    """Return the maps of input and output over (kept axes, reduced axes), the shape of the kept axes, and the number of
    reduced axes."""
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


KEYED = 256
"""The longest axis for which argmax and argmin combine each element and its index in one integer key and find the
extreme key."""


def arg(e: Emitter, op: relay.ArgOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to two outputs: the extreme value and its index. For up to 256 codes of 8 bits, or contiguous float32
    numbers that fill vectors, both are combined in one integer key."""
    type, (axis,) = tensor(op.input).element_type, op.axes()
    sizes = tensor(op.input).get_shape()
    if sizes[axis] <= KEYED and isa(type, IntegerType) and type.width.data == 8:
        return arg_of_keys(e, op, operands, i16, code_key)
    if 16 <= sizes[axis] <= KEYED and axis == len(sizes) - 1 and type == f32:
        return arg_of_keys(e, op, operands, i64, float_key)
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


def code_key(e: Emitter, op: relay.ArgOp, code: SSAValue) -> SSAValue:
    """Return an 8-bit code as a signed i16 from -128 to 127, which compares as the codes do: a signed code itself, or
    an unsigned one minus 128."""
    if kind(tensor(op.input).element_type) != "unsigned":
        return e(arith.ExtSIOp(code, i16))
    return e(arith.SubiOp(e(arith.ExtUIOp(code, i16)), e.constant(128, i16)))


def float_key(e: Emitter, op: relay.ArgOp, number: SSAValue) -> SSAValue:
    """Return an integer with the order of float32 numbers, equal for both zeros. NaN counts as the worst infinity, so
    that it is never selected. The key of a nonnegative number is its bits; for a negative one, all bits except the sign
    are inverted."""
    worst = lowest(f32) if isinstance(op, relay.ArgmaxOp) else highest(f32)
    number = e(arith.AddfOp(number, e.constant(0.0, f32)))
    number = e(arith.SelectOp(e(arith.CmpfOp(number, number, "ord")), number, e.constant(worst, f32)))
    bits = e(arith.BitcastOp(number, i32))
    negative = e(arith.ShRSIOp(bits, e.constant(31, i32)))
    turned = e(arith.XOrIOp(bits, e(arith.AndIOp(negative, e.constant(2**31 - 1, i32)))))
    return e(arith.ExtSIOp(turned, i64))


Key = Callable[[Emitter, relay.ArgOp, SSAValue], SSAValue]
"""Emits the integer key of an element, by which elements are compared."""


def arg_of_keys(
    e: Emitter, op: relay.ArgOp, operands: Sequence[SSAValue], type: IntegerType, key: Key
) -> Sequence[SSAValue]:
    """Emit the maximum of `256 * key + 255 - index` (for the minimum, that of `256 * key + index`) and extract the
    index: of equal keys the first is selected."""
    largest = isinstance(op, relay.ArgmaxOp)
    read, write, shape, count = kept_first(op)
    initial = e.filled(shape, type, lowest(type) if largest else highest(type))
    position = len(dims(operands[0])) - 1

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        high = e(arith.ShLIOp(key(e, op, args[0]), e.constant(8, type)))
        index = e(arith.IndexCastOp(e.index(position), type))
        if largest:
            later = e(arith.SubiOp(e.constant(KEYED - 1, type), index))
            return [e(arith.MaxSIOp(e(arith.AddiOp(high, later)), args[1]))]
        return [e(arith.MinSIOp(e(arith.AddiOp(high, index)), args[1]))]

    def last(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        low = e(arith.XOrIOp(args[0], e.constant(KEYED - 1, type))) if largest else args[0]
        index = e(arith.AndIOp(low, e.constant(KEYED - 1, type)))
        if op.dtype == type:
            return [index]
        return [e((arith.TruncIOp if type == i64 else arith.ExtUIOp)(index, op.dtype))]

    keys = e.generic([(operands[0], read)], [(initial, write)], count, body)[0]
    result = e.map([(keys, identity(len(shape)))], shape, [op.dtype], last)[0]
    return [e.reshape(result, tensor(op.result).get_shape())]
