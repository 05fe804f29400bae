"""Parsing of text such that ops know their line and column, and error messages can quote the line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import accumulate
from math import prod
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I8,
    AnyDenseElement,
    AnyFloat,
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    RankedStructure,
    StringAttr,
    UnknownLoc,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, TypeAttribute
from xdsl.irdl import AttrConstraint, base
from xdsl.irdl.dominance import DominanceInfo
from xdsl.parser import Parser
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind, StringLiteral

T = TypeVar("T")
WIDTH = 240
"""The number of characters of each source line that are kept for quoting it in errors. Lines are cut there so that
weights, which make very long lines, are not kept as text, too."""

LOCATION = re.compile(r"^(#[\w.$]+)\s*=\s*loc\(", re.MULTILINE)
"""The definition of a location's alias: `#loc1 = loc("a.mlir":2:1)`."""
INTEGER = re.compile(r"[su]?i(\d+)")
WIDEST = (1 << 24) - 1
"""The width in bits of MLIR's widest integer type."""


@dataclass(frozen=True)
class Source:
    """The lines of a text that is parsed, by which errors quote the source line of an op. The parser stores this object
    as the attribute `source` of the `StringAttr` that all locations of the text have as their filename."""

    first_line: int
    """The number of lines of the file before the text."""
    lines: Sequence[str]


class Lexer(MLIRLexer):
    """xDSL's lexer, except that an unterminated string does not take exponential time."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


WRONG = (
    ArithmeticError,
    AssertionError,
    LookupError,
    MemoryError,
    NotImplementedError,
    ValueError,
    VerifyException,
)
"""The exceptions that xDSL's parser raises besides its own errors."""


@cache
def dense_type() -> AttrConstraint[RankedStructure[AnyDenseElement]]:
    """The constraint on the types of dense literals."""
    return base(RankedStructure[AnyDenseElement])


