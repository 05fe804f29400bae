"""The table of operators that `from_onnx` can import, with one row per operator and version that changed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node

Convert = Callable[[Importer, Node], SSAValue | Sequence[SSAValue]]
"""Builds the ops of one node and returns its outputs; unused outputs may be omitted at the end, and an empty list
selects ONNX's own body of the operator. Raises Unsupported for nodes without a formula."""
MICROSOFT = "com.microsoft"
TABLE: dict[tuple[str, str], dict[int, Convert]] = {}
"""The import functions by domain and operator, and by the first version of the domain's operators to which they
apply."""
REFUSED: dict[str, tuple[str, str]] = {}
"""The domains whose operators are known but not imported, with the reason and what to do instead."""


def op(*kinds: str, since: int = 1, domain: str = "") -> Callable[[Convert], Convert]:
    """A decorator that enters a function in the table under one or more operators, from version `since` of their domain
    on."""

    def enter(convert: Convert) -> Convert:
        for kind in kinds:
            TABLE.setdefault((domain, kind), {})[since] = convert
        return convert

    return enter


def row(domain: str, kind: str, version: int) -> Convert | None:
    """The import function for an operator of a version of its domain; None if there is none."""
    rows = TABLE.get((domain, kind), {})
    since = max((since for since in rows if since <= version), default=None)
    return None if since is None else rows[since]
