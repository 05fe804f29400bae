"""The pattern language, which describes subgraphs that a compiler takes as one op.

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
    """A pattern for the first result of an op with one of these names; call it with patterns of its operands.

    Raises InvalidArgument if a name looks like that of a relay op, but there is none.
    """
    return Call(*names)


def is_elementwise() -> Call:
    """A pattern for the result of any elementwise op."""
    return Call(elementwise=True)


def wildcard() -> Wildcard:
    """A pattern for any value, computed outside of the match or by an op in it."""
    return Wildcard()


def is_constant() -> Pattern:
    """A pattern for a constant, which is copied into the match; a constant matched by a `wildcard` stays outside."""
    return Constant()


def is_var(name: str | None = None) -> Pattern:
    """A pattern for an argument of the function, with this name if one is given."""
    return Argument(name)


def is_expr(wanted: SSAValue | Operation | npt.ArrayLike) -> Pattern:
    """A pattern for exactly this value, or a constant with these elements."""
    return Exactly(wanted)


def is_output(pattern: Pattern, k: int | None = None) -> Pattern:
    """A pattern for the k-th result (any, if k is None) of the op that `pattern` matches."""
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
