"""In place of a team of threads: what finds out whether the turns of a loop depend on their order."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np


class Shuffled:
    """In place of a team: the turns of each loop in random ranges, in a random order, on one thread."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.turns: list[int] = []
        self.runs = 0
        self.fork = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(self.share)
        self.begin = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.start)
        addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (self.fork, self.begin)]
        self.memory = (ctypes.c_uint64 * 2)(*addresses)

    def start(self, team: int) -> None:
        self.runs += 1

    def share(self, team: int, task: int, context: int, count: int) -> None:
        self.turns.append(count)
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(task)
        cuts: list[int] = self.random.integers(0, count, 4, endpoint=True).tolist()
        ends = sorted({0, count, *cuts})
        for number in self.random.permutation(len(ends) - 1).tolist():
            run(context, ends[number], ends[number + 1])

    def taken(self, *_: object) -> Shuffled:
        return self

    def bound(self, native: Callable[[int], None], slot: int, trial: object) -> Callable[[int], None]:
        def call(table: int) -> None:
            ctypes.c_uint64.from_address(table + 8 * slot).value = ctypes.addressof(self.memory)
            native(table)

        return call
