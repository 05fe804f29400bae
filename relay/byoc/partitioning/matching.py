"""Matching a compiler's pattern table in a block, and replacing matches by composites."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation

from relay.byoc.compiler import Refusal
from relay.byoc.guard import asked
from relay.byoc.partitioning import bodies
from relay.byoc.partitioning.offers import Offer, foreign
from relay.byoc.partitioning.refusals import refuse
from relay.byoc.partitioning.scope import annotated, eligible, offered, used
from relay.byoc.patterns import Entry, Match
from relay.byoc.patterns.names import short
from relay.dialects import byoc
from relay.transforms.dead_ops import erase_dead


def find(block: Block, offer: Offer) -> list[tuple[Entry, Match]]:
    """Return the matches of a compiler's entries in a block, without overlaps: entries are tried in order, each from
    the block's end to its start. For an op that ends in no match, the first known reason is recorded: why the compiler
    cannot take the op at all, or why a match that contained it was refused."""
    every = {op: i for i, op in enumerate(block.ops) if matchable(op) and offered(op, offer.compiler.name)}
    other = {op: reason.reason for op in every if (reason := foreign(op, offer.compiler)) is not None}
    free = {op: i for op, i in every.items() if op not in other}
    found: list[tuple[Entry, Match]] = []
    refused = dict(other)
    for entry in offer.entries:
        for op in reversed(list(free)):
            if op not in free:
                continue
            with asked(offer.compiler.name, f"pattern {entry.name}", [op]):
                answer = entry.match(op, free)
            if isinstance(answer, Match):
                found.append((entry, answer))
                for taken in answer.ops:
                    del free[taken]
            elif isinstance(answer, Refusal):
                foreigners = (f"{entry.name}: {other[each]}" for each in answer.ops if each in other)
                reason = next(foreigners, answer.reason)
                for each in answer.ops:
                    refused.setdefault(each, reason)
    for op, reason in refused.items():
        if op in free or op in other:
            refuse(op, offer.compiler.name, reason)
    return found


def matchable(op: Operation) -> bool:
    """Whether a pattern may match the op: no compiler has taken it yet, and a result of the op is used."""
    return eligible(op) and not isinstance(op, byoc.Body) and used(op) and not annotated(op)


def merge(block: Block, found: Sequence[tuple[Entry, Match]], compiler: str) -> None:
    """Replace each match by a composite at the position of its last op."""
    for entry, match in found:
        following = match.root.next_op
        properties = {
            "composite": StringAttr(f"{compiler}.{entry.name}"),
            "partitioned_from_pattern": StringAttr("".join(f"{short(op.name)}_" for op in match.ops)),
        }
        made = bodies.enclose(byoc.CompositeOp, match.ops, properties, match.constants)
        if following is None:
            block.add_op(made)
        else:
            block.insert_op_before(made, following)
        erase_dead(match.constants)
