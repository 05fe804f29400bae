"""The table of operators: what `from_onnx` can import, and how. One row per operator and version that changed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node

Convert = Callable[[Importer, Node], SSAValue | Sequence[SSAValue]]
"""Builds the ops of one node and returns its outputs; those that have no name may be left out at the end, and all of
them for ONNX's own body of the operator to be taken. It raises Unsupported for what it has no formula for."""
MICROSOFT = "com.microsoft"
TABLE: dict[tuple[str, str], dict[int, Convert]] = {}
"""By domain and operator: the functions by the first version of the domain's operators that they are for."""
REFUSED: dict[str, tuple[str, str]] = {}
"""Domains whose operators are known and not imported: why, and what to do instead."""


def op(*kinds: str, since: int = 1, domain: str = "") -> Callable[[Convert], Convert]:
    """Enter a function in the table under one or more operators, from that version of their domain on."""

    def enter(convert: Convert) -> Convert:
        for kind in kinds:
            TABLE.setdefault((domain, kind), {})[since] = convert
        return convert

    return enter


def row(domain: str, kind: str, version: int) -> Convert | None:
    """The function for an operator of a version of its domain."""
    rows = TABLE.get((domain, kind), {})
    since = max((since for since in rows if since <= version), default=None)
    return None if since is None else rows[since]
