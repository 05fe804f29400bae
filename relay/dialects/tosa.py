"""xDSL's `tosa` plus `tosa.apply_scale`, which it lacks, under upstream's name."""

from __future__ import annotations

from xdsl.dialects import tosa
from xdsl.dialects.builtin import i8, i32
from xdsl.dialects.tosa import RoundingMode, RoundingModeAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.traits import Pure

from relay.dialects.extended import extended


@irdl_op_definition
class ApplyScaleOp(IRDLOperation):
    """`(value * multiplier + 2^(shift-1) [+- 2^30 if shift > 31 and DOUBLE_ROUND, by value's sign]) >> shift`, i32.

    2 <= shift <= 62. With DOUBLE_ROUND this equals TFLite's MultiplyByQuantizedMultiplier (double rounding) for
    shift = 31 - exponent, exponent <= 0. It is printed in the generic form, because releases of MLIR differ in the
    custom one. Source: the TOSA specification, APPLY_SCALE.
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
        """Parse upstream's custom form, with `{rounding_mode = DOUBLE_ROUND}` (MLIR 22) or
        `rounding_mode<DOUBLE_ROUND>`."""
        unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        braces = parser.parse_optional_punctuation("{") is not None
        parser.parse_keyword("rounding_mode")
        parser.parse_punctuation("=" if braces else "<")
        mode = RoundingModeAttr(parser.parse_str_enum(RoundingMode))
        parser.parse_punctuation("}" if braces else ">")
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        operands = parser.resolve_operands(unresolved, type.inputs.data, position)
        return cls.create(operands=operands, result_types=type.outputs.data, properties={"rounding_mode": mode})


Tosa = extended(tosa.TOSA, [ApplyScaleOp])
