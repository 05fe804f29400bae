"""Runs random cases; every one that fails is reported by its number, not only the first."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


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
