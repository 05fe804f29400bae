"""`Match`: a match of a pattern, as checks and compilers see it; `Refusal`: the reason why a compiler does not take
one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.errors import InvalidArgument
from relay.module import is_constant


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a compiler does not take an operation, shown in the partition report; false as a boolean. Raises
    InvalidArgument if it is no text."""

    reason: str
    ops: tuple[Operation, ...] = field(default=(), compare=False, repr=False)
    """The ops of the match that was refused, which `Entry.match` fills in."""

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.reason), str):
            raise InvalidArgument("Refusal", f"its reason is {self.reason!r}", "give it a text")

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Match:
    """The ops of one block that match a pattern, in program order; ops outside use no results but those of `root`."""

    root: Operation
    ops: tuple[Operation, ...]
    constants: tuple[Operation, ...]
    """The constants that `is_constant` patterns matched."""
    inputs: tuple[SSAValue, ...]
    """The values that the match's ops use and that are computed outside of it, except `constants`, in the order of
    their first use."""
    values: Mapping[str, SSAValue]
    """The values that patterns with names matched, by name."""

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> Operation:
        """The op that computes the value of this name. Raises InvalidArgument if the name is not bound, or is an
        argument."""
        owner = self.value(name).owner
        if not isinstance(owner, Operation):
            raise InvalidArgument(f"match['{name}']", "is an argument of the function, no op", "ask match.value")
        return owner

    def get(self, name: str) -> Operation | None:
        """The op that computes the value of this name; None if the match has no such name."""
        return self[name] if name in self.values else None

    def value(self, name: str) -> SSAValue:
        """The value of this name. Raises InvalidArgument if the name is not bound."""
        if name not in self.values:
            known = ", ".join(self.values) or "none"
            raise InvalidArgument(f"match['{name}']", "is not bound in this match", f"there are {known}")
        return self.values[name]

    def array(self, name: str) -> Array:
        """The elements of the constant of this name. Raises InvalidArgument if it is no constant."""
        owner = self.value(name).owner
        if not is_constant(owner):
            raise InvalidArgument(f"match.array('{name}')", "is no constant", "match it with is_constant()")
        return to_numpy(owner.value)
