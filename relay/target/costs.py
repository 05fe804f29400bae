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
    spilled_vector: float = 0.0
    """Cycles for each vector of a register tile that has no register while others are finished."""
    finishing_registers: int = 8
    """Registers that finishing the sums of a tile takes: constants, what is computed of some of them, and the sums of
    the next tile, where a core starts it by then."""
    vector_store: float = 5.0
    """Cycles to finish and store a whole vector of results."""
    partial_store: float = 10.0
    """Cycles to finish and store a part of a vector of results."""
    matrix_product: float = 16.0
    """Cycles until the next product of tile registers of x86 (AMX) can start: 16 rows of 64 codes by 16 columns."""
    matrix_latency: float = 52.0
    """Cycles until its sums can be added to again."""
    matrix_load: float = 8.0
    """Cycles of loading a tile register: 16 rows, two at a time."""
    matrix_store: float = 16.0
    """Cycles of storing one."""
    matrix_rows: int = 8
    """Rows of data at least for which tile registers are used: a product takes as long with few rows as with 16."""
    rows_of_stage: int = 16
    """Rows at most that a stage of a normalization runs on before the next one."""
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
    least_prefetched: int = 512 << 10
    """Weights of a product of one row at least for which the next block is asked for: fewer may still be in a cache."""
    prefetch_steps: int = 16
    """Steps of a loop per prefetched cache line, at most: weights that are used more often need no prefetch."""
    staged_row: int = 1024
    """Entries of tables that are read before any is used: as many numbers of 32 bits stay in the first-level cache."""

    streamed_vectors: int = 4
    """Vectors of a register tile with the only pixel, at most: it waits for weights, and threads share more blocks."""
    streams_ahead: int = 16
    """Vectors of a stream of weights that are asked for before they are read, where one row reads several streams."""
    few_pixels: int = 4
    """Pixels at most whose codes get the form that a dot product takes in every loop; those of more get it once."""
    unrolled_taps: int = 32
    """Taps of a depthwise convolution that are written out, at most."""
    unrolled_operations: int = 16
    """Operations of an epilogue that are written out for every vector of a tile, at most."""
    rows_per_skipped: int = 10
    """Of so many rows of a kernel, over all rows of results, one outside of the image pays for loops of its own."""
    kept_products: float = 0.8
    """The part of all products at most that blocks of channels with windows of their own have to leave to pay."""
    most_outlier_steps: int = 8
    """Extra steps at most of a block of channels for weights that do not fit: where there are more, data is summed."""
    steps_per_outlier: int = 16
    """Steps for each of which a block may have an extra one."""
    depthwise_pixels: int = 8
    """Pixels at most of a tile of a depthwise convolution of floats, whose sums hide the latency of adding to them."""
    chained_operations: int = 16
    """Operations of a body at least that wider vectors compute where registers hold 8 numbers."""
    longest_chain: int = 24
    """Operations that wait for each other, in a turn of a loop, from which on the loop is made two."""
    staged_operations: int = 4
    """Operations on an entry of a table at least for which entries are read, and stored, first."""
    packed_rows: int = 8
    """Rows of a product's first matrix at least for which the second one is packed at run time."""
    packed_float_rows: int = 9
    """The same of float32, where sums along both matrices' rows do without."""
    packed_columns: int = 2
    """Columns of the second matrix at least for which it is."""
    packed_turned_columns: int = 8
    """The same where its columns lie one after the other: sums along both matrices' rows take less than idle lanes."""
    most_keys: int = 4096
    """Scores of a row at most that attention keeps in scratch memory."""
    least_strips: int = 8
    """Strips of an image at least, where it has as many rows: threads share them."""

    estimated_cycles: float = 6_000.0
    """Estimated cycles of whole kernels that one core does in a microsecond: 5,300 and 7,100 were seen of two models,
    whose loops take less than is counted."""
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
    warpgroup_speed: int = 3584
    """The same by `wgmma`: 7/8 of what it does where nothing else is done (4,190 on an H200)."""
    copy_bandwidth: int = 56
    """Bytes that come into a processor's shared memory in a clock."""
    memory_bandwidth: int = 24
    """Bytes that a processor reads or writes in a clock, where all do: 18 of an H200's memory, more of its cache."""
    step: int = 4
    """Clocks that a step of the depth takes at least, for each byte of the depth."""
    block: int = 1500
    """Clocks that a block takes besides its steps."""
    exchange: int = 300
    """Clocks in which slices of a block wait for each other before and after they exchange sums. Reckoned, not
    measured."""
    shared_bandwidth: int = 128
    """Bytes of shared memory that a processor reads or writes in a clock."""
    turn: int = 600
    """Clocks of a group of warps for a tile of a block that stays, besides its products and what follows: it waits for
    its turn, for the first stage and for its last products, and reads what sums start from. Reckoned, not measured."""
    launch: int = 2500
    """Clocks of another kernel that waits for this one."""
    finished_sum: float = 0.08
    """Clocks of a processor for what follows a sum: about 10 instructions at 128 a clock."""
    finished_column: float = 2.5
    """Clocks of a processor for what a warp reads for each column of its sums: 24 bytes for each thread, of which 128 a
    clock come from the cache for all 32, are 1.5; the rest was measured."""
    registers: int = 1 << 16
    """Registers of 32 bits of a processor."""
    most_sums: int = 64
    """Sums of a thread that leave too few registers for the addresses of gathered data."""
    thread_sums: int = 128
    """Sums of a thread at most, of the 255 registers that it can name."""
    matrix_rows: int = 8
    """Rows of a product's result at least for which matrix units compute it: most of a tile would be empty."""
    matrix_columns: int = 8
    """The same of its columns."""
    thread_registers: int = 60
    """Registers of a thread of matrix units besides those of its sums: addresses, and what is multiplied."""
    shared_bytes: int = 32 << 10
    """Shared memory that a block can have: what the chip gives, or every device that takes OpenCL."""
    plain_shared_bytes: int = 48 << 10
    """Shared memory that a block of `mma` takes by itself: what it can have without being launched differently."""
    largest_block: int = 1024
    """Threads that a block can have (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
    usual_warps: int = 4
    """Warps of a block of which only the tile is given: as many as a processor has schedulers."""
    block_threads: int = 256
    """Threads of a block, where there are more than a few blocks."""
    busy_threads: int = 1 << 16
    """Threads that fill a device: no more are made by dividing a sum."""
    summed_lanes: int = 8
    """Elements whose sums a thread computes at once, at most: more take the registers of other threads."""
    near_results: int = 8
    """Results of a thread at most that share what their sums read. NVIDIA's chips have 1: it was not measured there."""
    least_threads: int = 1 << 15
    """Threads at least before one thread takes several elements."""
    shared_turns: int = 16
    """Turns of a sum at least that threads share: shorter ones a thread does alone."""
    warps_turns: int = 8
    """Turns of a thread at least where several warps share a sum: they join through memory."""
    team_threads: int = 256
    """Threads that share a sum, at most."""
    packed_rows: int = 8
    """Rows of a product's first matrix at least for which the second one stays as it lies."""
    most_keys: int = 128
    """Scores of a row at most that attention keeps in registers: a thread has half as many sums."""


