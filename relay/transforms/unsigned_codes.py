"""The pass `unsigned-codes`: adds 128 to signed 8-bit codes, and to their zero points, where the target's dot product
takes unsigned data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeGuard

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    ModuleOp,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects import relay
from relay.dialects.attributes import element_type, scalar_attr, to_numpy
from relay.dialects.op import Origin, TensorOp, is_integer, rank, tensor
from relay.passes.target_pass import TargetPass
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import Expansion, known_numbers
from relay.transforms.legalization import blocks_of

UI8 = element_type(np.dtype(np.uint8))
OFFSET = 128
"""The difference between an unsigned code and its signed counterpart."""


@dataclass(frozen=True)
class UnsignedCodes(TargetPass):
    """Make signed 8-bit quantized values unsigned where the target's dot product needs that. Codes between convolutions
    and products increase by 128, as do their zero points, so the real numbers they stand for do not change.

    `clip(x + zp, lo, hi)` cast to `i8` becomes `clip(x + (zp + 128), lo + 128, hi + 128)` cast to `ui8`. A convolution
    or product that reads it gets `input_zero_point + 128`; where it is cast to another type, 128 is subtracted from the
    result; ops that move or select codes, except slices, give unsigned results. A value stays signed if an op of any
    other kind reads it, or if it reaches no convolution or product, directly or through ops that move codes. Nothing is
    done if the dot product of the module's target takes signed data, or the target has no dot product.
    """

    name: ClassVar[str] = "unsigned-codes"
    opt_level = 2
    invalidates = ()
    why = "shifts codes to unsigned where the dot-product instruction takes u8 x s8"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        dot = self.target(op).dot()
        if dot is None or not dot.unsigned:
            return
        for block in blocks_of(op):
            if chosen := choose(block):
                Offset(chosen).run(list(block.ops))
        erase_dead(op.walk())


def choose(block: Block) -> set[SSAValue]:
    """The signed 8-bit values that are to become unsigned, by adding 128: results of casts from i32, and of ops that
    move or select such codes, if only ops that accept unsigned codes read them and they reach a convolution or
    product."""
    found: set[SSAValue] = {op.results[0] for op in block.ops if makes(op)}
    while refused := {value for value in found if not possible(value, found)}:
        found -= refused
    wanted = {value for value in found if any(multiplies(use.operation) for use in value.uses)}
    while more := {value for value in found - wanted if any(other in wanted for other in neighbours(value))}:
        wanted |= more
    return wanted


def makes(op: Operation) -> bool:
    """Whether the op computes signed codes that could be unsigned."""
    if isinstance(op, relay.CastOp):
        return tensor(op.result).element_type == i8 and rank(op.result) > 0 and tensor(op.input).element_type == i32
    return passes_on(op) and tensor(op.results[0]).element_type == i8 and rank(op.results[0]) > 0


def passes_on(op: Operation) -> TypeGuard[TensorOp]:
    """Whether the result of the op consists of elements of its operands, moved or selected."""
    if isinstance(op, relay.StridedSliceOp):  # it could; which of ResNet-50's products then change was not timed yet
        return False
    return isinstance(op, TensorOp) and op.origin in (Origin.MOVED, Origin.SELECTED) and len(op.results) == 1


def possible(value: SSAValue, found: set[SSAValue]) -> bool:
    """Whether all users of the value can read unsigned codes, and, if the op that computes it only moves codes, all of
    this op's data operands are in `found`, the values that may become unsigned."""
    owner = value.owner
    if isinstance(owner, Operation) and passes_on(owner):
        if not all(operand in found for operand in owner.data_operands()):
            return False
    return all(takes(use.operation, use.index, found) for use in value.uses)


def takes(op: Operation, index: int, found: set[SSAValue]) -> bool:
    """Whether the op can read its operand number `index` as unsigned codes, if the values in `found` are unsigned."""
    if passes_on(op):
        return op.results[0] in found and op.operands[index] in op.data_operands()
    if isinstance(op, relay.CastOp):
        return tensor(op.result).element_type != i8 and holds_codes(tensor(op.result).element_type)
    return multiplies(op) and index == 0


def holds_codes(type: Attribute) -> bool:
    """Whether codes increased by 128 can be cast to the type, and 128 can be subtracted in it. Integers wrap, and
    floats of 16 bits and more are exact; smaller floats would round, and booleans have no subtraction."""
    if is_integer(type):
        return type.width.data > 1
    return isinstance(type, Float16Type | BFloat16Type | Float32Type | Float64Type)


def multiplies(op: Operation) -> bool:
    return isinstance(op, relay.Conv2dOp | relay.DenseOp)


