"""What it costs to have two threads share a loop, in microseconds: `python -m benchmarks.threads`.

Parallel loops with next to nothing to do run with threads and without them; the difference is what a loop pays to be
shared and waited for. Printed are the
smallest and the median of many rounds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns

import numpy as np

from relay.lowering.codegen import compile_text
from relay.lowering.llvm.team import TEAM_FUNCTIONS
from relay.lowering.llvm_ir import translate
from relay.module import IRModule
from relay.runtime import Library
from relay.runtime.memory import address
from relay.runtime.team import Team, table_of
from relay.target import host

LOOPS, ROUNDS = 100, 300
TURN = 16
"""Numbers that a turn writes: no two turns write to one cache line."""


def module(turns: int) -> IRModule:
    """`LOOPS` parallel loops, one behind the other."""
    buffer = f"memref<{turns * TURN}xf32>"
    loop = f"""
  "scf.parallel"(%zero, %end, %step) <{{operandSegmentSizes = array<i32: 1, 1, 1, 0>}}> ({{
  ^bb0(%i: index):
    memref.store %value, %x[%i] : {buffer}
    scf.reduce
  }}) : (index, index, index) -> ()"""
    text = f"""func.func @main(%x: {buffer}) {{
  %zero = arith.constant 0 : index
  %step = arith.constant {TURN} : index
  %end = arith.constant {turns * TURN} : index
  %value = arith.constant 1.0 : f32{loop * LOOPS}
  func.return
}}"""
    return IRModule.parse(text)


def microseconds(call: Callable[[int], None], table: int) -> tuple[float, float]:
    """The smallest and the median time of one loop."""
    times: list[int] = []
    for _ in range(ROUNDS):
        start = perf_counter_ns()
        call(table)
        times.append(perf_counter_ns() - start)
    return min(times) / LOOPS / 1e3, median(times) / LOOPS / 1e3


def cost(turns: int) -> tuple[float, float]:
    """Microseconds that two threads add to a loop of so many turns: at least, and in the median."""
    target = host()
    text = translate(module(turns).op, target.function_attributes, target.triple)
    library = Library(compile_text(text, target).shared_object())
    data = np.zeros(turns * TURN, np.float32)
    table = (ctypes.c_uint64 * 2)(address(data), 0)
    native, team = library.function("relay_main"), Team(table_of(library, TEAM_FUNCTIONS), 2)
    alone = microseconds(native, ctypes.addressof(table))
    shared = microseconds(team.bound(native, 1), ctypes.addressof(table))
    team.stop()
    return shared[0] - alone[0], shared[1] - alone[1]


def main() -> None:
    """Print the costs."""
    for turns in (2, 16, 256):
        least, usual = cost(turns)
        print(f"{turns} turns: {least:.2f} us at least, {usual:.2f} us in the median")


if __name__ == "__main__":
    main()
