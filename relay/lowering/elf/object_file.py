"""Reads relocatable ELF64 objects: the sections that are in memory at run time, symbols, and relocations.

Source: the System V ABI, chapters "Object Files" (ELF-64 object file format, version 1.5).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from relay.errors import Malformed

WRITE, ALLOC, EXECUTE = 1, 2, 4
"""The flags of a section."""
SYMBOL_TABLE, RELOCATIONS, NO_BITS, IMPLICIT_RELOCATIONS = 2, 4, 8, 9
"""The types of a section."""
LOCAL, SECTION_SYMBOL, FUNCTION = 0, 3, 2
"""The binding of symbols that other objects do not see, and two types of symbols."""
UNDEFINED, ABSOLUTE = 0, 0xFFF1
LARGEST_ALIGNMENT = 1 << 12

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")


@dataclass(frozen=True)
class Symbol:
    """A name for the offset `value` in the section with the number `section`; `section` is None for a symbol that
    another object, or the system, defines."""

    name: str
    section: int | None
    value: int
    size: int
    local: bool
    function: bool


@dataclass(frozen=True)
class Relocation:
    """A relocation: the address of `symbols[symbol]` plus `addend` is stored at `offset`, as its `kind` specifies."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Section:
    """A section that is in memory when the code is executed; `data` is None for zeros."""

    name: str
    flags: int
    alignment: int
    size: int
    data: bytes | None
    relocations: tuple[Relocation, ...]


@dataclass(frozen=True)
class ObjectFile:
    """The contents of one object; `sections`: by their number in the file, only those that are in memory at run
    time."""

    machine: int
    flags: int
    sections: dict[int, Section]
    symbols: tuple[Symbol, ...]


def read_object(data: bytes) -> ObjectFile:
    """Read an object. Raises Malformed if it is not a complete relocatable object, ELF64, little-endian."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise Malformed("object code", f"is not a complete ELF object: {error}") from None


def _read(data: bytes) -> ObjectFile:
    ident, kind, machine, _, _, _, table, flags, _, _, _, size, count, names = HEADER.unpack_from(data)
    if ident[:6] != b"\x7fELF\x02\x01" or kind != 1 or size != SECTION.size:
        raise Malformed("object code", "is no relocatable ELF object of 64 bits, little-endian")
    headers = [SECTION.unpack_from(data, table + size * number) for number in range(count)]

    def body(number: int) -> bytes:
        _, _, _, _, start, length, *_ = headers[number]
        if start + length > len(data):
            raise Malformed("object code", f"ends inside of section {number}")
        return data[start : start + length]

    def text(strings: bytes, start: int) -> str:
        return strings[start : strings.index(b"\0", start)].decode()

    symbols: tuple[Symbol, ...] = ()
    relocations: dict[int, tuple[Relocation, ...]] = {}
    for number, (_, type, _, _, _, _, link, info, _, _) in enumerate(headers):
        if type == SYMBOL_TABLE:
            strings = body(link)
            symbols = tuple(_symbol(text(strings, name), *rest) for name, *rest in SYMBOL.iter_unpack(body(number)))
        elif type == RELOCATIONS:
            relocations[info] = tuple(
                Relocation(at, what & 0xFFFFFFFF, what >> 32, addend)
                for at, what, addend in RELOCATION.iter_unpack(body(number))
            )
        elif type == IMPLICIT_RELOCATIONS:
            raise Malformed("object code", "has relocations without addends")
    shown = body(names)
    sections = {
        number: Section(
            text(shown, name),
            flags,
            max(1, alignment),
            size,
            None if type == NO_BITS else body(number),
            relocations.get(number, ()),
        )
        for number, (name, type, flags, _, _, size, _, _, alignment, _) in enumerate(headers)
        if flags & ALLOC and size
    }
    for section in sections.values():
        if section.alignment > LARGEST_ALIGNMENT or section.alignment & section.alignment - 1:
            raise Malformed("object code", f"has the section {section.name} aligned to {section.alignment}")
        for relocation in section.relocations:
            if relocation.symbol >= len(symbols) or relocation.offset + 4 > section.size:
                raise Malformed("object code", f"has a relocation of {section.name} that points outside")
    for symbol in symbols:
        if symbol.section in sections and symbol.value > sections[symbol.section].size:
            raise Malformed("object code", f"has the symbol {symbol.name} outside of its section")
    return ObjectFile(machine, flags, sections, symbols)


def undefined_symbols(data: bytes) -> list[str] | None:
    """Return the names that an object of 32 or 64 bits, little-endian, imports, sorted; None if the data is no ELF
    file."""
    if data[:4] != b"\x7fELF":
        return None
    wide = data[4] == 2
    at, count = struct.unpack_from("<Q12xH" if wide else "<I12xH", data, 40 if wide else 32)
    header = struct.Struct("<4xI16xQQI20x" if wide else "<4xI8xIII12x")
    rows: list[Sequence[int]] = [header.unpack_from(data, at + header.size * number) for number in range(count)]
    start, size, strings = next(row[1:] for row in rows if row[0] == SYMBOL_TABLE)
    symbol = struct.Struct("<I2xH16x" if wide else "<I10xH")
    symbols: list[Sequence[int]] = [*symbol.iter_unpack(data[start : start + size])]
    names = [rows[strings][1] + name for name, section in symbols if section == UNDEFINED and name]
    return sorted(data[name : data.index(b"\0", name)].decode() for name in names)


def _symbol(name: str, info: int, _: int, section: int, value: int, size: int) -> Symbol:
    if section >= ABSOLUTE:
        section = UNDEFINED
    return Symbol(name, section or None, value, size, info >> 4 == LOCAL, info & 15 == FUNCTION)
