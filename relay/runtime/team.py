"""A team of threads that executes the parallel loops of a run.

Its functions are part of the object code of models with such loops (`relay.lowering.llvm.team` documents them); those
of the first model that uses threads serve the whole process. Workers are threads of the operating system that never
call Python; they sleep while nothing runs. A child of `fork` starts its own.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable
from math import inf
from time import perf_counter_ns

from relay.errors import InvalidArgument
from relay.runtime.library import Library
from relay.runtime.memory import address, aligned_bytes

TEAM, MEMBER = 512, 128
"""The size of a team's memory in bytes: a fixed part, and a part for each thread. `relay.lowering.llvm.team` has the
layout."""
FORM = "relay_team_2"
"""The symbol of a team's functions in this version of the protocol. Saved files with another version run on one
thread."""
FUTEX_AND_YIELD = {"x86_64": (202, 24), "aarch64": (98, 124)}
"""The numbers of the Linux system calls futex and sched_yield, by machine."""
PATIENCE = 200_000
"""The time in ns for which a worker without work polls before it sleeps."""
SAMPLE = 1000
STOP, SLEEPERS = 7, 32
"""Indices of words in a team's memory: the one that makes the workers end, and the one that counts sleeping workers."""
WORD, OWNER, NUMBER = 0, 8, 9
"""Indices of words in a member's memory: the one that says which units of the member's share of a loop are not claimed
yet, the address of the team's memory, and the member's number."""
MOST_THREADS = 1024
WAKING = 100_000
"""The time in ns that sleeping workers take to wake up."""
FIRST, TRIED = 3, 7
"""The numbers of runs in a trial, which decides whether a team of threads pays: the median times of `TRIED` runs with
the team and `TRIED` runs without it are compared, or of `FIRST` runs of each kind if a run takes longer than waking the
workers."""
BETWEEN, UNSEEN = 1_000_000_000, 256
"""The time in ns between two trials that decide whether the team of threads pays, which are repeated since the load of
the processors may change; and the number of runs between two looks at the clock. A worker that is descheduled in a loop
delays a run by some milliseconds, so frequent trials would cost more than they gain."""

_LOCKS = [threading.Lock()]
"""The lock under which this process creates teams; the child of a `fork` gets a new one."""
_TEAMS: dict[tuple[str, int], Team] = {}
_CODE: dict[str, tuple[Library, ctypes.Array[ctypes.c_uint64]]] = {}


def cores() -> int:
    """The number of processors that this process may use: those of its affinity mask, limited by its control group's
    quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        count = min(count, max(int(quota) // int(period), 1))
    except (OSError, ValueError):  # no control group, or no limit
        pass
    return count


def check(num_threads: object) -> int:
    """Return the number of threads. Raises InvalidArgument for anything but a positive integer."""
    if not isinstance(num_threads, int) or isinstance(num_threads, bool) or not 1 <= num_threads <= MOST_THREADS:
        what = f"{num_threads!r} is no number from 1 to {MOST_THREADS}"
        raise InvalidArgument("num_threads", what, f"this process may use {cores()} processors")
    return num_threads


def team_for(library: Library, symbol: str, threads: int) -> Team | None:
    """The process's team of this many threads, limited by the number of processors; None means the calling thread
    alone."""
    threads = min(threads, cores())
    if symbol != FORM or threads == 1 or sys.platform != "linux" or platform.machine() not in FUTEX_AND_YIELD:
        return None
    with _LOCKS[0]:
        if not _CODE:
            atexit.register(_stop_all)  # after the code was loaded: what was registered last runs first
        if symbol not in _CODE:
            _CODE[symbol] = (library, table_of(library, symbol))
        if (symbol, threads) not in _TEAMS:
            _TEAMS[symbol, threads] = Team(_CODE[symbol][1], threads)
        return _TEAMS[symbol, threads]


def table_of(library: Library, symbol: str) -> ctypes.Array[ctypes.c_uint64]:
    """The addresses of a team's functions: `fork`, `begin`, `work` and `pause`."""
    addresses = (ctypes.c_uint64 * 4)()
    library.function(symbol)(ctypes.addressof(addresses))
    return addresses


