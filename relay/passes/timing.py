"""Instruments that measure passes: their times as a tree, and the ops that each adds and removes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter

from relay.module import IRModule
from relay.passes.info import PassInfo
from relay.passes.instruments import PassInstrument


def count(mod: IRModule) -> int:
    """The number of ops in the module."""
    return sum(1 for _ in mod.op.walk())


@dataclass
class Entry:
    """One run of a pass, with the passes that ran inside it."""

    name: str
    ops_before: int = 0
    ops_after: int = 0
    total: float = 0.0
    """Seconds, nested passes included."""
    inner: list[Entry] = field(default_factory=list["Entry"])

    @property
    def self_time(self) -> float:
        """Seconds, nested passes excluded."""
        return self.total - sum(entry.total for entry in self.inner)


class PassTimingInstrument(PassInstrument):
    """Measures the time of every pass, nested, and the number of ops before and after it. Counting the ops is not part
    of the times."""

    def __init__(self) -> None:
        self.root = Entry("all passes")
        self._open: list[tuple[Entry, float]] = []
        self._counting = 0.0

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        entry = Entry(info.name)
        (self._open[-1][0] if self._open else self.root).inner.append(entry)
        entry.ops_before = self._count(mod)
        self._open.append((entry, perf_counter() - self._counting))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._close()
        last = self._last(self.root)
        last.ops_after = self._count(mod)

    def run_failed_pass(self, mod: IRModule, info: PassInfo, error: BaseException) -> None:
        self._close()

    def _close(self) -> None:
        entry, start = self._open.pop()
        entry.total = perf_counter() - self._counting - start
        if not self._open:
            self.root.total += entry.total

    def _last(self, entry: Entry) -> Entry:
        """The entry that was closed last at the current depth."""
        for _ in range(len(self._open)):
            entry = entry.inner[-1]
        return entry.inner[-1]

    def _count(self, mod: IRModule) -> int:
        start = perf_counter()
        found = count(mod)
        self._counting += perf_counter() - start
        return found

    def render(self) -> str:
        """A table with a row for each pass: total and self time in milliseconds, share of the total, number of ops
        before and after, and the name, indented by nesting."""
        lines = ["total ms   self ms   share     ops before -> after   pass"]
        whole = self.root.total or 1.0

        def write(entry: Entry, depth: int) -> None:
            ops = f"{entry.ops_before:>10} -> {entry.ops_after:<5}" if depth else " " * 19
            times = f"{entry.total * 1e3:8.2f}  {entry.self_time * 1e3:8.2f}  {entry.total / whole:6.1%}"
            lines.append(f"{times}   {ops}       {'  ' * depth}{entry.name}")
            for inner in entry.inner:
                write(inner, depth + 1)

        write(self.root, 0)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        from relay.universe import shown_in_notebook

        return shown_in_notebook(self)


class OpStatistics(PassInstrument):
    """Counts the ops of each kind that a pass adds and removes, and records the counters of the pass
    (`PassContext.count`)."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, dict[str, int]]] = []
        """For each pass that ran: its name, the change in the number of ops by op name, and its own counters."""
        self._before: list[Counter[str]] = []
        self._counted: list[list[tuple[str, int]]] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._before.append(self._kinds(mod))
        self._counted.append([])

    def count(self, what: str, number: int) -> None:
        if self._counted:
            self._counted[-1].append((what, number))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        before, after = self._before.pop(), self._kinds(mod)
        changed = {name: after[name] - before[name] for name in sorted(before | after)}
        for what, number in self._counted.pop():
            changed[what] = changed.get(what, 0) + number
        self.rows.append((info.name, {name: change for name, change in changed.items() if change}))

    def run_failed_pass(self, mod: IRModule, info: PassInfo, error: BaseException) -> None:
        self._before.pop()
        self._counted.pop()

    def _kinds(self, mod: IRModule) -> Counter[str]:
        return Counter(op.name for op in mod.op.walk())

    def render(self) -> str:
        """One line per pass: `legalize: qnn.conv2d -5, relay.nn.conv2d +5`."""
        said = (", ".join(f"{name} {change:+d}" for name, change in row.items()) for _, row in self.rows)
        return "\n".join(f"{name}: {text or 'no change'}" for (name, _), text in zip(self.rows, said, strict=True))
