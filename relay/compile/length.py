"""Decides whether a model can be built once for all lengths of a sequence up to its maximum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import SupportsIndex

from relay.arguments import mapping, positive, shown
from relay.compile.request import Recipe
from relay.compile.rows import fixed
from relay.errors import InvalidArgument
from relay.runtime.interface import Interface, Length
from relay.runtime.specification import Size
from relay.sizes import Symbol

LEAST = 2
"""The smallest maximum that a sequence length may have for one build to serve all lengths: the model is lowered for the
maximum, and for the maximum minus 1."""


def bounded(named: Sequence[Symbol], maximum: Mapping[str, SupportsIndex] | None) -> list[Symbol]:
    """The sizes, limited by the maxima given by name. Raises InvalidArgument."""
    most = mapping(maximum or {}, "maximum", "{'sequence': 512}")
    found = {symbol.name: symbol for symbol in named}
    for name, given in most.items():
        if name not in found:
            names = ", ".join(found) or "none"
            raise InvalidArgument(f"maximum[{shown(name)}]", "names no open size", f"there are {names}")
        size, symbol = positive(given), found[name]
        if not size or size < symbol.minimum or (symbol.maximum is not None and size > symbol.maximum):
            low, high = symbol.minimum, symbol.maximum or "any number"
            raise InvalidArgument(f"maximum[{shown(name)}]", f"is {shown(given)}", f"it is from {low} to {high}")
        found[name] = replace(symbol, maximum=size)
    return list(found.values())


def length_of(interface: Interface, recipe: Recipe) -> Interface:
    """The interface, with its field `length` set to the size for which one build serves all values up to a maximum, or
    its field `why` set to the reason why there is no such size. The maximum must be given to `relay.build`, and in each
    input no axis before that size's axis may be larger than 1."""
    if interface.blocks or not recipe.maximum:
        return interface
    why, length = fixed(interface, recipe), None
    candidates = [symbol for symbol in interface.symbols if symbol.name in recipe.maximum]
    if not why:
        reasons = [behind(interface, symbol) for symbol in candidates]
        fits = [symbol for symbol, reason in zip(candidates, reasons, strict=True) if not reason]
        why = "" if fits else next(reason for reason in reasons if reason)
        if fits:
            symbol = max(fits, key=lambda each: sum(axis for _, axis in each.places))
            length = Length(symbol.name, int(symbol.maximum or 0))
    return interface._replace(length=length, why=why or interface.why)


def behind(interface: Interface, symbol: Symbol) -> str:
    """Return why one build for the maximum length cannot serve shorter inputs: they would not be the first elements in
    memory of inputs of the maximum length, or the sizes do not allow it. Empty if there is no such reason."""
    if symbol.maximum is None or symbol.maximum < LEAST:
        return f"{symbol.name} is at most {symbol.maximum}"
    if any(other is not symbol and other.minimum > 1 for other in interface.symbols):
        return "another size may not be 1"
    names = {place: each.name for each in interface.symbols for place in each.places}
    for index, axis in symbol.places:
        shape = interface.inputs[index].shape
        before = [size for at, size in enumerate(shape[:axis]) if (index, at) not in names]
        again = [at for at in range(len(shape)) if at != axis and names.get((index, at)) == symbol.name]
        if again or prod(before) != 1:
            return f"{symbol.name} is behind other sizes of input '{interface.inputs[index].name}'"
    return ""


def with_outputs(interface: Interface, longer: Sequence[Sequence[int]], shorter: Sequence[Sequence[int]]) -> Interface:
    """The interface, extended by the axis of each output along which the sequence runs (-1 for none): the axis whose
    size differs between the output shapes for two lengths of the sequence, `longer` and `shorter`. The result has no
    length, but a reason `why`, if an output has that axis behind others of more than one element."""
    length = interface.length
    assert length is not None
    axes = list[int]()
    outputs = list(interface.outputs)
    for number, (one, other) in enumerate(zip(longer, shorter, strict=True)):
        found = [axis for axis, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
        if len(found) > 1 or (found and (one[found[0]] != length.maximum or prod(one[: found[0]]) != 1)):
            why = f"{length.name} is behind other sizes of output '{outputs[number].name}'"
            return interface._replace(length=None, why=why)
        axes.append(found[0] if found else -1)
        if found:
            shape = (*outputs[number].shape[: found[0]], Size(length.name), *outputs[number].shape[found[0] + 1 :])
            outputs[number] = outputs[number]._replace(shape=shape)
    return interface._replace(outputs=outputs, length=length._replace(outputs=tuple(axes)))
