"""`Layer`: a call of a layer or operation of a model, with checked access to its configuration, arguments and
variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeGuard

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array
from relay.dialects.element_types import dtype_named
from relay.frontend.importing.archives import Json
from relay.frontend.importing.builder import is_list, is_value
from relay.frontend.importing.fields import Fields
from relay.frontend.keras.archive import Archive

DTYPES = frozenset("float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split())
"""The names of the element types that tensors can have."""
Argument = object
"""A value, a number, a text, None, an array, a slice, Ellipsis, or a list or dictionary of these."""


def is_array(value: object) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray)


def is_row(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def values_in(given: Argument) -> list[SSAValue]:
    """The values in nested arguments in Keras's order, which sorts the keys of dictionaries."""
    if is_value(given):
        return [given]
    if is_row(given):
        given = [given[key] for key in sorted(given)]
    return [value for each in given for value in values_in(each)] if is_list(given) else []


@dataclass(frozen=True, slots=True, eq=False)
class Layer(Fields):
    SCALAR_AXES: ClassVar[int] = 1
    file: str
    archive: Archive
    kind: str
    """The class, such as `Conv2D`; for an operation of `keras.ops`, with the prefix `ops.`."""
    index: int
    config: Json
    path: str
    """The path of its variables in the archive."""
    arguments: Sequence[Argument] = ()
    keywords: Mapping[str, Argument] = field(default_factory=dict[str, Argument])

    @property
    def number(self) -> int:
        return self.index

    @property
    def name(self) -> str:
        return str(self.config.get("name", ""))[:120]

    @property
    def title(self) -> str:
        """The call in errors: `layer 17 Conv2D 'conv1'`."""
        return f"layer {self.index} {self.kind[:120]} {self.name!r}"

    @property
    def operation(self) -> str:
        """The name of an operation without `ops.`."""
        return self.kind.removeprefix("ops.")

    def inner(self, kind: str, part: str, config: Json, *arguments: Argument) -> Layer:
        """A call of a layer nested in this one; `part` is the attribute name under which Keras stores its variables."""
        config = {"name": f"{self.name}/{part}", **config}
        path = self.archive.place(f"{self.path}/{part}", kind, str(config["name"]))
        return replace(self, kind=kind, config=config, path=path, arguments=arguments, keywords={})

    def entry(self, name: str) -> object:
        return self.config.get(name)

    def argument(self, position: int, name: str = "") -> Argument:
        """An argument of the call, given by position or by name."""
        return self.arguments[position] if position < len(self.arguments) else self.keywords.get(name)

    def value(self, position: int = 0, name: str = "inputs") -> SSAValue:
        found = self.argument(position, name)
        if not is_value(found):
            raise self.malformed(f"the argument {name} is no tensor")
        return found

    def dtype(self, default: np.dtype[Any] | None = None) -> np.dtype[Any]:
        """The element type that the configuration states."""
        name = self.word("dtype", "" if default is None else default.name)
        if name not in DTYPES:
            raise self.unsupported(f"computes in {name[:40]!r}", "use a type of numbers")
        return dtype_named(name)

    @property
    def x(self) -> SSAValue:
        """The first argument of an operation, which must be a tensor."""
        return self.value(0, "x")

    def optional(self, position: int, name: str) -> SSAValue | None:
        """A tensor argument; None if it is absent."""
        return None if self.argument(position, name) is None else self.value(position, name)

    def values(self) -> list[SSAValue]:
        """The input tensors of a layer that takes a list of tensors."""
        found = values_in([*self.arguments])
        if not found:
            raise self.malformed("has no inputs")
        return found

    @property
    def quantized(self) -> bool:
        """Whether the first variable, a kernel or a table, is quantized."""
        return any(each.dtype == np.int8 for each in self.archive.arrays(self.path)[:1])

    def weights(self, *names: str) -> dict[str, Array]:
        """The variables of the layer, in order, by the given names."""
        found = self.archive.arrays(self.path)
        if len(found) != len(names):
            raise self.malformed(f"has {len(found)} variables, not {len(names)} ({', '.join(names)})")
        return dict(zip(names, found, strict=True))

    def along(self, value: SSAValue, default: int | None = None, *, more: int = 0, name: str = "axis") -> int:
        """The axis that the configuration states for a tensor, as an index from 0; a negative axis counts from the end
        of the layer's result, which has `more` axes beyond those of the tensor."""
        return self.axis(self.integer(name, default), self._rank(value) + more)

    def axes(self, value: SSAValue, default: int | None = None, *, name: str = "axis") -> list[int]:
        """The axes of a tensor that the configuration states, in its order; all if it states none."""
        given = self.integers(name, range(self._rank(value)) if default is None else [default])
        return self.axes_of(given, self._rank(value))

    def _rank(self, value: SSAValue) -> int:
        return len(self.sizes_of(value, "the input", None, known=False))

    @property
    def last(self) -> bool:
        """Whether channels are the last axis."""
        return self.one_of("data_format", ("channels_last", "channels_first")) == "channels_last"

    def refuse(self, names: Mapping[str, object]) -> None:
        """Raise Unsupported for configuration entries that differ from these supported values."""
        for name, wanted in names.items():
            if (found := self.entry(name)) not in (None, wanted):
                raise self.unsupported(f"{name} is {str(found)[:80]}")
