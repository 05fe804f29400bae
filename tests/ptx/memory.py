"""Memory, and who touched it: an access that another thread's access is not ordered with is a fault, as it might see
either. Source: PTX ISA 8.7, chapter 8 (memory consistency model), for programs whose threads meet at barriers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
NOBODY, SEVERAL, COPY = -1, -2, -3
"""In place of a thread's number; COPY: a tile that the device copied."""
SHARED_BASE = 1024
"""Where dynamic shared memory starts: not at 0, as kernels must not count on it."""
GLOBAL_BASE = 1 << 32
POISON = 0xA5


class Fault(Exception):
    """What a kernel must not do."""


class Shadow:
    """The last thread that wrote each granule of memory, those that read it, and when: in which of the times between
    barriers."""

    def __init__(self, size: int):
        self.writer = np.full(size, NOBODY, np.int32)
        self.reader = np.full(size, NOBODY, np.int32)
        self.written = np.zeros(size, np.int32)
        self.read = np.zeros(size, np.int32)

    def reading(self, places: Integers, threads: Integers, times: Values) -> None:
        """These threads read these places, a row each. Raises Fault if another wrote there since the last barrier."""
        who, now = threads[:, None].astype(np.int32), times[:, None]
        writer = self.writer[places]
        if ((writer != who) & (writer >= 0) & (self.written[places] == now)).any():
            raise Fault("reads what another thread wrote, without a barrier since")
        before = self.reader[places]
        found = np.where((self.read[places] == now) & (before != who) & (before != NOBODY), np.int32(SEVERAL), who)
        self.reader[places], self.read[places] = found, now
        clash = self.reader[places] != found
        if clash.any():
            self.reader[places[clash]] = SEVERAL

    def writing(self, places: Integers, threads: Integers, times: Values) -> None:
        """These threads write to these places. Raises Fault if another one used them since the last barrier."""
        who, now = threads[:, None].astype(np.int32), times[:, None]
        self.check(places, who, now)
        self.writer[places], self.written[places] = who, now
        if (self.writer[places] != who).any():
            raise Fault("two threads write to one place")

    def check(self, places: Integers, who: Values, now: Values) -> None:
        """Whether these threads may write there."""
        writer, reader = self.writer[places], self.reader[places]
        if ((writer != who) & (writer >= 0) & (self.written[places] == now)).any():
            raise Fault("writes where another thread wrote, without a barrier since")
        if ((reader != who) & (reader != NOBODY) & (self.read[places] == now)).any():
            raise Fault("writes where another thread may still read, without a barrier since")


