"""xDSL's `scf`, plus a parser of upstream's custom form of `scf.parallel`."""

from __future__ import annotations

from typing import Self

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import SingleBlockImplicitTerminator, ensure_terminator

from relay.dialects.extended import extended

INDEX = IndexType()


class ParallelOp(scf.ParallelOp):
    """xDSL's op, printed in the generic form; with at most one result it is also parsed in upstream's custom form."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        def operands() -> list[UnresolvedOperand]:
            return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)

        loops = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        parser.parse_punctuation("=")
        position, bounds = parser.pos, [operands()]
        for word in ("to", "step"):
            parser.parse_keyword(word)
            bounds.append(operands())
        initial = operands() if parser.parse_optional_keyword("init") else []
        types = [parser.parse_type()] if parser.parse_optional_punctuation("->") else []
        body = parser.parse_region([loop.resolve(INDEX) for loop in loops])
        lower, upper, step = (parser.resolve_operands(each, [INDEX] * len(each), position) for each in bounds)
        op = cls(lower, upper, step, body, parser.resolve_operands(initial, types, position))
        op.attributes |= parser.parse_optional_attr_dict()
        for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(op, trait)
        return op


Scf = extended(scf.Scf, [ParallelOp])
