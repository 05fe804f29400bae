"""Runs random cases; every one that fails is reported by its number, not only the first."""

from __future__ import annotations

import math
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TypeVar

from relay import IRModule
from relay.errors import RelayError

T = TypeVar("T")
SECONDS = 60
"""A case that takes longer has hung."""


def run_cases(
    cases: Iterable[int],
    draw: Callable[[int], T],
    end_of: Callable[[T], str],
    *,
    seconds: float = math.inf,
    keep: Callable[[int, T], object] = lambda case, drawn: None,
) -> Counter[str]:
    """How many cases ended in each way: `end_of(draw(case))` is the way of one.

    Raises AssertionError that lists the cases whose `end_of` raised anything or took more `seconds` of processor time;
    `keep(case, drawn)` is called for each of them."""
    ends, wrong, slowest = Counter[str](), list[str](), 0.0
    for case in cases:
        drawn = draw(case)
        said, start = "", time.process_time()
        try:
            end = end_of(drawn)
        except Exception as error:  # whatever an input makes the code raise is a finding, and the next cases run too
            end, said = "wrong", f"{type(error).__name__}: {str(error)[:300]}"
        taken = time.process_time() - start
        slowest = max(slowest, taken)
        said = said or (f"took {taken:.1f} s" if taken > seconds else "")
        if said:
            wrong.append(f"case {case}: {said}")
            keep(case, drawn)
        ends[end] += 1
    print(f"{ends.total()} cases: {dict(ends)}, slowest {slowest * 1e3:.0f} ms")
    assert not wrong, "\n".join(wrong[:40])
    return ends


@contextmanager
def limited(seconds: int) -> Generator[None]:
    """Raise TimeoutError in what takes longer, on the main thread."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def import_of(load: Callable[[bytes], IRModule]) -> Callable[[bytes], str]:
    """How importing a file ends: with a module that verifies, or with a RelayError in printable lines, in `SECONDS`."""

    def end_of(file: bytes) -> str:
        try:
            with limited(SECONDS):
                load(file).verify()
        except RelayError as error:
            assert all(line.isprintable() for line in str(error).splitlines()), error
            return type(error).__name__
        return "imported"

    return end_of
