"""A dialect of another package, as tests register it: an op that expands, one with a lowering, one with neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, i16
from xdsl.ir import Attribute, Data, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, operand_def, opt_prop_def, result_def
from xdsl.parser import AttrParser
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.printer import Printer

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.element_types import StoredType
from relay.dialects.op import TensorOp, Type, require, shape, tensor
from relay.dialects.plug_in import DialectPlugIn
from relay.lowering.linalg.emitter import Emitter, axes
from relay.passes import Pass
from relay.transforms.expansion import Expansion
from relay.transforms.legalization import Legalization


class Unary(TensorOp):
    input = operand_def(TensorType[Attribute])
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        return [tensor(self.input)]


@irdl_attr_definition
class KindType(Data[str], TypeAttribute):
    """A type of the dialect."""

    name = "third.kind"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class FixedType(ParametrizedAttribute, StoredType):
    """Numbers of 16 bits, some of them behind the point."""

    name = "third.fixed"
    fraction: IntegerAttr

    @property
    def storage(self) -> Attribute:
        return i16


@irdl_op_definition
class DoubleOp(Unary):
    """`2 * input`"""

    name = "third.double"
    ELEMENTWISE: ClassVar[bool] = True
    kind = opt_prop_def(Attribute)


@irdl_op_definition
class TurnOp(Unary):
    """`result[i, j] = input[j, i]`"""

    name = "third.turn"

    def infer(self) -> Sequence[Type]:
        require(len(shape(self.input)) == 2, f"{self.name}: takes a matrix")
        return [TensorType(tensor(self.input).element_type, shape(self.input)[::-1])]


@irdl_op_definition
class LooseOp(Unary):
    """Has no meaning, and nothing that it becomes."""

    name = "third.loose"


Third = Dialect("third", [DoubleOp, TurnOp, LooseOp], [KindType, FixedType])


def double_meaning(op: DoubleOp, x: Array) -> Array:
    return x + x


def double_expansion(new: Expansion, op: DoubleOp) -> SSAValue:
    """Differs by target, as the test of that asks."""
    if "avx2" in new.target.features:
        return new.times(op.input, 2)
    return new.value(relay.AddOp, op.input, op.input)


def turn_meaning(op: TurnOp, x: Array) -> Array:
    return np.transpose(x)


def turn_lowering(e: Emitter, op: TurnOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [e.copy(operands[0], axes(2, 1, 0), shape(op.result))]


def double_scalar(e: Emitter, op: DoubleOp, numbers: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [e(arith.AddiOp(numbers[0], numbers[0]))]


class Undo(Legalization):
    """third.turn (third.turn %x)  =>  %x"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, TurnOp) and isinstance(op.input.owner, TurnOp):
            rewriter.replace(op, [], [op.input.owner.input])


@dataclass(frozen=True)
class Halve(Pass):
    """Take third.double away."""

    name: ClassVar[str] = "third-halve"
    aliases = ("HalveThird",)
    invalidates = ()
    most: int = 8

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [each for each in op.walk() if isinstance(each, DoubleOp)][: self.most]:
            inner.result.replace_all_uses_with(inner.input)
            inner.detach()
            inner.erase()


PLUG_IN = DialectPlugIn(
    dialect="tests.unit.third_dialect:Third",
    meanings={DoubleOp: double_meaning, TurnOp: turn_meaning},
    expansions={DoubleOp: double_expansion},
    patterns=[Undo],
    lowerings={TurnOp: turn_lowering},
    passes={"third-halve": "tests.unit.third_dialect:Halve"},
)
