"""Views of a pipeline run: recording it, showing it as a page, an HTML report, or in a notebook. This package may
import every other one but `tools`.

`relay.viewer.record(mod)` runs the pipeline and records what each pass did; a notebook shows the record as the page of
`relay-explore`, and `relay.viewer.report(record)` is that page as one HTML file.
"""

from __future__ import annotations

from relay.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relay.viewer.page import report
    from relay.viewer.recording import Record, Recording, Step, record


# Written by `python docs/generate.py`; do not edit what follows: it is made of the imports above.
__getattr__, __dir__ = door(__name__, {
    "relay.viewer.page": "report",
    "relay.viewer.recording": "Record Recording Step record",
})  # fmt: skip

__all__ = [
    "Record", "Recording", "Step", "record", "report",
]  # fmt: skip
