"""Moves arithmetic out of the loop over the pixels of an output line, to a loop over the columns of the input image.

When an image is enlarged, several neighbouring pixels of an output line read the same input column. The part of the
arithmetic that depends only on the line and this column is equal for all of them, and is computed once for each column.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.scheduling.affine import uses
from relay.lowering.scheduling.elementwise import extents
from relay.lowering.shaped import shape_of


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


def columns_of(
    op: linalg.GenericOp,
    common: Sequence[Operation],
    loads: Sequence[memref.LoadOp],
    late: Sequence[Operation],
) -> Columns | None:
    """Return how an op's body is divided so that a part of it is computed once for each column of the data. None if no
    part depends only on the column, or if this does not pay."""
    sizes, block = extents(op), op.body.block
    across = len(sizes) - 2
    if across < 0:
        return None
    maps = [map.data for map in op.indexing_maps]
    varying: set[SSAValue] = {arg for arg, map in zip(block.args, maps, strict=True) if uses(map, across)}
    for inner in common:
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
    """Return a key that is equal for two values if the same operations compute them from the same loaded row, at
    whichever column the row is loaded. `row`: for each value that is computed from a single row, the load of the row
    and the operations that lead from it to the value."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return value
    if value in row and isinstance(owner, memref.LoadOp):
        return owner.memref, *(structure(index, row) for index in owner.indices[:-2])
    if isinstance(owner, arith.ConstantOp):
        return owner.value
    operands = tuple(structure(operand, row) for operand in owner.operands)
    return owner.name, value.type, tuple(sorted(owner.properties.items(), key=str)), *operands
