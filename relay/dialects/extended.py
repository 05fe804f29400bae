"""xDSL's dialects with ops and attributes added."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialect_interfaces import DialectInterface
from xdsl.ir import Attribute, Dialect, Operation


def extended(
    dialect: Dialect,
    operations: Sequence[type[Operation]],
    attributes: Sequence[type[Attribute]] = (),
    interfaces: Sequence[DialectInterface] = (),
) -> Dialect:
    """A copy of the dialect with more operations and attributes. An operation replaces that of the dialect with the
    same name; the dialect's interfaces are not kept, only those given."""
    names = {op.name for op in operations}
    kept = [op for op in dialect.operations if op.name not in names]
    return Dialect(dialect.name, [*kept, *operations], [*dialect.attributes, *attributes], [*interfaces])
