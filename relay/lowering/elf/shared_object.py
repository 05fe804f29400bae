"""Links relocatable objects into one shared object: read-only, executable and writable pages, and the loader's
tables."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from relay.errors import Malformed, Unsupported
from relay.lowering.elf.machines import MACHINES, STUB_BYTES, Machine
from relay.lowering.elf.object_file import (
    ALLOC,
    EXECUTE,
    HEADER,
    RELOCATION,
    SECTION,
    SYMBOL,
    WRITE,
    ObjectFile,
    Relocation,
    Section,
    Symbol,
    read_object,
)

SEGMENT = struct.Struct("<IIQQQQQQ")
LOAD, DYNAMIC, STACK = 1, 2, 0x6474E551
READ = 4
"""The flag of a readable segment; in segments, EXECUTE and WRITE are 1 and 2."""
NEEDED = ("libm.so.6", "libc.so.6")
"""Libraries in which the loader searches for imported functions, in addition to those that the process has loaded
already."""
ANDROID = ("libm.so", "libc.so")
"""The libraries on Android."""
ASKED = {"memcpy": "memmove"}
"""Functions that are imported under another name. The C library has two versions of `memcpy`; an import that names no
version, as here, gets the older, slower one. It has only one `memmove`, which can replace `memcpy`."""
Place = tuple[int, int]
"""A section: the number of its object, and its number in the object."""


@dataclass
class Part:
    """One section of the shared object: the contents of the input sections that are linked into it, one after the
    other."""

    name: str
    kind: int
    flags: int
    data: bytearray = field(default_factory=bytearray)
    address: int = 0
    offset: int = 0
    alignment: int = 8
    link: str = ""
    info: int = 0
    entry: int = 0
    zeros: int = 0

    @property
    def size(self) -> int:
        return len(self.data) + self.zeros

    def reserve(self, size: int, alignment: int) -> int:
        """Reserve room for a piece, and return its offset."""
        self.alignment = max(self.alignment, alignment)
        start = -(-len(self.data) // alignment) * alignment
        self.data.extend(bytes(start + size - len(self.data)))
        return start


def link(objects: Sequence[bytes], exported: str = "relay_", soname: str = "", needed: Sequence[str] = NEEDED) -> bytes:
    """Link objects into a shared object; global symbols whose names start with `exported` can be looked up. `soname`:
    the name of the library that is recorded in programs linked with it, and by which they load it.

    Raises Malformed for a damaged object or a symbol that two objects define, Unsupported for an unknown machine or
    relocation.
    """
    read = [read_object(data) for data in objects]
    machines = {each.machine for each in read}
    if len(machines) != 1 or (machine := MACHINES.get(machines.pop())) is None:
        known = " and ".join(each.name for each in MACHINES.values())
        raise Unsupported("object code", "is for machines that are not linked here", f"known are {known}")
    try:
        return Linker(read, machine, exported, soname, needed).link()
    except struct.error as error:
        raise Malformed("object code", f"cannot be linked: {error}") from None


class Linker:
    """One link: `place` assigns sections to parts, `patch` fills in addresses, `write` assembles the file."""

    def __init__(
        self, objects: Sequence[ObjectFile], machine: Machine, exported: str, soname: str, needed: Sequence[str]
    ):
        self.objects, self.machine, self.exported = objects, machine, exported
        self.soname, self.needed = soname, needed
        self.pieces: dict[Place, tuple[Part, int]] = {}
        self.globals: dict[str, tuple[int, Symbol]] = {}
        self.imports: list[str] = []
        self.slots: dict[tuple[int, int] | str, tuple[int, int, Symbol]] = {}  # offset, object, symbol
        self.stubs: dict[str, int] = {}
        self.rodata = Part(".rodata", 1, ALLOC)
        self.text = Part(".text", 1, ALLOC | EXECUTE, alignment=STUB_BYTES)
        self.data = Part(".data", 1, ALLOC | WRITE)
        self.got = Part(".got", 1, ALLOC | WRITE)
        self.bss = Part(".bss", 8, ALLOC | WRITE)
        self.relocations: list[tuple[Part, int, int, int, int]] = []  # part, offset, kind, symbol, addend
        self.names = bytearray(b"\0")

    def link(self) -> bytes:
        """Link all objects; return the file."""
        self.define()
        self.place()
        return self.write()

    # Symbols

    def define(self) -> None:
        """Collect the global symbols of all objects, and the names of the symbols that no object defines."""
        for number, each in enumerate(self.objects):
            for symbol in each.symbols:
                if symbol.section is not None and not symbol.local:
                    if symbol.name in self.globals:
                        raise Malformed("object code", f"defines {symbol.name} twice")
                    self.globals[symbol.name] = (number, symbol)
        self.imports = sorted({symbol.name for *_, symbol in self.references() if self.is_imported(symbol)})

    def is_imported(self, symbol: Symbol) -> bool:
        """Whether no object defines the symbol."""
        return symbol.section is None and symbol.name not in self.globals

    def references(self) -> Iterator[tuple[Place, Relocation, Symbol]]:
        """Yield all relocations, each with the section that it changes, and its symbol."""
        for number, each in enumerate(self.objects):
            for index, section in each.sections.items():
                for relocation in section.relocations:
                    yield (number, index), relocation, each.symbols[relocation.symbol]

    def place(self) -> None:
        """Copy every section of the object files into a section of the shared object (`Part`). Then reserve slots of
        the global offset table: for imported functions, and for symbols whose address is read from a slot. Also reserve
        the stubs through which imported functions are called."""
        for number, each in enumerate(self.objects):
            for index, section in each.sections.items():
                part = self.part_of(section)
                if section.data is None:
                    self.bss.alignment = max(self.bss.alignment, section.alignment)
                    start = -(-self.bss.zeros // section.alignment) * section.alignment
                    self.bss.zeros = start + section.size
                else:
                    start = part.reserve(section.size, section.alignment)
                    part.data[start : start + section.size] = section.data
                self.pieces[number, index] = (part, start)
        for (number, _), relocation, symbol in self.references():
            imported, by_slot = self.is_imported(symbol), relocation.kind in self.machine.by_slot
            if by_slot or (imported and relocation.kind != self.machine.absolute):
                key = symbol.name if not symbol.local else (number, relocation.symbol)
                if key not in self.slots:
                    self.slots[key] = self.got.reserve(8, 8), number, symbol
                if imported and not by_slot and symbol.name not in self.stubs:
                    self.stubs[symbol.name] = self.text.reserve(STUB_BYTES, STUB_BYTES)

    def part_of(self, section: Section) -> Part:
        """Return the part that a section belongs to; sections that the loader changes must be writable."""
        if section.data is None:
            return self.bss
        if section.flags & EXECUTE:
            return self.text
        changed = any(relocation.kind == self.machine.absolute for relocation in section.relocations)
        return self.data if section.flags & WRITE or changed else self.rodata

    # Addresses

    def address(self, number: int, symbol: Symbol) -> int | None:
        """Return a symbol's address; None if it is imported."""
        if self.is_imported(symbol):
            return None
        if symbol.section is None:
            number, symbol = self.globals[symbol.name]
        part, start = self.piece(number, symbol)
        return part.address + start + symbol.value

    def piece(self, number: int, symbol: Symbol) -> tuple[Part, int]:
        """Return the section of the shared object (`Part`) into which the section of a symbol of object `number` was
        copied, and the offset at which it starts there."""
        found = self.pieces.get((number, symbol.section or 0))
        if found is None:
            raise Malformed("object code", f"refers to {symbol.name or 'a section'}, which is not in memory")
        return found

    def patch(self) -> None:
        """Apply every relocation, now that addresses are known."""
        machine = self.machine
        for (number, index), relocation, symbol in self.references():
            part, start = self.pieces[number, index]
            at = start + relocation.offset
            if relocation.kind == machine.absolute:
                self.leave_to_loader(part, at, relocation.kind, number, symbol, relocation.addend)
                continue
            address = self.address(number, symbol)
            patch = machine.patch(relocation.kind)
            if relocation.kind in machine.by_slot:
                key = symbol.name if not symbol.local else (number, relocation.symbol)
                address = self.got.address + self.slots[key][0]
            elif address is None:
                address = self.text.address + self.stubs[symbol.name]
            patch(part.data, at, address + relocation.addend, part.address + at)
        for name, at in self.stubs.items():
            stub = machine.stub(self.text.address + at, self.got.address + self.slots[name][0])
            self.text.data[at : at + STUB_BYTES] = stub
        for at, number, symbol in self.slots.values():
            self.leave_to_loader(self.got, at, machine.glob_dat, number, symbol)

    def leave_to_loader(self, part: Part, at: int, kind: int, number: int, symbol: Symbol, addend: int = 0) -> None:
        """Let the loader store the address of a symbol of object `number`, plus `addend`, at an offset of a part.
        `kind`: the relocation by which it does so if the symbol is imported."""
        address = self.address(number, symbol)
        if address is None:
            self.relocations.append((part, at, kind, 1 + self.imports.index(symbol.name), addend))
        else:
            self.relocations.append((part, at, self.machine.relative, 0, address + addend))

    # The file

    def write(self) -> bytes:
        """Return the file. Parts get sizes before addresses, and contents afterwards."""
        exports = sorted(name for name in self.globals if name.startswith(self.exported))
        needed = [(1, add_name(self.names, name)) for name in self.needed] if self.imports else []
        needed += [(14, add_name(self.names, self.soname))] if self.soname else []
        names = {name: add_name(self.names, ASKED.get(name, name)) for name in [*self.imports, *exports]}
        count = 1 + len(names)
        absolute = [relocation for _, relocation, _ in self.references() if relocation.kind == self.machine.absolute]
        moved = len(self.slots) + len(absolute)
        hashes = Part(".hash", 5, ALLOC, bytearray(_hashes(count)), link=".dynsym", entry=4)
        symbols = Part(".dynsym", 11, ALLOC, bytearray(count * SYMBOL.size), link=".dynstr", info=1, entry=24)
        strings = Part(".dynstr", 3, ALLOC, self.names)
        dynamic_relocations = Part(".rela.dyn", 4, ALLOC, bytearray(moved * RELOCATION.size), link=".dynsym", entry=24)
        dynamic = Part(".dynamic", 6, ALLOC | WRITE, bytearray(16 * (9 + len(needed))), link=".dynstr", entry=16)
        parts = [
            hashes,
            symbols,
            strings,
            dynamic_relocations,
            self.rodata,
            self.text,
            dynamic,
            self.got,
            self.data,
            self.bss,
        ]
        segments = self.lay_out(parts)
        self.patch()
        entries = [SYMBOL.pack(0, 0, 0, 0, 0, 0)]
        entries += [SYMBOL.pack(names[name], 0x10, 0, 0, 0, 0) for name in self.imports]
        shown = [part for part in parts if part.size]
        entries += [self.exported_symbol(name, names[name], shown) for name in exports]
        symbols.data[:] = b"".join(entries)
        dynamic_relocations.data[:] = b"".join(
            RELOCATION.pack(part.address + at, index << 32 | kind, addend)
            for part, at, kind, index, addend in sorted(self.relocations, key=lambda row: row[0].address + row[1])
        )
        table = [*needed, (4, hashes.address), (5, strings.address), (6, symbols.address)]
        table += [(10, strings.size), (11, SYMBOL.size)]
        if moved:
            table += [(7, dynamic_relocations.address), (8, dynamic_relocations.size), (9, RELOCATION.size)]
        dynamic.data[:] = b"".join(struct.pack("<QQ", *row) for row in table).ljust(len(dynamic.data), b"\0")
        return self.assemble(shown, segments)

    def exported_symbol(self, name: str, at: int, shown: Sequence[Part]) -> bytes:
        """Return an exported symbol's row of the symbol table. `at`: the offset of its name; `shown`: the parts that
        have section headers."""
        number, symbol = self.globals[name]
        part, start = self.piece(number, symbol)
        kind = 0x12 if symbol.function else 0x11
        return SYMBOL.pack(at, kind, 0, 1 + shown.index(part), part.address + start + symbol.value, symbol.size)

    def lay_out(self, parts: Sequence[Part]) -> list[tuple[int, list[Part]]]:
        """Assign addresses and offsets to the parts; parts with equal access rights share pages. Return the
        segments."""
        segments: list[tuple[int, list[Part]]] = []
        headers = HEADER.size + SEGMENT.size * 6
        address = offset = headers
        rights = -1
        for part in parts:
            if not part.size:
                continue
            if part.flags != rights:
                if rights >= 0:
                    address = -(-address // self.machine.page) * self.machine.page + offset % self.machine.page
                rights = part.flags
                segments.append((rights, []))
            padding = -address % part.alignment
            part.address, part.offset = address + padding, offset + padding
            address = part.address + part.size
            offset = part.offset + len(part.data)
            segments[-1][1].append(part)
        return segments

    def assemble(self, parts: Sequence[Part], segments: Sequence[tuple[int, list[Part]]]) -> bytes:
        """Return the file: headers, parts, the table of sections, and the symbols that only tools read."""
        rows: list[bytes] = []
        for number, (flags, inside) in enumerate(segments):
            first, last = inside[0], inside[-1]
            address, offset = (0, 0) if number == 0 else (first.address, first.offset)
            size = last.offset + len(last.data) - offset
            rights = READ | (1 if flags & EXECUTE else 0) | (2 if flags & WRITE else 0)
            memory = last.address + last.size - address
            rows.append(SEGMENT.pack(LOAD, rights, offset, address, address, size, memory, self.machine.page))
        dynamic = next(part for part in parts if part.name == ".dynamic")
        at, size = dynamic.address, len(dynamic.data)
        rows.append(SEGMENT.pack(DYNAMIC, READ | 2, dynamic.offset, at, at, size, size, 8))
        rows.append(SEGMENT.pack(STACK, READ | 2, 0, 0, 0, 0, 0, 16))
        file = bytearray(HEADER.size + SEGMENT.size * 6)
        for part in parts:
            file.extend(bytes(part.offset - len(file)) + part.data if part.data else b"")
        every = [*parts, *self.symbols(parts)]
        every.append(Part(".shstrtab", 3, 0, bytearray(b"\0"), alignment=1))
        starts = [add_name(every[-1].data, part.name) for part in every]
        for part in every[len(parts) :]:
            part.offset = len(file)
            file += part.data + bytes(-len(part.data) % 8)
        file += bytes(-len(file) % 8)
        table = len(file)
        numbers = {part.name: number for number, part in enumerate(every, 1)}
        file += bytes(SECTION.size)
        for part, start in zip(every, starts, strict=True):
            file += SECTION.pack(
                start,
                part.kind,
                part.flags,
                part.address,
                part.offset,
                part.size,
                numbers.get(part.link, 0),
                part.info,
                part.alignment,
                part.entry,
            )
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        file[: HEADER.size] = HEADER.pack(
            ident, 3, self.machine.number, 1, 0, HEADER.size, table, self.objects[0].flags,
            HEADER.size, SEGMENT.size, len(rows), SECTION.size, 1 + len(every), len(every),
        )  # fmt: skip
        file[HEADER.size : HEADER.size + SEGMENT.size * len(rows)] = b"".join(rows)
        return bytes(file)

    def symbols(self, parts: Sequence[Part]) -> list[Part]:
        """Return the symbol table and its table of strings, with the names of all functions, for debuggers and
        profilers."""
        names, rows = bytearray(b"\0"), [bytes(SYMBOL.size)]
        for number, each in enumerate(self.objects):
            for symbol in each.symbols:
                if symbol.function and (found := self.pieces.get((number, symbol.section or 0))) is not None:
                    part, start = found
                    value = part.address + start + symbol.value
                    name = add_name(names, symbol.name)
                    rows.append(SYMBOL.pack(name, 2, 0, 1 + parts.index(part), value, symbol.size))
        table = Part(".symtab", 2, 0, bytearray(b"".join(rows)), link=".strtab", info=len(rows), entry=SYMBOL.size)
        return [table, Part(".strtab", 3, 0, names, alignment=1)]


def add_name(names: bytearray, text: str) -> int:
    """Add a name to a table of names; return its offset."""
    names += text.encode() + b"\0"
    return len(names) - len(text.encode()) - 1


def _hashes(count: int) -> bytes:
    """Return a hash table with a single bucket for a symbol table of `count` rows: the loader compares all names, of
    which there are few."""
    chain = [*range(2, count), 0] if count > 1 else []
    return struct.pack(f"<{4 + len(chain)}I", 1, count, 1 if count > 1 else 0, 0, *chain)
