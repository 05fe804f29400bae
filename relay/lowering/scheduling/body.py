"""The region of a `linalg.generic`: cloned for scalars, or lifted to operations on vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np
from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import AnyFloat, BytesAttr, DenseIntOrFPElementsAttr, IntegerType, VectorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue

from relay.dialects.arith import WIDENED
from relay.dialects.attributes import dtype_of, to_numpy
from relay.dialects.op import created
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.shaped import Vector, is_vector, vector_of

LIFTED_DIALECTS = ("arith.", "math.")
LIFTED_INTRINSICS = {
    "llvm.x86.avx512.vfmadd.f32": ("llvm.x86.avx512.vfmadd.ps.512", 16),
    "llvm.aarch64.neon.sqrdmulh.i32": ("llvm.aarch64.neon.sqrdmulh.v4i32", 4),
    "llvm.aarch64.neon.sqdmulh.i32": ("llvm.aarch64.neon.sqdmulh.v4i32", 4),
    "llvm.aarch64.neon.sqrshl.i32": ("llvm.aarch64.neon.srshl.v4i32", 4),
    "llvm.nvvm.fma.rz.f": ("", 1),
    "llvm.nvvm.saturate.f": ("", 1),
    "llvm.nvvm.f2i.rn": ("", 1),
}
"""For each scalar intrinsic, the intrinsic that does the same on a vector, and the number of lanes of that vector. An
empty name means that no such intrinsic exists, and each lane is computed separately. An operand that is a constant of
another type than the result stays a scalar."""

EXPANDED = ("math.exp", "math.expm1", "math.log", "math.tanh", "math.erf")
"""Functions that are expanded to polynomials on vectors of any length."""
EXPANSION = 20
"""The approximate number of ops to which one of the `EXPANDED` functions expands."""


def can_lift(block: Block) -> bool:
    """Whether every operation of the block can be emitted on vectors instead of scalars."""
    return all(isinstance(op, linalg.YieldOp) or lifts(op) for op in block.ops)


def lifts(op: Operation) -> bool:
    """Whether an operation can be emitted on vectors instead of scalars."""
    intrinsic = isinstance(op, llvm.CallIntrinsicOp) and op.intrin.data in LIFTED_INTRINSICS
    return intrinsic or op.name.startswith(LIFTED_DIALECTS)


class Lifter:
    """Emits a region's operations on vectors of `lanes` elements; scalars defined outside are broadcast once."""

    def __init__(self, builder: LoopBuilder, lanes: int):
        self.builder = builder
        self.lanes = lanes
        self.constants: dict[Operation, SSAValue] = {}
        self.scalars: dict[SSAValue, SSAValue] = {}

    def type(self, scalar: Attribute) -> Vector:
        return vector_of(scalar, self.lanes)

    def splat(self, op: arith.ConstantOp) -> SSAValue:
        """Return a constant as a vector, which is defined once at the start of the function."""
        if (known := self.constants.get(op)) is None:
            value = to_numpy(op.value).tolist()
            self.constants[op] = known = vector_constant(self.builder, value, op.result.type, self.lanes)
        return known

    def spread(self, value: SSAValue, owner: Operation) -> SSAValue:
        """Return a scalar of the function's entry block as a vector, broadcast right after its definition."""
        if (known := self.scalars.get(value)) is None:
            wide = created(vector.BroadcastOp, [value], [self.type(value.type)])
            self.builder.entry.insert_op_after(wide, owner)
            self.scalars[value] = known = wide.results[0]
        return known

    def emit(
        self,
        block: Block,
        arguments: Sequence[SSAValue],
        results: Sequence[SSAValue] | None = None,
        positions: Sequence[int] = (),
    ) -> list[SSAValue]:
        """Emit the block on vector arguments; return the vectors of the values that it yields or, if given, of
        `results`, which are values inside the block. `positions`: the value of `linalg.index` in each lane."""
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))

        def of(value: SSAValue) -> SSAValue:
            if value not in values:
                owner = value.owner
                if isinstance(owner, arith.ConstantOp):
                    values[value] = self.splat(owner)
                elif isinstance(owner, Operation) and owner.parent is self.builder.entry:
                    values[value] = self.spread(value, owner)
                else:
                    values[value] = self.builder.broadcast(value, self.lanes)
            return values[value]

        for op in block.ops:
            kind = op.__class__
            if kind is linalg.YieldOp:
                return [of(v) for v in (op.operands if results is None else results)]
            if kind is arith.ConstantOp and isinstance(op, arith.ConstantOp):
                values[op.result] = self.splat(op)
                continue
            if kind is linalg.IndexOp:
                continue
            if (
                kind is arith.IndexCastOp
                and isinstance(op, arith.IndexCastOp)
                and isinstance(op.input.owner, linalg.IndexOp)
            ):
                attr, type = dense_vector(positions, op.result.type), self.type(op.result.type)
                values[op.result] = self.builder.constant_attr(attr, type)
                continue
            if kind is llvm.CallIntrinsicOp and isinstance(op, llvm.CallIntrinsicOp):
                scalar = op.results[0].type
                stay = [v.type != scalar and isinstance(v.owner, arith.ConstantOp) for v in op.args]
                operands = [v if alone else of(v) for v, alone in zip(op.args, stay, strict=True)]
                values[op.results[0]] = self.intrinsic(op, operands)
                continue
            widened = WIDENED.get(op.name, op.__class__)
            lifted = created(
                widened, [of(v) for v in op.operands], [self.type(r.type) for r in op.results], op.properties
            )
            lifted.attributes.update(op.attributes)
            self.builder.add(lifted)
            for old, new in zip(op.results, lifted.results, strict=True):
                values[old] = new
        raise ValueError("the region has no linalg.yield")

    def intrinsic(self, op: llvm.CallIntrinsicOp, operands: Sequence[SSAValue]) -> SSAValue:
        """Apply a scalar intrinsic to all lanes; operands that are not vectors apply to every lane."""
        b, scalar = self.builder, op.results[0].type
        name, width = LIFTED_INTRINSICS[op.intrin.data]
        if not name or self.lanes % width:
            each = ([b.lane(v, lane) if is_vector(v.type) else v for v in operands] for lane in range(self.lanes))
            return b.packed([b.intrinsic(op.intrin.data, values, scalar) for values in each])
        parts: list[SSAValue] = []
        for start in range(0, self.lanes, width):
            picked = range(start, start + width)
            whole = self.lanes == width
            pieces = [b.shuffle(v, v, picked) if is_vector(v.type) and not whole else v for v in operands]
            parts.append(b.intrinsic(name, pieces, vector_of(scalar, width)))
        return b.joined(parts)


