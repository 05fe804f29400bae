"""xDSL's `tosa` plus `tosa.apply_scale`, which it lacks, under upstream's name and syntax."""

from __future__ import annotations

from xdsl.dialects import tosa
from xdsl.dialects.builtin import i8, i32
from xdsl.dialects.tosa import RoundingMode, RoundingModeAttr
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure


@irdl_op_definition
class ApplyScaleOp(IRDLOperation):
    """`(value * multiplier + 2^(shift-1) [+- 2^30 if shift > 31 and DOUBLE_ROUND, by value's sign]) >> shift`, i32.

    2 <= shift <= 62. With DOUBLE_ROUND this equals TFLite's MultiplyByQuantizedMultiplier (double rounding) for
    shift = 31 - exponent, exponent <= 0. Source: the TOSA specification, APPLY_SCALE.
    """

    name = "tosa.apply_scale"
    value = operand_def(i32)
    multiplier = operand_def(i32)
    shift = operand_def(i8)
    rounding_mode = prop_def(RoundingModeAttr)
    output = result_def(i32)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ApplyScaleOp:
        unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        with parser.in_braces():
            parser.parse_keyword("rounding_mode")
            parser.parse_punctuation("=")
            mode = RoundingModeAttr(parser.parse_str_enum(RoundingMode))
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        operands = parser.resolve_operands(unresolved, type.inputs.data, position)
        return cls.create(operands=operands, result_types=type.outputs.data, properties={"rounding_mode": mode})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(f" {{rounding_mode = {self.rounding_mode.data.value}}} : ")
        printer.print_function_type(self.operand_types, self.result_types)


Tosa = Dialect("tosa", [*tosa.TOSA.operations, ApplyScaleOp], [*tosa.TOSA.attributes])
