"""Memory for tensors that a compiler keeps between its steps: what lives at once does not overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Placed(Protocol):
    """What `place` gives an offset."""

    offset: int

    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def size(self) -> int: ...


@dataclass(slots=True, eq=False)
class Buffer:
    """`size` bytes that hold something from step `first` to step `last`, both included, and lie at `offset`."""

    size: int
    first: int
    last: int
    offset: int = 0


def place(buffers: Iterable[Placed]) -> int:
    """Give every buffer an offset so that no two that live at once overlap; returns the bytes that takes. Offsets are
    multiples of whatever all sizes are multiples of.

    Largest first, each in the lowest gap that fits. Source: Pisarchyk and Lee, "Efficient Memory Management for Deep
    Neural Net Inference" (greedy by size).
    """
    placed: list[Placed] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first)):
        buffer.offset = 0
        for other in sorted(placed, key=lambda b: b.offset):
            if other.first <= buffer.last and buffer.first <= other.last and buffer.offset < other.offset + other.size:
                if buffer.offset + buffer.size <= other.offset:
                    break
                buffer.offset = other.offset + other.size
        placed.append(buffer)
    return max((buffer.offset + buffer.size for buffer in placed), default=0)
