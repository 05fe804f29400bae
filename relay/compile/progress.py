"""A bar that shows how far long work is, where the package rich is installed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from relay.errors import InvalidArgument
from relay.plug_ins import installation

Update = Callable[[float, str], object]
"""Told how much is done, and what is done next."""


@contextmanager
def bar(wanted: bool | None, title: str, total: float | None, done: float = 0, after: float = 0) -> Generator[Update]:
    """What to call as work goes on, `total` being all of it, if that is known.

    By default a bar on a terminal, if rich is installed; True asks for it anywhere, False for none. Work that is over
    within `after` seconds shows nothing. Raises InvalidArgument if a bar is asked for and rich is not installed.
    """
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield unseen
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        if wanted is None:
            yield unseen
            return
        raise InvalidArgument("progress", "the package rich is not installed", installation("progress")) from None
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    shown = Progress(TextColumn(title), *columns, console=Console(stderr=True), transient=after > 0)
    task = shown.add_task("", total=total, completed=int(done))
    begun, started = time.monotonic(), False

    def update(finished: float, following: str) -> None:
        nonlocal started
        shown.update(task, completed=int(finished), description=following)
        if not started and time.monotonic() - begun >= after:
            shown.start()
            started = True

    try:
        update(done, "")
        yield update
    finally:
        shown.stop()


def unseen(finished: float, following: str) -> None:
    """Show nothing."""
