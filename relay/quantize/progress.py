"""A bar that shows how many samples are done, where the package rich is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sized
from contextlib import contextmanager

from relay.errors import InvalidArgument

Progress = Callable[[int], object]


@contextmanager
def shown(wanted: bool | Progress | None, data: object, done: int, limit: int | None) -> Generator[Progress]:
    """What to call with the number of samples done. By default a bar on a terminal; True asks for it anywhere.

    Raises InvalidArgument if a bar is asked for and rich is not installed.
    """
    if callable(wanted):
        yield wanted
        return
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield _nothing
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        if wanted is None:
            yield _nothing
            return
        raise InvalidArgument("progress", "the package rich is not installed", "pip install rich") from None
    counts = [count for count in (len(data) if isinstance(data, Sized) else None, limit) if count is not None]
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar("calibrating", *columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("samples", total=min(counts) if counts else None, completed=done)
        yield lambda finished: bar.update(task, completed=finished)


def _nothing(done: int) -> None:
    """Show nothing."""
