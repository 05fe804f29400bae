"""What a pass changed, line by line; lines that differ only in how values are numbered are equal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from relay.viewer.snapshot import Snapshot

Block = tuple[int, int, int, int]
"""Lines `a` to `b` of the text before are lines `c` to `d` of the text after."""

NAME = re.compile(r'("(?:[^"\\]|\\.)*")|([%^][\w$.-]+(?:#\d+)?)')
"""A string, or the name of a value or block."""
WORDLESS = re.compile(r"^%\d+$|_\d+$")
"""What is only a number in a name."""
SMALL = 4_000_000
"""Products of line counts up to which even lines that occur often are matched."""


@dataclass(frozen=True)
class Hunk:
    """Lines of the text before, and what they are after: equal up to the names of values, or not."""

    equal: bool
    before: tuple[int, int]
    after: tuple[int, int]


def diff(before: Snapshot, after: Snapshot) -> list[Hunk]:
    """The hunks from one text to the other, in order; together they are all lines of both.

    Functions are matched by name, so that a line is never equal to one of another function.
    """
    equal = [block for a, b in matched_parts(before, after) for block in Matching(before, after, a, b).blocks()]
    hunks: list[Hunk] = []
    first, second = 0, 0
    for a, b, c, d in [*equal, (len(before.lines), len(before.lines), len(after.lines), len(after.lines))]:
        if (a, c) != (first, second):
            hunks.append(Hunk(False, (first, a), (second, c)))
        if b > a:
            last = hunks[-1] if hunks else None
            if last is not None and last.equal:
                hunks[-1] = Hunk(True, (last.before[0], b), (last.after[0], d))
            else:
                hunks.append(Hunk(True, (a, b), (c, d)))
        first, second = b, d
    return hunks


def matched_parts(before: Snapshot, after: Snapshot) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The line ranges to compare: of each function that is in both, and of what is between functions."""
    old = [(part.name, part.lines) for part in before.parts if not part.loose]
    new = [(part.name, part.lines) for part in after.parts if not part.loose]
    matcher = SequenceMatcher(None, [name for name, _ in old], [name for name, _ in new], autojunk=False)
    first, second = 0, 0
    for a, b, size in matcher.get_matching_blocks():
        for (_, here), (_, there) in zip(old[a : a + size], new[b : b + size], strict=True):
            yield (first, here[0]), (second, there[0])
            yield here, there
            first, second = here[1], there[1]
    yield (first, len(before.lines)), (second, len(after.lines))


@dataclass
class Matching:
    """The equal lines of a range of each text."""

    before: Snapshot
    after: Snapshot
    a: tuple[int, int]
    b: tuple[int, int]
    forward: dict[str, str] = field(default_factory=dict[str, str])
    backward: dict[str, str] = field(default_factory=dict[str, str])

    def blocks(self) -> Iterator[Block]:
        """Runs of lines that are equal but for the names, and whose names stand for each other throughout."""
        old, new = self.before.lines[slice(*self.a)], self.after.lines[slice(*self.b)]
        matcher = SequenceMatcher(
            None, [*map(nameless, old)], [*map(nameless, new)], autojunk=len(old) * len(new) > SMALL
        )
        for i, j, size in matcher.get_matching_blocks():
            start = 0
            for k in range(size + 1):
                if k == size or not self.same(old[i + k], new[j + k]):
                    if k > start:
                        row, column = i + self.a[0], j + self.b[0]
                        yield row + start, row + k, column + start, column + k
                    start = k + 1

    def same(self, old: str, new: str) -> bool:
        """Whether two lines that are equal but for the names have the names of the same values.

        What a line defines is a new pair of names; names that are in no equal line before are one from now on.
        """
        if old == new and "%" not in old and "^" not in old:
            return True
        here, there = names(old), names(new)
        defined = defines(old)
        for n, (one, other) in enumerate(zip(here, there, strict=True)):
            if n >= defined and (one in self.forward or other in self.backward):
                if self.forward.get(one) != other or self.backward.get(other) != one:
                    return False
        for one, other in zip(here, there, strict=True):
            self.forward[one], self.backward[other] = other, one
        return True


def nameless(line: str) -> str:
    """A line with all names of values and blocks made equal, but that the words of what it defines come first.

    Of two equal lines, the one whose result is still called so is then the one that stays.
    """
    if "%" not in line and "^" not in line:
        return line
    words = [WORDLESS.sub("", name) for name in names(line)[: defines(line)]]
    return "".join([*words, NAME.sub(lambda found: found[1] or found[2][0], line)])


def names(line: str) -> list[str]:
    """The names of values and blocks in a line."""
    return [name for _, name in NAME.findall(line) if name]


def defines(line: str) -> int:
    """How many of the first names of a line are new: the results of an op."""
    head, equals, _ = line.partition(" = ")
    return len(names(head)) if equals and head.lstrip().startswith("%") else 0


def changed_lines(hunks: Sequence[Hunk]) -> tuple[int, int]:
    """How many lines were added, and how many taken away."""
    added = sum(h.after[1] - h.after[0] for h in hunks if not h.equal)
    return added, sum(h.before[1] - h.before[0] for h in hunks if not h.equal)
