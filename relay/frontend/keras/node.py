"""`Layer`: one call of a layer or operation of a model, its configuration, arguments and variables, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeGuard, TypeVar, cast

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC, is_tensor
from relay.errors import Unsupported
from relay.frontend.importing.archives import Json
from relay.frontend.importing.builder import Place, is_list, is_value
from relay.frontend.keras.archive import Archive

T = TypeVar("T")
Argument = object
"""A value, a number, a text, None, an array, a slice, Ellipsis, or a list or dictionary of these."""


def is_array(value: object) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray)


def is_row(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def values_in(given: Argument) -> list[SSAValue]:
    """The values of nested arguments in the order in which Keras counts them: dictionaries by their sorted keys."""
    if is_value(given):
        return [given]
    if is_row(given):
        given = [given[key] for key in sorted(given)]
    return [value for each in given for value in values_in(each)] if is_list(given) else []


@dataclass(frozen=True, slots=True, eq=False)
class Layer(Place):
    SCALAR_AXES: ClassVar[int] = 1
    file: str
    archive: Archive
    kind: str
    """The class, `Conv2D`; of an operation of `keras.ops` with `ops.` before it."""
    index: int
    config: Json
    path: str
    """Of its variables."""
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
        """`layer 17 Conv2D 'conv1'`."""
        return f"layer {self.index} {self.kind[:120]} {self.name!r}"

    def inner(self, kind: str, part: str, config: Json, *arguments: Argument) -> Layer:
        """A call of a layer inside this one; `part` is the attribute that Keras stores its variables under."""
        config = {"name": f"{self.name}/{part}", **config}
        path = self.archive.place(f"{self.path}/{part}", kind, str(config["name"]))
        return replace(self, kind=kind, config=config, path=path, arguments=arguments, keywords={})

    def argument(self, position: int, name: str = "", default: Argument = None) -> Argument:
        """An argument of the call, by its place or by its name."""
        if position < len(self.arguments):
            return self.arguments[position]
        return self.keywords.get(name, default)

    def value(self, position: int = 0, name: str = "inputs") -> SSAValue:
        found = self.argument(position, name)
        if not is_value(found):
            raise self.malformed(f"the argument {name} is no tensor")
        return found

    @property
    def x(self) -> SSAValue:
        """The first argument of an operation."""
        return self.value(0, "x")

    def optional(self, position: int, name: str) -> SSAValue | None:
        """A tensor, or None where it is left out."""
        return None if self.argument(position, name) is None else self.value(position, name)

    def values(self) -> list[SSAValue]:
        """All tensors of a layer that takes a list."""
        found = values_in([*self.arguments])
        if not found:
            raise self.malformed("has no inputs")
        return found

    @property
    def quantized(self) -> bool:
        """Whether the first variable, a kernel or a table, has codes."""
        return any(each.dtype == np.int8 for each in self.archive.arrays(self.path)[:1])

    def weights(self, *names: str) -> dict[str, Array]:
        """The variables, by these names."""
        found = self.archive.arrays(self.path)
        if len(found) != len(names):
            raise self.malformed(f"has {len(found)} variables, not {len(names)} ({', '.join(names)})")
        return dict(zip(names, found, strict=True))

    def plain(self, name: str, kind: type[T], default: T | None, what: str) -> T:
        """The entry `name` of the configuration, checked to be a `kind`; `default` if the entry is left out or None."""
        found = self.config.get(name)
        if found is None and default is not None:
            return default
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise self.malformed(f"{name} is {str(found)[:80]!r}, no {what}")
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        return self.plain(name, int, default, "integer")

    def flag(self, name: str, default: bool = False) -> bool:
        return self.plain(name, bool, default, "boolean")

    def word(self, name: str, default: str | None = None) -> str:
        return self.plain(name, str, default, "text")

    def real(self, name: str, default: float | None = None) -> float:
        found = self.config.get(name)
        return float(found) if isinstance(found, int) else self.plain(name, float, default, "number")

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers, or one as a list of it."""
        return self.integers_of(self.config.get(name, None if default is None else [*default]), name)

    def integers_of(self, given: Argument, name: str) -> list[int]:
        rows = given if is_list(given) else [given]
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in rows):
            raise self.malformed(f"{name} is {str(given)[:80]}, no integers")
        return cast("list[int]", rows)

    def each(self, name: str, count: int, default: int | None = None) -> list[int]:
        """A number for each of so many axes; one stands for all."""
        found = self.integers(name, None if default is None else [default])
        found = found * count if len(found) == 1 else found
        if len(found) != count:
            raise self.malformed(f"{name} is {found} for {count} axes")
        return found

    def axes(self, given: Argument, rank: int) -> list[int]:
        """Possibly negative axes as distinct numbers in 0..rank-1, in the order given; all for None."""
        if given is None:
            return list(range(rank))
        return self.axes_of(self.integers_of(given, "axis"), rank)

    def static(self, value: SSAValue) -> tuple[int, ...]:
        """The sizes of a tensor, which must be known."""
        dims = value.type.get_shape() if is_tensor(value.type) else ()
        if DYNAMIC in dims:
            raise self.unsupported(f"takes {value.type}, of unknown size", "give its shapes")
        return dims

    @property
    def last(self) -> bool:
        """Whether channels are the last axis."""
        found = self.word("data_format", "channels_last")
        if found not in ("channels_last", "channels_first"):
            raise self.malformed(f"data_format is {found[:40]!r}")
        return found == "channels_last"

    def refuse(self, names: Mapping[str, object]) -> None:
        """Raise Unsupported for entries of the configuration that are not these."""
        for name, wanted in names.items():
            if (found := self.config.get(name)) not in (None, wanted):
                raise Unsupported(self.where, f"{name} is {str(found)[:80]}")


def array_of(config: Json) -> Array:
    """A constant tensor among the arguments of a call."""
    return np.asarray(config["value"], np.dtype(str(config.get("dtype", "float32"))))
