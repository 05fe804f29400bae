"""`Node`: one node of a graph, with checked access to its inputs and attributes.

The functions that import operators read nodes only through it, so that a missing or ill-typed part of a file becomes an
error that names the node. Defaults of attributes are those of ONNX's schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import onnx
from onnx.defs import OpSchema, SchemaError, get_schema
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC, Type, is_tensor
from relay.frontend.importing.builder import Place

Kind = onnx.AttributeProto
MOST_NUMBERS = 1 << 16
"""The maximum number of elements of a constant such as axes or a shape."""


EARLY = {"LayerNormalization": 17}
"""Operators that ONNX Runtime writes into models of versions before ONNX introduced them, with the version that defines
them."""


@cache
def schema_of(op_type: str, version: int, domain: str) -> OpSchema | None:
    """ONNX's schema of the operator; None if there is none."""
    try:
        return get_schema(op_type, version if domain else max(version, EARLY.get(op_type, 0)), domain)
    except (SchemaError, RuntimeError):
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Node(Place):
    file: str
    proto: onnx.NodeProto
    index: int
    """The index in the main graph; for a node in a subgraph or function, that of the main graph's node that contains
    it."""
    domain: str
    version: int
    """The version of the operators of its domain."""
    attributes: dict[str, onnx.AttributeProto]
    """The attributes, with those of an enclosing function substituted."""
    values: tuple[SSAValue | None, ...]
    """The inputs, None for omitted ones."""
    known: Callable[[SSAValue], Array | None]
    """Returns the elements of a value that is computed from constants, else None."""
    within: str = ""
    """The title of the function or subgraph that contains the node; empty in the main graph."""

    @property
    def kind(self) -> str:
        return self.proto.op_type

    @property
    def number(self) -> int:
        return self.index

    @property
    def title(self) -> str:
        """The node in errors: `node 17 Conv 'conv1'`, with the name of its first output if it has none."""
        name = self.proto.name or next((each for each in self.proto.output if each), "")
        kind = f"{self.domain}.{self.kind}" if self.domain else self.kind
        here = f"{kind} {name if len(name) <= 120 else f'{name[:117]}...'!r}"
        return f"{self.within} > {here}" if self.within else f"node {self.index} {here}"

    @property
    def schema(self) -> OpSchema | None:
        return schema_of(self.kind, self.version, self.domain)

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, empty for omitted ones."""
        return list(self.proto.output)

    def wants(self, number: int) -> bool:
        """Whether the output with this index is used, that is, named."""
        return number < len(self.proto.output) and bool(self.proto.output[number])

    def optional(self, number: int) -> SSAValue | None:
        """The input with this index; None if it is omitted."""
        return self.values[number] if number < len(self.values) else None

    def input(self, number: int) -> SSAValue:
        value = self.optional(number)
        if value is None:
            raise self.malformed(f"input {number} is missing")
        return value

    def inputs(self) -> list[SSAValue]:
        return self.inputs_from(0)

    def inputs_from(self, first: int) -> list[SSAValue]:
        """The inputs from this index on, none of which may be omitted."""
        return [self.input(number) for number in range(first, len(self.values))]

    def type(self, number: int) -> Type:
        """The type of an input."""
        type = self.input(number).type
        if not is_tensor(type):
            raise self.malformed(f"input {number} is {type}, no tensor")
        return type

    def shape(self, number: int, rank: int | None = None) -> tuple[int, ...]:
        """The sizes of an input. Raises Malformed if it has another rank than `rank`."""
        return self.sizes_of(self.input(number), f"input {number}", rank, known=False)

    def static(self, number: int) -> tuple[int, ...]:
        """The sizes of an input. Raises Unsupported if one is unknown."""
        return self.sizes_of(self.input(number), f"input {number}", None, known=True)

    def rank(self, number: int) -> int:
        return len(self.shape(number))

    def array(self, number: int) -> Array:
        """The elements of an input, which must be a constant."""
        found = self.known(self.input(number))
        if found is None:
            name = self.proto.input[number]
            raise self.unsupported(f"input {number}, {name!r}, is computed at run time", "it must be a constant")
        return found

    def numbers(self, number: int) -> tuple[int, ...]:
        """The integers of a small constant input such as axes or a shape."""
        found = self.array(number)
        if found.dtype.kind not in "iu" or found.size > MOST_NUMBERS:
            raise self.malformed(f"input {number} is {found.dtype} of shape {list(found.shape)}, no list of integers")
        return tuple(int(each) for each in found.reshape(-1))

    def computed(self, *numbers: int) -> bool:
        """Whether one of the inputs with these indices (omitted ones aside), or a size of input 0, is not known at
        import."""
        given = [value for number in numbers if (value := self.optional(number)) is not None]
        return DYNAMIC in self.shape(0) or any(self.known(value) is None for value in given)

    def vector(self, number: int) -> SSAValue:
        """An input whose elements may be computed at run time, as a vector."""
        if self.type(number).element_type not in (i32, i64):
            raise self.malformed(f"input {number} is {self.type(number)}, no list of integers")
        return self.input(number)

    def scalar(self, number: int) -> float | int | bool:
        """The only element of a constant input."""
        found = self.array(number)
        if found.size != 1:
            raise self.malformed(f"input {number} has {found.size} numbers, not one")
        return found.reshape(-1)[0].item()

    def attribute(self, name: str, kind: int) -> onnx.AttributeProto | None:
        """The attribute, or ONNX's default for it; None if there is neither."""
        found = self.attributes.get(name)
        if found is None:
            if (schema := self.schema) is not None and name in schema.attributes:
                given = schema.attributes[name].default_value
                found = given if given.type == kind else None
        elif found.type != kind:
            wanted, given = (Kind.AttributeType.Name(each) for each in (kind, found.type))
            raise self.malformed(f"the attribute {name} is {given}, not {wanted}")
        return found

    def has(self, name: str) -> bool:
        """Whether the file has the attribute."""
        return name in self.attributes

    def missing(self, name: str) -> Exception:
        return self.malformed(f"the attribute {name} is missing")

    def integer(self, name: str, default: int | None = None) -> int:
        if (found := self.attribute(name, Kind.INT)) is not None:
            return found.i
        if default is None:
            raise self.missing(name)
        return default

    def flag(self, name: str) -> bool:
        return bool(self.integer(name, 0))

    def integers(self, name: str) -> tuple[int, ...] | None:
        """An attribute that is a list of integers; None if it is absent."""
        found = self.attribute(name, Kind.INTS)
        return None if found is None else tuple(found.ints)

    def real(self, name: str, default: float | None = None) -> float:
        if (found := self.attribute(name, Kind.FLOAT)) is not None:
            return found.f
        if default is None:
            raise self.missing(name)
        return default

    def reals(self, name: str) -> tuple[float, ...] | None:
        found = self.attribute(name, Kind.FLOATS)
        return None if found is None else tuple(found.floats)

    def word(self, name: str, default: str = "") -> str:
        found = self.attribute(name, Kind.STRING)
        return default if found is None else found.s.decode("utf-8", "replace")

    def words(self, name: str) -> tuple[str, ...] | None:
        found = self.attribute(name, Kind.STRINGS)
        return None if found is None else tuple(each.decode("utf-8", "replace") for each in found.strings)

    def one_of(self, name: str, words: Sequence[str]) -> str:
        """An attribute whose value is one of these words."""
        found = self.word(name)
        if found not in words:
            raise self.unsupported(f"the attribute {name} is {found!r}", f"it may be {', '.join(words)}")
        return found

    def graph(self, name: str) -> onnx.GraphProto:
        found = self.attribute(name, Kind.GRAPH)
        if found is None:
            raise self.missing(name)
        return found.g

    def listed(self, name: str, number: int) -> tuple[int, ...] | None:
        """Integers that are an attribute in older versions of the operator and an input in newer ones; None if they are
        absent."""
        if self.optional(number) is not None:
            return self.numbers(number)
        return self.integers(name) if name in self.attributes else None
