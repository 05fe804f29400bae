"""xDSL's `vector` plus two ops that it lacks, under upstream's names and syntax."""

from __future__ import annotations

from math import prod
from typing import Self

from xdsl.dialects import vector
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, StringAttr, VectorType
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.dialects.vector import CombiningKindAttr
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineDimExpr
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from relay.dialects.extended import extended

Vector = VectorType[Attribute]


@irdl_op_definition
class ShapeCastOp(IRDLOperation):
    """The elements of `source`, in their order, as a vector of another shape."""

    name = "vector.shape_cast"
    source = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        assert isa(source, Vector) and isa(result, Vector)
        if source.element_type != result.element_type or prod(source.get_shape()) != prod(result.get_shape()):
            raise VerifyException(f"{self.name}: {source} and {result} have different elements")


@irdl_attr_definition
class IteratorTypeAttr(EnumAttribute[IteratorType]):
    """`#vector.iterator_type<parallel>`: a dimension of the result (`parallel`) or one summed over (`reduction`)."""

    name = "vector.iterator_type"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IteratorType:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(IteratorType)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


@irdl_op_definition
class ContractionOp(IRDLOperation):
    """`acc` combined with the products of elements of `lhs` and `rhs`, reduced over the dimensions that `acc` lacks.

    The loop nest has the dimensions whose kinds are `iterator_types`; `indexing_maps` select those of `lhs`, `rhs` and
    `acc`; `kind` is the operation that combines.
    """

    name = "vector.contract"
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    acc = operand_def(Attribute)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    kind = prop_def(CombiningKindAttr)
    result = result_def(Attribute)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = parser.parse_optional_attr_dict()
        iterators = properties.get("iterator_types")
        if isa(iterators, ArrayAttr[StringAttr]):
            properties["iterator_types"] = ArrayAttr(IteratorTypeAttr(IteratorType(each.data)) for each in iterators)
        lhs, rhs, acc = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_keyword("into")
        types.append(parser.parse_type())
        operands = parser.resolve_operands([lhs, rhs, acc], types, position)
        return cls.create(operands=operands, result_types=types[-1:], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        kinds = ArrayAttr(StringAttr(str(each.data)) for each in self.iterator_types)
        printer.print_op_attributes(self.properties | {"iterator_types": kinds})
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list([self.lhs.type, self.rhs.type], printer.print_attribute)
        printer.print_string(" into ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if self.acc.type != self.result.type:
            raise VerifyException(f"{self.name}: the result has the type of what it is added to")
        sizes: dict[int, int] = {}
        if len(self.indexing_maps) != len(self.operands):
            raise VerifyException(f"{self.name}: {len(self.indexing_maps)} maps for {len(self.operands)} operands")
        for operand, map in zip(self.operands, self.indexing_maps, strict=True):
            shape = operand.type.get_shape() if isa(operand.type, Vector) else ()
            dims = [dim.position for dim in map.data.results if isinstance(dim, AffineDimExpr)]
            if map.data.num_dims != len(self.iterator_types) or not len(map.data.results) == len(dims) == len(shape):
                raise VerifyException(f"{self.name}: {map} is no map of {operand.type}")
            for dim, size in zip(dims, shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    raise VerifyException(f"{self.name}: dimension {dim} has {sizes[dim]} and {size} elements")


Vectors = extended(vector.Vector, [ShapeCastOp, ContractionOp], [IteratorTypeAttr])
