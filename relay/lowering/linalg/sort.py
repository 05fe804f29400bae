"""Sorts short axes by ranks: an element's rank is the number of elements that sort before it, which is its position in
the result. Long axes are sorted by `merging`. Ranks take `n * n` comparisons without branches, and no element is stored
at a data-dependent position."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.op import shape, tensor
from relay.lowering.linalg.emitter import Emitter, axes, element, kind, signless
from relay.lowering.linalg.merging import merged

RANKED = 64
"""The longest axis that is sorted by ranks."""


def less(e: Emitter, a: SSAValue, b: SSAValue, type: Attribute) -> SSAValue:
    """Emit whether a is less than b; for floats, also true if only b is NaN."""
    of = kind(type)
    if of != "float":
        return e(arith.CmpiOp(a, b, "slt" if of == "signed" else "ult"))
    last = e(arith.AndIOp(e(arith.CmpfOp(b, b, "uno")), e(arith.CmpfOp(a, a, "ord"))))
    return e(arith.OrIOp(e(arith.CmpfOp(a, b, "olt")), last))


def ranks(e: Emitter, op: relay.SortingOp, source: SSAValue, ascend: bool) -> SSAValue:
    """Return, for each element, the number of elements along the axis that sort before it: smaller (or larger) ones,
    and equal ones with a smaller index."""
    dims, axis, type = shape(op.input), op.along, tensor(op.input).element_type
    width = len(dims)
    own = axes(width + 1, *range(width))
    other = axes(width + 1, *(width if d == axis else d for d in range(width)))

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        mine, its, count = args
        smaller, larger = less(e, its, mine, type), less(e, mine, its, type)
        first, behind = (smaller, larger) if ascend else (larger, smaller)
        ahead = e(arith.CmpiOp(e.index(width), e.index(axis), "slt"))
        level = e(arith.XOrIOp(behind, e.constant(1, behind.type)))
        before = e(arith.OrIOp(first, e(arith.AndIOp(level, ahead))))
        return [e(arith.AddiOp(count, e(arith.ExtUIOp(before, i32))))]

    counts = e.filled(dims, i32, 0)
    return e.generic([(source, own), (source, other)], [(counts, own)], 1, body)[0]


def by_rank(e: Emitter, op: relay.SortingOp, rank: SSAValue, count: int, source: SSAValue | Attribute) -> SSAValue:
    """Return the first `count` elements in order, or their indices if `source` is an integer type."""
    dims, axis = list(shape(op.input)), op.along
    dims[axis], width = count, len(dims)
    read = axes(width + 1, *(width if d == axis else d for d in range(width)))
    write = axes(width + 1, *range(width))
    indices = isinstance(source, Attribute)
    type = source if isinstance(source, Attribute) else element(source)

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        place = e(arith.IndexCastOp(e.index(axis), i32))
        here = e(arith.CmpiOp(args[0], place, "eq"))
        value = e(arith.IndexCastOp(e.index(width), i64 if type == i64 else i32)) if indices else args[1]
        return [e(arith.SelectOp(here, value, args[-1]))]

    inputs = [(rank, read)] if isinstance(source, Attribute) else [(rank, read), (source, read)]
    return e.generic(inputs, [(e.filled(dims, type, 0), write)], 1, body)[0]


def ordered(
    e: Emitter, op: relay.SortingOp, source: SSAValue, ascend: bool, count: int, wanted: Sequence[IntegerType | None]
) -> list[SSAValue]:
    """Return a tensor for each item of `wanted`, of the first `count` elements of the sorted axis: of their values
    where the item is None, of their indices where it is an integer type (the type of the indices)."""
    type, axis = tensor(op.input).element_type, op.along

    def before(e: Emitter, a: SSAValue, b: SSAValue) -> SSAValue:
        return less(e, a, b, type) if ascend else less(e, b, a, type)

    if shape(op.input)[axis] > RANKED:
        return list(merged(e, source, axis, before, wanted, count))
    rank = ranks(e, op, source, ascend)
    return [by_rank(e, op, rank, count, source if each is None else each) for each in wanted]


def sort(e: Emitter, op: relay.SortOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    count = shape(op.input)[op.along]
    return ordered(e, op, operands[0], bool(op.is_ascend.value.data), count, [None])


def argsort(e: Emitter, op: relay.ArgsortOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    count = shape(op.input)[op.along]
    return ordered(e, op, operands[0], bool(op.is_ascend.value.data), count, [op.dtype])


def topk(e: Emitter, op: relay.TopkOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to the values and indices that are requested, from one sorted order."""
    if 0 in shape(op.found[0]):
        return [e.empty(shape(result), signless(tensor(result).element_type)) for result in op.found]
    wanted: dict[str, IntegerType | None] = {"values": None, "indices": op.dtype}
    kinds = [each for kind, each in wanted.items() if op.ret_type.data in (kind, "both")]
    return ordered(e, op, operands[0], bool(op.is_ascend.value.data), op.k.value.data, kinds)
