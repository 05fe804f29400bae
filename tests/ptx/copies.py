"""What is copied later: groups of cp.async, tiles that the device copies (cp.async.bulk.tensor), and the mbarriers that
count them. What a copy brings lands when it is waited for, and not before. Source: PTX ISA 8.7, 9.7.9.25 (asynchronous
copies), 9.7.13.15 (mbarrier), 8.6 (proxies)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tests.ptx.arithmetic import Values
from tests.ptx.control import READY, WAITING
from tests.ptx.memory import COPY, GLOBAL_BASE, SHARED_BASE, Fault, Integers
from tests.ptx.tables import Im2colMap

if TYPE_CHECKING:
    from tests.ptx.machine import Machine


@dataclass
class Copy:
    """One cp.async of some threads: where from, where to, how many bytes, and whether they are zeros instead."""

    threads: Integers
    groups: Integers
    sources: Values
    first: Integers
    size: int
    filled: Values


@dataclass
class Tile:
    """A tile on its way: the thread that asked, its bytes' sources and places, and which are inside of the matrix."""

    thread: int
    sources: Integers
    first: Integers
    inside: Values


@dataclass
class Barrier:
    """An mbarrier: arrivals that a phase waits for, those that are still to come, bytes to come, phases that are over.
    9.7.13.15.2, Contents of the mbarrier object. `told`: what threads knew of products when they arrived in the phase
    that is not over; `learnt`: in those that are."""

    expected: int
    missing: int
    bytes: int = 0
    over: int = 0
    tiles: list[Tile] = field(default_factory=list[Tile])
    phases: list[int] = field(default_factory=list[int])
    told: dict[int, int] = field(default_factory=dict[int, int])
    learnt: dict[int, int] = field(default_factory=dict[int, int])


