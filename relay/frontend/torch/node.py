"""`Node`: one call of a program's graph, with checked access to its arguments by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeGuard

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects.op import Type
from relay.frontend.importing.builder import is_list, is_value
from relay.frontend.importing.fields import Fields
from relay.frontend.torch.archive import Json, dtype_of_number

Argument = object
"""A value, a number, a boolean, a text, None, a `ScalarType`, a `Subgraph` or a list of these."""
Size = int | SSAValue
"""A known size, or a rank-0 value of 64-bit integer type for one that is computed from unknown sizes."""


@dataclass(frozen=True, slots=True)
class ScalarType:
    """An element type, by its number in the schema."""

    number: int


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The body of a branch or a loop."""

    name: str
    graph: Json


def is_size(value: object) -> TypeGuard[Size]:
    return isinstance(value, int | SSAValue) and not isinstance(value, bool)


def target_of(call: Json) -> str:
    """The operator of a call in the file, with its overload: `aten.add.Tensor`."""
    return str(call["target"]).removeprefix("torch.ops.")


def packet_of(target: str) -> str:
    """The operator without its overload: `aten.add`."""
    parts = target.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 else target


def writes_in_place(packet: str) -> bool:
    """Whether an operator writes its result to its first argument: `aten.add_`, `aten.__iand__`; not `aten.__and__`."""
    name = packet.rpartition(".")[2]
    return name.endswith("_") and (not name.endswith("__") or name.startswith("__i"))


@dataclass(frozen=True, slots=True, eq=False)
class Node(Fields):
    SCALAR_AXES: ClassVar[int] = 1
    FIELD: ClassVar[str] = "the argument "
    file: str
    target: str
    """The operator with its overload: `aten.add.Tensor`."""
    index: int
    name: str
    arguments: dict[str, Argument]
    positional: list[Argument]
    """The arguments of a call whose arguments have no names."""
    outputs: list[str]
    types: list[Type | None] = field(default_factory=list[Type | None])
    """The types of the outputs that the file states."""
    within: str = ""
    """The title of the node whose subgraph contains this one; empty in the main graph."""

    @property
    def packet(self) -> str:
        return packet_of(self.target)

    @property
    def number(self) -> int:
        return self.index

    @property
    def title(self) -> str:
        """The node in errors: `node 17 aten.add.Tensor 'add_1'`."""
        here = f"{self.target[:120]} {self.name[:120]!r}"
        return f"{self.within} > {here}" if self.within else f"node {self.index} {here}"

    def evaluates(self, training: bool) -> None:
        """Raise Unsupported if `training`: the node computes as in training, which is not imported."""
        if training:
            raise self.unsupported("is in training mode", "export the model after model.eval()")

    def entry(self, name: str) -> Argument:
        return self.arguments.get(name)

    def has(self, name: str) -> bool:
        """Whether the argument is given, and not None."""
        return self.entry(name) is not None

    def value(self, name: str) -> SSAValue:
        found = self.optional(name)
        if found is None:
            raise self.malformed(f"the argument {name} is missing")
        return found

    def optional(self, name: str) -> SSAValue | None:
        """A tensor argument; None if it is omitted."""
        found = self.entry(name)
        if found is None or is_value(found):
            return found
        raise self.wrong(name, "tensor")

    def values(self, name: str) -> list[SSAValue]:
        given = self.sequence(name)
        found = [each for each in given if is_value(each)]
        if len(found) != len(given):
            raise self.wrong(name, "list of tensors")
        return found

    def sequence(self, name: str) -> list[object]:
        found = self.arguments.get(name)
        if found is None:
            return []
        if not is_list(found):
            raise self.wrong(name, "list")
        return found

    def size(self, name: str, default: int | None = None) -> Size:
        found = self.entry(name)
        return found if is_value(found) else self.integer(name, default)

    def sizes(self, name: str) -> list[Size]:
        found: list[Size] = []
        for each in self.sequence(name):
            if not is_size(each):
                raise self.malformed(f"the argument {name} has {each!r}, no integer")
            found.append(each)
        return found

    def dtype(self, name: str = "dtype") -> np.dtype[Any] | None:
        """An element type argument; None if it is omitted."""
        found = self.entry(name)
        return dtype_of_number(found.number, self.where) if isinstance(found, ScalarType) else None

    def shape(self, name: str, rank: int | None = None) -> tuple[int, ...]:
        """The sizes of a tensor argument. Raises Malformed if it has another rank than `rank`."""
        return self.sizes_of(self.value(name), f"the argument {name}", rank, known=False)

    def static(self, name: str, rank: int | None = None) -> tuple[int, ...]:
        """The sizes of a tensor argument, which must all be known."""
        return self.sizes_of(self.value(name), f"the argument {name}", rank, known=True)

    def rank(self, name: str) -> int:
        return len(self.shape(name))

    def along(self, name: str, default: int | None = None, *, more: int = 0) -> int:
        """The axis that an argument names, as an index from 0; a negative axis counts from the end of the operator's
        result, which has `more` axes beyond those of its input `self`."""
        return self.axis(self.integer(name, default), self.rank("self") + more)
