"""The epilogue of a contraction: an elementwise `linalg.generic` applied to accumulators while they are in
registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import vector
from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import i1, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from relay.dialects.attributes import dtype_of
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import dims_of, is_identity, is_parallel, uses
from relay.lowering.scheduling.body import (
    EXPANDED,
    EXPANSION,
    Lifter,
    can_lift,
    clone_scalar,
    dense_vector,
    vector_constant,
)
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.saturate import match_clamp, saturate
from relay.lowering.shaped import Extent, buffer_of, elements, is_buffer, shape_of, vector_of
from relay.target import LANES, CpuTarget


@dataclass(frozen=True)
class Access:
    """An operand of the epilogue and the map from a point (outer indices..., channel) to its element; `used`: whether
    the body reads it."""

    value: SSAValue
    map: AffineMap
    used: bool


def accesses_of(op: linalg.GenericOp) -> list[Access]:
    """Return the accesses of the op to its operands."""
    maps = [m.data for m in op.indexing_maps]
    used = [any(a.uses) for a in op.body.block.args]
    return [Access(v, m, u) for v, m, u in zip(op.operands, maps, used, strict=True)]


def by_points(accesses: Sequence[Access], rank: int) -> bool:
    """Whether each operand of an epilogue has one element for each element of the result (of `rank` dimensions), one
    for each channel (the last dimension), or a single element."""
    return all(
        is_identity(access.map, rank)
        or dims_of(access.map) == [rank - 1]
        or not is_buffer(access.value.type)
        or elements(shape_of(access.value)) == 1
        for access in accesses
    )


def pieces(lanes: int) -> list[tuple[int, int]]:
    """Divide fewer than 16 lanes into powers of two; return (first lane, count) of each."""
    return [(lanes & -(2 * count), count) for count in (8, 4, 2, 1) if lanes & count]


def pick_masks(pick: Picks, target: CpuTarget, *outputs: int) -> bool:
    """Decide `masks`: fewer than 16 channels are loaded and stored by one masked instruction, instead of in parts of
    powers of two. `outputs`: numbers of channels; masks are possible if one of these numbers is not a multiple of 16
    and all of them are known at compile time."""
    open_count = any(isinstance(count, Extent) for count in outputs)
    return pick.may("masks", target.whole_vectors and not open_count and any(count % LANES for count in outputs))


class Epilogue:
    """Emits the epilogue of a kernel: applies the elementwise `linalg.generic` that follows the sums to 16 accumulators
    at a time, or stores these if there is none (`op` is None). `masks`: whether fewer than 16 elements are loaded and
    stored by one masked instruction, instead of in parts of powers of two."""

    def __init__(
        self, builder: LoopBuilder, accumulator: SSAValue, op: linalg.GenericOp | None, channels: int, masks: bool
    ):
        self.builder, self.channels, self.masks = builder, channels, masks
        self.op = op
        self.accumulator = accumulator
        self.rank = len(shape_of(accumulator))
        if op is None:
            identity = AffineMap.identity(self.rank)
            self.inputs: list[Access] = []
            self.outputs = [Access(accumulator, identity, True)]
        else:
            accesses = accesses_of(op)
            self.inputs, self.outputs = accesses[: len(op.inputs)], accesses[len(op.inputs) :]
        self.lifter = Lifter(builder, LANES)
        self.clamp = None if op is None else match_clamp(op.body.block)

    @property
    def itemsize(self) -> int:
        """The size in bytes of an element of the result."""
        return dtype_of(buffer_of(self.outputs[0].value).element_type).itemsize

    @staticmethod
    def fits(op: linalg.GenericOp, accumulator: SSAValue) -> bool:
        """Whether the operation reads the accumulators elementwise and can run on vectors of channels."""
        rank, maps = len(shape_of(accumulator)), [m.data for m in op.indexing_maps]
        if not is_parallel(op) or maps[0].num_dims != rank:
            return False
        if not can_lift(op.body.block) or not all(is_identity(m, rank) for m in maps[len(op.inputs) :]):
            return False
        for value, map in zip(op.operands, maps, strict=True):
            if value is accumulator and not is_identity(map, rank):
                return False
            if is_buffer(value.type) and not contiguous(value.type):
                return False
            last = dims_of(map)
            if uses(map, rank - 1) and (last[-1] != rank - 1 or any(d == rank - 1 for d in last[:-1])):
                return False
        return True

    def turn_points(self) -> None:
        """View images of one column as images of one row, (image, 0, row, channel), if every operand allows it."""
        if not by_points(self.accesses, self.rank):
            return
        images, rows, columns, channels = shape_of(self.accumulator)
        shape, seen = [images, columns, rows, channels], dict[SSAValue, SSAValue]()

        def turned(access: Access) -> Access:
            if not is_identity(access.map, self.rank):
                of_channels = not is_buffer(access.value.type) or dims_of(access.map) == [self.rank - 1]
                return access if of_channels else self.only(access, self.rank)
            if access.value not in seen:
                seen[access.value] = self.builder.view(access.value, shape)
            return replace(access, value=seen[access.value])

        self.inputs, self.outputs = [*map(turned, self.inputs)], [*map(turned, self.outputs)]
        self.accumulator = seen.get(self.accumulator, self.accumulator)

    def flatten_points(self) -> None:
        """Merge all dimensions but the channels into one, so that the epilogue is indexed by (pixel, channel), if every
        operand has one element per pixel and channel, one per channel, or a single one."""
        if by_points(self.accesses, self.rank):
            self.inputs = [self.flat(a) for a in self.inputs]
            self.outputs = [self.flat(a) for a in self.outputs]
            self.rank = 2

    def flat(self, access: Access) -> Access:
        """Return the access to an operand with all dimensions but the channels merged into one, so that its map takes
        two indices, (pixel, channel). The operand's buffer is reshaped if necessary."""
        if not is_buffer(access.value.type):
            return replace(access, map=AffineMap(2, 0, ()))
        if is_identity(access.map, self.rank):
            value = access.value
            if self.rank > 2 and (value is not self.accumulator or self.op is None):
                value = self.builder.matrix(value)
                if access.value is self.accumulator:
                    self.accumulator = value
            return Access(value, AffineMap.identity(2), access.used)
        if dims_of(access.map) == [self.rank - 1]:
            return replace(access, map=AffineMap(2, 0, (AffineExpr.dimension(1),)))
        return self.only(access, 2)

    @staticmethod
    def only(access: Access, rank: int) -> Access:
        """Return the access of an operand with a single element, with a map of `rank` dimensions to this element."""
        count = buffer_of(access.value).get_num_dims()
        return replace(access, map=AffineMap(rank, 0, AffineMap.constant_map(0).results * count))

    def mask(self, lanes: Index) -> SSAValue:
        """Return the mask that enables the first `lanes` of 16."""
        b = self.builder
        if not isinstance(lanes, int):
            numbers = b.constant_attr(dense_vector(range(LANES), i32), vector_of(i32, LANES))
            return b.compare(numbers, "slt", b.broadcast(b.add(IndexCastOp(lanes, i32)).result, LANES))
        attr = dense_vector([i < lanes for i in range(LANES)], i1)
        return b.constant_attr(attr, vector_of(i1, LANES))

    def load(self, value: SSAValue, at: Sequence[Index], lanes: Index) -> SSAValue:
        """Load 16 elements, or the first `lanes` of them; the other lanes are zero with masks, else unspecified."""
        b = self.builder
        if lanes == LANES:
            return b.vector_load(value, at, LANES)
        if isinstance(lanes, int) and not self.masks:
            return self.load_pieces(value, at, lanes)
        element: Attribute = buffer_of(value).element_type
        number = 0 if dtype_of(element).kind in "iu" else 0.0
        zero = vector_constant(b, number, element, LANES)
        return b.add(vector.MaskedLoadOp(value, [b.index(i) for i in at], self.mask(lanes), zero)).result

    def load_pieces(self, value: SSAValue, at: Sequence[Index], lanes: int) -> SSAValue:
        """Load the first `lanes` of 16 elements, in vectors of 8, 4 and 2, and a scalar; the other lanes are
        unspecified."""
        b, result = self.builder, None
        for first, count in pieces(lanes):
            place = [*at[:-1], b.plus(at[-1], first)]
            if count == 1:  # no vector of one lane: some vector passes of LLVM fail on these
                wide = b.broadcast(b.load(value, place), LANES)
            else:
                part = b.vector_load(value, place, count)
                wide = b.shuffle(part, part, [min(max(lane - first, 0), count - 1) for lane in range(LANES)])
            below = [lane if lane < first else LANES + lane for lane in range(LANES)]
            result = wide if result is None else b.shuffle(result, wide, below)
        assert result is not None
        return result

    def store(self, vec: SSAValue, target: SSAValue, at: Sequence[Index], lanes: Index) -> None:
        b = self.builder
        if lanes == LANES:
            b.vector_store(vec, target, at)
        elif isinstance(lanes, int) and not self.masks:
            for first, count in pieces(lanes):
                place = [*at[:-1], b.plus(at[-1], first)]
                if count == 1:  # as in `load_pieces`
                    b.store(b.lane(vec, first), target, place)
                else:
                    b.vector_store(b.shuffle(vec, vec, range(first, first + count)), target, place)
        else:
            b.add(vector.MaskedStoreOp(target, [b.index(i) for i in at], self.mask(lanes), vec))

    def apply(self, accumulators: SSAValue, point: Sequence[Index], channel: Index, lanes: Index) -> None:
        """Apply the epilogue to 16 (or the first `lanes`) channels of one point and store the results."""
        results = [accumulators]
        if self.op is not None:
            values = [self.operand(access, accumulators, [*point, channel], lanes) for access in self.accesses]
            results = self.lifter.emit(self.op.body.block, values)
        for value, access in zip(results, self.outputs, strict=True):
            self.store(value, access.value, self.place(access, [*point, channel]), lanes)

    def apply_to_one(self, accumulator: SSAValue, point: Sequence[Index], channel: Index) -> None:
        """Apply the epilogue to one channel of one point, in scalars, and store the result."""
        b, dims, results = self.builder, [*point, channel], [accumulator]
        if self.op is not None:
            values = [
                accumulator if access.value is self.accumulator else self.element(access, dims)
                for access in self.accesses
            ]
            results = clone_scalar(b, self.op.body.block, values, dims)
        for value, access in zip(results, self.outputs, strict=True):
            b.store(value, access.value, self.place(access, dims))

    @property
    def accesses(self) -> list[Access]:
        return [*self.inputs, *self.outputs]

    def place(self, access: Access, dims: Sequence[Index]) -> list[Index]:
        """Return the indices of the operand's element at the point and channel `dims`."""
        return [self.builder.apply(r, dims) for r in access.map.results]

    def operand(self, access: Access, accumulators: SSAValue, dims: Sequence[Index], lanes: Index) -> SSAValue:
        """Return the body's argument for 16 (or the first `lanes`) channels at a point; an operand that the body does
        not use is returned as it is."""
        b = self.builder
        if access.value is self.accumulator:
            return accumulators
        if not access.used:
            return access.value
        if is_buffer(access.value.type) and uses(access.map, self.rank - 1):
            return self.load(access.value, self.place(access, dims), lanes)
        return b.broadcast(self.element(access, dims), LANES)

    def element(self, access: Access, dims: Sequence[Index]) -> SSAValue:
        """Return the operand's element at the point and channel `dims`. Nothing is loaded of an operand that is a
        scalar, or that the body does not use: the operand itself is returned."""
        if not access.used or not is_buffer(access.value.type):
            return access.value
        return self.builder.load(access.value, self.place(access, dims))

    # 64 channels at once

    def packs(self) -> bool:
        """Whether `codes` can compute 64 results at once as one vector: the epilogue ends with a clamp to 8-bit codes,
        and each input that it uses is the buffer of accumulators, has one element per channel, or is a scalar."""
        return self.clamp is not None and all(
            access.value is self.accumulator
            or not access.used
            or not is_buffer(access.value.type)
            or dims_of(access.map) == [self.rank - 1]
            or elements(shape_of(access.value)) == 1
            for access in self.inputs
        )

    def channel_vectors(self, channels: Sequence[Index], lanes: int) -> list[list[SSAValue | None]]:
        """Return a list for each operand of the body: its values for the 16 channels (or the first `lanes` of them)
        from each index in `channels` on, or None in place of each value if the operand is the accumulators."""
        dims = [[*[0] * (self.rank - 1), channel] for channel in channels]
        return [
            [None if access.value is self.accumulator else self.operand(access, access.value, at, lanes) for at in dims]
            for access in self.accesses
        ]

    def codes(self, accumulators: Sequence[SSAValue], operands: Sequence[Sequence[SSAValue | None]]) -> SSAValue:
        """Apply the epilogue to four vectors of 16 accumulators, and return the 64 codes in one vector, whose order is
        that of the function `saturate`: each 128-bit part has codes of all four."""
        assert self.op is not None and self.clamp is not None
        block, vectors = self.op.body.block, list[SSAValue]()
        for number, accumulator in enumerate(accumulators):
            values = [accumulator if (value := operand[number]) is None else value for operand in operands]
            vectors += self.lifter.emit(block, values, [self.clamp.value])
        return saturate(self.builder, self.clamp, vectors)


def operations_of(op: linalg.GenericOp | None) -> int:
    """Return the number of ops in an epilogue; functions in `EXPANDED` count as the ops to which they expand."""
    ops = [] if op is None else list(op.body.block.ops)
    return len(ops) + (EXPANSION - 1) * sum(each.name in EXPANDED for each in ops)


def epilogue_of(out: SSAValue, *writers: Operation) -> linalg.GenericOp | None:
    """Return the only op that reads the accumulators, if it is an elementwise op that can be an epilogue; else None."""
    users = {use.operation for use in out.uses} - {*writers}
    if isinstance(out, BlockArgument) or len(users) != 1:
        return None
    user = users.pop()
    if not isinstance(user, linalg.GenericOp) or out in tuple(user.outputs) or not Epilogue.fits(user, out):
        return None
    return user
