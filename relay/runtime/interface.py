"""The interface of a compiled model with sizes that are only known at run time, and the values of these sizes that
follow from the inputs of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from relay.errors import InvalidArgument
from relay.runtime.memory import Array
from relay.runtime.specification import TensorSpec
from relay.sizes import Symbol

if TYPE_CHECKING:
    from relay.runtime.dlpack import Given


class Key(NamedTuple):
    """The key of a variant: the size of each symbol, and the bytes of each input that decides shapes."""

    sizes: tuple[int, ...]
    values: tuple[bytes, ...] = ()


class Length(NamedTuple):
    """The length of a sequence, an input size that is only known at run time, if one build serves all its values up to
    `maximum`. `outputs`: for each output the axis that has this length, -1 for none. `batch`: the name of a size that
    counts independent rows, which are run one after another; empty if there is none. Other unknown sizes must be 1."""

    name: str
    maximum: int
    outputs: tuple[int, ...] = ()
    batch: str = ""


class Caches(NamedTuple):
    """States that grow to a maximum. Each run adds new positions: their number is the value of the model's only size
    that is not known at compile time, or one if all sizes are known. Holds the name of the state that counts the
    positions, the maximum, the output of each state by its input, and the inputs over all positions, as (input,
    axis)."""

    size: str
    maximum: int
    states: dict[str, str]
    lengths: tuple[tuple[int, int], ...] = ()


class Interface(NamedTuple):
    """The interface of a model with sizes that are not known at compile time: inputs, outputs, these sizes (`symbols`),
    and how builds serve their values."""

    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    symbols: list[Symbol]
    deciding: list[int]
    """The indices of the inputs whose elements, not only their shapes, determine shapes of other tensors of the
    model."""
    blocks: tuple[int, ...] = ()
    """The numbers of rows for which there are builds, if the only symbol is the number of rows, and rows are
    independent: any number of rows runs in blocks of these sizes, of which one is 1. Empty if each size has a build of
    its own."""
    why: str = ""
    """The reason why each size has a build of its own."""
    length: Length | None = None
    """The size that is given at run time although all its values share one build; None if there is no such size."""
    caches: Caches | None = None
    """States that grow from run to run of a stream; None if there are none."""

    def to_json(self) -> dict[str, Any]:
        """The JSON form that `from_json` reads."""
        return {
            "inputs": [spec.to_json() for spec in self.inputs],
            "outputs": [spec.to_json() for spec in self.outputs],
            "symbols": [[s.name, s.places, s.minimum, s.maximum, s.multiple] for s in self.symbols],
            "deciding": self.deciding,
            "blocks": self.blocks,
            "why": self.why,
            "length": self.length,
            "caches": self.caches,
        }

    @staticmethod
    def from_json(table: Mapping[str, Any]) -> Interface:
        """Read the JSON form that `to_json` writes."""
        symbols = [
            Symbol(str(name), tuple((int(a), int(b)) for a, b in places), int(low), high and int(high), int(step))
            for name, places, low, high, step in table["symbols"]
        ]
        inputs, outputs = ([TensorSpec.from_json(row) for row in table[key]] for key in ("inputs", "outputs"))
        deciding = [int(index) for index in table["deciding"]]
        blocks = tuple(int(size) for size in table.get("blocks", ()))
        if blocks and (1 not in blocks or min(blocks) < 1 or len(symbols) != 1 or deciding or not inputs):
            raise ValueError(f"blocks of {blocks} rows")
        length = None
        if (row := table.get("length")) is not None:
            name, maximum, axes, *rest = row
            length = Length(str(name), int(maximum), tuple(int(axis) for axis in axes), *map(str, rest))
            names = ["", *(symbol.name for symbol in symbols)]
            if name not in names[1:] or length.batch not in names or len(axes) != len(outputs) or maximum < 1:
                raise ValueError(f"a length {row}")
            if length.batch == name or (length.batch and not all(spec.shape for spec in (*inputs, *outputs))):
                raise ValueError(f"a batch of {row}")
        caches = None
        if (row := table.get("caches")) is not None:
            size, most, states, places = row
            lengths = tuple((int(slot), int(axis)) for slot, axis in places)
            caches = Caches(str(size), int(most), dict(states), lengths)
            known = [spec.name for spec in inputs if spec.kind == "state"]
            inside = all(0 <= slot < len(inputs) and 0 <= axis < len(inputs[slot].shape) for slot, axis in lengths)
            if size not in known or not inside or len(symbols) > 1:
                raise ValueError(f"caches {row}")
        return Interface(inputs, outputs, symbols, deciding, blocks, str(table.get("why", "")), length, caches)

    def key(self, given: Mapping[int, object]) -> Key:
        """The key of the model's variant for these inputs, which are given by index: the sizes of its symbols, and the
        elements of the inputs that determine shapes. Raises InvalidArgument if inputs disagree about a size, or an
        input that is needed for the key is not given."""
        sizes = [self._size(symbol, given) for symbol in self.symbols]
        return Key(tuple(sizes), tuple([self._value(index, given) for index in self.deciding]))

    def _size(self, symbol: Symbol, given: Mapping[int, object]) -> int:
        first: tuple[int, str, int] | None = None
        for index, axis in symbol.places:
            if index not in given:
                continue
            dims, name = _shape(given[index]), self.inputs[index].name
            if axis >= len(dims):
                wanted = list(self.inputs[index].shape)
                raise InvalidArgument(f"input '{name}'", f"has shape {list(dims)}; {wanted} is needed")
            if first is None:
                first = dims[axis], name, axis
            elif dims[axis] != first[0]:
                what = f"is {first[0]} in '{first[1]}' (axis {first[2]}) and {dims[axis]} in '{name}' (axis {axis})"
                raise InvalidArgument(f"size {symbol.name}", what, "inputs that share a size must agree")
        if first is None:
            raise self.missing(symbol.places[0][0])
        return first[0]

    def _value(self, index: int, given: Mapping[int, object]) -> bytes:
        if index not in given:
            raise self.missing(index)
        return self.inputs[index].take(cast("Given", given[index])).tobytes()

    def missing(self, index: int) -> InvalidArgument:
        """The error for a missing input."""
        names = ", ".join(spec.name for spec in self.inputs)
        return InvalidArgument(f"input '{self.inputs[index].name}'", "is not given", f"the inputs are {names}")

    def checked(self, key: Key) -> Key:
        """Return the key. Raises InvalidArgument for a size outside its symbol's range."""
        for symbol, size in zip(self.symbols, key.sizes, strict=True):
            symbol.check(size)
        return key

    @property
    def how(self) -> str:
        """How batches of any size are run, in words such as "in blocks of 8 and 1 rows"; empty if each size has a build
        of its own."""
        if len(self.blocks) == 1:
            return "row by row"
        return f"in blocks of {' and '.join(map(str, self.blocks))} rows" if self.blocks else ""

    def serves(self, sizes: Iterable[int]) -> bool:
        """Whether the build for these sizes is one of those to which longer inputs are passed in blocks of rows: the
        number of rows is one of `self.blocks`."""
        return bool(self.blocks) and tuple(sizes)[0] in self.blocks

    @property
    def longest(self) -> Key | None:
        """The key of the build that serves any length; None if there is none."""
        if self.length is None:
            return None
        length = self.length
        return Key(tuple(length.maximum if symbol.name == length.name else 1 for symbol in self.symbols))

    def fits(self, key: Key) -> bool:
        """Whether the build for any length serves these sizes."""
        if (length := self.length) is None:
            return False
        most = {length.name: length.maximum, **({length.batch: inf} if length.batch else {})}
        return all(size <= most.get(name, 1) for name, size in self.sizes(key).items())

    def sizes(self, key: Key) -> dict[str, int]:
        """The sizes in the key of a variant, by the names of the symbols that stand for them."""
        return {symbol.name: size for symbol, size in zip(self.symbols, key.sizes, strict=True)}

    def values(self, key: Key) -> dict[str, Array]:
        """The arrays of a key that decide shapes, by input name."""
        specs = [self.inputs[index] for index in self.deciding]
        rows = zip(specs, key.values, strict=True)
        return {spec.name: np.frombuffer(data, spec.dtype).reshape(spec.shape) for spec, data in rows}

    def shown(self, key: Key) -> str:
        """The sizes and array values that identify a variant of the executable, as text in the form of keyword
        arguments of its method `prepare`, such as `batch=4`."""
        found = {**self.sizes(key), **{name: array.tolist() for name, array in self.values(key).items()}}
        return ", ".join(f"{name}={value}" for name, value in found.items())


def positive(value: object, where: str) -> int:
    """Return the value as an int. Raises InvalidArgument for anything but a positive integer."""
    known = isinstance(value, int | np.integer) and not isinstance(value, bool)
    number = int(cast(int, value)) if known else 0
    if number < 1:
        raise InvalidArgument(where, f"is {value!r}", "it must be a number of at least 1")
    return number


def _shape(value: object) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", None) or np.shape(cast(Any, value)))
