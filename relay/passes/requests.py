"""Passes that a module itself requests: see `IRModule.request_pass`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from relay.errors import InvalidArgument, Malformed
from relay.module import REQUESTS


def rows(op: ModuleOp) -> list[dict[str, str]]:
    """The passes that the module requests, in order, such as `{"pass": "dce", "before": "fuse-ops"}`. Raises Malformed
    for an attribute that `IRModule.request_pass` did not write."""
    attr = op.attributes.get(REQUESTS)
    if attr is None:
        return []
    found: list[dict[str, str]] = []
    for row in attr.data if isa(attr, ArrayAttr[Attribute]) else [attr]:
        given = dict(row.data) if isinstance(row, DictionaryAttr) else {}
        texts = {key: value.data for key, value in given.items() if isinstance(value, StringAttr)}
        if "pass" not in texts or len(texts) != len(given) or not texts.keys() <= {"pass", "before", "after"}:
            raise Malformed(f"module attribute {REQUESTS}", f"has {row}", 'write [{pass = "dce", before = "fuse-ops"}]')
        found.append(texts)
    return found


def take(op: ModuleOp, when: str, names: Sequence[str]) -> str | None:
    """Remove the first request for a pass that is to run before or after (`when`) the pass with these names, and return
    the text of the requested pass; None if there is no such request.

    A request with neither `before` nor `after` counts as one to run before any pass.
    """
    if REQUESTS not in op.attributes:
        return None
    found = rows(op)
    for number, row in enumerate(found):
        anywhere = when == "before" and len(row) == 1
        if anywhere or row.get(when) in names:
            _write(op, found[:number] + found[number + 1 :])
            return row["pass"]
    return None


def _write(op: ModuleOp, requests: Sequence[dict[str, str]]) -> None:
    if requests:
        op.attributes[REQUESTS] = ArrayAttr(
            DictionaryAttr({key: StringAttr(value) for key, value in row.items()}) for row in requests
        )
    else:
        del op.attributes[REQUESTS]


def refuse_pending(op: ModuleOp, ran: Sequence[str]) -> None:
    """Raise InvalidArgument if a request is left: a request to run a pass before or after another one, which did not
    run after the request was made. `ran`: the passes that ran, for the error message."""
    for row in rows(op):
        when = "before" if "before" in row else "after"
        where = f"request_pass('{row['pass']}', {when}='{row.get(when, '')}')"
        raise InvalidArgument(where, "the pipeline ran no such pass after the request", f"it ran {', '.join(ran)}")
