"""Emulates the copies of tiles to shared memory by a GPU's copy engine (TMA), and the barriers that count their bytes.

A tile is written only when a warp waits for its barrier. A warp learns the progress of other warps only from barriers:
each warp counts its own arrivals, and a warp that has waited for a phase knows the counts of the warps that arrived in
it, and whatever these warps knew about others when they arrived. A copy that overwrites data read by products is
accepted only if the requesting thread knows that these products are complete, or if the whole block has synchronised
since.

Sources: PTX ISA, "mbarrier", "cp.async.bulk.tensor", "Swizzling modes", "fence.proxy.tensormap".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.gpu.emulator.assembly import VISIBLE, Assembly, Bulk
from relay.lowering.gpu.emulator.faults import Wrong
from relay.lowering.gpu.emulator.warp import THREAD_BITS

CHUNK, LINE = 16, 128
"""The bytes that a swizzle keeps together, and the most bytes of a row of a tile."""
MAP_ALIGNMENT = 64
BARRIER = 8
"""The size of a barrier in bytes."""
WARP, WARPS = 32, 4
"""The number of threads of a warp, and of warps of a group."""


@dataclass(frozen=True)
class Mapped:
    """A matrix at the start of `data`, with the layout of a tensor map, as described by the launch's JSON."""

    data: Array
    row: Mapping[str, Any]

    def tile(self, place: Sequence[int]) -> Array:
        """Return the rows of a tile that starts at `place`, with zeros outside the matrix; for windows, `place` is the
        first channel, column, row and image, and the tap."""
        if self.row.get("corners"):
            return self.windows(*place)
        column, line = place
        (width, height), (pitch,), (across, down) = self.row["dims"], self.row["strides"], self.row["box"]
        if pitch * (height - 1) + width > self.data.nbytes:
            raise Wrong(f"a map is of {height} rows of {width} bytes, {pitch} apart; there are {self.data.nbytes}")
        found = np.zeros((down, across), np.uint8)
        rows, columns = max(0, min(down, height - line)), max(0, min(across, width - column))
        for row in range(rows):
            start = (line + row) * pitch + column
            found[row, :columns] = self.data[start : start + columns]
        return found

    def windows(self, channel: int, column: int, line: int, image: int, across: int, down: int) -> Array:
        """Return one tap's pixels for consecutive windows, the first of which is at `column`, `line` and `image`: up to
        the last column of windows, then in the next row, then in the next image. `across` and `down`: the tap's
        position in a window."""
        (channels, width, height, images), (first, last, stride) = self.row["dims"], self.row["corners"]
        pieces, count = self.row["box"]
        whole = self.data[: channels * width * height * images].reshape(images, height, width, channels)
        found = np.zeros((count, pieces), np.uint8)
        x, y = column, line
        if not (first <= x <= width - 1 + last and first <= y <= height - 1 + last):
            raise Wrong(f"windows start at column {x} and row {y}, which is outside of their box")
        for pixel in range(count):
            inside = 0 <= x + across < width and 0 <= y + down < height and image < images
            if inside:
                part = whole[image, y + down, x + across, channel : channel + pieces]
                found[pixel, : len(part)] = part
            x += stride
            if x > width - 1 + last:
                x, y = first, y + stride
            if y > height - 1 + last:
                y, image = first, image + 1
        return found


@dataclass(frozen=True)
class Tile:
    """A copy of a tile to shared memory that is in progress: the numbers of the 16-byte chunks of shared memory that it
    writes, the matrix that it reads, and the tile's position in the matrix."""

    chunks: Array
    matrix: Mapped
    place: tuple[int, ...]


@dataclass
class Barrier:
    """A barrier for `count` arrivals, with the arrivals, bytes and tiles of its current phase. `made`: the thread that
    created the barrier, and that thread's epoch at the time, the number of fences by which it has made writes
    visible."""

    count: int
    made: tuple[int, int]
    phase: int = 0
    arrived: int = 0
    expected: int = 0
    tiles: list[Tile] = field(default_factory=list[Tile])
    arriving: list[Array] = field(default_factory=list[Array])
    """The vector clocks of the warps that have arrived in the current phase: for each warp w, the progress of w (its
    number of arrivals at barriers) that the arriving warp knew of."""
    learnt: list[Array] = field(default_factory=list[Array])
    """The vector clocks of the last complete phase, which a warp that waits for that phase takes over."""

    def complete(self) -> None:
        """Begin the next phase."""
        self.phase, self.arrived, self.expected = self.phase + 1, 0, 0
        self.learnt, self.arriving = self.arriving, []
        self.tiles.clear()