class LocatingParser(Parser):
    """xDSL's parser; an op without a location in the text gets its own line and column."""

    def __init__(self, ctx: Context, text: str, name: str, first_line: int = 0):
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(Lexer(Input(text, name)))
        lines = text.split("\n")
        self.file = StringAttr(name)
        object.__setattr__(self.file, "source", Source(first_line, [line[:WIDTH] for line in lines]))
        self.first_line = first_line
        self.written: dict[Operation, int] = {}
        self.starts = list(accumulate((len(line) for line in lines), lambda a, b: a + b + 1, initial=0))
        self.locations: dict[str, int] | None = None
        self.read_early = set[int]()

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        if self._current_token.kind is MLIRTokenKind.EOF:
            self.raise_error("the text holds no operation")
        module = super().parse_module(allow_implicit_module)
        for op, number in early(module, set(), set()):
            wrong = f"operand #{number} of {op.name} is not computed before it is used"
            self.raise_error(wrong, self.written.get(op, 0))
        return module

    def parse_comma_separated_list(
        self, delimiter: Parser.Delimiter, parse: Callable[[], T], context_msg: str = ""
    ) -> list[T]:
        """Parse a list; result types may be in parentheses. xDSL prints those of `linalg.generic` in parentheses, but
        its own parser would then read them as a function type."""
        if delimiter is self.Delimiter.NONE and parse == self.parse_attribute and self._current_token.text == "(":
            delimiter = self.Delimiter.PAREN
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def parse_optional_str_literal(self) -> str | None:
        """Parse a string literal, also a non-ASCII one printed with escapes, which xDSL takes for bytes."""
        token = self._current_token
        if token.kind is not MLIRTokenKind.BYTES_LIT:
            return super().parse_optional_str_literal()
        try:
            text = StringLiteral.from_span(token.span).string_contents
        except UnicodeDecodeError:
            return None
        self._consume_token()
        return text

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """Parse a dense literal as MLIR does and xDSL does not: a hexadecimal number is the bits of a float
        (non-finite floats are written so), and a hexadecimal string of `i1` packs eight elements into a byte."""
        start = self.pos
        self.parse_punctuation("<", " in dense attribute")
        if self.parse_optional_punctuation(">") is not None:
            self._resume_from(start)
            return super().parse_dense_int_or_fp_elements_attr(type)
        text = self.parse_optional_str_literal()
        numbers, dims = self._parse_tensor_literal() if text is None else ([], [])
        self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()
        if text is not None:
            return self._of_hexadecimal(text, type)
        if dims and dims != list(type.get_shape()):
            wrong = f"Expected {list(type.get_shape())} shape from the type, but got {dims} shape."
            self.raise_error(f"Shape mismatch in dense literal. {wrong}")
        element, data = type.element_type, list[bytes]()
        if not isinstance(element, AnyFloat):
            values: list[Any] = [number.to_type(self, element) for number in numbers]
            return DenseIntOrFPElementsAttr.from_list(cast(RankedStructure[I8], type), values)
        for number in numbers:
            if isinstance(number.value, int) and number.span.text.startswith("0x"):
                if number.value >> element.bitwidth:
                    self.raise_error(f"{element} has {element.bitwidth} bits", at_position=number.span)
                data.append(number.value.to_bytes(element.size, "little"))
            else:
                data.append(element.pack([number.to_float(self)]))
        return DenseIntOrFPElementsAttr(type, BytesAttr(b"".join(data if dims else data * prod(type.get_shape()))))

    def _parse_dense_literal_type(self) -> RankedStructure[AnyDenseElement]:
        """Parse the type of a dense literal as xDSL's method does, but with a cached constraint on the type
        (`dense_type`): xDSL constructs it for each literal, which took a tenth of the time to read lowered code."""
        start = self.pos
        type = self.parse_optional_type()
        if type is None or not dense_type().verifies(type) or DYNAMIC_INDEX in type.get_shape():
            self._resume_from(start)
            return super()._parse_dense_literal_type()
        return type

    def _of_hexadecimal(self, text: str, type: RankedStructure[Any]) -> DenseIntOrFPElementsAttr:
        """The dense attribute whose elements have the bytes that a hexadecimal string gives."""
        try:
            size, data = prod(type.get_shape()), bytes.fromhex(text[2:])
        except ValueError:
            self.raise_error("Hex string in denseAttr is invalid")
        if type.element_type == i1 and len(data) == -(-size // 8):
            bits = np.unpackbits(np.frombuffer(data, np.uint8), count=size, bitorder="little")
            data = (-bits.astype(np.int8)).tobytes()
        elif len(data) == type.element_type.compile_time_size:
            data *= size
        attr = DenseIntOrFPElementsAttr(type, BytesAttr(data))
        if len(attr) != size:
            wrong = f"Expected {size} elements from the type, but got {len(attr)} elements."
            self.raise_error(f"Shape mismatch in dense literal. {wrong}")
        return attr

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        """Parse a type as xDSL does, but refuse integers wider than MLIR's limit: their ranges would fill the
        memory."""
        token = self._current_token
        if token.kind is MLIRTokenKind.BARE_IDENT and (match := INTEGER.fullmatch(token.text)):
            digits = match[1].lstrip("0") or "0"
            if len(digits) > len(str(WIDEST)) or int(digits) > WIDEST:
                self.raise_error(f"an integer type has at most {WIDEST} bits")
        return super()._parse_optional_integer_or_float_type()

    def _parse_location(self) -> LocationAttr:
        """Parse a location. Its alias may be defined further down: mlir-opt writes the aliases of locations last."""
        token = self._current_token
        if token.kind is MLIRTokenKind.HASH_IDENT and token.text not in self.attribute_aliases:
            if self.locations is None:
                text = self._parser_state.lexer.input.content
                self.locations = {found[1]: found.start(1) for found in LOCATION.finditer(text)}
            if (start := self.locations.pop(token.text, None)) is not None:
                self._resume_from(start)
                self._parse_alias_def()
                self.read_early.add(start)
                self._resume_from(token.span.start)
        return super()._parse_location()

    def _parse_alias_def(self) -> None:
        """Parse the definition of an alias, also if `_parse_location` read it before."""
        if self.pos in self.read_early:
            self.attribute_aliases.pop(self._current_token.text)
        super()._parse_alias_def()

    def _get_op_by_name(self, name: str) -> type[Operation]:
        """Return the class of an op. The error for an unknown one is at its name; xDSL's is after it."""
        if (known := self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)) is not None:
            return known
        alike = get_close_matches(name, [op.name for op in self.ctx.loaded_ops], 1, 0.8)
        hint = f"; did you mean {alike[0]}?" if alike else ""
        start = self._parser_state.lexer.input.content.rfind(name, 0, self.pos)
        self.raise_error(f"Operation {name} is not registered{hint}", self.pos if start < 0 else start)

    def parse_operation(self) -> Operation:
        start = self.pos
        try:
            op = super().parse_operation()
        except WRONG as error:
            self.raise_error(f"cannot be read: {_said(error)}", start)
        self.written[op] = start
        if isinstance(op.location, UnknownLoc):
            line = bisect_right(self.starts, start)
            column = start - self.starts[line - 1] + 1
            op.location = FileLineColLoc(self.file, IntAttr(line + self.first_line), IntAttr(column))
        return op