class Asynchronous:
    """What is under way in a machine."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.copies: list[Copy] = []
        self.committed = np.zeros(machine.count, np.int64)
        self.barriers: dict[tuple[int, int], Barrier] = {}
        self.tried = np.zeros(machine.count, np.bool_)
        self.waits: dict[int, tuple[Barrier, int]] = {}
        self.mapped: dict[int, Values] = {}

    # Groups of copies

    def copy(self, threads: Integers, to: Values, sources: Values, size: int, filled: Values) -> None:
        """cp.async: 9.7.9.25.3.1."""
        shared = self.machine.shared
        first = shared.places(threads, to, size, size)
        shared.promise(shared.granules(first, size), threads)
        self.copies.append(Copy(threads, self.committed[threads], sources, first, size, filled))

    def wait(self, threads: Integers, left: int) -> None:
        """cp.async.wait_group: all but the latest groups of these threads are over. 9.7.9.25.3.3."""
        most = np.full(self.machine.count, -1)
        most[threads] = self.committed[threads] - left
        kept = list[Copy]()
        for copy in self.copies:
            done = copy.groups < most[copy.threads]
            if done.any():
                self.land(part(copy, done))
            if not done.all():
                kept.append(part(copy, ~done))
        self.copies = kept

    def land(self, copy: Copy) -> None:
        """Bytes come."""
        machine, shared = self.machine, self.machine.shared
        found = np.zeros((len(copy.threads), copy.size), np.uint8)
        read = ~copy.filled
        if read.any():
            threads = copy.threads[read] + machine.first
            found[read] = machine.memory.load(threads, copy.sources[read], copy.size, False)
        shared.land(shared.granules(copy.first, copy.size), copy.threads)
        shared.data[copy.first[:, None] + np.arange(copy.size)] = found

    # Barriers in memory

    def granules(self, thread: int, address: int) -> Integers:
        """Those of an mbarrier."""
        shared = self.machine.shared
        first = shared.places(np.array([thread]), np.array([address], np.uint64), 8, 8)
        return shared.granules(first, 8)[0]

    def start(self, thread: int, address: int, expected: int) -> None:
        """mbarrier.init."""
        shared, granules = self.machine.shared, self.granules(thread, address)
        shared.written(granules[None], np.array([thread]))
        shared.barriers[granules] = True
        self.barriers[thread // self.machine.block, address] = Barrier(expected, expected)

    def known(self, thread: int, address: int, asynchronous: bool = False) -> Barrier:
        """An mbarrier, by a thread that must know that it was made; `asynchronous`: for a copy to count on it."""
        shared, granules = self.machine.shared, self.granules(thread, address)
        barrier = self.barriers.get((thread // self.machine.block, address))
        if barrier is None:
            raise Fault("there is no mbarrier")
        writer, now = shared.shadow.writer[granules[0]], shared.times[thread // self.machine.block]
        if writer != thread and shared.shadow.written[granules[0]] == now:
            raise Fault("uses an mbarrier that another thread made, without a barrier since")
        if asynchronous and shared.fenced[granules[0]] < (1 if writer == thread else 2):
            raise Fault("a copy counts on an mbarrier that no fence made visible")
        return barrier

    def arrive(self, thread: int, address: int, bytes: int) -> None:
        """mbarrier.arrive, with .expect_tx: more bytes to come, and one arrival. 9.7.13.15.5 and 9.7.13.15.13. What the
        thread did before is ordered before what follows a wait for the phase (.release and .acquire by default)."""
        barrier = self.known(thread, address)
        barrier.bytes += bytes
        barrier.missing -= 1
        for number, warps in self.machine.shared.ends.of(thread):
            barrier.told[number] = barrier.told.get(number, 0) | warps
        self.complete(barrier)

    def complete(self, barrier: Barrier) -> None:
        """A phase is over if nothing is to come."""
        if barrier.missing < 0:
            raise Fault("more arrivals than the mbarrier expects")
        if barrier.missing == 0 and barrier.bytes == 0:
            self.phase(barrier)
            barrier.over, barrier.missing = barrier.over + 1, barrier.expected
            for number, warps in barrier.told.items():
                barrier.learnt[number] = barrier.learnt.get(number, 0) | warps
            barrier.told.clear()

    def phase(self, barrier: Barrier) -> int:
        """The number of the phase that is not over, of all phases of all barriers."""
        observed = self.machine.shared.observed
        if len(barrier.phases) == barrier.over:
            barrier.phases.append(len(observed))
            observed.append(np.zeros(self.machine.count, np.bool_))
        return barrier.phases[barrier.over]

    def test(self, thread: int, address: int, parity: int) -> bool:
        """mbarrier.try_wait.parity: whether the phase of this parity is over; phases are even and odd in turns, and the
        one that is not over is that of the parity of those that are. 9.7.13.15.16."""
        barrier = self.known(thread, address)
        if barrier.over & 1 == parity:
            self.waits[thread] = barrier, parity
            return False
        for phase in barrier.phases[: barrier.over]:
            self.machine.shared.observed[phase][thread] = True
        self.machine.shared.ends.learn(thread, barrier.learnt)
        return True

    # Tiles

    def tile(
        self, thread: int, to: int, map: int, place: Sequence[int], barrier: int, tap: Sequence[int] | None = None
    ) -> None:
        """cp.async.bulk.tensor.2d, and .4d.im2col with the offsets of a tap: 9.7.9.25.5.2."""
        machine, shared = self.machine, self.machine.shared
        found = machine.maps.get(map)
        if found is None:
            raise Fault("there is no tensor map")
        if found.wrong():
            raise Fault(found.wrong())
        if map not in self.mapped or not self.mapped[map][thread]:
            raise Fault("uses a tensor map without fence.proxy.tensormap")
        if to % 128:
            raise Fault("a tile must start at a multiple of 128 bytes")
        counted = self.known(thread, barrier, asynchronous=True)
        if isinstance(found, Im2colMap) != (tap is not None):
            raise Fault("the tensor map is of another mode than the copy")
        if isinstance(found, Im2colMap):
            if not all(0 <= offset <= 255 for offset in tap or ()):
                raise Fault("an im2col offset is outside of 8 bits")
            try:
                sources, addresses, inside = found.tile(place, tap or (), to)
            except ValueError as error:
                raise Fault(str(error)) from None
        else:
            sources, addresses, inside = found.tile(place[0], place[1], to)
        first = self.first(thread, addresses)
        granules = np.unique(first // shared.granule)
        writer, fenced = shared.shadow.writer[granules], shared.fenced[granules]
        if ((writer >= 0) & (fenced < np.where(writer == thread, 1, 2))).any():
            raise Fault("copies over what was written, without fence.proxy.async since")
        shared.promise(granules[None], np.array([thread]))
        shared.ends.forget(granules)
        counted.tiles.append(Tile(thread, sources, first, inside))

    def first(self, thread: int, addresses: Integers) -> Integers:
        """Where these addresses lie. Raises Fault if it is outside of what the launch asked for."""
        shared = self.machine.shared
        if addresses.min() < SHARED_BASE or addresses.max() >= SHARED_BASE + shared.limit:
            raise Fault("accesses shared memory outside of what the launch asked for")
        return addresses - SHARED_BASE + thread // self.machine.block * shared.size

    def bring(self, barrier: Barrier, tile: Tile) -> None:
        """A tile comes, and its barrier hears of all bytes of the box."""
        shared, memory = self.machine.shared, self.machine.memory
        sources = np.where(tile.inside, tile.sources - GLOBAL_BASE, 0)
        if not memory.valid[sources[tile.inside]].all():
            raise Fault("a tensor map reaches outside of its buffer")
        shared.data[tile.first] = np.where(tile.inside, memory.data[sources], 0)
        granules = np.unique(tile.first // shared.granule)
        shared.pending[granules] = False
        shared.shadow.writer[granules] = COPY
        shared.defined[granules], shared.fenced[granules] = True, 2
        shared.phase[granules] = self.phase(barrier)
        barrier.bytes -= tile.first.size
        self.complete(barrier)

    # Waiting

    def met(self, blocks: Integers) -> None:
        """Threads of these blocks met: what one knows of maps, all know."""
        for seen in self.mapped.values():
            by_block = seen.reshape(-1, self.machine.block)
            by_block[blocks] |= by_block[blocks].any(axis=1, keepdims=True)

    def progress(self) -> bool:
        """Nobody runs: tiles come that somebody waits for. Whether anybody may go on."""
        machine = self.machine
        waiting = np.flatnonzero(machine.state == WAITING)
        for thread in waiting:
            barrier, parity = self.waits[int(thread)]
            while barrier.tiles and barrier.over & 1 == parity:
                self.bring(barrier, barrier.tiles.pop(0))
        free = [thread for thread in waiting if self.waits[int(thread)][0].over & 1 != self.waits[int(thread)][1]]
        machine.state[free] = READY
        return bool(free)

    def complaint(self) -> str:
        """Why nobody goes on."""
        waiting = np.flatnonzero(self.machine.state == WAITING)
        if not waiting.size:
            return "some threads wait at a barrier that others never come to"
        barrier, parity = self.waits[int(waiting[0])]
        return (
            f"thread {waiting[0]} waits for parity {parity} of an mbarrier that nothing completes: {barrier.missing} "
            f"arrivals and {barrier.bytes} bytes are to come"
        )

    def over(self) -> None:
        """The end of all threads."""
        tiles = any(barrier.tiles for barrier in self.barriers.values())
        if self.copies or tiles:
            raise Fault(f"{self.machine.kernel.name}: ends with copies under way that no one waited for")
        if any(barrier.missing != barrier.expected for barrier in self.barriers.values()):
            raise Fault(f"{self.machine.kernel.name}: ends in the midst of a phase of an mbarrier")


def part(copy: Copy, chosen: Values) -> Copy:
    """A copy of some of its threads."""
    return Copy(
        copy.threads[chosen],
        copy.groups[chosen],
        copy.sources[chosen],
        copy.first[chosen],
        copy.size,
        copy.filled[chosen],
    )