class GlobalMemory:
    """Buffers, one after the other with gaps; those of a launch's arguments are addresses in them."""

    GAP = 256

    def __init__(self, buffers: Sequence[Values]):
        self.starts: list[int] = []
        size = self.GAP
        for buffer in buffers:
            self.starts.append(size)
            size += -(-(buffer.nbytes + self.GAP) // self.GAP) * self.GAP
        self.data = np.full(size, POISON, np.uint8)
        self.valid = np.zeros(size, np.bool_)
        for start, buffer in zip(self.starts, buffers, strict=True):
            self.data[start : start + buffer.nbytes] = buffer.reshape(-1).view(np.uint8)
            self.valid[start : start + buffer.nbytes] = True
        self.begin()

    def begin(self) -> None:
        """A launch: what earlier ones did is over."""
        self.shadow = Shadow(self.data.size)

    def address(self, buffer: int, offset: int = 0) -> int:
        """Where a buffer lies."""
        return GLOBAL_BASE + self.starts[buffer] + offset

    def bytes(self, buffer: int, size: int) -> Values:
        """What is in a buffer."""
        return self.data[self.starts[buffer] :][:size]

    def places(self, addresses: Values, width: int, align: int) -> Integers:
        """The bytes from each address on. Raises Fault where they are outside of all buffers, or not aligned."""
        first = addresses.astype(np.uint64).view(np.int64) - GLOBAL_BASE
        if (first % align).any():
            raise Fault(f"accesses {align} bytes at an address that is no multiple of that")
        if first.size and (first.min() < 0 or first.max() + width > self.data.size):
            raise Fault("accesses what is no global memory")
        places = first[:, None] + np.arange(width)
        if not self.valid[places].all():
            raise Fault("accesses global memory outside of its buffer")
        return places

    def load(self, threads: Integers, addresses: Values, width: int, constant: bool) -> Values:
        """Bytes for each thread; `constant`: memory that nobody writes during the launch."""
        places = self.places(addresses, width, width)
        if constant and (self.shadow.writer[places] != NOBODY).any():
            raise Fault("reads as constant (.nc) what the launch writes")
        self.shadow.reading(places, threads, np.ones(len(threads), np.int32))
        return self.data[places]

    def store(self, threads: Integers, addresses: Values, values: Values) -> None:
        """A row of bytes of each thread."""
        places = self.places(addresses, values.shape[1], values.shape[1])
        self.shadow.writing(places, threads, np.ones(len(threads), np.int32))
        self.data[places] = values


class Ends:
    """Which threads know that products of groups of warps have read what they read: each warp knows it of its own part
    once it has waited, others by barriers. By granule and group of the block, the number of the last end."""

    def __init__(self, granules: int, threads: int):
        self.threads = threads
        self.last = np.full((granules, -(-threads // 128)), -1, np.int32)
        self.known: dict[int, tuple[int, npt.NDArray[np.uint8]]] = {}
        self.made = 0

    def add(self, threads: Integers, granules: Integers) -> None:
        """These threads, a group, have waited for products that read these granules."""
        block, first = divmod(int(threads[0]), self.threads)
        found = np.zeros(self.threads, np.uint8)
        found[first : first + 128] = 1 << np.arange(128) // 32
        self.known[self.made] = block, found
        self.last[granules, first // 128] = self.made
        self.made += 1

    def of(self, thread: int) -> list[tuple[int, int]]:
        """What a thread knows: numbers, and warps as bits."""
        block, place = divmod(thread, self.threads)
        return [(number, int(found[place])) for number, (its, found) in self.known.items() if its == block]

    def learn(self, thread: int, learnt: dict[int, int]) -> None:
        """A thread hears what others know."""
        for number in [number for number in learnt if number not in self.known]:
            del learnt[number]
        for number, warps in learnt.items():
            self.known[number][1][thread % self.threads] |= warps

    def check(self, granules: Integers, threads: Integers) -> None:
        """Raises Fault where a thread is to write what products may still read, for all that it knows."""
        if not self.known:
            return
        found = self.last[granules]
        for number in np.unique(found[found >= 0]):
            if (end := self.known.get(int(number))) is not None:
                rows = (found == number).reshape(len(found), -1).any(axis=1)
                if (end[1][threads[rows] % self.threads] != 15).any():
                    raise Fault("writes where products may still read, without a barrier since")

    def forget(self, granules: Integers) -> None:
        """A copy takes the place: what read it before counts no more."""
        numbers = np.unique(self.last[granules])
        self.last[granules] = -1
        for number in numbers[numbers >= 0]:
            if int(number) in self.known and not (self.last == number).any():
                del self.known[int(number)]

    def met(self, blocks: Integers) -> None:
        """All threads of these blocks know what one knew: of every warp."""
        self.known = {number: end for number, end in self.known.items() if end[0] not in blocks}


class SharedMemory:
    """The shared memory of blocks. Each granule knows what copy is on its way to it, how many products read it, whether
    what was written is visible to the asynchronous proxy (fence.proxy.async), and what wait a copy's end is seen by."""

    def __init__(self, blocks: int, size: int, threads: int, granule: int):
        self.size = -(-size // 1024) * 1024
        self.limit, self.threads, self.granule = size, threads, granule
        self.data = np.full(blocks * self.size, POISON, np.uint8)
        count = self.data.size // granule
        self.shadow = Shadow(count)
        self.defined = np.zeros(count, np.bool_)
        self.pending = np.zeros(count, np.bool_)
        self.products = np.zeros(count, np.int16)
        self.ends = Ends(count, threads)
        self.fenced = np.zeros(count, np.int8)
        self.phase = np.full(count, -1, np.int32)
        self.barriers = np.zeros(count, np.bool_)
        self.times = np.ones(blocks, np.int32)
        self.observed: list[npt.NDArray[np.bool_]] = []

    def places(self, threads: Integers, addresses: Values, width: int, align: int) -> Integers:
        """The first byte that each thread means. Raises Fault where it is outside of shared memory or not aligned."""
        first = addresses.astype(np.uint64).view(np.int64) - SHARED_BASE
        if first.size and (first.min() < 0 or first.max() + width > self.limit):
            raise Fault("accesses shared memory outside of what the launch asked for")
        if (first % align).any():
            raise Fault(f"accesses {align} bytes of shared memory at an address that is no multiple of that")
        return first + threads // self.threads * self.size

    def granules(self, first: Integers, width: int) -> Integers:
        """The granules of `width` bytes."""
        return first[:, None] // self.granule + np.arange(max(width // self.granule, 1))

    def touch(self, granules: Integers) -> None:
        """Raises Fault where something is under way."""
        if self.pending[granules].any():
            raise Fault("touches shared memory that a copy is on its way to")
        if self.barriers[granules].any():
            raise Fault("touches an mbarrier as if it were data")

    def load(self, threads: Integers, addresses: Values, width: int) -> Values:
        """Bytes for each thread."""
        first = self.places(threads, addresses, width, width)
        self.reading(self.granules(first, width), threads)
        return self.data[first[:, None] + np.arange(width)]

    def reading(self, granules: Integers, threads: Integers, who: Integers | None = None) -> None:
        """Each thread reads a row of granules; `who`: for whom."""
        self.touch(granules)
        self.visible(granules, threads)
        self.shadow.reading(granules, threads if who is None else who, self.times[threads // self.threads])

    def visible(self, granules: Integers, threads: Integers) -> None:
        """Raises Fault for what was never written, or came by a copy whose end these threads did not wait for."""
        if not self.defined[granules].all():
            raise Fault("reads shared memory that was not written")
        phases = self.phase[granules]
        for phase in np.unique(phases[phases >= 0]):
            if not self.known(int(phase), threads[(phases == phase).any(axis=1)]):
                raise Fault("reads what a copy brought, without waiting for its barrier")

    def known(self, phase: int, threads: Integers) -> bool:
        """Whether all these threads know that a phase of an mbarrier is over."""
        return bool(self.observed[phase][threads].all())

    def store(self, threads: Integers, addresses: Values, values: Values) -> None:
        """A row of bytes of each thread."""
        first = self.places(threads, addresses, values.shape[1], values.shape[1])
        self.written(self.granules(first, values.shape[1]), threads)
        self.data[first[:, None] + np.arange(values.shape[1])] = values

    def written(self, granules: Integers, threads: Integers) -> None:
        """Each thread writes a row of granules, now."""
        self.touch(granules)
        if self.products[granules].any():
            raise Fault("writes where a product under way reads")
        self.ends.check(granules, threads)
        self.shadow.writing(granules, threads, self.times[threads // self.threads])
        self.defined[granules], self.fenced[granules], self.phase[granules] = True, 0, -1

    def promise(self, granules: Integers, threads: Integers) -> None:
        """A copy to these granules begins: nobody may use them until it is waited for."""
        self.touch(granules)
        if self.products[granules].any():
            raise Fault("copies to where a product under way reads")
        self.ends.check(granules, threads)
        now = self.times[threads // self.threads][:, None]
        self.shadow.check(granules, threads[:, None].astype(np.int32), now)
        self.pending[granules] = True

    def land(self, granules: Integers, threads: Integers) -> None:
        """A thread's own copies are over, as far as this thread knows."""
        self.pending[granules] = False
        self.written(granules, threads)

    def fence(self, threads: Integers) -> None:
        """fence.proxy.async: asynchronous operations see what these threads wrote, once a barrier followed."""
        fencing = np.zeros(len(self.times) * self.threads + 1, np.bool_)
        fencing[threads] = True
        mine = (self.fenced == 0) & (self.shadow.writer >= 0) & fencing[np.maximum(self.shadow.writer, 0)]
        self.fenced[mine & ~self.pending] = 1

    def barrier(self, blocks: Integers) -> None:
        """All threads of these blocks met: what one knew, all know."""
        self.times[blocks] += 1
        self.ends.met(blocks)
        per_block = self.size // self.granule
        fenced = self.fenced.reshape(-1, per_block)
        fenced[blocks] = np.where(fenced[blocks] == 1, 2, fenced[blocks])
        for seen in self.observed:
            by_block = seen.reshape(-1, self.threads)
            by_block[blocks] |= by_block[blocks].any(axis=1, keepdims=True)
