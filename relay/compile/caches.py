"""Executables of decoders whose caches grow. Such a cache is an input that the model returns extended by new positions.
The executable keeps it as a state of its streams, with room for a declared maximum of positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from xdsl.dialects.func import FuncOp

from relay import signature, symbols
from relay.compile.dynamic import Compile, most_variants, opened, refuse_open, spec_of
from relay.compile.length import bounded
from relay.compile.request import Recipe
from relay.compile.rows import At
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC
from relay.errors import InvalidArgument, Unsupported
from relay.module import IRModule
from relay.runtime import Executable
from relay.runtime.dynamic import DynamicExecutable
from relay.runtime.interface import Caches, Interface
from relay.runtime.specification import TensorSpec
from relay.sizes import Symbol
from relay.transforms.caches_in_place import FIRST, in_place, independent, terms
from relay.transforms.dynamic_to_static import give_sizes
from relay.transforms.pasts import joined
from relay.transforms.shape_arithmetic import Fold

MOST = 1 << 24
"""The largest number of positions of a cache: position numbers, 8 bytes each, are constants of the model."""


def opened_or_growing(module: IRModule, recipe: Recipe, compile: Compile) -> DynamicExecutable:
    """Make an executable of a module with open sizes. If the model returns some of its inputs extended by new
    positions, and the open size that counts the positions has a declared maximum, the executable keeps these inputs as
    states (caches) of its streams."""
    main = module["main"]
    named = symbols.completed(main, [info.name for info in signature.read(main)[0]])

    def at(sizes: Mapping[str, int], folds: list[Fold] | None = None) -> IRModule:
        copy = module.clone()
        give_sizes(copy.op, list(sizes.values()), folds)
        refuse_open(copy.op)
        return copy

    return growing(main, at, recipe, compile, named) or opened(module, recipe, compile)


def has_caches(main: FuncOp, symbol: Symbol) -> bool:
    """Whether the model returns an input of this size extended by new positions."""
    for at in symbol.places:
        with suppress(Unsupported):
            joined(main, *at)
            return True
    return False


def growing(
    main: FuncOp, at: At, recipe: Recipe, compile: Compile, named: Sequence[Symbol]
) -> DynamicExecutable | None:
    """Make an executable of `@main` whose caches are states with room for a declared maximum of positions, to which
    each run adds its new rows in place; `at` returns the module for given sizes. None if no cache has a size with a
    declared maximum. Raises Unsupported, naming the operator, if the model cannot be rewritten so, InvalidArgument for
    a maximum that is too small or large."""
    past = next(
        (symbol for symbol in named if symbol.name in (recipe.maximum or {}) and has_caches(main, symbol)), None
    )
    if past is None:
        return None
    [maximum] = [symbol.maximum for symbol in bounded(named, recipe.maximum) if symbol.name == past.name]
    assert maximum is not None
    if maximum > MOST:
        what = f"is {maximum}; caches have room for at most {MOST} positions"
        raise InvalidArgument(f"maximum of {past.name}", what, "give as many as a stream will hold")
    slots = {index for index, _ in past.places}
    others = [symbol for symbol in independent(named) if symbol.name != past.name]
    batch = [symbol for symbol in others if slots.intersection(index for index, _ in symbol.places)]
    free = [symbol for symbol in others if symbol not in batch]
    one = {symbol.name: 1 for symbol in batch}
    if len(free) > 1:
        what = f"{' and '.join(symbol.name for symbol in free)} are open beside {past.name}"
        hint = "name sums as such: shapes={'mask': (1, 'past + new')}; or give sizes"
        raise Unsupported("caches that grow", what, hint)
    made: dict[int, IRModule] = {}

    def rows_at(count: int) -> IRModule:
        """The module for `count` new positions; cached."""
        if count not in made:
            others = one | {symbol.name: count for symbol in free}
            found, rows = in_place(lambda sizes, folds: at(sizes, folds).op, named, past.name, maximum, others)
            if rows != count:
                raise Unsupported(f"size {past.name}", f"{rows} positions are new where sizes are {others}")
            made.clear()
            made[count] = IRModule(found)
        return made[count]

    def specialise(sizes: Mapping[str, int], values: Mapping[str, Array]) -> Executable:
        module = rows_at(next(iter(sizes.values()), 1))
        return compile(replace(recipe, model=module, params={}, frontend={}, maximum=None))

    inputs, outputs = signature.read(rows_at(1)["main"])
    sums = {
        at: symbol.name
        for symbol in named
        if past.name in terms(symbol.name) and symbol is not past
        for at in symbol.places
    }
    names = {at: symbol.name for symbol in free for at in symbol.places} | sums
    specs, given, states = list[TensorSpec](), list[TensorSpec](), dict[str, str]()
    for index, info in enumerate(inputs):
        open = tuple(DYNAMIC if (index, axis) in names else size for axis, size in enumerate(info.shape))
        specs.append(spec_of(replace(info, shape=open), index, names))
    for info in outputs:
        open = info.shape if info.kind == "state" else tuple(DYNAMIC if size == 1 else size for size in info.shape)
        given.append(spec_of(replace(info, shape=open), -1, {}))
    for was, now in zip(signature.read(main)[1], outputs, strict=False):
        if now.kind == "state":
            states[now.name] = was.name
    caches = Caches(inputs[-1].name, maximum, states, tuple(sums))
    bounds = [replace(symbol, maximum=maximum - FIRST - 2) for symbol in free]
    return DynamicExecutable(Interface(specs, given, bounds, [], caches=caches), specialise, most_variants(recipe))
