"""Named sizes that are unknown at compile time: `relay.symbols`, a discardable attribute of a `func.func`.

The attribute is an array with one dictionary per symbol:

- `name`: string, unique in the function;
- `places`: the axes that have the size, as `array<i64: argument, axis>` each, in order; at run time all must agree;
- `minimum` (default 1), `maximum` (default: none), `multiple` (default 1): the sizes that are allowed, as `i64`.

`IRModule.verify` reads the attribute.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    ShapedType,
    StringAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from relay.dialects.attributes import int_values, ints
from relay.dialects.op import DYNAMIC
from relay.errors import Malformed
from relay.sizes import Symbol as Symbol

SYMBOLS = "relay.symbols"
NUMBERS = {"minimum": 1, "maximum": None, "multiple": 1}
"""The optional entries of a symbol's dictionary, with their defaults."""


def write(function: FuncOp, symbols: Sequence[Symbol]) -> None:
    """Store the symbols on the function. Raises Malformed if they do not fit its type."""
    rows: list[DictionaryAttr] = []
    for symbol in symbols:
        row: dict[str, Attribute] = {
            "name": StringAttr(symbol.name),
            "places": ArrayAttr([ints(place) for place in symbol.places]),
        }
        for key, default in NUMBERS.items():
            if (value := getattr(symbol, key)) != default:
                row[key] = IntegerAttr(value, i64)
        rows.append(DictionaryAttr(row))
    function.attributes[SYMBOLS] = ArrayAttr(rows)
    read(function)


def read(function: FuncOp) -> list[Symbol]:
    """The symbols of a function. Raises Malformed if the attribute has another form, names are empty or not unique, a
    place is not an unknown size of an argument or belongs to two symbols, or no size satisfies the bounds."""
    where = f"function {function.sym_name.data}, {SYMBOLS}"
    attr = function.attributes.get(SYMBOLS, ArrayAttr[Attribute]([]))
    if not isa(attr, ArrayAttr[Attribute]):
        raise Malformed(where, "is no array")
    found = [_symbol(row, where) for row in attr]
    names = [symbol.name for symbol in found]
    if len(set(names)) != len(names):
        raise Malformed(where, "has a name twice")
    taken: set[tuple[int, int]] = set()
    types = list(function.function_type.inputs)
    for symbol in found:
        for argument, axis in symbol.places:
            type = types[argument] if 0 <= argument < len(types) else None
            dims = type.get_shape() if isinstance(type, ShapedType) else ()
            if not (0 <= axis < len(dims) and dims[axis] == DYNAMIC) or (argument, axis) in taken:
                what = f"axis {axis} of argument {argument} is no size of its own that is not known"
                raise Malformed(f"{where}: {symbol.name}", what)
            taken.add((argument, axis))
    return found


def completed(function: FuncOp, inputs: Sequence[str]) -> list[Symbol]:
    """The symbols of a function, each a named size of one or more axes of its inputs. An unknown size without a symbol
    gets a new one, named `input.axis`. The symbols are sorted by the first place (input, axis) where they occur."""
    found = read(function)
    taken = {place for symbol in found for place in symbol.places}
    for index, type in enumerate(function.function_type.inputs):
        dims = type.get_shape() if isinstance(type, ShapedType) else ()
        open = [axis for axis, size in enumerate(dims) if size == DYNAMIC and (index, axis) not in taken]
        found += [Symbol(f"{inputs[index]}.{axis}", ((index, axis),)) for axis in open]
    return sorted(found, key=lambda symbol: min(symbol.places))


def verify(module: ModuleOp) -> None:
    """Raise Malformed if the attribute `relay.symbols` of a function in the module, which lists the named sizes that
    are unknown at compile time, is invalid."""
    for op in module.body.ops:
        if isinstance(op, FuncOp) and SYMBOLS in op.attributes:
            read(op)


def _symbol(row: Attribute, where: str) -> Symbol:
    if not isinstance(row, DictionaryAttr) or not isinstance(name := row.data.get("name"), StringAttr):
        raise Malformed(where, f"{row} has no name")
    if not name.data:
        raise Malformed(where, "has an empty name")
    where = f"{where}: {name.data}"
    if unknown := sorted(row.data.keys() - {"name", "places", *NUMBERS}):
        raise Malformed(where, f"has the key {unknown[0]}", f"keys are name, places, {', '.join(NUMBERS)}")
    places = row.data.get("places")
    at = [_place(place, where) for place in places] if isa(places, ArrayAttr[Attribute]) else []
    if not at:
        raise Malformed(where, NO_PLACES)
    numbers: dict[str, int | None] = {}
    for key, default in NUMBERS.items():
        value = row.data.get(key)
        if value is not None and not (isa(value, IntegerAttr[IntegerType]) and value.type == i64):
            raise Malformed(where, f"{key} is no number of type i64")
        numbers[key] = default if value is None else value.value.data
    least, most, multiple = numbers["minimum"] or 0, numbers["maximum"], numbers["multiple"] or 0
    if least < 1 or multiple < 1 or (most is not None and most // multiple * multiple < least):
        upto = "" if most is None else f" to {most}"
        raise Malformed(where, f"no size is from {least}{upto} and a multiple of {multiple}")
    return Symbol(name.data, tuple(at), least, most, multiple)


NO_PLACES = "its places are no list of argument and axis"


def _place(place: Attribute, where: str) -> tuple[int, int]:
    """The argument and axis of `array<i64: argument, axis>`. Raises Malformed for another attribute."""
    if not isa(place, DenseArrayBase[IntegerType]) or place.elt_type != i64 or len(place) != 2:
        raise Malformed(where, NO_PLACES, "each is array<i64: argument, axis>")
    argument, axis = int_values(place)
    return argument, axis
