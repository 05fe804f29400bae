"""Sorts long axes by merging runs of 1, 2, 4 ... elements: `n log^2 n` comparisons.

Every element of a merged pair of runs finds its source independently: by bisection, how many of the elements before it
are from the first run (Odeh et al., "Merge Path", 2012). So no element is stored at a data-dependent position, no
branch depends on data, and all elements of a pass are independent. Equal elements stay in order: that of the first run
comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue

from relay.lowering.linalg.emitter import Emitter, dims, element

Before = Callable[[Emitter, SSAValue, SSAValue], SSAValue]
"""A function that emits whether the first element sorts before the second, and is not equal to it."""


def merged(
    e: Emitter, keys: SSAValue, axis: int, before: Before, wanted: Sequence[IntegerType | None], count: int
) -> Sequence[SSAValue]:
    """Sort `keys` along an axis by the comparison `before`, and return the first `count` elements of the sorted axis:
    one tensor for each entry of `wanted`, with their keys if the entry is None, else with their indices before sorting
    in the entry's integer type."""
    size, width = dims(keys)[axis], 1
    indices: SSAValue | None = None
    results: Sequence[SSAValue] = []
    while width < size:
        last = 2 * width >= size
        shape = [count if last and d == axis else n for d, n in enumerate(dims(keys))]
        types: list[IntegerType | None] = (
            list(wanted) if last else [None, *(kind for kind in wanted if kind is not None)][:2]
        )
        pair = Pair(keys, indices, axis, width, before)
        results = e.map([], shape, [element(keys) if kind is None else kind for kind in types], pair.body(types))
        if not last:
            keys, indices = results[0], results[1] if len(results) > 1 else None
        width *= 2
    return results


@dataclass(frozen=True)
class Pair:
    """A pass of the merge sort: sorted runs of `width` elements of `keys` along an axis, of which each two neighbours
    are merged. `indices`: the original positions of the elements; None in the first pass, where these are their current
    positions, and if no result needs them."""

    keys: SSAValue
    indices: SSAValue | None
    axis: int
    width: int
    before: Before

    def body(self, types: Sequence[IntegerType | None]) -> Callable[[Emitter, Sequence[SSAValue]], Sequence[SSAValue]]:
        """Return the body that computes an element of each result: a key where `types` has None, else an index of that
        type."""
        return lambda e, _: Place(e, self).results(types)


class Place:
    """Computes from which element of two sorted runs the element at the current position of their merged result
    comes."""

    def __init__(self, e: Emitter, pair: Pair):
        self.e, self.pair, self.size = e, pair, dims(pair.keys)[pair.axis]

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
        places[self.pair.axis] = self.e.to_index(at)
        return self.e.extract(source, places)

    def results(self, types: Sequence[IntegerType | None]) -> Sequence[SSAValue]:
        """Return values of the element that belongs at the current position of the merged result, one for each of
        `types`: its key where the type is None, else its index in the unsorted data, in this type. A bisection finds
        how many elements of the first of the two runs precede it."""
        e, pair, width = self.e, self.pair, self.number(self.pair.width)
        zero, one, end = self.number(0), self.number(1), self.number(self.size - 1)
        here = e(arith.IndexCastOp(e.index(pair.axis), i32))
        offset = e(arith.AndIOp(here, self.number(2 * pair.width - 1)))
        start = self.minus(here, offset)
        second = self.plus(start, width)
        left = self.minus(self.number(self.size), start)
        first_size = e(arith.MinSIOp(left, width))
        second_size = self.bounded(self.minus(left, width), zero, width)
        count = e(arith.MaxSIOp(self.minus(offset, second_size), zero))
        most = e(arith.MinSIOp(offset, first_size))
        ahead, behind = self.minus(start, one), self.plus(second, offset)
        for step in reversed(range(pair.width.bit_length())):
            more = self.plus(count, self.number(1 << step))
            mine = self.read(pair.keys, e(arith.MinSIOp(self.plus(ahead, more), end)))
            its = self.read(pair.keys, self.bounded(self.minus(behind, more), zero, end))
            out = e(arith.CmpiOp(more, most, "sgt"))
            kept = e(arith.OrIOp(out, pair.before(e, its, mine)))
            count = e(arith.SelectOp(kept, count, more))
        taken = self.minus(offset, count)
        at = [e(arith.MinSIOp(place, end)) for place in (self.plus(start, count), self.plus(second, taken))]
        keys = [self.read(pair.keys, place) for place in at]
        there = e(arith.CmpiOp(count, first_size, "slt"))
        none = e(arith.CmpiOp(taken, second_size, "sge"))
        level = e(arith.XOrIOp(pair.before(e, keys[1], keys[0]), e.constant(1, there.type)))
        first = e(arith.AndIOp(there, e(arith.OrIOp(none, level))))
        found: list[SSAValue] = []
        for type in types:
            if type is None:
                found.append(e(arith.SelectOp(first, keys[0], keys[1])))
                continue
            place = e(arith.SelectOp(first, at[0], at[1]))
            index = place if pair.indices is None else self.read(pair.indices, place)
            found.append(e(arith.ExtSIOp(index, type)) if index.type != type else index)
        return found
