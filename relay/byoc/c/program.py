"""A function as a C program: kernels, constants, steps, and the memory of every tensor."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from relay.byoc.c.ctype import CType
from relay.dialects.attributes import Array


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor in memory that the caller passes, or in the arena."""

    name: str
    type: CType
    shape: tuple[int, ...]
    place: str
    """"input", "output" or "arena"."""
    offset: int = 0
    """The offset in the arena, in bytes."""
    used: bool = False
    """Whether any step uses the tensor."""

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)


@dataclass(slots=True)
class Step:
    """Statements of the program, such as a call of a kernel, with a comment."""

    comment: str
    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant array; `label` is printed as a comment beside it."""

    name: str
    type: CType
    array: Array
    label: str


@dataclass(slots=True)
class Program:
    """The parts of the C program for one function: its tensors, constants, kernels and statements."""

    arena: int
    """The size of the arena in bytes, at least 1."""
    inputs: list[Tensor] = field(default_factory=list[Tensor])
    outputs: list[Tensor] = field(default_factory=list[Tensor])
    temporaries: list[Tensor] = field(default_factory=list[Tensor])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    kernels: dict[str, str] = field(default_factory=dict[str, str])
    """The C text of functions by name, each after the functions that it calls."""
    steps: list[Step] = field(default_factory=list[Step])
