"""What follows a contraction: an elementwise `linalg.generic` applied to accumulators while they are in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import vector
from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    MemRefType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.memref import CollapseShapeOp
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap

from relay.dialects.attributes import dtype_of
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import dims_of, is_identity, uses
from relay.lowering.scheduling.body import Lifter, can_lift, dense_vector, vector_constant
from relay.lowering.shaped import buffer_of, is_buffer, shape_of

LANES = 16


@dataclass(frozen=True)
class Access:
    """An operand of the epilogue and how a point (outer indices..., channel) reaches it."""

    value: SSAValue
    map: AffineMap
    used: bool


class Epilogue:
    """Applies the generic to vectors of 16 accumulators at a time; without a generic, stores them."""

    def __init__(self, builder: LoopBuilder, accumulator: SSAValue, op: linalg.GenericOp | None, channels: int):
        self.builder = builder
        self.channels = channels
        self.op = op
        self.accumulator = accumulator
        self.rank = len(shape_of(accumulator))
        if op is None:
            identity = AffineMap.identity(self.rank)
            self.inputs: list[Access] = []
            self.outputs = [Access(accumulator, identity, True)]
        else:
            maps = [m.data for m in op.indexing_maps]
            used = [any(a.uses) for a in op.body.block.args]
            accesses = [Access(v, m, u) for v, m, u in zip(op.operands, maps, used, strict=True)]
            self.inputs, self.outputs = accesses[: len(op.inputs)], accesses[len(op.inputs) :]
        self.lifter = Lifter(builder, LANES)

    @staticmethod
    def fits(op: linalg.GenericOp, accumulator: SSAValue) -> bool:
        """Whether the operation reads the accumulators elementwise and can run on vectors of channels."""
        rank, maps = len(shape_of(accumulator)), [m.data for m in op.indexing_maps]
        if any(t.data is not IteratorType.PARALLEL for t in op.iterator_types) or maps[0].num_dims != rank:
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

    def flatten_points(self) -> bool:
        """See all points as one row, if every operand allows it: (points, channel)."""
        for access in (*self.inputs, *self.outputs):
            if not (
                is_identity(access.map, self.rank)
                or dims_of(access.map) == [self.rank - 1]
                or not is_buffer(access.value.type)
                or prod(shape_of(access.value)) == 1
            ):
                return False
        self.inputs = [self.flat(a) for a in self.inputs]
        self.outputs = [self.flat(a) for a in self.outputs]
        self.rank = 2
        return True

    def flat(self, access: Access) -> Access:
        """The access in terms of (point, channel)."""
        if not is_buffer(access.value.type):
            return Access(access.value, AffineMap.from_callable(lambda a, b: (), dim_symbol_split=(2, 0)), access.used)
        type = buffer_of(access.value)
        if is_identity(access.map, self.rank):
            value = access.value
            if self.rank > 2 and value is not self.accumulator or (self.rank > 2 and self.op is None):
                dims = type.get_shape()
                groups = ArrayAttr(
                    [
                        ArrayAttr([IntegerAttr(i, i64) for i in range(self.rank - 1)]),
                        ArrayAttr([IntegerAttr(self.rank - 1, i64)]),
                    ]
                )
                value = self.builder.add(
                    CollapseShapeOp.create(
                        operands=[value],
                        result_types=[MemRefType(type.element_type, [prod(dims[:-1]), dims[-1]])],
                        properties={"reassociation": groups},
                    )
                ).results[0]
                if access.value is self.accumulator:
                    self.accumulator = value
            return Access(value, AffineMap.identity(2), access.used)
        if dims_of(access.map) == [self.rank - 1]:
            return Access(
                access.value, AffineMap.from_callable(lambda a, b: (b,), dim_symbol_split=(2, 0)), access.used
            )
        zeros = AffineMap(2, 0, AffineMap.constant_map(0).results * type.get_num_dims())
        return Access(access.value, zeros, access.used)

    def mask(self, lanes: int) -> SSAValue:
        """The first `lanes` of 16."""
        attr = dense_vector([i < lanes for i in range(LANES)], i1)
        return self.builder.constant_attr(attr, VectorType(i1, [LANES]))

    def load(self, value: SSAValue, at: Sequence[Index], lanes: int) -> SSAValue:
        """16 elements, or the first `lanes` and zeros."""
        b = self.builder
        if lanes == LANES:
            return b.vector_load(value, at, LANES)
        element: Attribute = buffer_of(value).element_type
        number = 0 if dtype_of(element).kind in "iu" else 0.0
        zero = vector_constant(b, number, element, LANES)
        return b.add(vector.MaskedLoadOp(value, [b.index(i) for i in at], self.mask(lanes), zero)).result

    def store(self, vec: SSAValue, target: SSAValue, at: Sequence[Index], lanes: int) -> None:
        b = self.builder
        if lanes == LANES:
            b.vector_store(vec, target, at)
        else:
            b.add(vector.MaskedStoreOp(target, [b.index(i) for i in at], self.mask(lanes), vec))

    def apply(self, accumulators: SSAValue, point: Sequence[Index], channel: Index, lanes: int) -> None:
        """Finish 16 (or the first `lanes`) channels of one point and store them."""
        b, dims = self.builder, [*point, channel]
        results = [accumulators]
        if self.op is not None:
            values: list[SSAValue] = []
            for access in (*self.inputs, *self.outputs):
                if access.value is self.accumulator:
                    values.append(accumulators)
                elif not access.used:
                    values.append(access.value)
                elif not is_buffer(access.value.type):
                    values.append(b.broadcast(access.value, LANES))
                else:
                    at = [b.apply(r, dims) for r in access.map.results]
                    if uses(access.map, self.rank - 1):
                        values.append(self.load(access.value, at, lanes))
                    else:
                        values.append(b.broadcast(b.load(access.value, at), LANES))
            results = self.lifter.emit(self.op.body.block, values)
        for value, access in zip(results, self.outputs, strict=True):
            self.store(value, access.value, [b.apply(r, dims) for r in access.map.results], lanes)
