"""Elementwise operations that read rows at computed indices, such as resized images and embedding look-ups.

Values that do not depend on the last loop, such as indices and weights, are computed once for each row; elements of
rows are loaded and computed a vector at a time. The last vector of a row may overlap the one before it.

When an image is enlarged, several neighbouring pixels of an output line read the same input column. The part of the
arithmetic that depends only on the line and this column is equal for all of them, and is computed once for each column
(`Columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from xdsl.dialects import arith, memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.affine import is_identity, is_parallel, uses
from relay.lowering.scheduling.body import LIFTED_DIALECTS, Lifter
from relay.lowering.scheduling.elementwise import extents, rows_contiguous
from relay.lowering.scheduling.loops import in_vectors
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.staged import part
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, estimate
from relay.lowering.shaped import Extent, at_most, is_buffer, shape_of
from relay.target import LANES

WIDEST = 64
"""The width in elements of the vectors of `GatheredRows` if its results are copies of gathered elements, without
arithmetic on them; narrower for shorter rows."""
LEAST = 4
"""The fewest elements of a row (the innermost dimension of the result) for which `GatheredRows` applies."""


@dataclass(frozen=True)
class Gathered:
    """A body in three parts: operations that do not depend on the last loop, loads of row elements, and operations on
    those elements."""

    common: list[Operation]
    loads: list[memref.LoadOp]
    late: list[Operation]


def recognise_gathered(op: linalg.GenericOp) -> Gathered | None:
    """Return the parts of an operation that reads rows at computed indices; None for any other operation."""
    maps, last = [m.data for m in op.indexing_maps], len(op.iterator_types) - 1
    if last < 0 or not is_parallel(op):
        return None
    outputs = zip(op.outputs, maps[len(op.inputs) :], strict=True)
    if not all(is_identity(map, last + 1) and rows_contiguous(value.type) for value, map in outputs):
        return None
    if any(uses(map, last) for map in maps[: len(op.inputs)]):
        return None
    block = op.body.block
    if any(argument.uses for argument in block.args[len(op.inputs) :]):
        return None
    varying: set[SSAValue] = set()
    parts = Gathered([], [], [])
    for inner in block.ops:
        given = [value for value in inner.operands if value in varying]
        match inner:
            case linalg.YieldOp():
                break
            case linalg.IndexOp() if inner.dim.value.data == last:
                varying.add(inner.result)
            case memref.LoadOp() if given:
                along = inner.indices[-1].owner
                if len(given) > 1 or not isinstance(along, linalg.IndexOp) or along.dim.value.data != last:
                    return None
                if not rows_contiguous(inner.memref.type):
                    return None
                parts.loads.append(inner)
                varying.add(inner.res)
            case _ if not given:
                parts.common.append(inner)
            case _:
                if not inner.name.startswith(LIFTED_DIALECTS) or any(
                    isinstance(v.owner, linalg.IndexOp) for v in given
                ):
                    return None
                parts.late.append(inner)
                varying.update(inner.results)
    return parts if parts.loads else None


@dataclass(frozen=True)
class Term:
    """A part of an elementwise body that can be computed once for each column of the input image: `load` reads an
    element of a column, and `ops` compute `value` from it and from values that are equal for all pixels of a line of
    the result."""

    load: memref.LoadOp
    ops: tuple[Operation, ...]
    value: SSAValue


@dataclass(frozen=True)
class Columns:
    """How the body of an operation on data [..., column, element] is divided, so that a part of it is computed once for
    each column of the data instead of for each position in a line of the result. `terms`: the operations computed for
    each of the `width` columns, of `size` elements each; `uses`: for each value that is replaced by a result of a term,
    the value, the number of the term, and the index of the column; `late`: the remaining operations; `varying`: values
    that depend on the position in the line."""

    terms: list[Term]
    uses: list[tuple[SSAValue, int, SSAValue]]
    late: list[Operation]
    varying: set[SSAValue]
    width: int
    size: int

    @property
    def bytes(self) -> int:
        """The size in bytes of the scratch memory that holds the results of all `terms` for all columns."""
        return sum(dtype_of(term.value.type).itemsize for term in self.terms) * self.width * self.size


def columns_of(op: linalg.GenericOp, parts: Gathered) -> Columns | None:
    """Return how an op's body is divided so that a part of it is computed once for each column of the data. None if no
    part depends only on the column, or if this does not pay."""
    sizes, block, loads, late = extents(op), op.body.block, parts.loads, parts.late
    across = len(sizes) - 2
    if across < 0:
        return None
    maps = [map.data for map in op.indexing_maps]
    varying: set[SSAValue] = {arg for arg, map in zip(block.args, maps, strict=True) if uses(map, across)}
    for inner in parts.common:
        place = isinstance(inner, linalg.IndexOp) and inner.dim.value.data == across
        if place or not varying.isdisjoint(inner.operands):
            varying.update(inner.results)
    width = shape_of(loads[0].memref)[-2:-1]
    if not width or any(shape_of(load.memref)[-2:-1] != width or not by_column(load, varying) for load in loads):
        return None
    row: dict[SSAValue, tuple[memref.LoadOp, tuple[Operation, ...]]] = {load.res: (load, ()) for load in loads}
    for inner in late:
        needed = {row[v][0] if v in row else None for v in inner.operands if v in row or depends(v, varying, late)}
        if len(needed) == 1 and (load := needed.pop()) is not None:
            before = dict.fromkeys(each for v in inner.operands if v in row for each in row[v][1])
            row[inner.results[0]] = load, (*before, inner)
    moved = {inner for _, ops in row.values() for inner in ops}
    left = [inner for inner in late if inner not in moved]
    read = dict.fromkeys(v for inner in block.ops if inner not in moved for v in inner.operands if v in row)
    numbers: dict[Hashable, int] = {}
    found = Columns([], [], left, varying, width[0], sizes[-1])
    for value in read:
        load, ops = row[value]
        key = structure(value, row)
        if key not in numbers:
            numbers[key] = len(numbers)
            found.terms.append(Term(load, ops, value))
        found.uses.append((value, numbers[key], load.indices[-2]))
    work = sum(len(term.ops) + 1 for term in found.terms)
    return found if len(moved) * sizes[-2] >= 2 * work * width[0] else None


def by_column(load: memref.LoadOp, varying: set[SSAValue]) -> bool:
    """Whether a load reads data [..., column, element] at a column that depends on the position in the result's line,
    while no index before the column does. `varying`: the values that depend on that position."""
    return load.indices[-2] in varying and varying.isdisjoint(load.indices[:-2])


def depends(value: SSAValue, varying: set[SSAValue], late: Sequence[Operation]) -> bool:
    """Whether a value differs between the pixels of a line of the result (`varying`), or is computed by one of the ops
    `late`, which use elements loaded from the input image."""
    return value in varying or value.owner in late


def structure(value: SSAValue, row: dict[SSAValue, tuple[memref.LoadOp, tuple[Operation, ...]]]) -> Hashable:
    """Return a key that is equal for two values if the same operations compute them from rows of the same buffer that
    are loaded at equal indices, except the index of the column, which may differ. `row`: for each value that is
    computed from a single row, the load of the row and the operations that lead from it to the value."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return value
    if value in row and isinstance(owner, memref.LoadOp):
        return owner.memref, *(structure(index, row) for index in owner.indices[:-2])
    if isinstance(owner, arith.ConstantOp):
        return owner.value
    operands = tuple(structure(operand, row) for operand in owner.operands)
    return owner.name, value.type, tuple(sorted(owner.properties.items(), key=str)), *operands