def swizzled(place: Array, row: int = LINE) -> Array:
    """Return the numbers of the 16-byte chunks of shared memory that hold, after swizzling, the bytes that would be at
    the offsets `place` without it. In rows of `row` bytes, which have n chunks each, chunk c of a row is stored as its
    chunk c xor (r mod n), where r is the offset divided by 128."""
    return (place ^ (place // LINE % (row // CHUNK) * CHUNK)) // CHUNK


class BulkCopies:
    """The copies and barriers of a block of threads. `memory`: the `size` bytes of its shared memory; `written`: a flag
    for each byte that was written; `stamps`: for each 4-byte word, the thread that wrote it last, and when. All three
    are arrays with a row for each chunk of 16 bytes of shared memory."""

    def __init__(
        self, contexts: Array, memory: Array, written: Array, stamps: Array, size: int, maps: Mapping[int, Mapped]
    ):
        self.size = size
        self.epochs, self.shown, self.passed = (contexts[name] for name in ("epoch", "shown", "passed"))
        self.memory, self.written, self.stamps = memory, written, stamps
        self.maps = maps
        self.barriers: dict[int, Barrier] = {}
        self.acquired: set[tuple[int, int]] = set()
        self.landed = 0
        self.read = np.full(len(memory), -1, np.int32)
        warps = -(-len(contexts) // WARP)
        self.readers = np.full((len(memory), warps), -1, np.int32)
        self.known_of = np.full((warps, warps), -1, np.int32)
        self.clocks = np.zeros(warps, np.int32)
        self.stuck: dict[int, str] = {}

    def end(self) -> None:
        """Reset the state at the end of a block; copies that are still in progress raise Wrong."""
        if any(barrier.tiles for barrier in self.barriers.values()):
            raise Wrong("the block ends with copies under way")
        self.barriers.clear()
        self.acquired.clear()
        self.stuck.clear()
        for seen in (self.read, self.readers, self.known_of):
            seen[:] = -1

    def execute(self, place: Assembly, what: Bulk, thread: int, registers: Array) -> bool:
        """Execute a thread's request, or its warp's wait. Return whether the thread or warp continues: False if it must
        wait for a barrier. `registers`: the operands of the thread, or of each thread of the warp, as words."""
        values = words(place.words, registers)
        match what.name:
            case "init":
                self.make(values[0], what.number, thread)
            case "expect" | "arrive":
                self.arrive(self.known(values[0]), values[0], thread, what.number)
            case "acquire":
                self.acquired.add((thread, values[0]))
            case "copy" | "windows":
                self.copy(values, thread)
            case _:
                return self.wait(self.known(values[0]), values[0], values[1], thread)
        return True

    def make(self, at: int, count: int, thread: int) -> None:
        """Create an mbarrier at byte `at` of shared memory, whose phases need `count` arrivals each. Raises Wrong if
        `at` is misaligned or outside of the memory."""
        if at % BARRIER or not 0 <= at <= self.size - BARRIER:
            raise Wrong(f"a barrier is made at byte {at} of shared memory, which has {self.size}")
        self.barriers[at] = Barrier(count, (thread, int(self.epochs[thread])))

    def known(self, at: int) -> Barrier:
        """Return the barrier at an address. Raises Wrong if there is none, or if its creation may not be visible to the
        thread, because its creator has not executed a fence and a barrier of the block since."""
        if at not in self.barriers:
            raise Wrong(f"there is no barrier at byte {at} of shared memory")
        thread, epoch = self.barriers[at].made
        if self.shown[thread] <= epoch:
            raise Wrong(f"the barrier at byte {at} was made without {VISIBLE} and a barrier of the block since")
        return self.barriers[at]

    def arrive(self, barrier: Barrier, at: int, thread: int, size: int = 0) -> None:
        """Record one arrival, and `size` bytes to come: a phase without bytes is complete with its last arrival."""
        if barrier.arrived == barrier.count:
            raise Wrong(f"the barrier at byte {at} is armed again before it was waited for")
        warp = thread // WARP
        self.known_of[warp, warp] = self.clocks[warp]
        self.clocks[warp] += 1
        barrier.arriving.append(self.known_of[warp].copy())
        barrier.arrived += 1
        barrier.expected += size
        if barrier.arrived == barrier.count and not barrier.expected and not barrier.tiles:
            barrier.complete()

    def copy(self, values: Sequence[int], thread: int) -> None:
        """Record a requested copy of a tile. Raises Wrong for invalid arguments and unordered accesses."""
        to, source, *position, at = values
        if source % MAP_ALIGNMENT:
            raise Wrong(f"a map starts at {source:#x}, no multiple of {MAP_ALIGNMENT}")
        if source not in self.maps:
            raise Wrong("a copy is by what is no map")
        if (thread, source) not in self.acquired:
            raise Wrong("a map is used without fence.proxy.tensormap by the same thread before")
        barrier, matrix = self.known(at), self.maps[source]
        across, down = map(int, matrix.row["box"])
        plain = not matrix.row.get("corners") and (across != LINE or min(position) < 0)
        if to % (8 * across) or matrix.row["swizzle"] != across or to < 0 or plain:
            raise Wrong(f"rows of {across} bytes are copied to byte {to} of shared memory from {position}")
        if to + across * down > self.memory.size:
            raise Wrong(f"a tile ends at byte {to + across * down} of shared memory, which has {self.size}")
        place = to + np.arange(down)[:, None] * across + np.arange(across // CHUNK) * CHUNK
        chunks = swizzled(place, across)
        unknown = (self.readers[chunks] > self.known_of[thread // WARP]).any(axis=-1)
        if (unknown & (self.read[chunks] >= self.passed[thread])).any():
            raise Wrong(f"a copy to byte {to} is asked for without a barrier since products read there")
        if any(np.isin(chunks, tile.chunks).any() for each in self.barriers.values() for tile in each.tiles):
            raise Wrong(f"two copies to byte {to} are under way")
        self.written[chunks] = 0
        barrier.tiles.append(Tile(chunks, matrix, tuple(position)))

    def wait(self, barrier: Barrier, at: int, parity: int, thread: int) -> bool:
        """Return whether the phase of this parity is complete, after writing all tiles that are in progress."""
        if barrier.phase % 2 == parity:
            size = sum(tile.chunks.size * CHUNK for tile in barrier.tiles)
            if barrier.arrived < barrier.count or size != barrier.expected:
                came = f"{barrier.arrived} of {barrier.count} arrivals and {size} of {barrier.expected} bytes"
                self.stuck[thread] = f"waits for ever at the barrier at byte {at}: {came} came"
                return False
            for tile in barrier.tiles:
                self.landed += 1
                self.memory[tile.chunks] = tile.matrix.tile(tile.place).reshape(*tile.chunks.shape, CHUNK)
                self.written[tile.chunks] = 1
                self.stamps[tile.chunks] = -self.landed << THREAD_BITS
            barrier.complete()
        warp = thread // WARP
        self.known_of[warp] = np.maximum.reduce([self.known_of[warp], *barrier.learnt])
        return True

    def finished(self, chunks: Array, thread: int) -> None:
        """Record that a product that read these chunks of shared memory is complete, and that the four warps of its
        group know this, because they have waited for it. `thread`: the first thread of the group."""
        self.read[chunks] = np.maximum(self.read[chunks], self.passed[thread])
        warps = slice(thread // WARP, thread // WARP + WARPS)
        self.readers[chunks, warps] = self.clocks[warps]


def words(operands: Sequence[str], registers: Array) -> list[int]:
    """Return the values of an inline assembly's operands, which are given in LLVM IR with their types, such as
    `i32 %x`. `registers` [thread, 32-bit word]: the operands of several threads, two words for each. Raises Wrong if
    the threads have different values."""
    found: list[int] = []
    for number, operand in enumerate(operands):
        pair = registers[:, 2 * number : 2 * number + 2].copy()
        column = pair[:, 0] if operand.startswith("i32 ") else pair.view(np.int64)[:, 0]
        if (column != column[0]).any():
            raise Wrong("threads of a group wait at different barriers, or for different phases")
        found.append(int(column[0]))
    return found
