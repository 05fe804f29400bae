"""Products that groups of four warps started: their sums are unknown until they are waited for, and their factors are
read as late as that. Source: PTX ISA 8.7, 9.7.15 (wgmma)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.ptx.control import GROUP
from tests.ptx.memory import Fault, Integers
from tests.ptx.tables import group_accumulator

if TYPE_CHECKING:
    from tests.ptx.machine import Machine


@dataclass
class Product:
    """A wgmma under way: its threads, factors, where these lie, and the batch that it was committed in."""

    threads: Integers
    first: Integers
    second: Integers
    types: tuple[str, str]
    registers: tuple[str, ...]
    keep: bool
    batch: int


class Products:
    """The products that groups of warps started. Sums are unknown until they are waited for; factors are read then."""

    def __init__(self, machine: Machine):
        self.machine = machine
        started = [i for i in machine.kernel.code if i.opcode.startswith("wgmma.mma_async")]
        vectors = [i.operands[0] for i in started]
        names = {name for vector in vectors if isinstance(vector, tuple) for name in vector}
        self.flying = {name: np.zeros(machine.count, np.int16) for name in names}
        self.changed = {name: np.ones(machine.count, np.bool_) for name in self.flying}
        self.committed = np.zeros(machine.count // GROUP + 1, np.int64)
        self.products: list[Product] = []

    def used(self, register: str, threads: Integers) -> None:
        """Raises Fault if a product under way changes it."""
        if register in self.flying and self.flying[register][threads].any():
            raise Fault(f"reads {register}, which a product under way changes")

    def assigned(self, register: str, threads: Integers) -> None:
        """Raises Fault if a product under way changes it."""
        if register in self.flying:
            if self.flying[register][threads].any():
                raise Fault(f"writes {register}, which a product under way changes")
            self.changed[register][threads] = True

    def fence(self, threads: Integers) -> None:
        """wgmma.fence: registers written so far may be used by products. 9.7.15.7.1."""
        self.machine.whole(threads, GROUP)
        for changed in self.changed.values():
            changed[threads] = False

    def start(self, product: Product) -> None:
        """Raises Fault where a factor may not be read, or sums need a fence."""
        shared, threads = self.machine.shared, product.threads
        if any(self.changed[name][threads].any() for name in product.registers):
            raise Fault("sums were written since the last wgmma.fence")
        for factor in (product.first, product.second):
            granules = factor // shared.granule
            shared.touch(granules)
            shared.visible(granules.reshape(1, -1), threads[:1])
            for phase in np.unique(shared.phase[granules]):
                if phase >= 0 and not shared.known(int(phase), threads):
                    raise Fault("reads what a copy brought, without waiting for its barrier")
            writer, now = shared.shadow.writer[granules], shared.times[threads[0] // self.machine.block]
            if ((writer >= 0) & (shared.shadow.written[granules] == now)).any():
                raise Fault("reads what threads wrote, without a barrier since")
            if ((writer >= 0) & (shared.fenced[granules] < 2)).any():
                raise Fault("reads what threads wrote, without fence.proxy.async before the barrier")
            np.add.at(shared.products, np.unique(granules), 1)
        for name in product.registers:
            self.flying[name][threads] += 1
        self.products.append(product)

    def wait(self, threads: Integers, left: int) -> None:
        """wgmma.wait_group: all but the latest batches of these groups are over. 9.7.15.7.3."""
        groups = self.machine.whole(threads, GROUP)[:, 0] // GROUP
        kept, read = list[Product](), dict[int, list[Integers]]()
        for product in self.products:
            group = int(product.threads[0]) // GROUP
            if group in groups and product.batch < self.committed[group] - left:
                self.finish(product)
                read.setdefault(group, []).extend([product.first.reshape(-1), product.second.reshape(-1)])
            else:
                kept.append(product)
        self.products = kept
        shared = self.machine.shared
        for group, factors in read.items():
            shared.ends.add(np.arange(GROUP) + group * GROUP, np.unique(np.concatenate(factors) // shared.granule))

    def finish(self, product: Product) -> None:
        """The sums are there, and factors may be written to by whoever meets this group."""
        machine, shared, threads = self.machine, self.machine.shared, product.threads
        factors = [
            shared.data[place].view(np.int8 if type == "s8" else np.uint8).astype(np.float64)
            for place, type in zip((product.first, product.second), product.types, strict=True)
        ]
        total = (factors[0] @ factors[1].T).astype(np.int32)
        rows, columns = group_accumulator(total.shape[1])
        for number, name in enumerate(product.registers):
            sums = total[rows[:, number], columns[:, number]]
            if product.keep:
                sums = sums + machine.registers[name][threads].view(np.int32)
            machine.place(name, sums, threads)
            self.flying[name][threads] -= 1
        for factor in (product.first, product.second):
            shared.products[np.unique(factor // shared.granule)] -= 1

    def over(self) -> None:
        """The end of all threads."""
        if self.products:
            raise Fault(f"{self.machine.kernel.name}: ends with products under way that no one waited for")
