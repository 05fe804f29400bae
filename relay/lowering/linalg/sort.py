"""Sorts short axes by ranks: an element's rank is the number of elements that sort before it, which is its position in
the result. Ranks take `n * n` comparisons without branches, and no element is stored at a data-dependent position.

Long axes are sorted by merging runs of 1, 2, 4 ... elements (`merged`): `n log^2 n` comparisons. Every element of a
merged pair of runs finds its source independently: by bisection, how many of the elements before it are from the first
run (Odeh et al., "Merge Path", 2012). So no branch depends on data here either, and all elements of a pass are
independent. Equal elements stay in order: that of the first run comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.op import shape, tensor
from relay.lowering.linalg.emitter import Emitter, axes, dims, element, kind, signless

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
    """Return the first `count` elements of the sorted axis, given the rank of each element. `source`: the tensor from
    which the elements are taken, or an integer type, in which their indices are returned instead."""
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
    """Return the first `count` elements of the sorted axis, as one tensor for each item of `wanted`. It holds their
    values if the item is None, and their indices before sorting, as integers of this type, if the item is a type."""
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


Before = Callable[[Emitter, SSAValue, SSAValue], SSAValue]
"""A function that emits whether the first element sorts before the second, and is not equal to it."""


def merged(
    e: Emitter, keys: SSAValue, axis: int, before: Before, wanted: Sequence[IntegerType | None], count: int
) -> Sequence[SSAValue]:
    """Sort `keys` along an axis by the comparison `before`. Return the first `count` elements of the sorted axis, as
    one tensor for each entry of `wanted`: it holds their keys if the entry is None, and their indices before sorting,
    as integers of this type, if the entry is a type."""
    size, width = dims(keys)[axis], 1
    indices: SSAValue | None = None
    results: Sequence[SSAValue] = []
    while width < size:
        last = 2 * width >= size
        sizes = [count if last and d == axis else n for d, n in enumerate(dims(keys))]
        types: list[IntegerType | None] = (
            list(wanted) if last else [None, *(kind for kind in wanted if kind is not None)][:2]
        )
        place = partial(Place, keys=keys, indices=indices, axis=axis, width=width, before=before)
        elements = [element(keys) if kind is None else kind for kind in types]
        results = e.map([], sizes, elements, lambda e, _, place=place, types=types: place(e).results(types))
        if not last:
            keys, indices = results[0], results[1] if len(results) > 1 else None
        width *= 2
    return results


@dataclass(frozen=True)
class Place:
    """Computes from which element of two sorted runs the element at the current position of their merged result comes.
    In a pass of the merge sort, each two neighbours of the sorted runs of `width` elements of `keys` along an axis are
    merged. `indices`: the original positions of the elements; None in the first pass, where these are their current
    positions, and if no result needs them."""

    e: Emitter
    keys: SSAValue
    indices: SSAValue | None
    axis: int
    width: int
    before: Before

    def number(self, value: int) -> SSAValue:
        return self.e.constant(value, i32)

    def plus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.e(arith.AddiOp(a, b))

    def minus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.e(arith.SubiOp(a, b))

    def bounded(self, value: SSAValue, low: SSAValue, high: SSAValue) -> SSAValue:
        return self.e(arith.MinSIOp(self.e(arith.MaxSIOp(value, low)), high))

    def read(self, source: SSAValue, at: SSAValue) -> SSAValue:
        """Return the element of `source` at position `at` along the sorted axis; its position along the other axes is
        that of the result element that is being computed."""
        places = [self.e.index(d) for d in range(len(dims(source)))]
        places[self.axis] = self.e.to_index(at)
        return self.e.extract(source, places)

    def results(self, types: Sequence[IntegerType | None]) -> Sequence[SSAValue]:
        """Return values of the element that belongs at the current position of the merged result, one for each of
        `types`: its key where the type is None, else its index in the unsorted data, in this type. A bisection finds
        how many elements of the first of the two runs precede it."""
        e, size, width = self.e, dims(self.keys)[self.axis], self.number(self.width)
        zero, one, end = self.number(0), self.number(1), self.number(size - 1)
        here = e(arith.IndexCastOp(e.index(self.axis), i32))
        offset = e(arith.AndIOp(here, self.number(2 * self.width - 1)))
        start = self.minus(here, offset)
        second = self.plus(start, width)
        left = self.minus(self.number(size), start)
        first_size = e(arith.MinSIOp(left, width))
        second_size = self.bounded(self.minus(left, width), zero, width)
        count = e(arith.MaxSIOp(self.minus(offset, second_size), zero))
        most = e(arith.MinSIOp(offset, first_size))
        ahead, behind = self.minus(start, one), self.plus(second, offset)
        for step in reversed(range(self.width.bit_length())):
            more = self.plus(count, self.number(1 << step))
            mine = self.read(self.keys, e(arith.MinSIOp(self.plus(ahead, more), end)))
            its = self.read(self.keys, self.bounded(self.minus(behind, more), zero, end))
            out = e(arith.CmpiOp(more, most, "sgt"))
            kept = e(arith.OrIOp(out, self.before(e, its, mine)))
            count = e(arith.SelectOp(kept, count, more))
        taken = self.minus(offset, count)
        at = [e(arith.MinSIOp(place, end)) for place in (self.plus(start, count), self.plus(second, taken))]
        keys = [self.read(self.keys, place) for place in at]
        there = e(arith.CmpiOp(count, first_size, "slt"))
        none = e(arith.CmpiOp(taken, second_size, "sge"))
        level = e(arith.XOrIOp(self.before(e, keys[1], keys[0]), e.constant(1, there.type)))
        first = e(arith.AndIOp(there, e(arith.OrIOp(none, level))))
        found: list[SSAValue] = []
        for type in types:
            if type is None:
                found.append(e(arith.SelectOp(first, keys[0], keys[1])))
                continue
            place = e(arith.SelectOp(first, at[0], at[1]))
            index = place if self.indices is None else self.read(self.indices, place)
            found.append(e(arith.ExtSIOp(index, type)) if index.type != type else index)
        return found
