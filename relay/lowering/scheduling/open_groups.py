"""Blocks of channels of a product whose number of channels is known only at run time, such as the keys of attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import below, minus, quotient, remainder, when
from relay.lowering.scheduling.packing import Group, groups_of
from relay.lowering.shaped import Extent, at_most
from relay.target import LANES


@dataclass(frozen=True)
class OpenGroup:
    """Consecutive blocks of channels, all of the same size. `first`: the first channel; `count`: the number of blocks,
    known at run time and at most `most`; `vectors`: the number of vectors of channels in a block. If `last` is not
    None, the group is instead one partial vector of `last` channels, and no code of it runs if `last` is 0."""

    first: Index
    count: Index
    vectors: int
    most: int
    last: Index | None = None

    def loop(self, b: LoopBuilder, apart: DictionaryAttr | None, body: Callable[[Index, Index, Index], None]) -> None:
        """Emit `body` for each block of channels. Its arguments are the block's number (0 for the block of one partial
        vector), its first channel, and the number of channels in its last vector. `apart`: the attribute that says
        what cores transfer if they share the loop (see `sharing.traffic`)."""
        if self.last is not None:
            last = self.last
            when(b, below(b, 0, last), lambda: body(0, self.first, last))
            return
        with b.loop(0, self.count, independent=True, apart=apart, turns=self.most) as (number, _):
            body(number, b.plus(self.first, b.times(number, self.vectors * LANES)), LANES)


def all_groups(b: LoopBuilder, outputs: int, vectors: int) -> Sequence[Group | OpenGroup]:
    """Divide the output channels into blocks of up to `vectors` vectors each, and return groups of equal blocks.
    `outputs`: the number of channels, an `Extent` if it is known only at run time."""
    return open_groups(b, outputs, vectors) if isinstance(outputs, Extent) else groups_of(outputs, vectors)


def open_groups(b: LoopBuilder, outputs: Extent, vectors: int) -> Sequence[OpenGroup]:
    """Divide channels whose number is known at run time: into blocks of `vectors` vectors, then blocks of one vector
    for the rest, then a block of one partial vector."""
    end, width = b.length(outputs), vectors * LANES
    whole, last = quotient(b, end, width), remainder(b, end, LANES)
    groups = [OpenGroup(0, whole, vectors, at_most(outputs) // width)]
    if vectors > 1:
        single = quotient(b, remainder(b, end, width), LANES)
        groups.append(OpenGroup(b.times(whole, width), single, 1, vectors - 1))
    return [*groups, OpenGroup(minus(b, end, last), 1, 1, 1, last)]
