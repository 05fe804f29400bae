"""`Executable.profile`: the time of a run by kernel and by source operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from relay.errors import InvalidArgument, Unsupported
from relay.files import replace_file
from relay.runtime.library import Library
from relay.runtime.memory import Array
from relay.tables import aligned

if TYPE_CHECKING:
    from os import PathLike

Twin = Callable[[Library, "Array | None"], Callable[[], object]]

LEAST = 9
"""The smallest number of rounds; the report has their medians."""
ROUND_SECONDS = 2e-3


@dataclass(frozen=True)
class Call:
    """A call of a kernel within a run, with its time and work."""

    kernel: str
    operators: tuple[str, ...]
    """The operators of the source model that the kernel computes."""
    seconds: float
    share: float
    """The call's share of the time of all calls, from 0 to 1."""
    macs: int
    """The number of multiply-accumulates."""
    macs_per_s: float
    peak_share: float | None
    """The call's multiply-accumulates per second as a share of one core's measured peak; None if the kernel does not
    multiply."""
    bytes: int
    """The size of the kernel's arguments in bytes, weights included: an estimate of the memory that the call reads and
    writes, each byte counted once."""
    least_seconds: float
    """The seconds of the fastest round, which other processes disturbed least."""


@dataclass(frozen=True)
class Profile:
    """The result of `profile`; printing it shows a table."""

    calls: tuple[Call, ...]
    """The calls of kernels, in the order in which a run makes them."""
    run_seconds: float
    """The median seconds of a run without counters."""
    counters_seconds: float
    """The overhead of the counters in seconds: the shortest run with counters minus the shortest run without. Negative
    if disturbance by other processes exceeds it."""
    peak: Mapping[str, float]
    """The measured multiply-accumulates per second of one core, for `int8` and `float32`."""

    @property
    def seconds(self) -> float:
        """The total time of all calls in seconds."""
        return sum(call.seconds for call in self.calls)

    @property
    def operators(self) -> dict[str, float]:
        """Seconds by source operator, the longest first; operators that one kernel computes together are joined by ` +
        `."""
        found: dict[str, float] = {}
        for call in self.calls:
            name = " + ".join(call.operators) or call.kernel
            found[name] = found.get(name, 0.0) + call.seconds
        return dict(sorted(found.items(), key=lambda row: -row[1]))

    @property
    def heat(self) -> dict[str, float]:
        """Shares of the total time by kernel (`@name`) and by source operator (without its location in the file); an
        operator gets the whole share of every kernel that contains it."""
        found = {f"@{call.kernel}": 0.0 for call in self.calls}
        for call in self.calls:
            for name in (f"@{call.kernel}", *map(placeless, call.operators)):
                found[name] = found.get(name, 0.0) + call.share
        return found

    def to_json(self) -> dict[str, Any]:
        """The profile as numbers, strings and lists."""
        return {
            "calls": [asdict(call) for call in self.calls],
            "operators": self.operators,
            "run_s": self.run_seconds,
            "counters_s": self.counters_seconds,
            "peak_macs_per_s": dict(self.peak),
        }

    def trace(self) -> dict[str, Any]:
        """One run as events for chrome://tracing and ui.perfetto.dev, with the calls one after another."""
        events: list[dict[str, Any]] = []
        start = 0.0
        for call in self.calls:
            told = {"operators": list(call.operators), "macs": call.macs, "bytes": call.bytes}
            row = {"name": call.kernel, "ph": "X", "pid": 1, "tid": 1, "ts": start * 1e6, "dur": call.seconds * 1e6}
            events.append(row | {"args": told})
            start += call.seconds
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write `trace()` as JSON. Raises InvalidArgument where it cannot be written."""
        replace_file(str(path), json.dumps(self.trace()).encode())

    def to_html(self) -> str:
        """The HTML table of the calls of kernels, the slowest first, with a bar for each call's share of the time."""
        from html import escape  # here: for pages only

        rows: list[str] = []
        wrapped = '<td style="overflow-wrap:anywhere">{}</td>'
        for call in sorted(self.calls, key=lambda call: -call.seconds):
            rate = f"{call.macs_per_s / 1e9:.1f}" if call.macs else ""
            peak = "" if call.peak_share is None else f"{call.peak_share:.0%}"
            bar = f'<meter max="1" value="{call.share:.4f}"></meter> {call.share:.1%}'
            cells = (f"{call.seconds * 1e6:.2f}", bar, rate, peak, f"{call.bytes / 1000:.1f}", escape(call.kernel))
            names = escape(" + ".join(map(placeless, call.operators)))
            rows.append(
                "".join(f'<td style="white-space:nowrap">{cell}</td>' for cell in cells) + wrapped.format(names)
            )
        head = "".join(f"<th>{name}</th>" for name in ("us", "share", "GMAC/s", "peak", "kB", "kernel", "operators"))
        said = "<br>".join(map(escape, str(self).splitlines()[-2:]))
        return f"<table><tr>{head}</tr><tr>{'</tr><tr>'.join(rows)}</tr></table><p>{said}</p>"

    _repr_html_ = to_html

    def __str__(self) -> str:
        table = [("us", "%", "GMAC/s", "peak", "kB", "kernel", "operators")]
        for call in sorted(self.calls, key=lambda call: -call.seconds):
            rate = f"{call.macs_per_s / 1e9:.1f}" if call.macs else ""
            peak = "" if call.peak_share is None else f"{call.peak_share:.0%}"
            size, names = f"{call.bytes / 1000:.1f}", " + ".join(map(short, call.operators))
            table.append((f"{call.seconds * 1e6:.2f}", f"{call.share:.1%}", rate, peak, size, call.kernel, names))
        lines = aligned(table, range(5))
        peaks = ", ".join(f"{rate / 1e9:.0f} GMAC/s of {kind}" for kind, rate in self.peak.items())
        cost = self.counters_seconds / max(len(self.calls), 1) * 1e9
        lines.append(f"kernels {self.seconds * 1e6:.2f} us of a run of {self.run_seconds * 1e6:.2f} us (one thread)")
        counters = f"counters take {cost:.0f} ns a kernel" if cost >= 0 else "counters take less than the noise"
        lines.append(f"{counters}; one core was measured to do at most {peaks}")
        return "\n".join(lines)