def _said(error: Exception) -> str:
    """The text of an xDSL error; text that is empty or a single word is preceded by the name of the exception class."""
    text = str(error.args[0]) if error.args else ""
    return text.removesuffix(".") if " " in text.strip() else f"{type(error).__name__}: {text}".removesuffix(": ")


def early(op: Operation, opened: set[Block], seen: set[Operation]) -> Iterator[tuple[Operation, int]]:
    """Yield uses of values before their definition, as (op, operand index), which xDSL's verifier does not check.
    `opened` are the blocks around `op`, `seen` the ops before it in them."""
    for number, operand in enumerate(op.operands):
        if isinstance(operand, ForwardDeclaredValue):
            yield op, number
            continue
        owner = operand.owner
        block = owner if isinstance(owner, Block) else owner.parent
        if block in opened:
            if isinstance(owner, Operation) and owner not in seen:
                yield op, number
        elif block is None or not any(each.parent is block.parent and _dominates(block, each) for each in opened):
            yield op, number
    for region in op.regions:
        for block in region.blocks:
            opened.add(block)
            for inner in block.ops:
                yield from early(inner, opened, seen)
                seen.add(inner)
            opened.discard(block)


def _dominates(block: Block, other: Block) -> bool:
    """Whether every path to `other`, a block of the same region, goes through `block`."""
    return block.parent is not None and DominanceInfo(block.parent).dominates(block, other)


def line_of(location: FileLineColLoc) -> str | None:
    """The source line of a location; None if the location is not in parsed text, or is in the part of a long line that
    is not kept (`WIDTH`)."""
    source: object = getattr(location.filename, "source", None)
    if not isinstance(source, Source) or not 0 < location.line.data - source.first_line <= len(source.lines):
        return None
    line = source.lines[location.line.data - source.first_line - 1]
    return line if location.column.data <= len(line) else None


def words(location: Attribute) -> str:
    """A location without MLIR's punctuation: `name (file:line:column)`."""
    match location:
        case UnknownLoc():
            return ""
        case FileLineColLoc():
            return f"{location.filename.data}:{location.line.data}:{location.column.data}"
        case NameLoc():
            inner = words(location.location)
            return f"{location.desc.data} ({inner})" if inner else location.desc.data
        case FusedLoc():
            parts = location.locations
            return ", ".join(filter(None, map(words, parts))) if isa(parts, ArrayAttr[Attribute]) else ""
        case _:
            return ""


def why_invalid(op: Operation, nested: bool = True) -> str | None:
    """The verifier's message for an op (with its nested ops if `nested`); None if it verifies. Some xDSL verifiers
    raise Exception itself."""
    try:
        op.verify(verify_nested_ops=nested)
    except Exception as error:
        if type(error) is not Exception and not isinstance(error, VerifyException | ValueError):
            raise
        return said_last(str(error)) or "no reason given"
    return None


def invalid(module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """Yield every op that does not verify by itself, inner ops first, with the reason: `relay.add: what is wrong`."""
    for op in _post_order(module):
        if (message := why_invalid(op, nested=False)) is not None:
            yield op, message if message.startswith(op.name) else f"{op.name}: {message}"


def said_last(text: str) -> str:
    """The last line of an xDSL message: xDSL puts the source before it, and carets under that."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def parser_message(error: ParseError) -> str:
    """The message of an xDSL parse error; fills in the placeholder that xDSL leaves unformatted, and says what is
    expected where xDSL does not."""
    if error.msg.strip() == "in block definition":  # the region is not closed, and no operation follows
        return "an operation, a block or '}' is expected"
    return error.msg.replace("{first_char}", error.span.text[:1])


def _post_order(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for nested in block.ops:
                yield from _post_order(nested)
    yield op
