"""What a machine's instructions and memories cost: one record for CPUs, one for GPUs, every number with its unit.

The numbers are estimates that only have to rank choices. `target.with_costs({...})` replaces them by measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import inf
from numbers import Real
from typing import TypeVar

from relay.arguments import shown
from relay.errors import InvalidArgument


@dataclass(frozen=True)
class CpuCosts:
    """One core of a CPU, and what it costs to use several. Cycles are of one core; sizes are in bytes."""

    accumulator_latency: float = 5.0
    """Cycles until a vector of accumulators can be added to again."""
    issue_width: float = 4.0
    """Instructions that start in a cycle, of a contraction's innermost loop."""
    multiplies_per_cycle: float = 2.0
    """Vector multiply-adds, or dot products, that start in a cycle."""
    loads_per_cycle: float = 2.0
    """Vector loads that start in a cycle."""
    loop_instructions: float = 3.0
    """Instructions of a loop's own in each turn: count, compare, branch."""
    idle_load: float = 0.05
    """Cycles of a load where loads are not what bounds the loop."""
    tile_start: float = 25.0
    """Cycles to start and end a register tile."""
    vector_store: float = 5.0
    """Cycles to finish and store a whole vector of results."""
    partial_store: float = 10.0
    """Cycles to finish and store a part of a vector of results."""
    partial_results: int = 4
    """Independent partial results of a reduction that hide the latency of joining them."""

    cache_line: int = 64
    """Bytes that a cache fetches at once."""
    second_level_bandwidth: float = 16.0
    """Bytes of weights per cycle from the second-level cache."""
    third_level_bandwidth: float = 10.0
    """Bytes per cycle from the cache that cores share."""
    stream_bandwidth: float = 32.0
    """Bytes per cycle of vector loads, on average over all levels of caches."""
    tile_weight_bytes: int = 24 << 10
    """Weights of a block of channels that stay in the first-level cache beside the data."""
    inner_weight_bytes: int = 16 << 10
    """Packed weights, all channels, that stay in the first-level cache while a loop over pixels runs around them."""
    scratch_bytes: int = 16 << 10
    """Scratch memory that stays in the first-level cache."""
    strip_bytes: int = 1 << 18
    """Bytes that a strip of rows may read and write so that it stays in the second-level cache."""
    strip_start_rows: float = 0.1
    """Time to start the rows of a block, as a part of the time of one row."""
    prefetch_bytes: int = 384 << 10
    """Weights of a block that are prefetched at most: two blocks and the data share the second-level cache."""
    prefetch_steps: int = 16
    """Steps of a loop per prefetched cache line, at most: weights that are used more often need no prefetch."""

    loop_issue_width: float = 2.0
    """Instructions per cycle of any other loop."""
    vectorized_turns: float = 8.0
    """Turns of an innermost loop over scalars that LLVM makes one of."""
    library_call: float = 20.0
    """Cycles of a function of the mathematical library."""

    remote_bandwidth: float = 6.0
    """Bytes per cycle of what another core has just written."""
    small_remote_bandwidth: float = 3.0
    """The same for transfers of a few kilobytes."""
    contended_line: float = 60.0
    """Cycles for a cache line that two cores write to in turn."""
    fork: int = 2_000
    """Cycles to have threads share a loop and to wait for them."""
    least_saving: int = 3_000
    """Cycles that sharing all loops must save: waking sleeping threads takes about as long."""
    planned_threads: int = 2
    """Threads that a shared loop is chosen for."""
    confident_saving: float = 0.5
    """The part of an estimated saving that is counted."""


@dataclass(frozen=True)
class GpuCosts:
    """One GPU. Clocks are of a multiprocessor; sizes are in bytes."""

    processors: int = 1
    """Multiprocessors that launches are made for."""
    matrix_speed: int = 2048
    """Products of 8-bit codes, or bytes of floats multiplied, of a processor in a clock by `mma`."""
    warpgroup_speed: int = 4096
    """The same by `wgmma`."""
    copy_bandwidth: int = 32
    """Bytes that come into a processor's shared memory in a clock."""
    step: int = 256
    """Clocks that a step of the depth takes at least."""
    block: int = 1500
    """Clocks that a block takes besides its steps."""
    launch: int = 2500
    """Clocks of another kernel that waits for this one."""
    finished_sum: float = 1 / 8
    """Clocks of a processor for what follows a sum: 8 instructions at 64 a clock."""
    registers: int = 1 << 16
    """Registers of 32 bits of a processor."""
    most_sums: int = 64
    """Sums of a thread that leave too few registers for the addresses of gathered data."""
    shared_bytes: int = 32 << 10
    """Shared memory that a block can have: what the chip gives, or every device that takes OpenCL."""
    block_threads: int = 256
    """Threads of a block, where there are more than a few blocks."""
    busy_threads: int = 1 << 16
    """Threads that fill a device: no more are made by dividing a sum."""
    least_threads: int = 1 << 15
    """Threads at least before one thread takes several elements."""


Costs = TypeVar("Costs", CpuCosts, GpuCosts)
Measured = tuple[tuple[str, float], ...]
"""Numbers that replace estimates: (field, value), in the order of the names."""


@lru_cache(maxsize=64)
def replaced(costs: Costs, measured: Measured) -> Costs:
    """The record with these numbers in place of its own."""
    return replace(costs, **dict(measured))


DIVISORS = frozenset(
    "cache_line issue_width loads_per_cycle loop_issue_width multiplies_per_cycle processors second_level_bandwidth"
    " stream_bandwidth third_level_bandwidth vectorized_turns".split()
)
"""Costs that others are divided by."""


def checked(costs: CpuCosts | GpuCosts, given: Mapping[str, object]) -> Measured:
    """The numbers by field name, sorted, without those that the record has anyway. Raises InvalidArgument for a name
    that the record does not have, and for what is not a number of the field's kind, is negative or not finite, or is 0
    and divides others."""
    known: dict[str, float] = {field.name: getattr(costs, field.name) for field in fields(costs)}
    found: dict[str, float] = {}
    for name, value in given.items():
        if name not in known:
            raise InvalidArgument("costs", f"there is no cost '{name}'", f"there are {', '.join(known)}")
        kind = type(known[name])
        if isinstance(value, bool) or not isinstance(value, Real) or (kind is int and value % 1 != 0):
            raise InvalidArgument(f"costs['{name}']", f"{shown(value)} is not of type {kind.__name__}")
        if not 0 <= (number := kind(value)) < inf:
            raise InvalidArgument(f"costs['{name}']", f"is {number}", "give a number that is not negative")
        if number == 0 and name in DIVISORS:
            raise InvalidArgument(f"costs['{name}']", "is 0", "give a number that is positive")
        if number != known[name]:
            found[name] = number
    return tuple(sorted(found.items()))
