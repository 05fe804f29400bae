"""Line-by-line difference of a module before and after a pass. Lines that differ only in the numbering of values are
equal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from relay.viewer.snapshot import Snapshot

Block = tuple[int, int, int, int]
"""(a, b, c, d): lines a to b - 1 of the text before equal lines c to d - 1 of the text after."""

NAME = re.compile(r'("(?:[^"\\]|\\.)*")|([%^][\w$.-]+(?:#\d+)?)')
"""Matches a string, or the name of a value or block."""
WORDLESS = re.compile(r"^%\d+$|_\d+$")
"""Matches the numbering in the name of an SSA value, which is ignored when lines are compared: all of `%3`, and the end
of `%sum_3`."""
SMALL = 4_000_000
"""If the product of both texts' numbers of lines is at most this, lines that occur often are matched, too; for larger
texts that would be too slow."""


@dataclass(frozen=True)
class Hunk:
    """A range of lines before and the corresponding range after, as (begin, end): either equal up to the names of
    values, or changed."""

    equal: bool
    before: tuple[int, int]
    after: tuple[int, int]


def diff(before: Snapshot, after: Snapshot) -> list[Hunk]:
    """The hunks that turn one text into the other, in order; together they cover all lines of both texts.

    Functions are matched by name, so lines of different functions are never considered equal.
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
    """Yield pairs of line ranges (before, after) to compare with each other: one pair for each function that both texts
    contain, and one for the lines between two such functions."""
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
    """Finds the equal lines in a range of each text."""

    before: Snapshot
    after: Snapshot
    a: tuple[int, int]
    b: tuple[int, int]
    forward: dict[str, str] = field(default_factory=dict[str, str])
    backward: dict[str, str] = field(default_factory=dict[str, str])

    def blocks(self) -> Iterator[Block]:
        """Yield runs of lines that are equal except for names, where names correspond to each other consistently."""
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
        """Whether two lines, which are equal except for the names of values and blocks, use corresponding names: each
        name that `old` uses was paired with the name at the same place of `new` in an earlier equal line, or neither
        was paired yet. If so, all names of the lines are paired; a name that the lines define is paired anew even if it
        was paired before."""
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
    """A key for matching lines: the line with each name of a value or block replaced by its first character (`%` or
    `^`), preceded by the names that the line defines, without their numbers.

    The defined names are included so that, of several lines that are otherwise equal, those are matched whose results
    have the same names apart from numbers.
    """
    if "%" not in line and "^" not in line:
        return line
    words = [WORDLESS.sub("", name) for name in names(line)[: defines(line)]]
    return "".join([*words, NAME.sub(lambda found: found[1] or found[2][0], line)])


def names(line: str) -> list[str]:
    """The names of values and blocks in a line."""
    return [name for _, name in NAME.findall(line) if name]


def defines(line: str) -> int:
    """The number of names that a line defines: the results of its op, which are the first names in the line."""
    head, equals, _ = line.partition(" = ")
    return len(names(head)) if equals and head.lstrip().startswith("%") else 0
