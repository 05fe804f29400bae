"""What is known while a pattern is matched."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue


@dataclass(frozen=True, slots=True)
class State:
    """One partial match: which value each pattern stands for, and what has been taken. It never changes."""

    bound: dict[Hashable, SSAValue] = field(default_factory=dict[Hashable, SSAValue])
    ops: dict[Operation, None] = field(default_factory=dict[Operation, None])
    constants: dict[Operation, None] = field(default_factory=dict[Operation, None])
    names: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def bind(self, pattern: Hashable, value: SSAValue) -> State:
        """The pattern stands for the value."""
        return State(self.bound | {pattern: value}, self.ops, self.constants, self.names)

    def name(self, name: str, value: SSAValue) -> State:
        """The name stands for the value."""
        return State(self.bound, self.ops, self.constants, self.names | {name: value})

    def take(self, op: Operation) -> State:
        """The op is part of the match."""
        return self if op in self.ops else State(self.bound, self.ops | {op: None}, self.constants, self.names)

    def copy(self, constant: Operation) -> State:
        """The constant is copied into the match."""
        return State(self.bound, self.ops, self.constants | {constant: None}, self.names)