def placeless(operator: str) -> str:
    """The name of an operator without its location in the file."""
    return operator.rpartition(" (")[0] or operator


def short(operator: str) -> str:
    """The name of an operator without its location in the file, shortened in the middle if it is long."""
    text = placeless(operator)
    return text if len(text) <= 60 else f"{text[:40]}...{text[-17:]}"


def profile(library: Library, twin: Twin, seconds: float) -> Profile:
    """Run a model alternately with and without clocks around its kernel calls, for `seconds`, and return the profile.
    Raises Unsupported if the library cannot be profiled, InvalidArgument if `seconds` is negative or not finite.

    `twin(library, notes)` returns a function that runs the model with the code of this library; the code with clocks
    adds the ticks of each kernel call to the array `notes`.
    """
    if library.profiled is None:
        what = "neither a GPU's kernels nor what was loaded from a file can be profiled"
        raise Unsupported("profile", what, "build the model for a CPU, here")
    if not 0 <= seconds < float("inf"):
        raise InvalidArgument("profile", f"seconds are {seconds}")
    told = library.profiled()
    rows: Sequence[Mapping[str, Any]] = told["calls"]
    notes = np.zeros(len(rows) + 1, np.int64)
    counted = twin(Library(told["code"], artifacts=library.artifacts), notes)
    times, every = measured(twin(library, None), counted, notes, seconds)
    medians: Array = np.median(np.array(every), axis=0)
    least: Array = np.min(np.array(every), axis=0)
    total = float(medians.sum()) or 1.0
    calls = tuple(
        call_of(row, float(time), float(time) / total, told["peak"], float(shortest))
        for row, time, shortest in zip(rows, medians, least, strict=True)
    )
    plain, counting = (np.array(column) for column in zip(*times, strict=True))
    return Profile(calls, float(np.median(plain)), float(counting.min() - plain.min()), told["peak"])


def call_of(row: Mapping[str, Any], seconds: float, share: float, peak: Mapping[str, float], least: float) -> Call:
    """Make the `Call` for `row`, which describes one kernel call of the profiled program. `seconds`: the median time of
    the call over the rounds of measurement; `share`: its share of all calls' time; `peak`: the most
    multiply-accumulates per second of one core, by the kind of their factors, such as "int8"; `least`: the time in the
    fastest round."""
    rate = row["macs"] / seconds if seconds else 0.0
    most = peak.get(row["kind"]) if row["macs"] else None
    operators = tuple(row["operators"])
    return Call(row["kernel"], operators, seconds, share, row["macs"], rate, most and rate / most, row["bytes"], least)


def measured(
    plain: Callable[[], object], counted: Callable[[], object], notes: Array, seconds: float
) -> tuple[list[tuple[float, float]], list[Array]]:
    """Time rounds for about `seconds`, each of several runs without counters (`plain`) and then with them (`counted`,
    which adds the ticks of each kernel call to `notes` and sets its last element to the current tick). Returns for each
    round the seconds per run of both, and the seconds of each kernel call in a run."""
    plain()
    counted()
    begun, first = perf_counter(), int(notes[-1])
    counted()
    runs = max(1, min(1000, int(ROUND_SECONDS / max(perf_counter() - begun, 1e-7))))
    times: list[tuple[float, float]] = []
    ticks: list[Array] = []
    end = begun + seconds
    while perf_counter() < end or len(times) < LEAST:
        notes[:-1] = 0
        found: list[float] = []
        for run in (plain, counted):
            start = perf_counter()
            for _ in range(runs):
                run()
            found.append((perf_counter() - start) / runs)
        times.append((found[0], found[1]))
        ticks.append(notes[:-1] / runs)
    rate = (int(notes[-1]) - first) / (perf_counter() - begun)
    return times, [row / rate for row in ticks]
