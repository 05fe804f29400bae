"""`Executable.benchmark`: measures the time of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from relay.errors import InvalidArgument

LEAST = 3
"""The smallest number of runs that are timed."""
MOST = 1_000_000


@dataclass(frozen=True)
class BenchmarkResult:
    """The times of all timed runs in seconds; printing it shows the statistics."""

    results: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median in seconds."""
        return self.percentile(50)

    @property
    def mean(self) -> float:
        """The mean in seconds."""
        return float(np.mean(self.results))

    @property
    def std(self) -> float:
        """The standard deviation in seconds."""
        return float(np.std(self.results))

    @property
    def min(self) -> float:
        """Seconds of the shortest run."""
        return min(self.results)

    @property
    def max(self) -> float:
        """Seconds of the longest run."""
        return max(self.results)

    def percentile(self, share: float) -> float:
        """The time in seconds that this percentage of the runs did not exceed."""
        return float(np.percentile(self.results, share))

    def to_json(self) -> dict[str, float]:
        """The statistics in seconds by name, and the number of runs."""
        return {
            "runs": len(self.results),
            "median": self.median,
            "p90": self.percentile(90),
            "p99": self.percentile(99),
            "min": self.min,
            "max": self.max,
            "mean": self.mean,
            "std": self.std,
        }

    def __str__(self) -> str:
        row = self.to_json()
        times = ", ".join(f"{name} {row[name] * 1e6:.4g} us" for name in ("median", "p90", "p99", "min"))
        return f"{times} of {len(self.results)} runs"


def measure(call: Callable[[], object], warmup: int, repeat: int | None, seconds: float) -> BenchmarkResult:
    """Time `repeat` calls, or as many as fit into `seconds`, after `warmup` calls. Raises InvalidArgument."""
    if warmup < 0 or (repeat is not None and not 0 < repeat <= MOST) or not 0 <= seconds < float("inf"):
        raise InvalidArgument("benchmark", f"warmup {warmup}, repeat {repeat}, seconds {seconds} are no such numbers")
    for _ in range(warmup):
        call()
    times: list[float] = []
    end = perf_counter() + seconds
    while len(times) < repeat if repeat is not None else (perf_counter() < end or len(times) < LEAST):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
        if len(times) == MOST:
            break
    return BenchmarkResult(tuple(times))
