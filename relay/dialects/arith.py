"""xDSL's `arith` with casts, comparisons and select that also take vectors, as upstream's do; xDSL's take scalars.

A module may hold xDSL's classes as well as these under equal names, so compare `op.name`, not the class."""

from __future__ import annotations

from abc import ABC
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import IntegerAttr, VectorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from relay.dialects.extended import extended


class CastOp(IRDLOperation, ABC):
    """A conversion of a scalar or of every lane of a vector."""

    input = operand_def(Attribute)
    result = result_def(Attribute)
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, value: SSAValue | Operation, type: Attribute):
        super().__init__(operands=[value], result_types=[type])


@irdl_op_definition
class ExtSIOp(CastOp):
    """Sign extension."""

    name = "arith.extsi"


@irdl_op_definition
class ExtUIOp(CastOp):
    """Zero extension."""

    name = "arith.extui"


@irdl_op_definition
class TruncIOp(CastOp):
    """The low bits."""

    name = "arith.trunci"
    overflowFlags = opt_prop_def(IntegerOverflowAttr)
    assembly_format = "$input (`overflow` `` $overflowFlags^)? attr-dict `:` type($input) `to` type($result)"


@irdl_op_definition
class SIToFPOp(CastOp):
    """Signed integer to float."""

    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(CastOp):
    """Unsigned integer to float."""

    name = "arith.uitofp"


@irdl_op_definition
class FPToSIOp(CastOp):
    """Float to signed integer, towards zero."""

    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(CastOp):
    """Float to unsigned integer, towards zero."""

    name = "arith.fptoui"


INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


@cache
def truth_of(type: Attribute) -> Attribute:
    """The type of a comparison's result: i1, or a vector of i1 for vectors; cached."""
    return VectorType(i1, type.get_shape()) if isinstance(type, VectorType) else i1


class CompareOp(IRDLOperation, ABC):
    """A comparison of scalars, or of vectors lane by lane; `predicate` is an index into `PREDICATES`."""

    PREDICATES: ClassVar[tuple[str, ...]]
    lhs = operand_def(Attribute)
    rhs = operand_def(Attribute)
    predicate = prop_def(IntegerAttr)
    result = result_def(Attribute)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_identifier()
        if name not in cls.PREDICATES:
            parser.raise_error(f"{cls.name}: unknown predicate {name}")
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        operands = [parser.resolve_operand(o, type) for o in (lhs, rhs)]
        predicate = IntegerAttr(cls.PREDICATES.index(name), i64)
        properties: dict[str, Attribute] = {"predicate": predicate}
        return cls.create(
            operands=operands, result_types=[truth_of(type)], properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.PREDICATES[self.predicate.value.data]}, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)

    def verify_(self) -> None:
        if self.lhs.type != self.rhs.type or self.result.type != truth_of(self.lhs.type):
            raise VerifyException(f"{self.name}: operands of one type give {truth_of(self.lhs.type)}")
        if not 0 <= self.predicate.value.data < len(self.PREDICATES):
            raise VerifyException(f"{self.name}: predicate {self.predicate.value.data} is unknown")


@irdl_op_definition
class CmpiOp(CompareOp):
    """Integer comparison."""

    name = "arith.cmpi"
    PREDICATES: ClassVar[tuple[str, ...]] = INTEGER_PREDICATES


@irdl_op_definition
class CmpfOp(CompareOp):
    """Float comparison."""

    name = "arith.cmpf"
    PREDICATES: ClassVar[tuple[str, ...]] = FLOAT_PREDICATES
    fastmath = prop_def(Attribute, default_value=FastMathFlagsAttr("none"))


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`cond ? lhs : rhs`; the condition is one i1, or a vector with one i1 per lane."""

    name = "arith.select"
    cond = operand_def(Attribute)
    lhs = operand_def(Attribute)
    rhs = operand_def(Attribute)
    result = result_def(Attribute)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        condition = types[0] if len(types) == 2 else i1
        values = parser.resolve_operands(operands, [condition, types[-1], types[-1]], position)
        return cls.create(operands=values, result_types=[types[-1]], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if self.cond.type != i1:
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if not self.lhs.type == self.rhs.type == self.result.type:
            raise VerifyException("arith.select: both values and the result have one type")
        if self.cond.type not in (i1, truth_of(self.result.type)):
            raise VerifyException(f"arith.select: {self.cond.type} does not choose among {self.result.type}")


@irdl_op_definition
class RemFOp(IRDLOperation):
    """`lhs - rhs * trunc(lhs / rhs)`, exact and with the sign of lhs: C's `fmod`."""

    name = "arith.remf"
    lhs = operand_def(Attribute)
    rhs = operand_def(Attribute)
    fastmath = prop_def(Attribute, default_value=FastMathFlagsAttr("none"))
    result = result_def(Attribute)
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        first = SSAValue.get(lhs)
        super().__init__(
            operands=[first, rhs], result_types=[first.type], properties={"fastmath": FastMathFlagsAttr("none")}
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        parser.parse_punctuation(":")
        type = parser.parse_type()
        values = parser.resolve_operands(operands, [type, type], position)
        fastmath: dict[str, Attribute] = {"fastmath": FastMathFlagsAttr("none")}
        return cls.create(operands=values, result_types=[type], properties=fastmath, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if not self.lhs.type == self.rhs.type == self.result.type:
            raise VerifyException("arith.remf: operands and result have one type")


WIDENED: dict[str, type[IRDLOperation]] = {
    op.name: op for op in (ExtSIOp, ExtUIOp, TruncIOp, SIToFPOp, UIToFPOp, FPToSIOp, FPToUIOp, CmpiOp, CmpfOp, SelectOp)
}
"""The ops here that take vectors where xDSL's op of the same name takes only scalars, by op name."""

Arith = extended(
    arith.Arith,
    [*WIDENED.values(), RemFOp],
    interfaces=[arith.ArithConstantMaterializationInterface()],
)
