"""Pattern table entries that most compilers need: products with the ops that follow them, means, clamps.

Each function takes the compiler's own `check` of a list of ops: it returns why the compiler does not take them
together, or None if it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.patterns import Entry, Match, Pattern, is_constant, is_op, wildcard
from relay.byoc.quantized import PRODUCTS
from relay.dialects import qnn, relay

LAST = (qnn.RequantizeOp, relay.ClipOp, relay.MaximumOp)
"""The ops that may end an entry of `products`."""
FOLLOWING = (relay.BiasAddOp, *LAST)
"""The ops that `product_around` counts to the convolution or product before them, since an external compiler may
compile them together with it."""

OpsCheck = Callable[[Sequence[Operation]], str | None]


def checked(check: OpsCheck) -> Callable[[Match], bool | Refusal]:
    """Return the check of a pattern table entry, which is called with a match: it calls `check` with the match's
    ops."""
    return lambda match: taken(check(match.ops))


def supported(check: OpsCheck, op: Operation) -> bool | Refusal:
    """Whether a compiler takes a single op. If the op is part of a product that no entry matched, the Refusal gives the
    reason for the whole product."""
    reason = check([op])
    if reason is not None:
        reason = check(product_around(op)) or reason
    return taken(reason)


def taken(reason: str | None) -> bool | Refusal:
    """Convert the result of a check: return True if there is no reason against the ops, else a Refusal with the
    reason."""
    return True if reason is None else Refusal(reason)


def product_around(op: Operation) -> list[Operation]:
    """Return the convolution or product to which the op belongs, with the ops of `FOLLOWING` after it, up to its
    requantization or clamp. The op belongs to a product if it is the product, or one of `FOLLOWING` whose first operand
    is computed by an op that belongs to it. If there is no such product, return only the op itself."""
    first = op
    while not isinstance(first, PRODUCTS):
        owner = first.operands[0].owner if isinstance(first, FOLLOWING) else None
        if not isinstance(owner, Operation):
            return [op]
        first = owner
    chain: list[Operation] = [first]
    while len(uses := list(chain[-1].results[0].uses)) == 1 and isinstance(uses[0].operation, FOLLOWING):
        if uses[0].index != 0:  # a bias, or a bound
            break
        chain.append(uses[0].operation)
        if isinstance(chain[-1], LAST):
            break
    return chain


def _biased(product: Pattern) -> Pattern:
    return product.optional(lambda x: is_op("relay.nn.bias_add")(x, is_constant()))


def _clamped(value: Pattern) -> Pattern:
    return is_op("relay.clip")(value) | is_op("relay.maximum")(value, is_constant()) | value


def quantized(kind: str) -> Pattern:
    """The pattern of a quantized `conv2d` or `dense` with a constant kernel, an optional bias, and a requantization."""
    return is_op("qnn.requantize")(_biased(is_op(f"qnn.{kind}")(wildcard(), is_constant())))


def products(check: OpsCheck) -> list[Entry]:
    """Entries for `conv2d` and `dense` with constant kernels: quantized ones with their requantization, float ones with
    their clamp."""
    found: list[Entry] = []
    for kind in ("conv2d", "dense"):
        floats = _clamped(_biased(is_op(f"relay.nn.{kind}")(wildcard(), is_constant())))
        found.append(Entry(kind, quantized(kind) | floats, checked(check)))
    return found


def means(check: OpsCheck) -> list[Entry]:
    """A list with one pattern table entry, `mean`: a `relay.sum` divided by a constant, if `check` takes both ops
    together."""
    return [Entry("mean", is_op("relay.divide")(is_op("relay.sum")(wildcard()), is_constant()), checked(check))]


def clamps(check: OpsCheck, *names: str) -> list[Entry]:
    """An entry `NAME_clip` for each op name: it matches the op together with the clip that follows."""
    return [
        Entry(f"{name.rpartition('.')[2]}_clip", is_op("relay.clip")(is_op(name)(None)), checked(check))
        for name in names
    ]