@dataclass(frozen=True, kw_only=True)
class GatheredSchedule(OpSchedule):
    """The decisions about reading rows of data at computed indices. `lanes`: elements computed at a time. `by_column`:
    arithmetic that depends only on a column of the data is computed once per column and kept in scratch memory, instead
    of again for each result of the image line that reads this column."""

    strategy = "gathered"
    lanes: int
    by_column: bool


@dataclass(frozen=True)
class GatheredRows(Strategy[GatheredSchedule]):
    """An elementwise operation that reads rows at computed indices; it is computed one vector of a row at a time."""

    record = GatheredSchedule
    any_length = True
    op: linalg.GenericOp
    parts: Gathered
    columns: Columns | None

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or (parts := recognise_gathered(op)) is None:
            return None
        if isinstance(size := extents(op)[-1], Extent) or size < LEAST:
            return None
        return cls(op, parts, columns_of(op, parts))

    def decide(self, kernel: Kernel, pick: Picks) -> GatheredSchedule:
        op, parts, sizes = self.op, self.parts, extents(self.op)
        best = (LANES if kernel.target.whole_vectors else LANES // 2) if parts.late else WIDEST
        while best > sizes[-1]:
            best //= 2
        lanes = pick("lanes", [n for n in (64, 32, 16, 8, 4) if n <= sizes[-1]], best)
        known = not any(isinstance(size, Extent) for size in sizes)
        can = known and self.columns is not None and self.columns.bytes <= kernel.target.costs.scratch_bytes
        by_column = pick.may("by_column", can)
        why = f"rows {lanes} elements at a time{', what a line needs of each column once' if by_column else ''}"
        cycles = estimate(kernel, op, prod(map(at_most, sizes)), lanes)
        return pick.schedule(GatheredSchedule, cycles, why)

    def emit(self, emission: Emission, schedule: GatheredSchedule) -> None:
        columns = self.columns if schedule.by_column else None
        Rows(emission.builder, self.op, self.parts, columns, schedule.lanes).emit()


class Rows:
    """Emits one operation that reads rows at computed indices."""

    def __init__(self, b: LoopBuilder, op: linalg.GenericOp, parts: Gathered, columns: Columns | None, lanes: int):
        self.b, self.op, self.parts, self.size, self.lanes = b, op, parts, extents(op)[-1], lanes
        self.block, self.columns = op.body.block, columns
        self.lifter = Lifter(b, self.lanes)
        self.known: dict[SSAValue, SSAValue] = {}

    def emit(self) -> None:
        b, sizes, parts, columns = self.b, extents(self.op), self.parts, self.columns
        if columns is None:
            with b.loops(sizes[:-1]) as outer:
                self.common(outer, lambda value: True)
                rows = [(load.res, load.memref, load.indices[:-1]) for load in parts.loads]
                self.results(outer, parts.late, rows)
            return
        with b.loops(sizes[:-2]) as outer:
            self.common(outer, lambda value: value not in columns.varying)
            rooms = [self.column(term, columns.width) for term in columns.terms]
            with b.loop(0, sizes[-2]) as (line, _):
                outer.append(line)
                self.common(outer, columns.varying.__contains__)
                self.results(outer, columns.late, [(value, rooms[term], [at]) for value, term, at in columns.uses])

    def common(self, outer: Sequence[Index], wanted: Callable[[SSAValue], bool]) -> None:
        """Emit the computation of values that do not depend on the position in a row, once per row; values for which
        `wanted` is false are skipped. `outer`: the indices of the loops around the row."""
        b, known = self.b, self.known
        for argument, value, map in zip(self.block.args, self.op.inputs, self.op.indexing_maps, strict=False):
            if wanted(argument):
                dims = [*outer, *[0] * (map.data.num_dims - len(outer))]
                at = [b.apply(result, dims) for result in map.data.results]
                known[argument] = b.load(value, at) if is_buffer(value.type) else value
        for inner in self.parts.common:
            if not wanted(inner.results[0]):
                continue
            if isinstance(inner, linalg.IndexOp):
                known[inner.result] = b.index(outer[inner.dim.value.data])
            else:
                known.update(zip(inner.results, b.add(inner.clone(known)).results, strict=True))

    def column(self, term: Term, width: int) -> SSAValue:
        """Emit the computation of a term, a part of the body that depends only on the column of the input image, for
        each of the `width` columns; return the scratch memory [width, elements of a row] that holds the results."""
        b = self.b
        room = b.add(memref.AllocaOp.get(term.value.type, 64, [width, self.size])).memref
        with b.loop(0, width) as (column, _):
            at = [*(self.known.get(i, i) for i in term.load.indices[:-2]), column]
            self.rows(term.ops, [(term.load.res, term.load.memref, at)], [term.value], [(room, [column])])
        return room

    def results(
        self,
        outer: Sequence[Index],
        ops: Sequence[Operation],
        rows: Sequence[tuple[SSAValue, SSAValue, Sequence[SSAValue]]],
    ) -> None:
        """Emit the loop over one row of the results: load vectors of the rows that are read, compute `ops`, and store
        the values that the operation's body yields. `rows`: for each row that is read, the value in the body that
        stands for its elements, its buffer, and the indices of the row in the buffer."""
        end = self.block.last_op
        assert end is not None
        read = [(value, buffer, [self.known.get(i, i) for i in at]) for value, buffer, at in rows]
        self.rows(ops, read, end.operands, [(target, outer) for target in self.op.outputs])

    def rows(
        self,
        ops: Sequence[Operation],
        read: Sequence[tuple[SSAValue, SSAValue, Sequence[Index]]],
        results: Sequence[SSAValue],
        written: Sequence[tuple[SSAValue, Sequence[Index]]],
    ) -> None:
        """Emit operations on rows: `read` has the value, buffer and indices of each row, `written` the buffer and
        indices of each result."""
        b, size, lanes = self.b, self.size, self.lanes
        scalars = [v for v in dict.fromkeys([*(v for op in ops for v in op.operands), *results]) if v in self.known]
        use = part(self.block, [*scalars, *(value for value, _, _ in read)], ops, results)
        spread = [b.broadcast(self.known[value], lanes) for value in scalars]

        def vector(k: Index, lanes: int) -> None:
            loads = [b.vector_load(buffer, [*at, k], lanes) for _, buffer, at in read]
            found = self.lifter.emit(use, [*self.block.args, *spread, *loads])
            for value, (target, at) in zip(found, written, strict=True):
                b.vector_store(value, target, [*at, k])

        in_vectors(b, size, [lanes], vector, overlap=lanes)
        use.erase(safe_erase=False)