class Trial:
    """Decides by measurement whether a team makes runs of a model faster. On a machine whose processors other processes
    use, workers start late or are descheduled in a loop, and the calling thread alone is faster.

    A trial consists of runs with the team until the workers are awake, a number of timed runs with the team, and as
    many without; the medians decide about the runs until the next trial. `left`: how many of the next runs are not
    timed, because reading the clock each time would take too long.
    """

    def __init__(self, left: float = 0):
        self.left, self.shared = left, True
        self.next, self.waking = 0, 0
        self.times: list[int] = []

    def note(self, start: int, end: int) -> None:
        """Record a run of the model, which began and ended at these times in ns. After the last run of a trial, decide
        whether the runs until the next trial use the team (`shared`)."""
        if start < self.next:
            self.left = UNSEEN
            return
        if self.waking < WAKING:
            self.waking += end - start
            self.shared = True
            return
        self.times.append(end - start)
        tried = FIRST if min(self.times[:FIRST]) >= WAKING else TRIED
        self.shared = len(self.times) < tried
        if len(self.times) >= 2 * tried:
            together, alone = (sorted(part)[tried // 2] for part in (self.times[:tried], self.times[tried:]))
            self.left, self.shared = UNSEEN, together < alone
            self.next, self.waking = end + BETWEEN, 0
            self.times.clear()


class Team:
    """A team of threads, including the caller. `addresses` are those of its functions `fork`, `begin`, `work` and
    `pause`."""

    def __init__(self, addresses: ctypes.Array[ctypes.c_uint64], threads: int):
        self.threads = threads
        self.addresses = addresses
        size = TEAM + threads * MEMBER
        self.memory = aligned_bytes(size)
        self.pointer = address(self.memory)
        self.words = (ctypes.c_uint64 * (size // 8)).from_address(self.pointer)
        self.workers: list[ctypes.c_ulong] = []
        self.started = False
        self.busy = threading.Lock()

    def bound(self, native: Callable[[int], None], slot: int, trial: Trial | None = None) -> Callable[[int], None]:
        """Wrap the entry point `native` so that it uses the team if the team is free, and if the `trial` says that this
        is faster: then the pointer to the team is written to word `slot` of the table whose address the entry point
        takes."""
        offset = 8 * slot
        word = ctypes.c_uint64.from_address
        trial = Trial(inf) if trial is None else trial

        def call(table: int) -> None:
            if trial.left > 0 and not trial.shared:
                trial.left -= 1
                native(table)
                return
            busy = self.busy
            if not busy.acquire(False):
                native(table)
                return
            try:
                if trial.shared and (self.started or self.start()):
                    word(table + offset).value = self.pointer
                if trial.left > 0:
                    trial.left -= 1
                    native(table)
                else:
                    start = perf_counter_ns()
                    native(table)
                    trial.note(start, perf_counter_ns())
            finally:
                word(table + offset).value = 0
                busy.release()

        return call

    def start(self) -> bool:
        """Start the workers. If the system starts fewer than wanted, these and the caller do all work. Returns False,
        and starts none, if the C library cannot be opened."""
        import signal  # here: a run on one thread needs none

        fork, begin, work, pause = self.addresses
        try:
            libc = ctypes.CDLL(None)
        except OSError:
            return False
        syscall = ctypes.cast(libc.syscall, ctypes.c_void_p).value or 0
        spins = PATIENCE * SAMPLE // max(_sample(pause), 1)
        self.words[:8] = [fork, begin, syscall, *FUTEX_AND_YIELD[platform.machine()], self.threads, spins, 0]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # workers leave signals to Python
        try:
            for number in range(1, self.threads):
                worker, member = ctypes.c_ulong(), self.member(number)
                self.words[member + OWNER], self.words[member + NUMBER] = self.pointer, number
                at = ctypes.c_void_p(self.pointer + 8 * member)
                arguments = (ctypes.byref(worker), None, ctypes.c_void_p(work), at)
                if libc.pthread_create(*arguments) != 0:
                    break
                self.workers.append(worker)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.started = True
        return True

    def member(self, number: int) -> int:
        """The index of a member's first word in the team's memory."""
        return (TEAM + number * MEMBER) // 8

    def stop(self) -> None:
        """End the workers after their current work. After that, the caller works alone."""
        if self.started:
            self.words[STOP] = self.words[SLEEPERS] = 1  # woken even if one is only about to sleep
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.addresses[1])(self.pointer)
            libc = ctypes.CDLL(None)
            while self.workers:
                libc.pthread_join(self.workers.pop(), None)

    def forget(self) -> None:
        """Reset the team in a child of `fork`, which has no workers: the next run starts new ones, and no work is left
        to claim."""
        for number in range(self.threads):
            self.words[self.member(number) + WORD] &= ~0xFFFFFFFF
        self.words[SLEEPERS] = self.words[STOP] = 0
        self.workers.clear()
        self.started = False
        self.busy = threading.Lock()


def _sample(pause: int) -> int:
    """The nanoseconds that a waiting thread takes to poll for work a fixed number of times."""
    look = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pause)
    job = ctypes.c_uint64(SAMPLE)
    times: list[int] = []
    for _ in range(3):
        start = perf_counter_ns()
        look(ctypes.addressof(job))
        times.append(perf_counter_ns() - start)
    return min(times)


def _forget_all() -> None:
    _LOCKS[0] = threading.Lock()
    for team in _TEAMS.values():
        team.forget()


def _stop_all() -> None:
    """Stop all teams before the interpreter unloads object code."""
    for team in [*_TEAMS.values()]:
        team.busy.acquire(timeout=1)  # for good: no run starts workers any more
        team.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
