"""Progress of long work: a bar if the package rich is installed, else lines of text."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

Update = Callable[[float, str], object]
"""A function called with the amount of work that is done, in the unit of the `total` of `bar`, and the name of the next
step."""
WIDTH = 79
"""The columns of a line of text."""
LINE_SECONDS = 1.0
"""The least number of seconds between two lines of progress if the output is no terminal, so that each update is
printed on a new line instead of over the previous one."""


@contextmanager
def bar(wanted: bool | None, title: str, total: float | None, done: float = 0, after: float = 0) -> Generator[Update]:
    """A context that shows the progress of work. It yields the function to call whenever work is done, with the amount
    that is finished, out of `total` (None if unknown), and the name of the next step.

    `wanted`: by default (None) progress is shown on a terminal and in a notebook; with True always, with False never.
    With the package rich it is a bar; without, and in a notebook (where rich needs widgets), one line of text that is
    rewritten, or in a file a line each second. Nothing is shown in the first `after` seconds, or if stderr is closed.
    """
    closed = cast("object", sys.stderr) is None  # as in a daemon
    terminal, notebook = not closed and sys.stderr.isatty(), type(sys.stderr).__module__.startswith("ipykernel.")
    if closed or wanted is False or (wanted is None and not terminal and not notebook):
        yield unseen
        return
    try:
        if notebook:
            start, update, stop = _lines(title, total, _cell(), 0.0)
        else:
            start, update, stop = _rich(title, total, done, transient=after > 0)
    except ModuleNotFoundError:
        write, every = (_write_over, 0.0) if terminal else (_write_below, LINE_SECONDS)
        start, update, stop = _lines(title, total, write, every)
    begun, started = time.monotonic(), False

    def shown(finished: float, following: str) -> None:
        nonlocal started
        update(finished, following)
        if not started and time.monotonic() - begun >= after:
            start()
            started = True

    try:
        shown(done, "")
        yield shown
    finally:
        stop()


def unseen(finished: float, following: str) -> None:
    """An `Update` that shows no progress."""


Shown = tuple[Callable[[], object], Update, Callable[[], object]]
"""Functions that start the display, update it, and end it."""


def _rich(title: str, total: float | None, done: float, transient: bool) -> Shown:
    """A progress bar by rich. Raises ModuleNotFoundError if rich is not installed."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    shown = Progress(TextColumn(title), *columns, console=Console(stderr=True), transient=transient)
    task = shown.add_task("", total=total, completed=int(done))
    return shown.start, lambda n, next: shown.update(task, completed=int(n), description=next), shown.stop


def _lines(title: str, total: float | None, write: Callable[[str, bool], object], every: float) -> Shown:
    """Functions that start, update and end a display of text lines. `write(line, last)` is called at
    most every `every` seconds; `last` is True only for the last line, which gives the total time."""
    text, begun, said, created = "", False, float("-inf"), time.monotonic()

    def show() -> None:
        nonlocal said
        if begun and (now := time.monotonic()) - said >= every:
            write(text, False)
            said = now

    def start() -> None:
        nonlocal begun
        begun = True
        show()

    def update(finished: float, following: str) -> None:
        nonlocal text
        far = f"{finished:.0f}" if total is None else f"{finished:.0f} of {total:.0f}"
        text = f"{title}: {far} {following}".rstrip()
        show()

    def stop() -> None:
        if begun:
            write(f"{title}: {time.monotonic() - created:.1f} s", True)

    return start, update, stop


def _write_over(line: str, last: bool) -> None:
    """Rewrite one line of a terminal."""
    print(f"\r{line:{WIDTH}.{WIDTH}}", end="\n" if last else "", file=sys.stderr, flush=True)


def _write_below(line: str, last: bool) -> None:
    """Print a line of progress to stderr, below the previous one, for output that is no terminal. `last` has no
    effect."""
    print(line, file=sys.stderr, flush=True)


def _cell() -> Callable[[str, bool], object]:
    """Return a function that shows a line of text in the output of a notebook's cell, and replaces it by the new line
    when called again. Its second argument, whether the line is the last, is ignored."""
    show: Callable[..., Any] = import_module("IPython.display").display
    shown: list[Any] = []

    def write(line: str, last: bool) -> None:
        if shown:
            shown[0].update({"text/plain": line}, raw=True)
        else:
            shown.append(show({"text/plain": line}, raw=True, display_id=True))

    return write
