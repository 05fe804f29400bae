"""Executables of decoders whose caches grow: inputs that come back longer become states of a declared maximum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from xdsl.dialects.func import FuncOp

from relay import signature, symbols
from relay.compile.dynamic import Compile, most_variants, opened, refuse_open, spec_of
from relay.compile.length import bounded
from relay.compile.request import Recipe
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC
from relay.errors import Unsupported
from relay.module import IRModule
from relay.runtime import Executable
from relay.runtime.dynamic import DynamicExecutable
from relay.runtime.interface import Caches, Interface
from relay.runtime.specification import TensorSpec
from relay.sizes import Symbol
from relay.transforms.caches_in_place import FIRST, in_place, independent, terms
from relay.transforms.growing import joined


def opened_or_growing(module: IRModule, recipe: Recipe, compile: Compile) -> DynamicExecutable:
    """An executable of a module with open sizes: with caches, if it has such of a size whose maximum is declared."""
    main = module["main"]
    named = symbols.completed(main, [info.name for info in signature.read(main)[0]])
    past = [symbol for symbol in named if symbol.name in (recipe.maximum or {}) and has_caches(main, symbol)]
    return growing(module, recipe, compile, named, past[0]) if past else opened(module, recipe, compile)


def has_caches(main: FuncOp, symbol: Symbol) -> bool:
    """Whether an input of this size comes back longer."""
    for at in symbol.places:
        with suppress(Unsupported):
            joined(main, *at)
            return True
    return False


def growing(
    module: IRModule, recipe: Recipe, compile: Compile, named: Sequence[Symbol], past: Symbol
) -> DynamicExecutable:
    """An executable whose streams write caches in place. Raises Unsupported where the model is no such, by the name of
    the operator, InvalidArgument for a maximum that is too small."""
    main = module["main"]
    [maximum] = [symbol.maximum for symbol in bounded(named, recipe.maximum) if symbol.name == past.name]
    assert maximum is not None
    caches = {index for index, _ in past.places}
    others = [symbol for symbol in independent(named) if symbol.name != past.name]
    batch = [symbol for symbol in others if caches.intersection(index for index, _ in symbol.places)]
    free = [symbol for symbol in others if symbol not in batch]
    one = {symbol.name: 1 for symbol in batch}
    if len(free) > 1:
        what = f"{' and '.join(symbol.name for symbol in free)} are open beside {past.name}"
        hint = "name sums as such: shapes={'mask': (1, 'past + new')}; or give sizes"
        raise Unsupported("caches that grow", what, hint)
    made: dict[int, IRModule] = {}

    def at(size: int) -> IRModule:
        """The module for so many new positions."""
        if size not in made:
            found, rows = in_place(module.op, named, past.name, maximum, one | {symbol.name: size for symbol in free})
            if rows != size:
                raise Unsupported(f"size {free[0].name}", f"is not how many positions are new: {rows} are for {size}")
            made.clear()
            made[size] = IRModule(found)
            refuse_open(found)
        return made[size]

    def specialise(sizes: Mapping[str, int], values: Mapping[str, Array]) -> Executable:
        size = next(iter(sizes.values()), 1)
        return compile(replace(recipe, model=at(size), params={}, frontend={}, maximum=None))

    inputs, outputs = signature.read(at(1)["main"])
    counter, old = inputs[-1], signature.read(main)[1]
    sums = {
        at: symbol.name for symbol in named if past.name in terms(symbol) and symbol is not past for at in symbol.places
    }
    names = {at: symbol.name for symbol in free for at in symbol.places} | sums
    specs = list[TensorSpec]()
    for index, info in enumerate(inputs):
        open = tuple(DYNAMIC if (index, axis) in names else size for axis, size in enumerate(info.shape))
        specs.append(spec_of(replace(info, shape=open), index, names))
    states = {now.name: was.name for now, was in zip(outputs, old, strict=False) if now.kind == "state"}
    given = [
        spec_of(now if now.kind == "state" else was, -1, {}) for now, was in zip(outputs, [*old, counter], strict=True)
    ]
    rows = Caches(counter.name, maximum, states, tuple(sums))
    bounds = [replace(symbol, maximum=maximum - FIRST - 2) for symbol in free]
    return DynamicExecutable(Interface(specs, given, bounds, [], caches=rows), specialise, most_variants(recipe))