def neighbours(value: SSAValue) -> Iterator[SSAValue]:
    """The values that must be offset together with this one, since ops only move the codes between them."""
    if isinstance(value.owner, Operation) and passes_on(value.owner):
        yield from value.owner.data_operands()
    for use in value.uses:
        if passes_on(use.operation):
            yield use.operation.results[0]


class Offset:
    """Rewrites the ops that compute or read the values in `chosen`, which become unsigned, in program order."""

    def __init__(self, chosen: set[SSAValue]):
        self.chosen = chosen
        self.new: dict[SSAValue, SSAValue] = {}

    def run(self, ops: list[Operation]) -> None:
        for op in ops:
            if op.results and op.results[0] in self.chosen:
                self.make(op)
            elif any(operand in self.chosen for operand in op.operands):
                self.read(op)

    def make(self, op: Operation) -> None:
        """Insert a copy of an op that computes its result as unsigned codes. The original op, which computes signed
        codes, stays until its last use has been replaced."""
        new = Expansion(op)
        if isinstance(op, relay.CastOp):
            result = new.cast(self.offset(new, op.input), UI8)
        else:
            assert isinstance(op, TensorOp)
            properties = dict[str, Attribute | None](op.properties)
            for name in op.FILLS:
                properties[name] = scalar_attr(int(to_numpy(op.properties[name])) + OFFSET, UI8)
            result = new.value(type(op), *(self.new.get(value, value) for value in op.operands), properties=properties)
        result.name_hint = op.results[0].name_hint
        Rewriter.insert_op(new.ops, InsertPoint.before(op))
        self.new[op.results[0]] = result

    def offset(self, new: Expansion, x: SSAValue) -> SSAValue:
        """Return `x + 128`; only its lowest 8 bits are used. If x is a clip of a sum with a constant, no op is added:
        the clip's bounds and the constant are increased by 128."""
        clip = x.owner
        if not isinstance(clip, relay.ClipOp):
            return new.plus(x, OFFSET)
        low, high = (int(to_numpy(bound)) for bound in (clip.a_min, clip.a_max))
        inner = clip.input.owner
        if not isinstance(inner, relay.AddOp) or not bounded(inner.lhs) or (zero_point := scalar(inner.rhs)) is None:
            return new.plus(x, OFFSET)
        bounds = {"a_min": scalar_attr(low + OFFSET, i32), "a_max": scalar_attr(high + OFFSET, i32)}
        return new.value(relay.ClipOp, new.plus(inner.lhs, zero_point + OFFSET), properties=bounds)

    def read(self, op: Operation) -> None:
        """Replace an op that reads signed codes by one that reads unsigned ones."""
        new = Expansion(op)
        if isinstance(op, relay.CastOp):
            wide = new.cast(self.new[op.input], tensor(op.result).element_type)
            for use in list(op.result.uses):
                self.subtract(use.operation, use.index, wide)
            result = new.subtract(wide, OFFSET)
        else:
            assert isinstance(op, relay.Conv2dOp | relay.DenseOp)
            old = 0 if op.input_zero_point is None else op.input_zero_point.value.data
            properties = op.properties | {"input_zero_point": IntegerAttr(old + OFFSET, i32)}
            result = new.add(type(op), [self.new[op.data], op.kernel], properties).result
        result.name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, new.ops, [result])

    def subtract(self, op: Operation, index: int, wide: SSAValue) -> None:
        """cast %signed - c  =>  cast %unsigned - (c + 128), wrapping"""
        if not isinstance(op, relay.SubtractOp) or index != 0 or (constant := scalar(op.rhs)) is None:
            return
        if isinstance(tensor(wide).element_type, AnyFloat):
            return
        new = Expansion(op)
        result = new.subtract(wide, constant + OFFSET)
        if result is not wide:
            result.name_hint = op.result.name_hint
        Rewriter.replace_op(op, new.ops, [result])


def scalar(value: SSAValue) -> int | None:
    """The one integer of a constant of rank 0."""
    numbers = known_numbers(value)
    if numbers is None or rank(value) != 0 or isinstance(tensor(value).element_type, AnyFloat):
        return None
    return int(numbers)


def bounded(value: SSAValue) -> bool:
    """Whether the value is so small that adding a code to it cannot overflow: it is the result of rescaling an i32 by a
    factor of at most 1/2."""
    op = value.owner
    if isinstance(op, relay.FixedPointMultiplyOp):
        return below(op.shift, 0)
    if isinstance(op, relay.CastOp) and isinstance(op.input.owner, relay.RoundOp):
        product = op.input.owner.input.owner
        return isinstance(product, relay.MultiplyOp) and below(product.rhs, 0.5)
    return False


def below(value: SSAValue, bound: float) -> bool:
    """Whether all elements of a constant are below the bound."""
    numbers = known_numbers(value)
    return numbers is not None and bool(np.all(numbers < bound))
