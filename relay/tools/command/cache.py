"""`relay cache`: shows or empties the cache of compiled models."""

from __future__ import annotations

import rich_click as click

from relay.errors import InvalidArgument
from relay.store import FOLDER, store
from relay.tools.command import options


@click.group("cache")
def command() -> None:
    """Show or empty the cache: the folder where compiled models are kept."""


@command.command()
@options.JSON
def info(as_json: bool) -> None:
    """Show the cache's folder, its size and its maximum size."""
    kept = store()
    if kept is None:
        text = f"there is no cache: {FOLDER} is off, or names what is no folder, or not this user's alone"
        options.show({"folder": None, "entries": 0, "bytes": 0, "limit": 0}, text, as_json)
        return
    entries = kept.entries()
    size = sum(entry.size for entry in entries)
    row = {"folder": str(kept.folder), "entries": len(entries), "bytes": size, "limit": kept.limit}
    text = f"{kept.folder}: {len(entries)} entries, {size / 2**20:.1f} of {kept.limit / 2**20:.0f} MiB"
    options.show(row, text, as_json)


@command.command()
@options.JSON
def clear(as_json: bool) -> None:
    """Delete all compiled models in the cache; other files in its folder are kept."""
    kept = store()
    if kept is None:
        raise InvalidArgument("cache", "there is none", f"{FOLDER} names its folder")
    count, size = kept.clear()
    text = f"deleted {count} entries of {size / 2**20:.1f} MiB"
    options.show({"folder": str(kept.folder), "entries": count, "bytes": size}, text, as_json)
