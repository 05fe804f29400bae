"""The subset of HDF5 that Keras writes: superblocks of version 0 or 1, groups as B-trees of names, contiguous datasets.

The bytes are of untrusted origin: addresses beyond the end of the file are refused, and the number of nodes that
are visited is limited.
Source: HDF5 File Format Specification, version 3.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from struct import calcsize, unpack_from
from typing import Any

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import Malformed, Unsupported
from relay.frontend.importing.archives import AGAIN

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MOST_NODES = 1 << 20
"""The maximum number of headers, tree nodes and names that are visited in a file."""
_CONTINUATION, _SYMBOL_TABLE = 0x10, 0x11
"""The types of two messages in an object header: one refers to further messages, the other to the symbol table of a
group."""
_SAVE = "load it with Keras and save it again"


class Hdf5:
    """The datasets of a file by path. Errors name the file and the dataset."""

    def __init__(self, data: memoryview, where: str) -> None:
        self.data, self.where = data, where
        self._visited = 0
        self._groups: dict[int, dict[str, int]] = {}
        if bytes(data[:8]) != SIGNATURE:
            raise Malformed(where, "is no HDF5 file", _SAVE)
        version, offsets, lengths = self._read("<B4xBB", 8)
        if version > 1:
            raise Unsupported(where, f"is an HDF5 file with a superblock of version {version}", _SAVE)
        if (offsets, lengths) != (8, 8):
            raise Unsupported(where, f"has offsets of {offsets} and lengths of {lengths} bytes", _SAVE)
        base, end, self.root = self._read("<Q8xQ16xQ", 24 + 4 * version)
        if base:
            raise Unsupported(where, "does not begin at its base address", _SAVE)
        if end > len(data):
            raise Malformed(where, f"is cut off: {len(data)} of {end} bytes are there", AGAIN)

    def __contains__(self, path: str) -> bool:
        return self._find(path) is not None

    def names(self, path: str) -> list[str]:
        """The names of a group's members; empty if there is no such group."""
        address = self._find(path)
        return [] if address is None else [*self._group(address)]

    def array(self, path: str) -> Array:
        """A dataset as an array that shares the file's bytes. Raises Malformed, Unsupported."""
        address = self._find(path)
        if address is None:
            raise Malformed(f"{self.where}: {path}", "is not in the file", AGAIN)
        return self._dataset(address, f"{self.where}: {path}")

    def _find(self, path: str) -> int | None:
        address = self.root
        for part in path.split("/"):
            found = self._group(address).get(part)
            if found is None:
                return None
            address = found
        return address

    def _read(self, format: str, address: int) -> tuple[Any, ...]:
        if address + calcsize(format) > len(self.data):
            raise Malformed(self.where, f"address {address} is behind the end", AGAIN)
        return unpack_from(format, self.data, address)

    def _count(self, more: int) -> None:
        self._visited += more
        if self._visited > MOST_NODES:
            raise Malformed(self.where, f"has more than {MOST_NODES} nodes")

    def _messages(self, address: int) -> Iterator[tuple[int, int, int]]:
        """The type, address and size of each message of an object header of version 1."""
        version, _, count, _, size = self._read("<BBHII", address)
        if version != 1:
            raise Unsupported(self.where, f"has an object header of version {version}", _SAVE)
        blocks = [(address + 16, size)]
        for start, size in blocks:
            end = start + size
            while start + 8 <= end and count > 0:
                self._count(1)
                count -= 1
                kind, length = self._read("<HH", start)
                if kind == _CONTINUATION:
                    blocks.append(self._read("<QQ", start + 8))
                yield kind, start + 8, length
                start += 8 + length

    def _group(self, address: int) -> dict[str, int]:
        """The addresses of a group's members by name; empty if the object is no group."""
        if address not in self._groups:
            found: dict[str, int] = {}
            for kind, start, _ in self._messages(address):
                if kind == _SYMBOL_TABLE:
                    tree, heap = self._read("<QQ", start)
                    self._tree(tree, self._heap(heap), found, 256)
            self._groups[address] = found
        return self._groups[address]

    def _heap(self, address: int) -> memoryview:
        signature, size, _, start = self._read("<4s4xQQQ", address)
        if signature != b"HEAP":
            raise Malformed(self.where, f"there is no heap of names at {address}")
        return self.data[start : start + size]

    def _tree(self, address: int, names: memoryview, found: dict[str, int], above: int) -> None:
        """Add the names of a B-tree node and its children to `found`; its level must be lower than its parent's,
        `above`."""
        self._count(1)
        signature, kind, level, used = self._read("<4sBBH", address)
        if signature == b"TREE":
            if kind or level >= above:
                raise Malformed(self.where, f"the node at {address} is of kind {kind} and level {level}")
            for number in range(used):
                self._tree(self._read("<Q", address + 32 + 16 * number)[0], names, found, level)
            return
        if signature != b"SNOD" or above > 255:
            raise Malformed(self.where, f"there is no node of a tree at {address}")
        self._count(used)
        for number in range(used):
            place, target = self._read("<QQ", address + 8 + 40 * number)
            text = bytes(names[place : place + 256]).partition(b"\0")[0]
            found[text.decode("utf-8", "replace")] = target

    def _dataset(self, address: int, where: str) -> Array:
        dims: tuple[int, ...] | None = None
        dtype: np.dtype[Any] | None = None
        layout = 0
        for kind, start, _ in self._messages(address):
            match kind:
                case 1:  # dataspace
                    version, rank = self._read("<BB", start)
                    dims = self._read(f"<{rank}Q", start + (8 if version == 1 else 4)) if rank else ()
                case 3:  # datatype
                    dtype = self._dtype(start, where)
                case 8:  # layout
                    layout = start
                case 11:  # filters
                    raise Unsupported(where, "is compressed", _SAVE)
                case _:
                    pass
        if dims is None or dtype is None or not layout:
            raise Malformed(where, "is no dataset: it has no shape, element type or place")
        version, kind = self._read("<BB", layout)
        if version != 3 or kind > 1:
            raise Unsupported(where, "is not stored in one piece", _SAVE)
        start, size = self._read("<QQ", layout + 2) if kind else (layout + 4, self._read("<H", layout + 2)[0])
        count = prod(dims)
        if not count:
            return np.zeros(dims, dtype)
        if size < count * dtype.itemsize or start + size > len(self.data):
            raise Malformed(where, f"has {list(dims)} elements of {dtype} in {size} bytes at {start}", AGAIN)
        found = np.frombuffer(self.data, dtype, count, start).reshape(dims)
        return found if found.flags.aligned else found.copy()

    def _dtype(self, address: int, where: str) -> np.dtype[Any]:
        head, bits, size = self._read("<BB2xI", address)
        kind = {0: "i" if bits & 8 else "u", 1: "f"}.get(head & 15)
        sizes = (2, 4, 8) if kind == "f" else (1, 2, 4, 8)
        if kind is None or bits & 1 or size not in sizes:
            raise Unsupported(where, f"has elements of HDF5's class {head & 15} and {size} bytes", _SAVE)
        return np.dtype(f"<{kind}{size}")
