"""Legalization of storage-only element types: arithmetic on them is done in f32, or in 8 bits, and rounded once."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, bf16, f16, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from relay.dialects import relay
from relay.dialects.attributes import scalar_attr
from relay.dialects.element_types import is_narrow, wide_type
from relay.dialects.op import Origin, TensorOp, is_tensor, tensor
from relay.target import CpuTarget
from relay.transforms.expansion import Expansion
from relay.transforms.half_products import of_halves, takes_pairs
from relay.transforms.legalization import Legalization

KEPT = relay.CastOp | relay.ConstantOp | relay.ReinterpretOp | relay.WeightOnlyDenseOp
"""Ops that have a lowering for every element type, beside ops that only move elements."""


class Widen(Legalization):
    """op %x : bf16  =>  cast (op (cast %x : f32)) : bf16

    Integers of 2 and 4 bits are computed in 8 bits. f16 is computed in f32, too, on processors without arithmetic of
    f16, and on every CPU for ops that are not elementwise. bf16 products that an instruction of the target sums in
    pairs keep bf16 operands: `cast (op %x, %w : f32) : bf16`.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if self.replaces(op) and isinstance(op, TensorOp):
            new, pairs = Expansion(op), takes_pairs(op, self.target) and is_half(op.operands[0])
            operands = [value if pairs else new.cast(value, wide(tensor(value).element_type)) for value in op.operands]
            properties = {name: widened(attr) for name, attr in op.properties.items()}
            results = new.add(type(op), operands, properties).results
            types = [tensor(result).element_type for result in op.results]
            new.replace(rewriter, *(new.cast(value, type) for value, type in zip(results, types, strict=True)))

    def replaces(self, op: Operation) -> bool:
        return isinstance(op, TensorOp) and op.name.startswith("relay.") and not (lowers(op) and self.computes(op))

    def computes(self, op: TensorOp) -> bool:
        """Whether the target's kernels compute the op in f16, or in pairs of bf16, so that it need not be widened."""
        if of_halves(op):
            return takes_pairs(op, self.target)
        values = (*op.operands, *op.results)
        if not isinstance(self.target, CpuTarget) or not any(element_of(value) == f16 for value in values):
            return True
        return keeps(op) or (op.ELEMENTWISE and self.target.half_floats)


def element_of(value: SSAValue) -> Attribute | None:
    """The element type of a tensor; None if the value is not a tensor."""
    return value.type.element_type if is_tensor(value.type) else None


def is_half(value: SSAValue) -> bool:
    """Whether the value is a bf16 tensor."""
    return element_of(value) == bf16


def keeps(op: TensorOp) -> bool:
    """Whether the op is lowered on narrow element types without widening: it only moves elements, or has a lowering for
    every element type."""
    return isinstance(op, KEPT) or (op.origin is Origin.MOVED and not op.FILLS)


def lowers(op: TensorOp) -> bool:
    """Whether the op need not be widened: no operand or result has a narrow element type, or the op has a lowering for
    this type."""
    values = (*op.operands, *op.results)
    if not any(is_tensor(value.type) and is_narrow(value.type.element_type) for value in values):
        return True
    return keeps(op) or of_halves(op)


def wide(type: Attribute) -> Attribute:
    """The type in which elements of a narrow type are computed; any other type unchanged."""
    return wide_type(type) if is_narrow(type) else f32 if type == f16 else type


def widened(attr: Attribute) -> Attribute:
    """Convert a property for the widened op: a narrow element type becomes the wide type, and a number of a narrow type
    becomes one of the wide type."""
    same: Attribute = attr
    if isinstance(attr, FloatAttr | IntegerAttr) and wide(type := attr.get_type()) != type:
        return scalar_attr(attr.value.data, wide(type))
    return wide(same)


PATTERNS: list[type[Legalization]] = [Widen]
