"""A limit of the memory that a model may take, checked of what was built; imports nothing of the compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relay.arguments import whole
from relay.errors import InvalidArgument

if TYPE_CHECKING:
    from relay.runtime import Executable

HINT = "give it more, make the layer smaller, or split its image"


def check_memory(executable: Executable, limit: object) -> None:
    """Raise InvalidArgument if the arena of an executable takes more bytes than the limit, with the layer that needs
    most; and where the plan is not known: sizes are open, or a GPU has memory of its own."""
    most = whole(limit)
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        raise InvalidArgument("memory_limit", f"is {limit!r}, no number of bytes", "write memory_limit=65536")
    graph: dict[str, Any] = executable.graph
    if "layers" not in graph or "device" in graph:
        raise InvalidArgument("memory_limit", "is for CPUs and known sizes", "leave it out, or give sizes and a CPU")
    if (needed := int(graph["arena_bytes"])) <= most or not graph["layers"]:
        return
    peak = max(graph["layers"], key=lambda row: row["bytes"])
    layer = peak["layer"] or peak["kernel"]
    raise InvalidArgument(
        "memory_limit", f"is {most} bytes, and the arena takes {needed}: {layer} needs {peak['bytes']}", HINT
    )
