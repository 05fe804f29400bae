"""A function as C: kernels, constants, steps, and where every tensor lies."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from relay.byoc.c.ctype import CType
from relay.dialects.attributes import Array


@dataclass(slots=True, eq=False)
class Tensor:
    """A piece of memory: of the caller or of the arena."""

    name: str
    type: CType
    shape: tuple[int, ...]
    place: str
    """"input", "output" or "arena"."""
    offset: int = 0
    """In the arena, in bytes."""
    used: bool = False
    """Whether any step takes it."""

    @property
    def count(self) -> int:
        """Elements."""
        return prod(self.shape)


@dataclass(slots=True)
class Step:
    """One call, and what it is for."""

    comment: str
    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """An array of numbers, and the comment, `label`, printed beside it."""

    name: str
    type: CType
    array: Array
    label: str


@dataclass(slots=True)
class Program:
    """One function."""

    arena: int
    """Bytes, at least 1."""
    inputs: list[Tensor] = field(default_factory=list[Tensor])
    outputs: list[Tensor] = field(default_factory=list[Tensor])
    temporaries: list[Tensor] = field(default_factory=list[Tensor])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    kernels: dict[str, str] = field(default_factory=dict[str, str])
    """C text by name, each after what it uses."""
    steps: list[Step] = field(default_factory=list[Step])
