"""xDSL's `memref`, with `memref.prefetch` added, and a parser of upstream's custom form of `memref.copy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects import memref
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, MemRefType, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from relay.dialects.extended import extended

INDEX = IndexType()
NEAREST = 3
"""The largest `localityHint`: fetch into the first-level cache."""


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Fetches the cache line of `memref[indices]` ahead of its use. `localityHint`: 0 (no locality) to 3 (into the
    first-level cache). It has no result and cannot fault, so the address may be past the end of the buffer."""

    name = "memref.prefetch"
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    isWrite = prop_def(BoolAttr)
    localityHint = prop_def(IntegerAttr)
    isDataCache = prop_def(BoolAttr)

    @classmethod
    def make(
        cls, buffer: SSAValue, indices: Sequence[SSAValue], locality: int, write: bool = False, data: bool = True
    ) -> Self:
        """Build a prefetch of one element: for reading unless `write`, into the data cache unless `data` is False."""
        properties: dict[str, Attribute] = {
            "isWrite": BoolAttr.from_bool(write),
            "localityHint": IntegerAttr(locality, i32),
            "isDataCache": BoolAttr.from_bool(data),
        }
        return cls.create(operands=[buffer, *indices], properties=properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        buffer = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        parser.parse_punctuation(",")
        write = parser.expect(
            lambda: parser.parse_optional_keyword("write") or parser.parse_optional_keyword("read"), "read or write"
        )
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer()
        parser.parse_punctuation(",")
        cache = parser.expect(
            lambda: parser.parse_optional_keyword("data") or parser.parse_optional_keyword("instr"), "data or instr"
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        values = [parser.resolve_operand(index, INDEX) for index in indices]
        op = cls.make(parser.resolve_operand(buffer, type), values, locality, write == "write", cache == "data")
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        printer.print_string("[")
        printer.print_list(self.indices, printer.print_ssa_value)
        access, cache = (
            "write" if self.isWrite.value.data else "read",
            "data" if self.isDataCache.value.data else "instr",
        )
        printer.print_string(f"], {access}, locality<{self.localityHint.value.data}>, {cache}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    def verify_(self) -> None:
        type = self.memref.type
        if isinstance(type, MemRefType) and len(self.indices) != type.get_num_dims():
            raise VerifyException(f"{self.name}: {len(self.indices)} indices for {type.get_num_dims()} dimensions")
        if not 0 <= self.localityHint.value.data <= NEAREST:
            raise VerifyException(f"{self.name}: localityHint {self.localityHint.value.data} is not 0 to {NEAREST}")


class CopyOp(memref.CopyOp):
    """xDSL's op, which is printed in the generic form and also parsed in upstream's custom one."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        destination = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        first = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("to")
        second = parser.resolve_operand(destination, parser.parse_type())
        return cls.create(operands=[first, second], attributes=attributes)


MemRef = extended(memref.MemRef, [CopyOp, PrefetchOp])
