"""The immutable state of a pattern match in progress."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue


@dataclass(frozen=True, slots=True)
class State:
    """A partial match: the values bound to patterns and to names, and the ops and constants that belong to the
    match."""

    bound: dict[Hashable, SSAValue] = field(default_factory=dict[Hashable, SSAValue])
    ops: dict[Operation, None] = field(default_factory=dict[Operation, None])
    constants: dict[Operation, None] = field(default_factory=dict[Operation, None])
    names: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def bind(self, pattern: Hashable, value: SSAValue) -> State:
        """The state with the pattern bound to the value."""
        return State(self.bound | {pattern: value}, self.ops, self.constants, self.names)

    def name(self, name: str, value: SSAValue) -> State:
        """The state with the name bound to the value."""
        return State(self.bound, self.ops, self.constants, self.names | {name: value})

    def take(self, op: Operation) -> State:
        """The state with the op added to the match."""
        return self if op in self.ops else State(self.bound, self.ops | {op: None}, self.constants, self.names)

    def copy(self, constant: Operation) -> State:
        """The state with the constant added to `constants`: the matched composite gets a copy of it, while the original
        stays for other users."""
        return State(self.bound, self.ops, self.constants | {constant: None}, self.names)
