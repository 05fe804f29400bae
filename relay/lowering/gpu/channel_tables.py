"""Constants with a value per channel, in the order in which the threads of a warp read them.

A thread reads a vector of neighbouring channels by several accesses of 16 bytes. In channel order, the accesses of
neighbouring threads are as far apart as their vectors: 128 bytes for 16 numbers of 64 bits, all in the same banks of
the cache, which serves them one after the other. So a table is stored in the order of these accesses: the first 16
bytes of neighbouring threads' vectors, then the second ones, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue

from relay.dialects.attributes import Array, dtype_of
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.gpu.convert_parallel_loops_to_gpu import constant
from relay.lowering.indices import quotient, remainder
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.shaped import buffer_of

ACCESS = 16
"""The most bytes of one access of a thread."""
SUFFIX = "interleaved"


class ChannelTables:
    """Reads constant tables of one value per channel, as vectors of `lanes` channels. `neighbours`: the number of
    consecutive threads that read neighbouring vectors; 0 stands for the number of vectors in the table."""

    def __init__(self, builder: LoopBuilder, given: GivenConstants, lanes: int, neighbours: int = 0):
        self.b, self.given, self.lanes, self.neighbours = builder, given, lanes, neighbours
        self.found: dict[SSAValue, SSAValue | None] = {}

    def load(self, table: SSAValue, channel: Index) -> SSAValue | None:
        """Load a table's vector of `lanes` values that starts at a channel. Returns None if the table is not constant,
        or if the vector has at most 16 bytes, which a thread loads in one access in any order of the table."""
        if table not in self.found:
            self.found[table] = self.interleaved(table)
        new = self.found[table]
        return None if new is None else read(self.b, new, channel, self.lanes, self.threads(table))

    def threads(self, table: SSAValue) -> int:
        """Return the number of consecutive threads that read neighbouring vectors of a table: `neighbours`, or, if that
        is 0, the number of the table's vectors."""
        (size,) = buffer_of(table).get_shape()
        return self.neighbours or size // self.lanes

    def interleaved(self, table: SSAValue) -> SSAValue | None:
        """Return a copy of the table in the order in which neighbouring threads read it, 16 bytes each at a time. None
        if some call passes no constant for the table, or if a vector of `lanes` values has at most 16 bytes."""
        type, given = buffer_of(table), self.given
        if not isinstance(table, BlockArgument) or table.owner is not given.block or not given.calls:
            return None
        size, width = type.get_shape(), dtype_of(type.element_type).itemsize
        if len(size) != 1 or not contiguous(type) or self.lanes * width <= ACCESS or not given.constant(table):
            return None
        rows = [[interleave(array, self.lanes, self.threads(table))] for array in given.arrays_of(table)]
        return given.beside(table, rows, [SUFFIX])[0]


def interleave(table: Array, lanes: int, threads: int) -> Array:
    """Return a table, padded to whole vectors of `threads` threads, in the order of their accesses."""
    each = ACCESS // table.itemsize
    padded = np.pad(table, (0, -table.size % (lanes * threads)))
    return padded.reshape(-1, threads, lanes // each, each).swapaxes(1, 2).reshape(-1)


def read(
    b: LoopBuilder, table: SSAValue, channel: Index, lanes: int, threads: int, at: Sequence[Index] = ()
) -> SSAValue:
    """Load the vector of `lanes` channels, starting at `channel`, from a table that `interleave` has put into the order
    of the accesses of `threads` threads. `channel` is a multiple of `lanes`; `at`: the leading indices, if the table
    has more dimensions than that of the channels."""
    width = dtype_of(buffer_of(table).element_type).itemsize
    each, group = ACCESS // width, lanes * threads
    whole = buffer_of(table).get_shape()[-1] == group
    channel, groups = groups_apart(channel, group)
    inside = channel if whole else remainder(b, channel, group)
    place = b.plus(b.times(quotient(b, inside, lanes), each), groups)
    if not whole:
        place = b.plus(place, b.times(quotient(b, channel, group), group))
    starts = range(0, lanes * threads, threads * each)
    return b.joined([b.vector_load(table, [*at, b.plus(place, start)], each) for start in starts])


def groups_apart(channel: Index, group: int) -> tuple[Index, int]:
    """Split a channel number that is the sum of a value and a constant multiple of `group`: return the value and the
    constant. Return any other number with 0. Accesses have the constant as an offset, so that a thread computes one
    address for all groups."""
    if isinstance(channel, SSAValue) and isinstance(channel.owner, arith.AddiOp):
        shift = constant(channel.owner.rhs)
        if shift is not None and shift % group == 0:
            return channel.owner.lhs, shift
    return channel, 0
