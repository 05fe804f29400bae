"""Emits the elements of tensors in GPU kernels, loaded from memory or computed where they are read: single elements, or
vectors of neighbours along the last dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Block, Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.channel_tables import ChannelTables
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.teams import SUMS, Members, join_of
from relay.lowering.indices import below, both, either, unravelled
from relay.lowering.scheduling.body import Lifter, clone_scalar
from relay.lowering.scheduling.padding import Padding
from relay.lowering.shaped import is_buffer, is_vector, scalar_of, shape_of

Producer = Nest | Padding
"""The description of a buffer that is not in memory, but computed where it is read."""


@dataclass(eq=False)
class PointEmitter:
    """Emits the computation of single elements of tensors that are not stored in memory, or of vectors of `lanes`
    neighbouring elements: where the last index of an access is in the set `wide`, a vector begins at it. `special`: a
    function that emits faster code for some loop nests; `members`: the threads among which reductions are divided;
    `tables` reads constants with a value per channel. `matrices`: all indices but the last two are always 0, so that
    buffers are viewed as matrices. `selects`: padding is inserted by a select, not by a branch."""

    b: LoopBuilder
    producers: Mapping[SSAValue, Producer]
    lanes: int = 1
    special: Special | None = None
    members: Members | None = None
    tables: ChannelTables | None = None
    matrices: bool = False
    selects: bool = False
    known: dict[Operation, SSAValue] = field(default_factory=dict[Operation, SSAValue])
    """Results that nests have at the current point, by operation, which need not be emitted again."""
    wide: set[SSAValue] = field(default_factory=set[SSAValue])

    def __post_init__(self) -> None:
        self.lifter = Lifter(self.b, self.lanes)

    def element(self, buffer: SSAValue, at: Sequence[Index]) -> SSAValue:
        """Return the element of a buffer at these indices, or the vector of `lanes` elements from there on if the last
        index is in `wide`. An element that is not in memory is computed."""
        if not is_buffer(buffer.type):
            return buffer
        match self.producers.get(buffer):
            case Padding() as source:
                return self.padded(source, at)
            case Nest() as nest:
                return self.nest(nest, nest.dims(at))[0]
            case None:
                return self.load(buffer, at)

    def widened(self, at: list[Index]) -> list[Index]:
        """Replace the last index, which counts vectors, by the index of the vector's first element, and record that
        loads and stores at it access whole vectors. Modifies `at` and returns it; if vectors have one lane, nothing
        changes."""
        if self.lanes > 1:
            at[-1] = self.b.index(self.b.times(at[-1], self.lanes))
            self.wide.add(at[-1])
        return at

    def is_wide(self, index: Index) -> bool:
        """Whether the index stands for several elements."""
        return isinstance(index, SSAValue) and index in self.wide

    def load(self, buffer: SSAValue, at: Sequence[Index]) -> SSAValue:
        """Load an element, or a vector, from memory."""
        if not at or not self.is_wide(at[-1]):
            return self.b.load(*self.place(buffer, at))
        if self.tables is not None and len(at) == 1 and (found := self.tables.load(buffer, at[0])) is not None:
            return found
        return self.b.vector_load(*self.place(buffer, at), self.lanes)

    def store(self, value: SSAValue, buffer: SSAValue, at: Sequence[Index]) -> None:
        """Store an element, or a vector, to memory."""
        if not at or not self.is_wide(at[-1]):
            self.b.store(value, *self.place(buffer, at))
            return
        if not is_vector(value.type):
            value = self.b.broadcast(value, self.lanes)
        self.b.vector_store(value, *self.place(buffer, at))

    def place(self, buffer: SSAValue, at: Sequence[Index]) -> tuple[SSAValue, Sequence[Index]]:
        """Return the buffer and the indices for an access to the element at `at`. If `matrices` is set, these are a
        two-dimensional view of the buffer and the last two indices."""
        return (self.b.matrix(buffer), at[-2:]) if self.matrices and len(at) > 2 else (buffer, at)

    def nest(self, nest: Nest, dims: list[Index]) -> list[SSAValue]:
        """Return the results of a nest at a point of its parallel dimensions."""
        if nest.op in self.known:
            return [self.known[nest.op]]
        if self.special is not None and (sum := self.special(self, nest, dims)) is not None:
            return [sum]
        if self.members is not None and nest.reduction:
            return [self.share(nest, dims, self.members)]
        return self.reduce(nest, [dims], nest.reduction, self.starting(nest, dims))

    def results(self, nest: Nest, dims: Sequence[Index], values: Sequence[SSAValue]) -> None:
        """Store the results of a nest at a point."""
        for value, output, map in zip(values, nest.op.outputs, nest.maps[len(nest.op.inputs) :], strict=True):
            self.store(value, output, [self.b.apply(r, dims) for r in map.results])

    def share(self, nest: Nest, dims: list[Index], members: Members) -> SSAValue:
        """Return the result of a nest whose reduction is divided among the members of a team."""
        join, (start,) = join_of(nest.op), self.starting(nest, dims)
        assert join is not None
        zero = self.b.constant(0, scalar_of(start.type))
        first = self.like(start, zero) if join in SUMS else start
        sizes = [nest.sizes[dim] for dim in nest.reduction]
        with members.turns(prod(sizes), [first]) as (turn, state):
            for dim, index in zip(nest.reduction, unravelled(self.b, turn, sizes), strict=True):
                dims[dim] = index
            state.next = self.body(nest, dims, state.args)
        total = members.join(state.results[0], join)
        return self.b.add(join(start, total)).results[0] if join in SUMS else total

    def reduce(
        self, nest: Nest, points: Sequence[list[Index]], order: Sequence[int], accumulators: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Emit loops over the dimensions `order`, and in them the nest's body at each of `points`, which are indices of
        the other dimensions; return the accumulators' final values. Each point has an equal share of the accumulators,
        in order."""
        if not order:
            each = len(accumulators) // len(points)
            starts = range(0, len(accumulators), each)
            found = [self.body(nest, at, accumulators[n : n + each]) for at, n in zip(points, starts, strict=True)]
            return [value for values in found for value in values]
        with self.b.loop(0, nest.sizes[order[0]], carried=accumulators) as (index, state):
            for at in points:
                at[order[0]] = index
            state.next = self.reduce(nest, points, order[1:], state.args)
        return list(state.results)

    def starting(self, nest: Nest, dims: Sequence[Index]) -> list[SSAValue]:
        """Return the initial values of a nest's outputs at a point."""
        found: list[SSAValue] = []
        arguments = nest.op.body.block.args[len(nest.op.inputs) :]
        maps = nest.maps[len(nest.op.inputs) :]
        for value, map, scalar, argument in zip(nest.op.outputs, maps, nest.started, arguments, strict=True):
            at = [self.b.apply(r, dims) for r in map.results]
            if scalar is not None:
                wide = nest.reduction and bool(at) and self.is_wide(at[-1])
                found.append(self.b.broadcast(scalar, self.lanes) if wide else scalar)
            else:
                found.append(self.load(value, at) if any(argument.uses) or nest.reduction else value)
        return found

    def body(self, nest: Nest, dims: Sequence[Index], accumulators: Sequence[SSAValue]) -> list[SSAValue]:
        """Emit the nest's region for one iteration; return its results."""
        block, inputs = nest.op.body.block, len(nest.op.inputs)
        values = [
            self.element(value, [self.b.apply(r, dims) for r in map.results]) if any(argument.uses) else value
            for value, map, argument in zip(nest.op.inputs, nest.maps, block.args[:inputs], strict=False)
        ]
        return self.computed(block, [*values, *accumulators], dims)

    def computed(self, block: Block, values: Sequence[SSAValue], dims: Sequence[Index]) -> list[SSAValue]:
        """Emit the body `block` of a linalg op with `values` as its arguments at the iteration `dims`, and return the
        values that it yields. They are vectors if any of `values` is one."""
        if not any(is_vector(value.type) for value in values):
            return clone_scalar(self.b, block, values, dims)
        wide = [v if is_vector(v.type) or is_buffer(v.type) else self.b.broadcast(v, self.lanes) for v in values]
        return self.lifter.emit(block, wide)

    def padded(self, source: Padding, at: Sequence[Index]) -> SSAValue:
        """Return an element of the source, or the padding around it."""
        sizes = shape_of(source.source)
        inner: list[Index] = []
        conditions: list[SSAValue] = []
        for index, offset, size, whole in zip(at, source.low, sizes, source.shape, strict=True):
            place = self.b.plus(index, -offset) if offset else index
            if isinstance(place, int):
                if not 0 <= place < size:
                    return source.value
            elif size != whole:
                conditions.append(below(self.b, place, size))
                place = self.b.select(conditions[-1], place, self.b.index(0)) if self.selects else place
            inner.append(place)
            if self.is_wide(index) and isinstance(place, SSAValue):
                self.wide.add(place)
        if (condition := both(self.b, conditions)) is None:
            return self.element(source.source, inner)
        if self.selects:
            value = self.element(source.source, inner)
            return self.b.select(condition, value, self.like(value, source.value))
        found = list[SSAValue]()

        def inside() -> SSAValue:
            found.append(self.element(source.source, inner))
            return found[0]

        return either(self.b, condition, inside, lambda: self.like(found[0], source.value))

    def like(self, value: SSAValue, scalar: SSAValue) -> SSAValue:
        """Return a scalar, or a vector of `lanes` copies of it if `value` is a vector."""
        return self.b.broadcast(scalar, self.lanes) if is_vector(value.type) else scalar


Special = Callable[[PointEmitter, Nest, list[Index]], SSAValue | None]
"""A function that emits the result of a nest at a point; it emits nothing and returns None for nests that it does not
handle."""


def inlined(nest: Nest, producers: Mapping[SSAValue, Producer]) -> Iterator[Nest]:
    """Yield the nest, and all nests that it inlines."""
    yield nest
    for value in nest.op.inputs:
        inner = producers.get(value)
        while isinstance(inner, Padding):
            inner = producers.get(inner.source)
        if isinstance(inner, Nest):
            yield from inlined(inner, producers)
