"""`Match`: what a pattern matched, as checks and compilers see it; `Refusal`: why a compiler does not take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.errors import InvalidArgument
from relay.module import is_constant


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a compiler does not take an operation: "no, because ..."; shown in the partition report."""

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Match:
    """`ops` of one block that match a pattern, in program order; nothing outside uses any but `root`'s results."""

    root: Operation
    ops: tuple[Operation, ...]
    constants: tuple[Operation, ...]
    """The constants that the pattern matched as such."""
    inputs: tuple[SSAValue, ...]
    """The other values from outside, in the order of their first use."""
    values: Mapping[str, SSAValue]
    """Those with names."""

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> Operation:
        """The op of this name. Raises InvalidArgument if nothing has it, or it is an argument of the function."""
        owner = self.value(name).owner
        if not isinstance(owner, Operation):
            raise InvalidArgument(f"match['{name}']", "is an argument of the function, no op", "ask match.value")
        return owner

    def get(self, name: str) -> Operation | None:
        """The op of this name, None if the pattern matched without it."""
        return self[name] if name in self.values else None

    def value(self, name: str) -> SSAValue:
        """The value of this name."""
        if name not in self.values:
            known = ", ".join(self.values) or "none"
            raise InvalidArgument(f"match['{name}']", "is not bound in this match", f"there are {known}")
        return self.values[name]

    def array(self, name: str) -> Array:
        """The numbers of the constant of this name."""
        owner = self.value(name).owner
        if not is_constant(owner):
            raise InvalidArgument(f"match.array('{name}')", "is no constant", "match it with is_constant()")
        return to_numpy(owner.value)
