"""Products of groups of four warps: the operands of `wgmma` in shared memory, and when the sums become available.

A product reads its factors when it is started and again when it is waited for: both must be the same bytes, which were
written, and made visible to matrix units by the threads that wrote them, before a barrier. Until the product is waited
for, its threads' registers contain a meaningless token.

Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" (descriptors, fragments) and "Async proxy".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.gpu.emulator.assembly import (
    COMMIT,
    FENCE,
    VISIBLE,
    Assembly,
    Bulk,
    Multiply,
    Registers,
    Wait,
)
from relay.lowering.gpu.emulator.bulk import CHUNK, LINE, BulkCopies, Mapped, swizzled
from relay.lowering.gpu.emulator.faults import Wrong
from relay.lowering.gpu.emulator.warp import CONTEXT, GROUP_SUMS, GROUP_WORDS, THREAD_BITS

GROUP, WARP = 128, 32
"""The number of threads of a group, and of a warp."""
WAITS = 2
"""The number by which the emulator tells an emulated kernel that the calling warp must wait for a barrier."""
ROWS, DEPTH = 64, 32
"""The number of rows of a product's first factor, and the number of bytes of each row."""
LINES = {1: LINE, 2: LINE // 2, 3: LINE // 4}
"""The number of bytes of a row, for each value of the swizzle field of a descriptor."""
TOKEN = -0x5A5A5A5B
"""The number that the emulator puts into the result registers of issued `wgmma` instructions until they are awaited, so
that an early use of a register is noticed."""


@dataclass(frozen=True)
class Factor:
    """The data that a product read: the numbers of chunks of shared memory, their bytes, and a stamp for each word that
    says which thread wrote it and when. A stamp that has changed at the end shows that a factor was overwritten."""

    chunks: Array
    bytes: Array
    stamps: Array


@dataclass(frozen=True)
class Product:
    """A `wgmma` instruction that has been issued but whose result is not yet awaited, with the data that it read."""

    what: Multiply
    factors: tuple[Factor, Factor]


@dataclass
class Group:
    """The products in progress of a group of warps. While there are any, `sums` holds the sums of all threads, and the
    threads' registers hold `TOKEN`, so that an early use of a register is noticed."""

    fenced: bool = False
    sums: Array | None = None
    started: list[Product] = field(default_factory=list[Product])
    committed: list[list[Product]] = field(default_factory=list[list[Product]])


class Warpgroups:
    """Executes the instructions of the warpgroups of a block of threads. `work`: the arrays of memory of an emulated
    launch, in the order of `threads.work_of`; `maps`: matrices by the addresses of their tensor maps."""

    def __init__(
        self,
        work: Sequence[Array],
        places: Sequence[Assembly],
        threads: int,
        shared: int,
        maps: Mapping[int, Mapped],
    ):
        contexts, _, _, memory, written, _, stamps, registers = work
        self.places = places
        fields = contexts.view(CONTEXT)
        self.shown = fields["shown"]
        self.count = shared // CHUNK
        self.memory, self.written = (each[: self.count * CHUNK].reshape(-1, CHUNK) for each in (memory, written))
        self.stamps = stamps.view(np.int32)[: self.count * CHUNK // 4].reshape(-1, CHUNK // 4)
        self.registers = registers.view(np.int32).reshape(threads, GROUP_WORDS)
        self.groups: dict[int, Group] = {}
        self.copies = BulkCopies(fields, self.memory, self.written, self.stamps, shared, maps)
        self.error: Exception | None = None

    def notify(self, place: int, thread: int) -> int:
        """Handle a call from a kernel. If `place` is positive, it is the number, from 1, of an inline assembly at which
        the group with first thread `thread` has arrived; 0: the block is at its end; -1: no warp can continue. Return
        2 if a warp must wait, 1 for an error, which is stored in `error`, and 0 otherwise."""
        try:
            if place > 0:
                return 0 if self.execute(self.places[place - 1], thread) else WAITS
            if place < 0:
                raise Wrong(self.copies.stuck.get(thread, "waits for other warps of its group, which do not come"))
            self.end()
        except Exception as error:
            self.error = error
        return int(self.error is not None)

    def end(self) -> None:
        """Reset the state at the end of a block; products in progress raise Wrong."""
        if any(group.started or group.committed for group in self.groups.values()):
            raise Wrong("the block ends with products under way")
        self.groups.clear()
        self.copies.end()

    def execute(self, place: Assembly, thread: int) -> bool:
        """Execute the instructions of an inline assembly. Return whether the threads continue: False if they must wait
        for a barrier."""
        if len(place.instructions) == 1 and isinstance(what := place.instructions[0], Bulk):
            count = WARP if what.together else 1
            return self.copies.execute(place, what, thread, self.registers[thread : thread + count, GROUP_SUMS:])
        group = self.groups.setdefault(thread, Group())
        registers = self.registers[thread : thread + GROUP]
        if len(registers) < GROUP:
            raise Wrong(f"a group of {len(registers)} threads multiplies")
        given = registers[:, : len(place.sums)]
        words = registers[:, GROUP_SUMS : GROUP_SUMS + 2 * len(place.words)].copy().view(np.int64)
        if (words != words[0]).any():
            raise Wrong("threads of a group have different descriptors")
        if group.sums is None:
            group.sums = given.copy() if place.sums else None
        elif place.sums and (given.shape != group.sums.shape or (given != TOKEN).any()):
            raise Wrong("registers were used while products under way change them")
        for instruction in place.instructions:
            match instruction:
                case Multiply():
                    self.multiply(group, instruction, [int(words[0, number]) for number in instruction.factors])
                case Wait():
                    while len(group.committed) > instruction.left:
                        self.finish(group, group.committed.pop(0), thread)
                case Bulk() | Registers():
                    raise Wrong("a group does something else between products")
                case str(text):
                    group.fenced |= text == FENCE
                    if text == COMMIT:
                        group.committed.append(group.started)
                        group.started = []
        if group.started or group.committed:
            given[:] = TOKEN
        elif place.sums and group.sums is not None:
            given[:] = group.sums
            group.sums, group.fenced = None, False
        return True

    def multiply(self, group: Group, what: Multiply, descriptors: Sequence[int]) -> None:
        """Start the product of a warpgroup's `wgmma` instruction: read both factors from shared memory as the
        `descriptors` say, and append the product to `group.started`. Raises Wrong if the group has not fenced its
        registers, or a factor's data are missing or not visible."""
        if not group.fenced:
            raise Wrong(f"a product is started without {FENCE} after its registers were written")
        left, right = (self.read(d, rows) for d, rows in zip(descriptors, (ROWS, what.columns), strict=True))
        group.started.append(Product(what, (left, right)))

    def read(self, descriptor: int, rows: int) -> Factor:
        """Return the factor that a descriptor describes: swizzled rows, one after the other. Raises Wrong for data that
        is missing or not visible."""
        start, stride = (descriptor & 0x3FFF) * CHUNK, (descriptor >> 32 & 0x3FFF) * CHUNK
        line = LINES.get(descriptor >> 62 & 3)
        if line is None or descriptor >> 49 & 7:
            raise Wrong(f"the descriptor {descriptor & (1 << 64) - 1:#x} has a layout that is not swizzled rows")
        if start % (8 * line) > line - DEPTH:
            raise Wrong(f"a factor's first row is at byte {start} of shared memory, no multiple of {8 * line}")
        row, chunk = np.arange(rows)[:, None], np.arange(DEPTH // CHUNK)
        place = start + row // 8 * stride + row % 8 * line + chunk * CHUNK
        chunks = swizzled(place, line)
        if chunks.max() >= self.count:
            raise Wrong(f"a factor is at byte {chunks.max() * CHUNK} of shared memory, which has {self.count * CHUNK}")
        if not (there := self.written[chunks].all(axis=-1)).all():
            hole = chunks[np.nonzero(~there)][0] * CHUNK
            raise Wrong(f"a product reads shared memory at byte {hole}, which nothing has written")
        stamps = self.stamps[chunks]
        threads = stamps & (1 << THREAD_BITS) - 1
        hidden = self.shown[threads] <= stamps >> THREAD_BITS
        if hidden.any():
            raise Wrong(f"a product reads what thread {threads[hidden][0]} wrote without {VISIBLE} and a barrier since")
        return Factor(chunks, self.memory[chunks], stamps)

    def finish(self, group: Group, products: Sequence[Product], thread: int) -> None:
        """Add committed products of a warpgroup to its sums, when it waits for them; `thread`: the number of the
        warpgroup's first thread. Raises Wrong if shared memory that the products read has been overwritten since they
        were issued."""
        assert group.sums is not None
        for product in products:
            for factor in product.factors:
                same = (self.memory[factor.chunks] == factor.bytes).all() and self.written[factor.chunks].all()
                if not same or (self.stamps[factor.chunks] != factor.stamps).any():
                    raise Wrong("shared memory is overwritten while products under way read it")
                self.copies.finished(factor.chunks, thread)
            kinds = [np.int8 if signed else np.uint8 for signed in product.what.signed]
            left, right = (
                factor.bytes.view(kind).reshape(-1, DEPTH).astype(np.int32)
                for factor, kind in zip(product.factors, kinds, strict=True)
            )
            sums = (left @ right.T).reshape(4, 2, 8, -1, 4, 2)
            first, count = product.what.first, product.what.columns // 2
            group.sums[:, first : first + count] += sums.transpose(0, 2, 4, 3, 1, 5).reshape(GROUP, count)
