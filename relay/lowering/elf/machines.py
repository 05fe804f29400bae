"""The relocations of each machine; sources: the psABI of x86-64, and "ELF for the Arm 64-bit Architecture".

S is the symbol's address, A the addend, P the address of the relocated bytes, G that of the symbol's slot in the global
offset table, and page(x) is x without its last 12 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from relay.errors import Unsupported

Patch = Callable[[bytearray, int, int, int], None]
"""A function that writes a value into a section: (section, offset, value S + A or G + A, address P)."""


@dataclass(frozen=True)
class Machine:
    """A processor: how relocations in its code are applied, and the relocations that are left to the loader."""

    name: str
    number: int
    page: int
    absolute: int
    """The kind of a relocation that stores an absolute address, which is known only when the object is loaded."""
    relative: int
    """The kind of a relocation by which the loader adds the load address to a stored number."""
    glob_dat: int
    """The kind of a relocation by which the loader stores the address of an imported symbol."""
    direct: dict[int, Patch]
    """For the kinds of relocations with the value S + A, the function that applies them; for an imported function, S is
    the address of its stub."""
    by_slot: dict[int, Patch]
    """For the kinds of relocations with the value G + A, the function that applies them."""
    stub: Callable[[int, int], bytes]
    """A function that returns code which jumps to the address stored in a slot: (address of the code, slot)."""

    def patch(self, kind: int) -> Patch:
        """Return the function that applies a relocation. Raises Unsupported for an unknown one."""
        found = self.direct.get(kind) or self.by_slot.get(kind)
        if found is None:
            raise Unsupported(f"relocation {kind} of {self.name}", "is not known")
        return found


STUB_BYTES = 16


def _fits(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Unsupported("object code", "is too large: an address is out of reach")
    return value


# x86-64


def _relative32(section: bytearray, offset: int, value: int, place: int) -> None:
    struct.pack_into("<i", section, offset, _fits(value - place, 32))


def _relative64(section: bytearray, offset: int, value: int, place: int) -> None:
    struct.pack_into("<q", section, offset, value - place)


def _stub_x86(address: int, slot: int) -> bytes:
    """Return the code of `jmp *slot(%rip)`."""
    return (b"\xff\x25" + struct.pack("<i", slot - address - 6)).ljust(STUB_BYTES, b"\xcc")


X86_64 = Machine(
    name="x86-64",
    number=62,
    page=1 << 12,
    absolute=1,
    relative=8,
    glob_dat=6,
    direct={2: _relative32, 4: _relative32, 24: _relative64},
    by_slot={9: _relative32, 41: _relative32, 42: _relative32},
    stub=_stub_x86,
)


# AArch64


def _insert(section: bytearray, offset: int, bits: int, mask: int) -> None:
    (word,) = struct.unpack_from("<I", section, offset)
    struct.pack_into("<I", section, offset, word & ~mask | bits & mask)


def _page_difference(value: int, place: int) -> int:
    pages = _fits((value >> 12) - (place >> 12), 21)
    return (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _page21(section: bytearray, offset: int, value: int, place: int) -> None:
    _insert(section, offset, _page_difference(value, place), 3 << 29 | 0x7FFFF << 5)


def _low12(shift: int) -> Patch:
    def patch(section: bytearray, offset: int, value: int, place: int) -> None:
        if value & (1 << shift) - 1:
            raise Unsupported("object code", "loads from an address that is not aligned")
        _insert(section, offset, (value & 0xFFF) >> shift << 10, 0xFFF << 10)

    return patch


def _branch26(section: bytearray, offset: int, value: int, place: int) -> None:
    _insert(section, offset, _fits(value - place, 28) >> 2, 0x3FFFFFF)


def _stub_aarch64(address: int, slot: int) -> bytes:
    """Return the code of `adrp x16, slot; ldr x17, [x16, :lo12:slot]; br x17`."""
    words = (
        0x90000010 | _page_difference(slot, address),
        0xF9400211 | (slot & 0xFFF) >> 3 << 10,
        0xD61F0220,
        0xD503201F,
    )
    return struct.pack("<4I", *words)


AARCH64 = Machine(
    name="AArch64",
    number=183,
    page=1 << 16,
    absolute=257,
    relative=1027,
    glob_dat=1025,
    direct={
        260: _relative64,
        261: _relative32,
        275: _page21,
        277: _low12(0),
        278: _low12(0),
        282: _branch26,
        283: _branch26,
        284: _low12(1),
        285: _low12(2),
        286: _low12(3),
        299: _low12(4),
    },
    by_slot={311: _page21, 312: _low12(3)},
    stub=_stub_aarch64,
)

MACHINES = {machine.number: machine for machine in (X86_64, AARCH64)}
