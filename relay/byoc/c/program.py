"""A function as C: kernels, tables, steps, and where every tensor lies."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from relay.byoc.arena import place
from relay.byoc.c.ctype import CType
from relay.dialects.attributes import Array

ALIGNMENT = 16
"""Of every tensor in the arena, in bytes."""


@dataclass(slots=True, eq=False)
class Tensor:
    """A piece of memory: of the caller, of the arena, or a constant."""

    name: str
    type: CType
    shape: tuple[int, ...]
    place: str = "arena"
    """"input", "output", "constant" or "arena"."""
    first: int = -1
    last: int = -1
    """The steps that touch it first and last; an arena tensor keeps its numbers between them."""
    offset: int = 0

    @property
    def used(self) -> bool:
        """Whether any step touches it."""
        return self.first >= 0

    @property
    def count(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes, rounded up to the alignment."""
        return -(-self.count * self.type.size // ALIGNMENT) * ALIGNMENT


@dataclass(slots=True)
class Step:
    """One call, and what it is for."""

    comment: str
    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """An array of numbers; `label` says what it is to people. A `weight` may lie outside of the program."""

    name: str
    type: CType
    array: Array
    label: str
    weight: bool


@dataclass(slots=True)
class Program:
    """One function."""

    inputs: list[Tensor]
    outputs: list[Tensor]
    temporaries: list[Tensor] = field(default_factory=list[Tensor])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    kernels: dict[str, str] = field(default_factory=dict[str, str])
    """C text by name, each after what it uses."""
    tables: dict[str, str] = field(default_factory=dict[str, str])
    """Definitions of `static const` structs by name."""
    steps: list[Step] = field(default_factory=list[Step])

    def plan(self) -> int:
        """Place every temporary tensor; returns the arena's bytes."""
        return place(self.temporaries)
