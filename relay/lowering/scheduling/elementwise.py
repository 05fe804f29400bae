"""Elementwise operations on rows: vectors along the last dimension. The last vector of a row may overlap the one before
it, if the operation reads no buffer that it writes.

Functions of floats are long chains of dependent instructions, so as many chains are interleaved as registers allow.
Four vectors of codes are narrowed at once, where the target narrows with saturation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Self

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntAttr, StridedLayoutAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import dims_of, is_identity, is_parallel, uses
from relay.lowering.scheduling.body import EXPANDED, LIFTED_INTRINSICS, Lifter, can_lift, clone_scalar
from relay.lowering.scheduling.loops import in_vectors
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.saturate import WIDTH, in_order, match_clamp, saturate
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, at_once, estimate
from relay.lowering.shaped import at_most, elements, is_buffer, leads, root, shape_of
from relay.target import LANES, CpuTarget


def extents(op: linalg.GenericOp) -> list[int]:
    """Return the size of each loop of an operation, from its operands' shapes."""
    maps = [m.data for m in op.indexing_maps]
    result = [0] * maps[0].num_dims
    for map, value in zip(maps, op.operands, strict=True):
        if is_buffer(value.type):
            for dim, size in zip(dims_of(map), shape_of(value), strict=True):
                if dim is not None:
                    result[dim] = size
    return result


@dataclass(frozen=True, kw_only=True)
class ElementwiseSchedule(OpSchedule):
    """The decisions about an elementwise operation. `flat`: all dimensions are collapsed into one; `lanes`: widths of
    vectors, the widest first: each covers the elements of a row that the wider ones do not reach; `overlap`: the last
    vector of a row overlaps the one before it; `saturate`: 64 results are clamped and converted from i32 to 8-bit codes
    together, by saturating pack instructions."""

    strategy = "elementwise"
    flat: bool
    lanes: tuple[int, ...]
    overlap: bool
    saturate: bool


