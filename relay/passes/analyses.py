"""Analyses of a module that several passes use: computed once, cached until a pass runs that does not preserve them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp, ShapedType
from xdsl.ir import Block, Operation, SSAValue

from relay.module import IRModule
from relay.passes.info import as_module

T = TypeVar("T")


class Caches(threading.local):
    """The caches of the pipelines that run in this thread, the innermost pipeline's last. A cache is a pair of a module
    and the results of analyses of this module, by analysis name."""

    def __init__(self) -> None:
        self.stack: list[tuple[ModuleOp, dict[str, object]]] = []


CACHES = Caches()


@dataclass(frozen=True)
class Analysis(Generic[T]):
    """A function of a module whose result is kept while a pipeline runs on that module, until a pass that does not
    preserve it has run. Outside of a pipeline it is computed at each call. A pass that changes the module must call the
    analysis before its first change, since later calls return the same, outdated result; or call `forget`."""

    name: str
    compute: Callable[[ModuleOp], T]

    def __call__(self, mod: IRModule | ModuleOp) -> T:
        op = as_module(mod).op
        for module, cache in reversed(CACHES.stack):
            if module is op:
                if self.name not in cache:
                    cache[self.name] = self.compute(op)
                return cast(T, cache[self.name])
        return self.compute(op)


def forget(op: ModuleOp, preserved: Sequence[str] = ()) -> None:
    """Drop the cached results of a module, except those of the analyses named in `preserved`."""
    for module, cache in CACHES.stack:
        if module is op:
            for name in [name for name in cache if name not in preserved]:
                del cache[name]


def _values(block: Block) -> list[SSAValue]:
    return [*block.args, *(result for op in block.ops for result in op.results)]


def _use_counts(op: ModuleOp) -> Mapping[SSAValue, int]:
    counts: dict[SSAValue, int] = {}
    for inner in op.walk():
        for value in (*(a for r in inner.regions for b in r.blocks for a in b.args), *inner.results):
            counts.setdefault(value, 0)
        for value in inner.operands:
            counts[value] = counts.get(value, 0) + 1
    return counts


@dataclass(frozen=True)
class Life:
    """Positions of ops in a block: `first` is where a value is defined (-1 for an argument of the block), `last` its
    last use (its definition if it has no use)."""

    first: int
    last: int


def _liveness(op: ModuleOp) -> Mapping[SSAValue, Life]:
    lives: dict[SSAValue, Life] = {}
    for holder in op.walk():
        for block in (block for region in holder.regions for block in region.blocks):
            position = {inner: number for number, inner in enumerate(block.ops)}
            for value in _values(block):
                first = position[value.owner] if isinstance(value.owner, Operation) else -1
                uses = [position[top] for use in value.uses if (top := _in_block(use.operation, block)) is not None]
                lives[value] = Life(first, max([first, *uses]))
    return lives


def _in_block(op: Operation | None, block: Block) -> Operation | None:
    """The op of this block that contains the op, or the op itself."""
    while op is not None and op.parent is not block:
        op = op.parent_op()
    return op


def _shapes(op: ModuleOp) -> Mapping[SSAValue, tuple[int, ...]]:
    found: dict[SSAValue, tuple[int, ...]] = {}
    for inner in op.walk():
        for value in (*(a for r in inner.regions for b in r.blocks for a in b.args), *inner.results):
            if isinstance(value.type, ShapedType):
                found[value] = value.type.get_shape()
    return found


use_counts: Analysis[Mapping[SSAValue, int]] = Analysis("use-counts", _use_counts)
"""The number of uses of each value as an operand."""
liveness: Analysis[Mapping[SSAValue, Life]] = Analysis("liveness", _liveness)
"""The range of positions in which each value lives, in the block that defines it; a use in a nested region counts for
the op that holds the region."""
shapes: Analysis[Mapping[SSAValue, tuple[int, ...]]] = Analysis("shapes", _shapes)
"""The shape of every value of a shaped type; -1 for an unknown size."""
