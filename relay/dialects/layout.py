"""Layouts: the axes of a tensor by their letters, as `NHWC`, `NCHW`, `NHWC4c`.

A capital is an axis; `4c` is a further axis, of size 4, for blocks of four adjacent channels: C is stored as [C / 4,
..., 4].
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from relay.errors import InvalidArgument

Step = tuple[str, tuple[int, ...]]
"""`("reshape", dims)` or `("transpose", axes)`."""


@dataclass(frozen=True)
class Layout:
    """The letters of the axes in order, a lower-case one for the part split off an axis, and the size of this part (0:
    no axis is split)."""

    axes: tuple[str, ...]
    factor: int = 0

    @staticmethod
    @cache
    def parse(text: str) -> Layout:
        """Parse text like `NHWC4c`. Raises InvalidArgument if the text is not a layout, or repeats a letter."""
        if not re.fullmatch(r"([A-Z]|[1-9][0-9]*[a-z])+", text):
            raise InvalidArgument(f"layout '{text}'", "is no layout", "write for example NHWC, NCHW or NHWC4c")
        parts = re.findall(r"(\d*)([A-Za-z])", text)
        axes = tuple(letter for _, letter in parts)
        small = [letter for letter in axes if letter.islower()]
        if len(set(axes)) < len(axes) or len(small) > 1 or any(letter.upper() not in axes for letter in small):
            hint = "each letter once, and at most one split, of an axis that is there"
            raise InvalidArgument(f"layout '{text}'", "has axes that do not fit", hint)
        return Layout(axes, next((int(size) for size, letter in parts if letter.islower()), 0))

    def __str__(self) -> str:
        return "".join(f"{self.factor}{letter}" if letter.islower() else letter for letter in self.axes)

    @property
    def split(self) -> str:
        """The letter of the axis that is split; empty if none is."""
        return next((letter.upper() for letter in self.axes if letter.islower()), "")

    @property
    def letters(self) -> frozenset[str]:
        """The capital letters of the layout, one for each axis: N, H, W and C for NHWC4c."""
        return frozenset(letter for letter in self.axes if letter.isupper())

    @property
    def plain(self) -> Layout:
        """This layout without the split: the same order of axes, and no axis for the split-off part (NHWC for
        NHWC4c)."""
        return Layout(tuple(letter for letter in self.axes if letter.isupper()))

    def index(self, letter: str) -> int:
        """The position of an axis."""
        return self.axes.index(letter)

    def only(self, letters: frozenset[str]) -> Layout:
        """The layout with only these axes."""
        axes = tuple(letter for letter in self.axes if letter.upper() in letters)
        return Layout(axes, self.factor if any(letter.islower() for letter in axes) else 0)

    def sizes(self, dims: Sequence[int]) -> dict[str, int]:
        """The size of each axis, by capital letter, of a tensor with this layout and shape; unknown sizes (-1) stay
        unknown."""
        found = dict(zip(self.axes, dims, strict=True))
        if self.split:
            inner = found.pop(self.split.lower())
            found[self.split] = -1 if found[self.split] == -1 else found[self.split] * inner
        return found

    def dims(self, sizes: dict[str, int]) -> tuple[int, ...]:
        """The shape of a tensor with these axis sizes in this layout; an axis of size 1, which only broadcasts, is
        split into sizes of 1."""
        found = dict(sizes)
        if self.split:
            size = found[self.split]
            found[self.split.lower()] = 1 if size == 1 else self.factor
            found[self.split] = size if size in (1, -1) else size // self.factor
        return tuple(found[letter] for letter in self.axes)

    def fits(self, sizes: dict[str, int]) -> bool:
        """Whether the size of the split axis is a multiple of the split-off part; True if nothing is split."""
        return not self.split or (sizes[self.split] > 0 and sizes[self.split] % self.factor == 0)


def steps(dims: Sequence[int], source: Layout, target: Layout) -> list[Step]:
    """The reshapes and transposes that turn a tensor from one layout into another of the same letters; steps that
    change nothing are left out.

    Splitting is a reshape that divides C into two axes, then a transpose; joining is a transpose, then a reshape. A
    transpose that moves only axes of size 1 is replaced by a reshape.
    """
    if source == target:
        return []
    if source.split and target.split and (source.split, source.factor) != (target.split, target.factor):
        middle = source.plain
        return [*steps(dims, source, middle), *steps(middle.dims(source.sizes(dims)), middle, target)]
    found: list[Step] = []
    sizes, axes = source.sizes(dims), source.axes
    if target.split and not source.split:
        axes = parted(axes, target.split)
        found.append(("reshape", Layout(axes, target.factor).dims(sizes)))
    order = parted(target.axes, source.split) if source.split and not target.split else target.axes
    permutation = tuple(axes.index(letter) for letter in order)
    given = found[-1][1] if found else tuple(dims)
    long = [axis for axis in permutation if given[axis] != 1]
    if long != sorted(long):
        found.append(("transpose", permutation))
    elif permutation != tuple(range(len(axes))):
        found = [("reshape", tuple(given[axis] for axis in permutation))]
    if source.split and not target.split:
        last: Step = ("reshape", target.dims(sizes))
        found = [last] if found and found[-1][0] == "reshape" else [*found, last]
    return found


def parted(axes: Sequence[str], letter: str) -> tuple[str, ...]:
    """The axes of a layout after the axis `letter` is split in two: the inner part, a lower-case letter, follows the
    axis."""
    return tuple(part for axis in axes for part in ((axis, axis.lower()) if axis == letter else (axis,)))
