"""Reports the number of calibrated samples with a progress bar or by calling a function."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sized
from contextlib import contextmanager

from relay.compile.progress import bar

Progress = Callable[[int], object]


@contextmanager
def shown(wanted: bool | Progress | None, data: object, done: int, limit: int | None) -> Generator[Progress]:
    """A context that yields the function to call with the number of samples done: `wanted` if it is a function, else
    one that updates a progress bar."""
    if callable(wanted):
        yield wanted
        return
    counts = [count for count in (len(data) if isinstance(data, Sized) else None, limit) if count is not None]
    with bar(wanted, "calibrating", min(counts) if counts else None, done) as update:
        yield lambda finished: update(finished, "")
