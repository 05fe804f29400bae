"""The pass `caches-in-place`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.pattern_rewriter import PatternRewriter

from relay import signature, symbols
from relay.arguments import is_list, positive, shown
from relay.dialects import relay
from relay.dialects.op import shape
from relay.errors import InvalidArgument, Unsupported
from relay.passes import Pass
from relay.sizes import Symbol
from relay.transforms.dynamic_to_static import give_sizes
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.attention import attention
from relay.transforms.growing import Growing
from relay.transforms.linear import WHY, is_linear
from relay.transforms.pasts import HINT, joined
from relay.transforms.shape_arithmetic import Fold

FIRST = 2
"""The number of cached positions in the smallest of three static modules, which are compared to find what depends on
this number."""


@dataclass(frozen=True)
class CachesInPlace(Pass):
    """Turn caches that grow by `concatenate` into states of a declared maximum size.

    `size` is the name, in `relay.symbols`, of the number of past positions. An input of that size is a cache if its
    only use is a `relay.concatenate` with new rows whose result `@main` returns. Each cache becomes a state with room
    for `maximum` positions; the number of positions so far becomes another state, named after the size. A run writes
    its new rows after those of earlier runs (`relay.dynamic_update_slice`), and masks, in each softmax, the scores of
    positions that are not yet written. Sizes named as sums (`past + new`) are computed from the others. `sizes` lists
    all sizes except `size` and the sums, in order; a single number stands for all of them.

    To avoid reading a whole cache once more, a factor of all keys is applied to the queries, the other operand of their
    product; and NaNs of softmax rows whose scores are all -inf are replaced in the product of the softmax's weights and
    the values, not in these weights.

    The pass builds the module for three numbers of past positions, and compares the three. Constants that differ
    between them must be linear in the number of past positions; they are computed from the state that holds this
    number. Tensors with an axis over all positions must keep positions independent, until a softmax. Raises
    Unsupported, naming the operator, for any other op that combines positions, and InvalidArgument if there is no such
    size, or the maximum is too small.
    """

    name: ClassVar[str] = "caches-in-place"
    opt_level = 2
    why = "writes caches that grow by concatenation where they are"
    size: str = ""
    maximum: int = 0
    sizes: tuple[int, ...] | int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main = next((f for f in op.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == "main"), None)
        named = [] if main is None else symbols.completed(main, [info.name for info in signature.read(main)[0]])
        others = [symbol.name for symbol in independent(named) if symbol.name != self.size]
        given = [positive(each) for each in (self.sizes if is_list(self.sizes) else [self.sizes] * len(others))]
        if self.size not in [symbol.name for symbol in named] or len(given) != len(others) or not all(given):
            what = (
                f"{shown(self.size)} and {len(given)} sizes are given; the sizes are {', '.join(s.name for s in named)}"
            )
            raise InvalidArgument(self.name, what, "give the past's name, and the others in order")

        def at(sizes: Mapping[str, int], folds: list[Fold]) -> ModuleOp:
            copy = op.clone()
            give_sizes(copy, list(sizes.values()), folds)
            return copy

        found, _ = in_place(at, named, self.size, self.maximum, dict(zip(others, given, strict=True)))
        op.body.detach_block(0)
        op.body.add_block(found.body.detach_block(0))


def terms(name: str) -> list[str]:
    """The terms (names and numbers) of a size that is a sum: exporters write `past_sequence_length +
    sequence_length`."""
    return [term.strip() for term in name.split("+")]


def independent(named: Sequence[Symbol]) -> list[Symbol]:
    """The sizes that are not sums of other sizes."""
    names = {symbol.name for symbol in named}
    return [
        s
        for s in named
        if len(terms(s.name)) == 1 or not all(term in names or term.isdigit() for term in terms(s.name))
    ]


def complete(named: Sequence[Symbol], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the value of each symbolic size of `named`, by name and in this order: the one that `sizes` gives, or, for
    a name such as `past + 1`, the sum of its terms."""
    known = {term: int(term) for symbol in named for term in terms(symbol.name) if term.isdigit()} | dict(sizes)
    return {s.name: known[s.name] if s.name in known else sum(known[term] for term in terms(s.name)) for s in named}


At = Callable[[Mapping[str, int], list[Fold]], ModuleOp]
"""The type of functions that return a model's module for given values of its named sizes. The function appends the ops
that it folded to constants to the list."""


def in_place(
    at: At, named: Sequence[Symbol], size: str, maximum: int, sizes: Mapping[str, int]
) -> tuple[ModuleOp, int]:
    """Build a module whose caches are states of `maximum` positions, and return it with the number of new positions per
    step. `at` returns the module for given sizes; `named` are all open sizes; `size` is the name of the number of past
    positions; `sizes` has the other open sizes, except those that `complete` computes as sums of others. Raises the
    errors of the pass."""
    folds: dict[int, list[Fold]] = {}

    def with_past(past: int) -> ModuleOp:
        folds[past] = []
        module = at(complete(named, {**sizes, size: past}), folds[past])
        for op in [each for each in module.walk() if isinstance(each, relay.AttentionOp)]:
            new = Expansion(op)
            new.replace(PatternRewriter(op), attention(new, op))
        return module

    symbol = next(each for each in named if each.name == size)
    least = with_past(FIRST)
    rows = {shape(joined(main_of(least), *each).operands[1])[each[1]] for each in symbol.places}
    past = maximum - min(rows)
    if len(rows) > 1 or past < FIRST + 2:
        what = f"{maximum} positions are too few for {max(rows)} new ones"
        raise InvalidArgument(f"maximum[{shown(size)}]", what, f"it is at least {max(rows) + FIRST + 2}")
    modules = {FIRST: least, past - 1: with_past(past - 1), past: with_past(past)}
    if not is_linear({each: folds[each] for each in modules}, replace(symbol, minimum=0, maximum=past)):
        raise Unsupported(f"size {size}", WHY, HINT)
    Growing([main_of(each) for each in modules.values()], list(modules), symbol).rewrite()
    return modules[past], maximum - past


def main_of(module: ModuleOp) -> FuncOp:
    """The public function `@main`."""
    return next(f for f in module.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == "main")
