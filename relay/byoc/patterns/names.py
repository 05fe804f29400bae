"""Op names in patterns, and the ops that are commutative."""

from __future__ import annotations

from functools import cache

from relay.errors import InvalidArgument, did_you_mean, near

COMMUTATIVE = frozenset(
    {
        "relay.add",
        "relay.multiply",
        "relay.maximum",
        "relay.minimum",
        "relay.equal",
        "relay.high_multiply",
        "qnn.add",
        "qnn.mul",
    }
)
"""The ops whose two operands a pattern may match in either order."""


@cache
def known() -> frozenset[str]:
    """The names of all ops of relay's dialects."""
    from relay.dialects.byoc import Byoc
    from relay.dialects.qnn import Qnn
    from relay.dialects.relay import Relay

    return frozenset(op.name for dialect in (Relay, Qnn, Byoc) for op in dialect.operations)


def resolve(name: str) -> str:
    """The full name of an op: `nn.conv2d` is `relay.nn.conv2d`. Names of other dialects are returned unchanged.

    Raises InvalidArgument, naming similar names, if relay's dialects have no such op.
    """
    for candidate in (name, f"relay.{name}"):
        if candidate in known():
            return candidate
    spoken = {short(full): full for full in known()} | {full: full for full in known()}
    ours = {full.partition(".")[0] for full in spoken}
    if "." in name and name.partition(".")[0] not in ours:
        return name
    alike = list(dict.fromkeys(short(spoken[each]) for each in near(name, spoken)))
    raise InvalidArgument("pattern", f"there is no op '{name}'", did_you_mean(alike, "see the dialects relay and qnn"))


def short(name: str) -> str:
    """The op's name as Relay spells it, without `relay.`."""
    return name.removeprefix("relay.")
