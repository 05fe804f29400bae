"""Transposes of squares of elements in registers, for permutations that turn rows into columns.

Each step interleaves vectors i and i + n/2 of n, so that after log2(n) steps n rows have become n columns. Vectors of
small elements hold several such squares side by side, in 128 bits each, where a shuffle costs one instruction.
Dimensions that stay neighbours are collapsed into one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.indices import below, when
from relay.lowering.scheduling.affine import dims_of, is_identity, is_parallel, strides
from relay.lowering.scheduling.elementwise import extents
from relay.lowering.scheduling.loops import in_vectors
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.sharing import itemsize
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, estimate
from relay.lowering.shaped import Extent, at_most, buffer_of, shape_of
from relay.target import CpuTarget

PART = 16
"""The size in bytes of the parts of a vector register within which elements of 1 and 2 bytes are shuffled to transpose
them."""

LEAST = 4
"""The least number n for which squares of n x n elements are transposed in registers. Smaller squares are only
transposed if each of their rows has `PART` (16) bytes."""


@dataclass(frozen=True)
class Dim:
    """A dimension of the result: its size, and its strides in the data (`source`) and in the result (`target`)."""

    size: int
    source: int
    target: int


@dataclass(frozen=True)
class Transpose:
    """A copy from `source` to `target` that permutes dimensions. `rows` and `columns`: the dimensions that are
    contiguous in the result and in the data; `outer`: all others."""

    source: SSAValue
    target: SSAValue
    outer: tuple[Dim, ...]
    columns: Dim
    rows: Dim


def recognise_transpose(op: linalg.GenericOp) -> Transpose | None:
    """Return the transpose that the operation computes; None for other operations, and for copies in which rows stay
    rows."""
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        return None
    if not is_parallel(op):
        return None
    source, target, block = op.inputs[0], op.outputs[0], op.body.block
    if block.first_op is not block.last_op or block.last_op is None or block.last_op.operands[0] is not block.args[0]:
        return None
    read, written = (map.data for map in op.indexing_maps)
    order, rank = dims_of(read), len(op.iterator_types)
    if not is_identity(written, rank) or sorted(d for d in order if d is not None) != list(range(rank)):
        return None
    if not contiguous(source.type) or not contiguous(target.type) or len(order) != rank:
        return None
    steps = strides([*map(at_most, shape_of(source))])
    dims: list[Dim] = []
    for at, (size, step) in enumerate(zip(shape_of(target), strides([*map(at_most, shape_of(target))]), strict=True)):
        dim = Dim(size, steps[order.index(at)], step)
        if dims and dims[-1].source == at_most(size) * dim.source and not isinstance(size, Extent):
            dims[-1] = Dim(dims[-1].size * size, dim.source, dim.target)
        elif size > 1:
            dims.append(dim)
    columns = [dim for dim in dims if dim.source == 1]
    if len(dims) < 2 or len(columns) != 1 or columns[0] is dims[-1]:
        return None
    outer = tuple(dim for dim in dims[:-1] if dim is not columns[0])
    return Transpose(source, target, outer, columns[0], dims[-1])


@dataclass(frozen=True, kw_only=True)
class TransposeSchedule(OpSchedule):
    """The decision about a transpose. `square`: the numbers of rows and of columns that are transposed at a time."""

    strategy = "transpose"
    square: tuple[int, int]


@dataclass(frozen=True)
class Squares(Strategy[TransposeSchedule]):
    """Computes a transpose by transposing squares of elements in registers."""

    record = TransposeSchedule
    any_length = True
    op: linalg.GenericOp
    found: Transpose

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or (found := recognise_transpose(op)) is None:
            return None
        return None if square_of(found, kernel.target) is None else cls(op, found)

    def decide(self, kernel: Kernel, pick: Picks) -> TransposeSchedule:
        found, best = self.found, square_of(self.found, kernel.target)
        assert best is not None
        powers = [1 << k for k in range(2, 7)]
        possible = [
            (count, width)
            for count in powers
            for width in powers
            if count <= width and count <= found.rows.size and width <= found.columns.size
        ]
        rows, columns = pick("square", list(dict.fromkeys([best, *possible])), best)
        cycles = estimate(kernel, self.op, prod(map(at_most, extents(self.op))), rows, itemsize(found.source))
        return pick.schedule(TransposeSchedule, cycles, f"squares of {rows} rows x {columns} columns")

    def emit(self, emission: Emission, schedule: TransposeSchedule) -> None:
        b, found, (count, width) = emission.builder, self.found, schedule.square
        source, target = b.flatten(found.source), b.flatten(found.target)
        columns, rows = found.columns, found.rows
        with b.loops([dim.size for dim in found.outer]) as indices:
            start: list[Index] = [0, 0]
            for dim, index in zip(found.outer, indices, strict=True):
                start = [b.plus(start[0], b.times(index, dim.source)), b.plus(start[1], b.times(index, dim.target))]

            def turn(column: Index, row: Index) -> None:
                read = b.plus(start[0], b.plus(column, b.times(row, rows.source)))
                write = b.plus(start[1], b.plus(row, b.times(column, columns.target)))
                lines = [b.vector_load(source, [b.plus(read, k * rows.source)], width) for k in range(count)]
                for k, line in enumerate(turned(b, lines, width)):
                    b.vector_store(line, target, [b.plus(write, k * columns.target)])

            def strip(column: Index, _: int) -> None:
                def square(row: Index, _: int) -> None:
                    turn(column, row)

                in_vectors(b, rows.size, [count], square, overlap=count, independent=True, at_least=True)

            def squares() -> None:
                in_vectors(b, columns.size, [width], strip, overlap=width, independent=True, at_least=True)

            def one_by_one() -> None:
                with b.loop(0, columns.size, independent=True) as (column, _):
                    with b.loop(0, rows.size) as (row, _):
                        read = b.plus(start[0], b.plus(column, b.times(row, rows.source)))
                        write = b.plus(start[1], b.plus(row, b.times(column, columns.target)))
                        b.store(b.load(source, [read]), target, [write])

            sides = ((rows, count), (columns, width))
            least = max((size for dim, size in sides if isinstance(dim.size, Extent)), default=0)
            if least:
                when(b, below(b, b.length(Extent(1)), least), one_by_one, squares)
            else:
                squares()


def square_of(transpose: Transpose, target: CpuTarget) -> tuple[int, int] | None:
    """Return the numbers of rows and columns that are transposed at a time; None if there are too few."""
    element = buffer_of(transpose.source).element_type
    bits = element.bitwidth if isa(element, AnyFloat) or isinstance(element, IntegerType) else 0
    if bits not in (8, 16, 32, 64):
        return None
    register = target.shuffle_bytes
    size = bits // 8
    count = PART // size if size < 4 else register // size
    while count > min(transpose.rows.size, transpose.columns.size):
        count //= 2
    width = register // size
    while width > max(transpose.columns.size, count):
        width //= 2
    return (count, width) if count >= LEAST or count * size == PART else None


def turned(b: LoopBuilder, rows: Sequence[SSAValue], width: int) -> list[SSAValue]:
    """Transpose the squares of n x n elements that n rows of `width` elements hold side by side; return the columns."""
    count = len(rows)
    half, parts = count // 2, range(0, width, count)
    halves = [
        [place for part in parts for k in range(first, first + half) for place in (part + k, width + part + k)]
        for first in (0, half)
    ]
    lines, step = list(rows), 1
    while step < count:
        pairs = zip(lines[:half], lines[half:], strict=True)
        lines = [b.shuffle(upper, lower, order) for upper, lower in pairs for order in halves]
        step *= 2
    if width == count:
        return lines
    return [b.shuffle(line, line, range(part, part + count)) for part in parts for line in lines]