@dataclass(frozen=True)
class ElementwiseRows(Strategy[ElementwiseSchedule]):
    """An operation with parallel loops only and a body that can be lifted to vectors: vectors along the last
    dimension."""

    record = ElementwiseSchedule
    vectors = False
    any_length = True
    op: linalg.GenericOp

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp):
            return None
        return cls(op) if in_rows(op) and can_lift(op.body.block) else None

    def decide(self, kernel: Kernel, pick: Picks) -> ElementwiseSchedule:
        op, sizes, flat = self.op, extents(self.op), pick_flat(self.op, pick)
        size = prod(sizes) if flat else sizes[-1]
        wider = longer(op.body.block, size, kernel.target)
        lanes, _ = pick_lanes(op.body.block, size, kernel.target, pick, wider=wider)
        pick.may("overlap", apart(op))
        vectors = vectors_of(at_most(size), lanes, at_once(kernel.target, max(lanes)))
        known = at_most(size)
        cycles = estimate(kernel, op, prod(map(at_most, sizes)) // known * vectors, 1) if known else 0
        why = f"{lanes[0]} elements at a time{', all in one row' if flat else ''}"
        return pick.schedule(ElementwiseSchedule, cycles, why)

    def emit(self, emission: Emission, schedule: ElementwiseSchedule) -> None:
        Elementwise(emission.builder, self.op, self.op.body.block, schedule).emit()


def pick_flat(op: linalg.GenericOp, pick: Picks) -> bool:
    """Decide whether the operation's loops are collapsed into one; every operand must be contiguous and fully indexed,
    or a single element."""
    rank = len(op.iterator_types)
    flat = all(
        not is_buffer(v.type) or (contiguous(v.type) and (is_identity(m.data, rank) or elements(shape_of(v)) == 1))
        for v, m in zip(op.operands, op.indexing_maps, strict=True)
    )
    return pick.may("flat", flat and leads(tuple(extents(op))))


def pick_lanes(
    block: Block,
    size: int,
    target: CpuTarget,
    pick: Picks,
    given: Sequence[SSAValue] = (),
    wider: Sequence[int] = (),
) -> tuple[tuple[int, ...], bool]:
    """Decide the widths of the vectors in which the block computes rows of `size` elements (those in `wider` are tried
    first), and whether codes are narrowed 64 at a time. `given`: values of the block that are computed before."""
    clamp = match_clamp(block) if target.packs else None
    saturate = pick.may("saturate", clamp is not None and clamp.value not in given)
    best = [*([WIDTH] if saturate else wider), *widths_of(block, size, target)]
    most = [WIDTH] if saturate else []
    if has_whole_vectors(block):
        possible = [(*most, *some, 1) for some in ((LANES,), ())]
    else:
        sizes = [64, 32, 16, 8, 4] if not saturate else [32, 16, 8, 4]
        possible = [(*most, *some, 1) for count in range(5, -1, -1) for some in combinations(sizes, count)]
    return pick("lanes", possible, tuple(dict.fromkeys(best))), saturate


def vectors_of(size: int, lanes: Sequence[int], most: int) -> int:
    """Return the number of registers that a row of `size` elements takes: it is divided into vectors of the widths
    `lanes`, the widest first, and each vector takes one register for every `most` elements."""
    count = 0
    for width in lanes:
        count, size = count + size // width * -(-width // most), size % width
    return count


def in_rows(op: linalg.GenericOp) -> bool:
    """Whether all loops are parallel and, for every operand, neighbours along the last loop are contiguous in memory or
    the same element."""
    maps = [m.data for m in op.indexing_maps]
    rank = maps[0].num_dims
    if rank == 0 or not is_parallel(op):
        return False
    if not all(is_identity(m, rank) for m in maps[len(op.inputs) :]):
        return False
    return all(last_is_contiguous(v, m, rank) for v, m in zip(op.operands, maps, strict=True))


def last_is_contiguous(value: SSAValue, map: AffineMap, rank: int) -> bool:
    """Whether neighbours of the operand along the last loop are contiguous in memory, or the same element."""
    if not uses(map, rank - 1):
        return True
    dims = dims_of(map)
    return dims[-1] == rank - 1 and rank - 1 not in dims[:-1] and rows_contiguous(value.type)


def rows_contiguous(type: Attribute) -> bool:
    """Whether the elements of each row of a buffer are contiguous: a whole tensor, or a slice with a last stride of
    1."""
    if contiguous(type):
        return True
    if not is_buffer(type) or not isinstance(type.layout, StridedLayoutAttr):
        return False
    last = type.layout.strides.data[-1:]
    return [stride.data for stride in last if isinstance(stride, IntAttr)] == [1]


def widths_of(block: Block, size: int, target: CpuTarget) -> list[int]:
    """Return widths of vectors for rows of `size` elements, the widest first, so that narrower ones cover the rest of a
    row."""
    if not target.has_vectors:
        return [1]
    short = [8, 4] if size < LANES else []
    if has_whole_vectors(block):
        return [LANES, 1]
    if not any(op.name in EXPANDED for op in block.ops):
        return [LANES, *short, 1]
    return [LANES * (4 if target.whole_vectors else 2), LANES, *(short or [4]), 1]


def longer(block: Block, size: int, target: CpuTarget) -> list[int]:
    """Return the widths of vectors that exceed a register, for a body of many operations on targets with registers of 8
    floats: a processor overlaps only few iterations of such a loop, each a chain of dependent instructions. Elements of
    64 bits get narrower vectors."""
    ops = list(block.ops)
    if target.register_bytes != 2 * LANES or len(ops) < target.costs.chained_operations or size < WIDTH:
        return []
    if has_whole_vectors(block) or any(op.name in EXPANDED for op in ops):
        return []
    is_wide = any(getattr(value.type, "bitwidth", 0) == 64 for op in ops for value in op.results)
    return [2 * LANES] if is_wide else [WIDTH, 2 * LANES]


def has_whole_vectors(block: Block) -> bool:
    """Whether the block can be computed only in whole vectors of `LANES` lanes and in scalars, because it calls an
    intrinsic whose vector form has `LANES` lanes, or one without a vector form."""
    intrinsics = [op.intrin.data for op in block.ops if isinstance(op, llvm.CallIntrinsicOp)]
    return any(LIFTED_INTRINSICS.get(name, ("", 1))[1] in (1, LANES) for name in intrinsics)


def apart(op: linalg.GenericOp) -> bool:
    """Whether the op reads none of the buffers that it writes, so that elements may be computed twice."""
    read = {root(value) for value in op.inputs}
    written = op.body.block.args[len(op.inputs) :]
    return read.isdisjoint(root(value) for value in op.outputs) and not any(argument.uses for argument in written)


class Elementwise:
    """Emits the loops of one elementwise op. `block`: the body that computes one element of each result from one of
    each operand."""

    def __init__(self, builder: LoopBuilder, op: linalg.GenericOp, block: Block, schedule: ElementwiseSchedule):
        self.b, self.block = builder, block
        self.operands = list(op.operands)
        self.maps = [m.data for m in op.indexing_maps]
        self.sizes = extents(op)
        self.inputs = len(op.inputs)
        if schedule.flat:
            self.flatten(len(self.sizes))
        self.widths, self.overlap = schedule.lanes, LANES if schedule.overlap else 0
        self.clamp = match_clamp(block) if schedule.saturate else None
        self.lifters = {lanes: Lifter(builder, lanes) for lanes in (*self.widths, LANES)}

    def flatten(self, rank: int) -> None:
        """View all operands as one-dimensional, so that one loop replaces the `rank` loops of the operation."""
        for number, (value, map) in enumerate(zip(self.operands, self.maps, strict=True)):
            if is_buffer(value.type) and shape_of(value):
                self.operands[number] = self.b.flatten(value)
                whole = is_identity(map, rank)
                self.maps[number] = (
                    AffineMap.identity(1) if whole else AffineMap(1, 0, AffineMap.constant_map(0).results)
                )
            else:
                self.maps[number] = AffineMap(1, 0, ())
        self.sizes = [prod(self.sizes)]

    def emit(self) -> None:
        """Emit all rows of the result."""
        with self.b.loops(self.sizes[:-1]) as outer:
            self.emit_row(outer)

    def emit_row(self, outer: Sequence[Index]) -> None:
        """Emit the row of the result at the indices `outer`, in vectors. The last vector may overlap the one before it,
        if the schedule says so, instead of narrower vectors that process the rest."""

        def vector(at: Index, lanes: int) -> None:
            self.neighbours([*outer, at], lanes)

        in_vectors(self.b, self.sizes[-1], self.widths, vector, overlap=self.overlap, independent=True)

    def neighbours(self, dims: Sequence[Index], lanes: int) -> None:
        """Emit `lanes` elements from the position `dims` on."""
        block = self.block

        def values(first: int, lanes: int) -> list[SSAValue]:
            return self.values(block, [*dims[:-1], self.b.plus(dims[-1], first)], lanes)

        self.write(self.compute(values, dims, lanes), dims, lanes)

    def compute(
        self, values: Callable[[int, int], list[SSAValue]], dims: Sequence[Index], lanes: int
    ) -> list[SSAValue]:
        """Return the results of the block for `lanes` elements from `dims` on; `values` loads the block's arguments."""
        if lanes == 1:
            return clone_scalar(self.b, self.block, values(0, 1), dims)
        if self.clamp is None or lanes != WIDTH:
            return self.lifters[lanes].emit(self.block, values(0, lanes))
        lifter, clamped = self.lifters[LANES], [self.clamp.value]
        vectors = [lifter.emit(self.block, values(first, LANES), clamped)[0] for first in range(0, WIDTH, LANES)]
        return [in_order(self.b, saturate(self.b, self.clamp, vectors))]

    def values(self, block: Block, dims: Sequence[Index], lanes: int) -> list[SSAValue]:
        """Return the block's arguments for `lanes` elements from `dims` on; operands that the block does not use are
        not loaded."""
        return [
            self.read(value, map, dims, lanes) if any(argument.uses) else value
            for value, map, argument in zip(self.operands, self.maps, block.args, strict=False)
        ]

    def write(self, results: Sequence[SSAValue], dims: Sequence[Index], lanes: int) -> None:
        """Store one vector of `lanes` elements (or a scalar) for each result of the op, from the position `dims` of the
        loops on."""
        b = self.b
        for result, target, map in zip(results, self.operands[self.inputs :], self.maps[self.inputs :], strict=True):
            buffer, at = self.place(target, map, dims)
            if lanes == 1:
                b.store(result, buffer, at)
            else:
                b.store_parts(result, buffer, at)

    def place(self, value: SSAValue, map: AffineMap, dims: Sequence[Index]) -> tuple[SSAValue, list[Index]]:
        """Return the buffer of an operand, and the indices of its element at the position `dims` of the loops."""
        return value, [self.b.apply(r, dims) for r in map.results]

    def read(self, value: SSAValue, map: AffineMap, dims: Sequence[Index], lanes: int) -> SSAValue:
        b = self.b
        value, at = self.place(value, map, dims)
        if lanes > 1 and uses(map, len(self.sizes) - 1):
            return b.vector_load(value, at, lanes)
        scalar = b.load(value, at) if is_buffer(value.type) else value
        return scalar if lanes == 1 else b.broadcast(scalar, lanes)