def vector_constant(builder: LoopBuilder, value: float | int | bool, element: Attribute, lanes: int) -> SSAValue:
    """Return `arith.constant dense<value>` with `value` in every lane, at the start of the function."""
    return builder.constant_attr(dense_vector([value] * lanes, element), vector_of(element, lanes))


def dense_vector(values: Sequence[float | int | bool], element: Attribute) -> Attribute:
    """Return the attribute `dense<...> : vector<...>`."""
    data = np.asarray(values, dtype_of(element)).tobytes()
    return _dense(data, cast(VectorType[IntegerType | AnyFloat], vector_of(element, len(values))))


@lru_cache(maxsize=1024)
def _dense(data: bytes, type: VectorType[IntegerType | AnyFloat]) -> Attribute:
    return DenseIntOrFPElementsAttr(type, BytesAttr(data))


def clone_scalar(
    builder: LoopBuilder, block: Block, arguments: Sequence[SSAValue], dims: Sequence[Index]
) -> list[SSAValue]:
    """Emit the block on scalars; `linalg.index` becomes the loop's index. Return the values that the block yields."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, linalg.YieldOp):
            return [values.get(v, v) for v in op.operands]
        if isinstance(op, linalg.IndexOp):
            values[op.result] = builder.index(dims[op.dim.value.data])
            continue
        copy: Operation = op.clone(values)
        builder.add(copy)
    raise ValueError("the region has no linalg.yield")
