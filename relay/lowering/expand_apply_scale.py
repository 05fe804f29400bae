"""`expand-apply-scale`: rescaling as integer arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tosa import RoundingMode
from xdsl.ir import Operation, SSAValue

from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.linalg.emitter import Emitter, number
from relay.lowering.linalg.fixed_point import rounding_right_shift
from relay.passes import Pass


@dataclass(frozen=True)
class ExpandApplyScale(Pass):
    """Turn each `tosa.apply_scale` into `arith`, exactly and without branches, so that LLVM can vectorize it.

    Where the shift is at least 31, only the product and its first rounding are in i64; the second rounding is in i32.
    `31 - e` is taken to be at least 31: `relay-to-linalg` writes it for exponents that are not positive.
    """

    name = "expand-apply-scale"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, FuncOp)]:
            scales = [s for s in function.walk() if isinstance(s, ApplyScaleOp)]
            if scales:
                entry = function.body.blocks[0]
                constants = Emitter(entry, function.location, before=inside(scales[0], function))
                for scale in scales:
                    expand(scale, constants)


def inside(op: Operation, function: FuncOp) -> Operation:
    """The op of the function's own block that holds the op."""
    while (parent := op.parent_op()) is not function:
        assert parent is not None
        op = parent
    return op


def expand(op: ApplyScaleOp, constants: Emitter) -> None:
    """%r = tosa.apply_scale %x, %m, %s  =>  %r = (%x * %m + rounding) >> %s"""
    block = op.parent_block()
    assert block is not None
    e = Emitter(block, op.location, constants, op)
    twice = op.rounding_mode.data == RoundingMode.DOUBLE_ROUND
    shift = number(op.shift)
    product = e(arith.MuliOp(e(arith.ExtSIOp(op.value, i64)), e(arith.ExtSIOp(op.multiplier, i64))))
    if shift is not None:
        result = by_constant(e, product, int(shift), twice)
    elif twice and (exponent := exponent_of(op.shift)) is not None:
        result = rounding_right_shift(e, high_half(e, product), e(arith.SubiOp(e.constant(0, i32), exponent)))
    else:
        result = by_any(e, op, product, twice)
    op.output.replace_all_uses_with(result)
    operands = [op.shift]
    op.detach()
    op.erase()
    erase_unused(operands)


def by_constant(e: Emitter, product: SSAValue, shift: int, twice: bool) -> SSAValue:
    """A shift that is known: halves up once, or at bit 31 and then halves away from zero in i32."""
    if twice and shift > 31:
        return rounding_right_shift(e, high_half(e, product), e.constant(shift - 31, i32))
    rounded = e(arith.AddiOp(product, e.constant(1 << (shift - 1), i64)))
    return e(arith.TruncIOp(e(arith.ShRSIOp(rounded, e.constant(shift, i64))), i32))


def high_half(e: Emitter, product: SSAValue) -> SSAValue:
    """`(product + 2^30) >> 31`, of which i32 keeps all that matters."""
    rounded = e(arith.AddiOp(product, e.constant(1 << 30, i64)))
    return e(arith.TruncIOp(e(arith.ShRSIOp(rounded, e.constant(31, i64))), i32))


def exponent_of(shift: SSAValue) -> SSAValue | None:
    """The i32 `e` of a shift that is `trunci(31 - e)`."""
    owner = shift.owner
    source = owner.operands[0].owner if isinstance(owner, Operation) and owner.name == "arith.trunci" else None
    if isinstance(source, arith.SubiOp) and number(source.lhs) == 31 and source.rhs.type == i32:
        return source.rhs
    return None


def by_any(e: Emitter, op: ApplyScaleOp, product: SSAValue, twice: bool) -> SSAValue:
    """A shift from 2 to 62: the specification's formula, in i64."""
    shift = e(arith.ExtUIOp(op.shift, i64))
    half = e(arith.ShRUIOp(e(arith.ShLIOp(e.constant(1, i64), shift)), e.constant(1, i64)))
    rounded = e(arith.AddiOp(product, half))
    if twice:
        positive = e(arith.CmpiOp(op.value, e.constant(0, i32), "sge"))
        nudge = e(arith.SelectOp(positive, e.constant(1 << 30, i64), e.constant(-(1 << 30), i64)))
        long = e(arith.CmpiOp(shift, e.constant(31, i64), "sgt"))
        rounded = e(arith.AddiOp(rounded, e(arith.SelectOp(long, nudge, e.constant(0, i64)))))
    return e(arith.TruncIOp(e(arith.ShRSIOp(rounded, shift)), i32))


def erase_unused(values: list[SSAValue]) -> None:
    """Erase the arithmetic that computed these values, as far as nothing else uses it."""
    while values:
        owner = values.pop().owner
        if not isinstance(owner, Operation) or owner.name not in ("arith.trunci", "arith.subi"):
            continue
        if not any(result.uses for result in owner.results):
            values += owner.operands
            owner.detach()
            owner.erase()