Costs = TypeVar("Costs", CpuCosts, GpuCosts)
Measured = tuple[tuple[str, float], ...]
"""Numbers that replace estimates: (field, value), in the order of the names."""


@lru_cache(maxsize=64)
def replaced(costs: Costs, measured: Measured) -> Costs:
    """The record with these numbers in place of its own."""
    return replace(costs, **dict(measured))


POSITIVE = frozenset(
    "cache_line copy_bandwidth issue_width least_strips loads_per_cycle loop_issue_width matrix_speed"
    " memory_bandwidth multiplies_per_cycle partial_results planned_threads processors remote_bandwidth"
    " second_level_bandwidth shared_bandwidth small_remote_bandwidth staged_row steps_per_outlier stream_bandwidth"
    " streamed_vectors third_level_bandwidth vectorized_turns warpgroup_speed".split()
)
"""Costs that others are divided by, or without which nothing could be computed."""


def checked(costs: CpuCosts | GpuCosts, given: Mapping[str, object]) -> Measured:
    """The numbers by field name, sorted, without those that the record has anyway. Raises InvalidArgument for a name
    that the record does not have, and for what is not a number of the field's kind, is negative or not finite, or is 0
    and must not be."""
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
        if number == 0 and name in POSITIVE:
            raise InvalidArgument(f"costs['{name}']", "is 0", "give a number that is positive")
        if number != known[name]:
            found[name] = number
    return tuple(sorted(found.items()))
