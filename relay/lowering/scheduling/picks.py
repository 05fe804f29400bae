"""Decisions about an op, made one after the other: each has a name, possible values, and a best value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import prod
from typing import Any, TypeVar, cast, overload

from relay.errors import InvalidArgument
from relay.lowering.scheduling.record import Given, OpSchedule, Value

S = TypeVar("S", bound=OpSchedule)
T = TypeVar("T", bound=Value)
SHOWN = 12
"""The maximum number of possible values that an error message lists."""


class Tuples(Sequence[tuple[int, ...]]):
    """The sequence of all tuples of numbers whose elements are each from a range."""

    def __init__(self, *ranges: range):
        self.ranges = ranges

    def __len__(self) -> int:
        return prod(map(len, self.ranges))

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, ...] | list[tuple[int, ...]]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        found: list[int] = []
        for numbers in reversed(self.ranges):
            index, at = divmod(index, len(numbers))
            found.append(numbers[at])
        return tuple(reversed(found))

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, tuple) or len(given := cast("tuple[object, ...]", value)) != len(self.ranges):
            return False
        return all(number in numbers for number, numbers in zip(given, self.ranges, strict=True))

    def __str__(self) -> str:
        return "[" + ", ".join(map(shown_range, self.ranges)) + "]"


def shown_range(numbers: range) -> str:
    """Return the text of a range, such as `16 to 448 by 16`."""
    if len(numbers) == 1:
        return str(numbers[0])
    return f"{numbers[0]} to {numbers[-1]}{f' by {numbers.step}' if numbers.step != 1 else ''}"


class Picks:
    """Makes the decisions about one operation: the value in `given`, which is checked, else the best value. `decided`:
    all decisions so far; `at_most`: the register tile that is requested for all operations; an operation that is too
    small for it uses a smaller one."""

    at_most: tuple[int, int] | None = None

    def __init__(self, where: str = "", given: Given | None = None):
        self.where, self.given = where, dict(given or {})
        self.decided: dict[str, Value] = {}

    def __call__(self, name: str, possible: Sequence[T], best: T) -> T:
        """Return and record the decision called `name`: the value that `self.given` prescribes for it, else `best`.
        Raises InvalidArgument if the prescribed value is not one of `possible`."""
        self.decided[name] = wanted = self.given.get(name, best)
        if name in self.given and (wanted not in possible or has_truth(wanted) != has_truth(best)):
            raise InvalidArgument(
                self.where, f"{name} = {shown(wanted)} is not possible", f"possible: {listed(possible)}"
            )
        return cast(T, wanted)

    def only(self, name: str, value: T) -> T:
        """Record a decision that follows from others, and so has one possible value."""
        return self(name, (value,), value)

    def may(self, name: str, can: bool) -> bool:
        """Return the decision about the option `name`, True or False. If `can`, both are possible and True is
        preferred; otherwise only False is possible."""
        return self(name, (True, False) if can else (False,), can)

    def schedule(self, kind: type[S], cycles: int, why: str, **others: Value) -> S:
        """Return a schedule of class `kind` with the decisions made so far, and with the fields in `others`, whose
        values follow from them. `cycles` is its estimated time, and `why` the reason that it states."""
        found = self.decided | others
        decisions = {field.name: found[field.name] for field in fields(kind) if field.name in found}
        return kind(**cast(Any, decisions), cycles=cycles, why=why)

    def inner(self, name: str, count: int) -> list[Picks]:
        """Return one `Picks` for each of the `count` parts of the operation. The decisions given for them are a list of
        dictionaries, stored under `name`. Raises InvalidArgument if the list does not have `count` dictionaries."""
        given = self.given.get(name)
        self.decided[name] = given or ()
        parts: list[Given] = [{}] * count if given is None else []
        if isinstance(given, tuple):
            parts = [each for each in given if isinstance(each, Mapping)]
        if len(parts) != count:
            hint = "write a dictionary for each part, {} for what is best"
            raise InvalidArgument(self.where, f"{name} is no array of {count} dictionaries", hint)
        general = ("strategy", "cycles", "why")
        kept = [{name: value for name, value in each.items() if name not in general} for each in parts]
        found = [self.part(f"{self.where}: {name}[{number}]", each) for number, each in enumerate(kept)]
        for part in found:
            part.at_most = self.at_most
        return found

    def part(self, where: str, given: Given) -> Picks:
        """Return a new `Picks` that makes the decisions about a part of the operation: `given` holds the prescribed
        values of these decisions by name, and `where` names the part in errors."""
        return Picks(where, given)

    def finish(self) -> None:
        """Raise InvalidArgument if a given decision has not been used."""
        for name in self.given:
            if name not in self.decided:
                raise InvalidArgument(
                    self.where, f"{name} is not decided here", f"decisions: {', '.join(self.decided)}"
                )


def has_truth(value: Value) -> bool:
    """Whether a decision is, or contains, a bool: Python bools are ints, and must not pass for numbers."""
    return any(isinstance(part, bool) for part in (value if isinstance(value, tuple) else (value,)))


def listed(values: Sequence[Value]) -> str:
    """Return a short text of the possible values."""
    if isinstance(values, Tuples):
        return str(values)
    if isinstance(values, range):
        return shown_range(values)
    return ", ".join(map(shown, values[:SHOWN])) + (", ..." if len(values) > SHOWN else "")


def shown(value: Value) -> str:
    """Return a value as spelled in attributes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return f"[{', '.join(map(shown, value))}]" if isinstance(value, tuple) else str(value)
