"""The interactive view: a module's way through a pipeline, recorded, and shown as a page, a report or in a notebook.

`relay.viewer.record(mod)` runs the pipeline and keeps what each pass did; a notebook shows it as the whole page, and
`relay.viewer.report(record)` is that page as one HTML file. `relay-explore` serves it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relay.viewer.page import report
    from relay.viewer.recording import Record, Recording, Step, record

_HOME = {
    "Record": "relay.viewer.recording",
    "Recording": "relay.viewer.recording",
    "Step": "relay.viewer.recording",
    "record": "relay.viewer.recording",
    "report": "relay.viewer.page",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'relay.viewer' has no attribute {name!r}")


__all__ = ["Record", "Recording", "Step", "record", "report"]
