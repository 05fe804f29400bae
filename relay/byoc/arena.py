"""Assignment of offsets in one block of memory to the intermediate tensors of a function, which an external compiler
executes in steps: tensors that are live at the same step do not overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Buffer:
    """`size` bytes that are live from step `first` to step `last`, both included; `place` sets their `offset`."""

    size: int
    first: int
    last: int
    offset: int = 0


def place(buffers: Iterable[Buffer]) -> int:
    """Assign an offset to every buffer so that no two that are live at the same time overlap. Returns the total size in
    bytes. Offsets are multiples of any common divisor of all sizes.

    Buffers are placed largest first, each in the lowest gap in which it fits. Source: Pisarchyk and Lee, "Efficient
    Memory Management for Deep Neural Net Inference" (greedy by size).
    """
    placed: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first)):
        buffer.offset = 0
        for other in sorted(placed, key=lambda b: b.offset):
            if other.first <= buffer.last and buffer.first <= other.last and buffer.offset < other.offset + other.size:
                if buffer.offset + buffer.size <= other.offset:
                    break
                buffer.offset = other.offset + other.size
        placed.append(buffer)
    return max((buffer.offset + buffer.size for buffer in placed), default=0)
