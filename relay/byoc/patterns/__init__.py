"""The pattern language: which subgraphs a compiler takes as one.

    conv = is_op("qnn.conv2d")(wildcard(), is_constant()).named("conv")
    biased = conv.optional(lambda x: is_op("nn.bias_add")(x, is_constant()))
    Entry("conv2d", is_op("qnn.requantize")(biased), check=lambda match: match["conv"].properties["groups"] ...)

Names are Relay's; `is_op("add")` and `is_op("relay.add")` are the same. Ops that commute match in either order.
"""

from __future__ import annotations

import numpy.typing as npt
from xdsl.ir import Operation, SSAValue

from relay.byoc.patterns.entry import Entry
from relay.byoc.patterns.match import Match
from relay.byoc.patterns.nodes import Argument, Call, Constant, Exactly, Output, Pattern, Wildcard


def is_op(*names: str) -> Call:
    """The (first) result of an op of one of these names; call it with patterns of its operands.

    Raises InvalidArgument if our dialects have no op of a name that has the look of ours.
    """
    return Call(*names)


def is_elementwise() -> Call:
    """The result of any elementwise op."""
    return Call(elementwise=True)


def wildcard() -> Wildcard:
    """Any value, made outside of the match or by an op of it."""
    return Wildcard()


def is_constant() -> Pattern:
    """A constant. The match gets its own copy; a constant that a `wildcard` matches stays outside."""
    return Constant()


def is_var(name: str | None = None) -> Pattern:
    """An argument of the function (of this name)."""
    return Argument(name)


def is_expr(wanted: SSAValue | Operation | npt.ArrayLike) -> Pattern:
    """This very value, or a constant with these numbers."""
    return Exactly(wanted)


def is_output(pattern: Pattern, k: int | None = None) -> Pattern:
    """The k-th result of the op that the pattern matches; any, if k is None."""
    return Output(pattern, k)


__all__ = [
    "Entry",
    "Match",
    "Pattern",
    "is_constant",
    "is_elementwise",
    "is_expr",
    "is_op",
    "is_output",
    "is_var",
    "wildcard",
]
