"""The order in which threads that parted go on: of two blocks, the one first from which the other is reached; all of a
loop before what follows it. So they meet where a branch's ways join, as those of a warp do."""

from __future__ import annotations

from tests.ptx.parser import Kernel

READY, MET, WAITING, DONE = range(4)
"""What a thread does: runs, waits at a barrier, waits for an mbarrier, is over."""
WARP, GROUP = 32, 128
"""Threads of a warp, and of a group of warps."""
ENDS = ("ret", "exit")


def ranks(kernel: Kernel) -> list[int]:
    """A number for each instruction: those of the lowest go first."""
    starts = sorted({0, *kernel.labels.values(), *(n + 1 for n, i in enumerate(kernel.code) if jumps(i.parts[0]))})
    starts = [start for start in starts if start < len(kernel.code)]
    block = {start: number for number, start in enumerate(starts)}
    ends = [*starts[1:], len(kernel.code)]
    edges = [successors(kernel, block, end) for end in ends]
    found = [0] * len(kernel.code)
    for rank, number in enumerate(ordered(list(range(len(starts))), edges, 0)):
        for place in range(starts[number], ends[number]):
            found[place] = rank * len(kernel.code) + place
    return found


def jumps(root: str) -> bool:
    return root in ("bra", *ENDS)


def successors(kernel: Kernel, block: dict[int, int], end: int) -> set[int]:
    """The blocks that may follow the one that ends there."""
    last = kernel.code[end - 1]
    found = set[int]()
    if last.parts[0] == "bra":
        found.add(block[kernel.labels[str(last.operands[0])]])
    if (not jumps(last.parts[0]) or last.guard is not None) and end in block:
        found.add(block[end])
    return found


def ordered(blocks: list[int], edges: list[set[int]], entry: int) -> list[int]:
    """These blocks, of a function or of a loop that is entered at `entry`, where edges back to it do not count."""
    reached = {block: {to for to in edges[block] if to in blocks and to != entry} for block in blocks}
    changed = True
    while changed:
        changed = False
        for ways in reached.values():
            more = set[int]().union(*(reached[to] for to in ways)) - ways
            ways |= more
            changed = changed or bool(more)
    found, left = list[int](), sorted(blocks, key=lambda b: (b != entry, -len(reached[b] | {b}), b))
    while left:
        first = left[0]
        loop = [b for b in left if b == first or (first in reached[b] and b in reached[first])]
        left = [b for b in left if b not in loop]
        if len(loop) > 1:
            outside = {to for b in blocks if b not in loop for to in edges[b]}
            loop = ordered(loop, edges, next((b for b in loop if b in outside), first))
        found += loop
    return found
