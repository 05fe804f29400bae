"""Two transposes around a reshape as one transpose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby
from math import prod
from operator import mul

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import relay
from relay.dialects.attributes import int_values, ints
from relay.dialects.op import shape
from relay.transforms.expansion import Expansion


class JoinedTransposes(RewritePattern):
    """relay.transpose (relay.reshape (relay.transpose %x))  =>  relay.reshape (relay.transpose (relay.reshape %x)),
    where the reshape only splits and merges axes, and nothing else reads what is between.

    The shuffle of channels (split, swap, merge) of a channels-first model is one transpose of rows then.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.TransposeOp, rewriter: PatternRewriter) -> None:
        middle = op.input.owner
        if not isinstance(middle, relay.ReshapeOp) or not middle.result.has_one_use():
            return
        first = middle.input.owner
        if not isinstance(first, relay.TransposeOp) or not first.result.has_one_use():
            return
        sizes = parts(shape(first.result), shape(middle.result))
        if not sizes:
            return
        before = axes_of_parts(shape(first.result), sizes)
        after = axes_of_parts(shape(middle.result), sizes)
        inverse = sorted(range(len(before)), key=int_values(first.axes).__getitem__)
        source = [part for axis in inverse for part in before[axis]]
        target = [source.index(part) for axis in int_values(op.axes) for part in after[axis]]
        rows = [[n for _, n in run] for _, run in groupby(enumerate(target), lambda pair: pair[1] - pair[0])]
        starts = sorted(run[0] for run in rows)
        joined = [prod(sizes[source[n]] for n in run) for run in sorted(rows)]
        new = Expansion(op)
        x = new.reshape(first.input, joined)
        x = new.value(relay.TransposeOp, x, properties={"axes": ints([starts.index(run[0]) for run in rows])})
        new.replace(rewriter, new.reshape(x, shape(op.result)))
        rewriter.erase(middle)
        rewriter.erase(first)


def parts(before: Sequence[int], after: Sequence[int]) -> list[int] | None:
    """The least axes that both shapes are merged of, without ones; None if there are none, or a size is unknown."""
    if min((*before, *after), default=1) < 1:
        return None
    ends = sorted({*accumulate(before, mul, initial=1), *accumulate(after, mul, initial=1)})
    if any(end % start for start, end in zip(ends, ends[1:], strict=False)):
        return None
    return [end // start for start, end in zip(ends, ends[1:], strict=False)]


def axes_of_parts(dims: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """The parts that each axis is merged of."""
    found, next = list[list[int]](), 0
    for size in dims:
        start, held = next, 1
        while held < size:
            held, next = held * sizes[next], next + 1
        found.append([*range(start, next)])
    return found
