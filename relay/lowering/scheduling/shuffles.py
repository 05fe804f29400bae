"""Tables of 256 codes in registers, read by the shuffles of each target.

AVX-512 permutes 64 words of two registers by the low six bits of each index, or, with VBMI, 128 bytes by the low seven
bits. A word holds the entries of two codes, `c` and `c + 128`; bit 6 of a code selects one of two pairs of registers,
its highest bit the half of the word.

`pshufb` shuffles 16 bytes by the low four bits of each index, and yields 0 for a negative index. So with the table in
pieces of 16, `t[k]`, the pieces `t[k] ^ t[k - 1]` are read one after the other with indices that decrease by 16 each
time, saturating: their exclusive or is `t[index / 16]`, since an index that became negative yields 0. Indices of 128
and more are negative from the start; the other half of the table is read the same way with the highest bit inverted.

AArch64 reads 64 bytes by one instruction, which leaves lanes unchanged whose index is out of range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i8, i16, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects.arith import TruncIOp
from relay.lowering.builder import LoopBuilder
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.shaped import is_vector, vector_of
from relay.target import LANES, CpuTarget

ENTRIES = 256
PIECE = 16
HIGHEST = -128
"""The highest bit of a code."""


class Table(ABC):
    """A buffer of 256 entries in registers, read for vectors of `lanes` codes; the first entry belongs to the lowest
    code."""

    lanes: ClassVar[int]

    def __init__(self, b: LoopBuilder, entries: SSAValue, signed: bool):
        self.b, self.signed = b, signed
        self.keep(entries)

    @abstractmethod
    def keep(self, entries: SSAValue) -> None:
        """Load the table into registers."""

    @abstractmethod
    def read(self, codes: SSAValue) -> SSAValue:
        """Return the entries for a vector of codes."""

    def constant(self, value: int, element: Attribute = i8) -> SSAValue:
        """Return a vector with the number in every lane."""
        return vector_constant(self.b, value, element, self.lanes if element == i8 else self.lanes // 2)

    def turned(self, codes: SSAValue) -> SSAValue:
        """Return the codes with their highest bit inverted."""
        return self.b.add(arith.XOrIOp(codes, self.constant(HIGHEST))).result

    def negative(self, codes: SSAValue) -> SSAValue:
        """Return a mask of the codes whose highest bit is set."""
        return self.b.compare(codes, "slt", self.constant(0))

    def halves(self) -> tuple[int, int]:
        """Return two offsets in the table: of the entries of codes whose highest bit is clear, and of codes whose
        highest bit is set."""
        return (ENTRIES // 2, 0) if self.signed else (0, ENTRIES // 2)


class Bytes(Table):
    """A table read by permutations of 128 bytes (VBMI)."""

    lanes = 64

    def keep(self, entries: SSAValue) -> None:
        self.pairs = [
            [self.b.vector_load(entries, [half + k], self.lanes) for k in (0, self.lanes)] for half in self.halves()
        ]

    def read(self, codes: SSAValue) -> SSAValue:
        name, type = "llvm.x86.avx512.vpermi2var.qi.512", vector_of(i8, self.lanes)
        low, high = (self.b.intrinsic(name, [first, codes, second], type) for first, second in self.pairs)
        return self.b.select(self.negative(codes), high, low)


class Planes:
    """A lookup table of 256 entries of 32 bits, split into four tables of bytes (table n has byte n of each entry), so
    that permutations of bytes can read 64 entries at once."""

    lanes = Bytes.lanes

    def __init__(self, b: LoopBuilder, entries: SSAValue, signed: bool):
        self.b = b
        starts = range(0, ENTRIES, LANES)
        words = [b.vector_load(entries, [k], LANES) for k in starts]
        self.tables: list[Table] = []
        for plane in range(4):
            shift = vector_constant(b, 8 * plane, i32, LANES)
            room = b.add(memref.AllocaOp.get(i8, 64, [ENTRIES])).memref
            for k, word in zip(starts, words, strict=True):
                shifted = b.add(arith.ShRUIOp(word, shift)).result
                b.vector_store(b.add(TruncIOp(shifted, vector_of(i8, LANES))).result, room, [k])
            self.tables.append(Bytes(b, room, signed))

    def read(self, codes: SSAValue) -> list[SSAValue]:
        """Return the table's entries for a vector of 64 codes: 64 numbers of 32 bits, in four vectors."""
        planes = [table.read(codes) for table in self.tables]
        words = [self.mixed(low, high, i16) for low, high in (planes[:2], planes[2:])]
        return [part for low, high in zip(*words, strict=True) for part in self.mixed(low, high, i32)]

    def mixed(self, low: SSAValue, high: SSAValue, element: Attribute) -> list[SSAValue]:
        """Interleave two vectors, and return the result as two vectors of elements of twice the size."""
        assert is_vector(low.type)
        (lanes,) = low.type.get_shape()
        turns = [place for lane in range(lanes) for place in (lane, lanes + lane)]
        halves = (self.b.shuffle(low, high, half) for half in (turns[:lanes], turns[lanes:]))
        return [self.b.bitcast(half, element, lanes // 2) for half in halves]


class Words(Table):
    """A table read by AVX-512 permutations of 64 words, each of which holds the entries of two codes. A word with two
    neighbouring codes of the data can be the index of the first code's entry without masking, because the permutation
    ignores the upper bits."""

    lanes = 64

    def keep(self, entries: SSAValue) -> None:
        b, count = self.b, self.lanes // 2
        mixed = [place for k in range(count) for place in (k, count + k)]
        self.words: list[SSAValue] = []
        for first in range(0, ENTRIES // 2, count):
            low, high = (b.vector_load(entries, [half + first], count) for half in self.halves())
            self.words.append(b.bitcast(b.shuffle(low, high, mixed), i16, count))

    def read(self, codes: SSAValue) -> SSAValue:
        b, eight, lowest = self.b, self.constant(8, i16), self.constant(255, i16)
        even = b.bitcast(codes, i16, self.lanes // 2)
        first, second = self.pick(even), self.pick(b.add(arith.ShRUIOp(even, eight)).result)
        low = arith.OrIOp(b.add(arith.AndIOp(first, lowest)).result, b.add(arith.ShLIOp(second, eight)).result)
        rest = b.add(arith.AndIOp(second, self.constant(-256, i16))).result
        high = arith.OrIOp(b.add(arith.ShRUIOp(first, eight)).result, rest)
        low, high = (b.bitcast(b.add(half).result, i8, self.lanes) for half in (low, high))
        return b.select(self.negative(codes), high, low)

    def pick(self, codes: SSAValue) -> SSAValue:
        """Look up a vector of 16-bit words, each with a code in its lowest byte. Returns for each of them the word of
        this table that holds the entry of the code."""
        b, name, type = self.b, "llvm.x86.avx512.vpermi2var.hi.512", vector_of(i16, self.lanes // 2)
        near, far = (b.intrinsic(name, [self.words[k], codes, self.words[k + 1]], type) for k in (0, 2))
        bit = b.add(arith.AndIOp(codes, self.constant(64, i16))).result
        return b.select(b.compare(bit, "ne", self.constant(0, i16)), far, near)


class Pieces(Table):
    """A table of 256 bytes that `pshufb` reads in pieces of 16 entries. The two halves of the table are read
    separately, and the results are combined."""

    shuffle: ClassVar[str]

    def keep(self, entries: SSAValue) -> None:
        b, order = self.b, [lane % PIECE for lane in range(self.lanes)]
        self.pieces: list[list[SSAValue]] = []
        for half in range(0, ENTRIES, ENTRIES // 2):
            pieces = [b.vector_load(entries, [half + k], PIECE) for k in range(0, ENTRIES // 2, PIECE)]
            changes = [b.add(arith.XOrIOp(new, old)).result for old, new in zip(pieces, pieces[1:], strict=False)]
            pieces = [pieces[0], *changes]
            self.pieces.append(pieces if self.lanes == PIECE else [b.shuffle(piece, piece, order) for piece in pieces])

    def read(self, codes: SSAValue) -> SSAValue:
        turned = self.turned(codes)
        low, high = (turned, codes) if self.signed else (codes, turned)
        first, second = (self.cascade(index, half) for index, half in zip((low, high), self.pieces, strict=True))
        return self.b.add(arith.XOrIOp(first, second)).result

    def cascade(self, index: SSAValue, pieces: Sequence[SSAValue]) -> SSAValue:
        """Read one half of the table, given as eight pieces of 16 entries: return the entries at the indices from 0 to
        127, and 0 for other indices. Each piece after the first is stored as its xor with the piece before."""
        b, type, name = self.b, vector_of(i8, self.lanes), f"llvm.ssub.sat.v{self.lanes}i8"
        total = b.intrinsic(self.shuffle, [pieces[0], index], type)
        for piece in pieces[1:]:
            index = b.intrinsic(name, [index, self.constant(PIECE)], type)
            total = b.add(arith.XOrIOp(total, b.intrinsic(self.shuffle, [piece, index], type))).result
        return total


class Pieces32(Pieces):
    """A table of 256 bytes read in pieces of 16 entries (see `Pieces`), for vectors of 32 codes (AVX2)."""

    lanes, shuffle = 32, "llvm.x86.avx2.pshuf.b"


class Pieces16(Pieces):
    """`Pieces` for vectors of 16 codes (SSSE3)."""

    lanes, shuffle = 16, "llvm.x86.ssse3.pshuf.b.128"


class Quarters(Table):
    """A table of 256 bytes, read in quarters: AArch64's `tbl` and `tbx` each look up 64 bytes in four registers."""

    lanes = 16

    def keep(self, entries: SSAValue) -> None:
        self.pieces = [self.b.vector_load(entries, [k], PIECE) for k in range(0, ENTRIES, PIECE)]

    def read(self, codes: SSAValue) -> SSAValue:
        b, type = self.b, vector_of(i8, self.lanes)
        index = self.turned(codes) if self.signed else codes
        total = b.intrinsic("llvm.aarch64.neon.tbl4.v16i8", [*self.pieces[:4], index], type)
        for first in range(4, len(self.pieces), 4):
            index = b.add(arith.SubiOp(index, self.constant(64))).result
            quarter = self.pieces[first : first + 4]
            total = b.intrinsic("llvm.aarch64.neon.tbx4.v16i8", [total, *quarter, index], type)
        return total


TABLES: tuple[type[Table], ...] = (Bytes, Words, Pieces32, Pieces16, Quarters)
"""All ways to look up 8-bit codes in a table in registers: those that look up more lanes at once first, and among those
with equally many lanes the faster ones first."""


def tables_of(target: CpuTarget) -> list[type[Table]]:
    """Return the subclasses of `Table` (lookup tables in registers) that the target's shuffle instructions support:
    those whose names, in lower case, are in `target.tables`."""
    return [kind for kind in TABLES if kind.__name__.lower() in target.tables]
