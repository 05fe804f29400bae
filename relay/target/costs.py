"""Cost models of a machine's instructions and memories: one record for CPUs, one for GPUs, every field with its unit.

The values are estimates that only have to rank choices. `target.with_costs({...})` replaces them by measured ones.
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
    """The costs of one core of a CPU, and of using several. Cycles are those of one core; sizes are in bytes."""

    accumulator_latency: float = 5.0
    """The latency in cycles of adding to a vector of accumulators."""
    issue_width: float = 4.0
    """Instructions issued per cycle in a contraction's innermost loop."""
    multiplies_per_cycle: float = 2.0
    """Vector multiply-adds, or dot products, issued per cycle."""
    loads_per_cycle: float = 2.0
    """Vector loads issued per cycle."""
    loop_instructions: float = 3.0
    """The overhead of a loop in instructions per iteration: count, compare, branch."""
    idle_load: float = 0.05
    """Cycles of a load in a loop that is not bound by loads."""
    tile_start: float = 25.0
    """Cycles to start and finish a register tile."""
    spilled_vector: float = 0.0
    """Cycles for each vector of accumulators that is spilled to the stack while the epilogue of its register tile
    processes the others."""
    finishing_registers: int = 8
    """Registers used while the sums of a tile are finished: constants, temporaries, and the sums of the next tile if a
    core has already started it."""
    vector_store: float = 5.0
    """Cycles to finish and store a full vector of results."""
    partial_store: float = 10.0
    """Cycles to finish and store a partial vector of results."""
    matrix_product: float = 16.0
    """Cycles from one product of x86 tile registers (AMX) to the start of the next: 16 rows of 64 codes by 16
    columns."""
    matrix_latency: float = 52.0
    """The latency in cycles of an AMX product, until its sums can be added to again."""
    matrix_load: float = 8.0
    """Cycles to load a tile register: 16 rows, two at a time."""
    matrix_store: float = 16.0
    """Cycles to store a tile register: 16 rows."""
    matrix_rows: int = 8
    """The least number of data rows for which tile registers are used: a product of few rows takes as long as one of
    16."""
    rows_of_stage: int = 16
    """The largest number of rows that one stage of a normalization processes before the next stage."""
    partial_results: int = 4
    """The number of independent partial results of a reduction that hides the latency of combining them."""

    cache_line: int = 64
    """The size of a cache line in bytes."""
    second_level_bandwidth: float = 16.0
    """Bytes of weights per cycle from the second-level cache."""
    third_level_bandwidth: float = 10.0
    """Bytes per cycle from the cache that all cores share."""
    stream_bandwidth: float = 32.0
    """Bytes per cycle of vector loads, averaged over all cache levels."""
    tile_weight_bytes: int = 24 << 10
    """The largest size in bytes of the weights of a block of channels for which the cost model assumes that they stay
    in the first-level cache. For kernels with tile registers, the limit also applies to the size of all data."""
    inner_weight_bytes: int = 16 << 10
    """Bytes of the packed weights of all channels that stay in the first-level cache during a loop over pixels."""
    scratch_bytes: int = 16 << 10
    """Bytes of scratch memory that stay in the first-level cache."""
    strip_bytes: int = 1 << 18
    """The largest number of bytes that a strip, several rows of an image that are processed together, may read and
    write: so many stay in the second-level cache."""
    strip_start_rows: float = 0.1
    """The time that a depthwise convolution by dot products takes to start a block of channels in a strip of rows, as a
    fraction of the time that the block takes for one row."""
    prefetch_bytes: int = 384 << 10
    """The largest number of bytes of a block's weights that are prefetched: two blocks and the data share the
    second-level cache."""
    least_prefetched: int = 512 << 10
    """The least size in bytes of a one-row product's weights for which the next block is prefetched: smaller ones may
    still be in a cache."""
    prefetch_steps: int = 16
    """The largest number of loop steps per prefetched cache line: weights that are used more often need no prefetch."""
    staged_row: int = 1024
    """The number of table entries that are read before any is used: that many 32-bit values stay in the first-level
    cache."""

    streamed_vectors: int = 4
    """The largest number of vectors in a register tile of a single pixel. Loading the weights takes most of its time,
    so larger tiles are no faster, and smaller blocks can be divided among more threads."""
    streams_ahead: int = 16
    """How many vectors ahead of its loads a product of a single row with weights in few bits prefetches the weights,
    which it reads in several streams at once."""
    few_pixels: int = 4
    """The largest number of result pixels for which a kernel changes the signedness of codes, where a dot product needs
    that, in its inner loop, each time they are read. For more pixels the codes are converted once, in a copy."""
    unrolled_taps: int = 32
    """The largest number of taps of a depthwise convolution that are unrolled."""
    unrolled_operations: int = 16
    """The largest number of epilogue operations that are unrolled for every vector of a tile."""
    rows_per_skipped: int = 10
    """A convolution gets separate loops for borders, which skip kernel rows outside of the image, if at least one in
    this many kernel rows, counted for all result rows together, is outside."""
    kept_products: float = 0.8
    """If the weights of some output channels of a convolution are zero outside a smaller window, its channels are
    divided into blocks that each compute only their own smallest window, provided that at most this share of the
    products remains."""
    most_outlier_steps: int = 8
    """The largest number of extra steps of a block of channels for weights that do not fit 8 bits after subtraction of
    the zero point (outliers). With more, the zero point is applied to sums of the data instead."""
    steps_per_outlier: int = 16
    """A block of channels may have one extra step of its reduction, for weights that do not fit 8 bits (outliers), for
    each this many ordinary steps or part of them, but at most `most_outlier_steps`."""
    depthwise_pixels: int = 8
    """The largest number of pixels in a tile of a float depthwise convolution, whose sums hide the latency of
    adding."""
    chained_operations: int = 16
    """On a target whose registers hold 8 elements of 32 bits, loops with at least this many operations in their body
    process vectors wider than 16 elements, for more independent instructions."""
    longest_chain: int = 24
    """The length of a dependence chain in a loop iteration from which on the loop is split in two."""
    staged_operations: int = 4
    """If an elementwise kernel that looks up values in a table has at least this many operations on the values, a
    separate loop first reads the values into scratch memory, so that the operations can be vectorized."""
    packed_rows: int = 8
    """The least number of rows of a product's first matrix for which the second one is packed at run time."""
    packed_float_rows: int = 9
    """The least number of rows of a product's first matrix for which the second one is packed at run time, for float32
    on targets that can multiply along the rows of both matrices instead (`sums_along_rows`), without packing."""
    packed_columns: int = 2
    """The least number of columns of the second matrix for which it is packed."""
    packed_turned_columns: int = 8
    """The least number of columns for which a transposed second matrix is packed: with fewer, most lanes of a packed
    vector would be idle, and sums along the rows of both matrices are faster."""
    most_keys: int = 4096
    """The largest number of scores per row that attention keeps in scratch memory."""
    least_strips: int = 8
    """The least number of strips into which an image with enough rows is divided, for threads to share."""

    estimated_cycles: float = 6_000.0
    """The estimated cycles of whole kernels that one core executes per microsecond. 5,300 and 7,100 were measured for
    two models; loops take fewer cycles than the estimate counts."""
    loop_issue_width: float = 2.0
    """Instructions issued per cycle, as assumed where the cycles of any loop are estimated to decide about threads; for
    the choice of a contraction's tile, `issue_width` is used instead."""
    vectorized_turns: float = 8.0
    """The number of iterations of a scalar innermost loop that LLVM vectorizes into one."""
    library_call: float = 20.0
    """Cycles of a function of the mathematical library."""

    remote_bandwidth: float = 6.0
    """Bytes per cycle of data that another core has just written."""
    small_remote_bandwidth: float = 3.0
    """Bytes per cycle of data that another core has just written, for transfers of a few kilobytes."""
    contended_line: float = 60.0
    """Cycles for a cache line that two cores write alternately."""
    fork: int = 2_000
    """Cycles to start a loop on several threads and to wait for them."""
    least_saving: int = 3_000
    """The least number of cycles that parallel loops must save in total: waking sleeping threads takes about as
    long."""
    planned_threads: int = 2
    """The number of threads that is assumed when parallel loops are chosen."""
    confident_saving: float = 0.5
    """The factor by which the estimated cycles that threads save are multiplied before it is decided whether a module
    gets parallel loops: below 1, since the estimate is uncertain."""


@dataclass(frozen=True)
class GpuCosts:
    """The costs of one GPU. Clocks are those of a multiprocessor; sizes are in bytes."""

    processors: int = 1
    """The number of multiprocessors for which launches are planned."""
    matrix_speed: int = 2048
    """Products of 8-bit codes, or bytes of multiplied floats, per clock of a multiprocessor by `mma`."""
    warpgroup_speed: int = 3584
    """The rate of `wgmma` on one multiprocessor, in products of 8-bit codes per clock; floats of n bytes have 1/n of
    this rate. The value is about 7/8 of the rate of `wgmma` alone (4,190 on
    an H200)."""
    copy_bandwidth: int = 56
    """Bytes per clock that are copied into a multiprocessor's shared memory."""
    memory_bandwidth: int = 24
    """Bytes per clock that each multiprocessor reads or writes in device memory while all multiprocessors do so. An
    H200's memory itself provides 18; the cache increases the mean."""
    step: int = 4
    """The minimum time of one step of a block's loop over the depth, in clocks per byte of the step's depth: a step
    that multiplies 64 bytes of each row takes at least 64 times this number."""
    block: int = 1500
    """The clocks of a block of threads, besides those of the steps of its loop over the depth."""
    exchange: int = 300
    """The clocks that the slices of a block (groups of warps, each of which sums a part of the depth) wait for each
    other before and after they exchange sums. Estimated, not measured."""
    shared_bandwidth: int = 128
    """Bytes of shared memory that a multiprocessor reads or writes per clock."""
    turn: int = 600
    """The clocks of a warp group for one tile of a persistent block, besides its products and epilogue: waiting for its
    turn, the first stage and its last products, and reading initial sums. Estimated, not measured."""
    launch: int = 2500
    """The clocks until another kernel, which depends on this one, starts."""
    finished_sum: float = 0.08
    """The clocks of a multiprocessor for the epilogue of one sum: about 10 instructions at 128 per clock."""
    finished_column: float = 2.5
    """The clocks in which a multiprocessor reads the epilogue's constants, per column of a warp's sums. Each column is
    held by 8 threads, which read 24 bytes each: 1.5 clocks at 128 bytes per clock from the cache; the rest was
    measured."""
    registers: int = 1 << 16
    """The number of 32-bit registers of a multiprocessor."""
    most_sums: int = 64
    """The least number of sums per thread that leaves too few registers for the addresses of gathered data; tiles for
    such data have fewer sums."""
    thread_sums: int = 128
    """The largest number of sums per thread, of the 255 registers that it can address."""
    matrix_rows: int = 8
    """The least number of result rows for which matrix units are used: with fewer, most of a tile would be empty."""
    matrix_columns: int = 8
    """The least number of result columns for which matrix units are used."""
    thread_registers: int = 60
    """The registers of a thread that uses matrix units, besides its sums: addresses and factors."""
    shared_bytes: int = 32 << 10
    """The most bytes of shared memory that a block can use: the chip's limit for CUDA, and for OpenCL the minimum that
    OpenCL guarantees on every device."""
    plain_shared_bytes: int = 48 << 10
    """Bytes of shared memory that a block of `mma` uses by default: the limit without a special launch attribute."""
    largest_block: int = 1024
    """The largest number of threads of a block (CUDA C++ Programming Guide, "Technical Specifications per Compute
    Capability")."""
    usual_warps: int = 4
    """The preferred number of warps of a block, used unless a schedule says how warps divide its tile: one for each
    scheduler of a multiprocessor."""
    block_threads: int = 256
    """The number of threads of a block, if there are more than a few blocks."""
    busy_threads: int = 1 << 16
    """The number of threads that fills a device: sums are not divided further to get more."""
    summed_lanes: int = 8
    """The largest number of elements whose sums one thread computes at once: more would reduce the number of resident
    threads."""
    near_results: int = 8
    """The largest number of neighbouring results that one thread computes, so that their sums share the values that
    they read. It is 1 for NVIDIA's chips, where it was not measured."""
    least_threads: int = 1 << 15
    """The number of elements that one thread computes at once is reduced, but not below 4 bytes, until at least this
    number of threads has work."""
    shared_turns: int = 16
    """The least number of iterations of a sum that is divided among threads; one thread computes shorter sums."""
    warps_turns: int = 8
    """The least number of iterations per thread for which a sum is divided among several warps, which combine their
    partial sums through shared memory."""
    team_threads: int = 256
    """The largest number of threads that divide a sum."""
    packed_rows: int = 8
    """The least number of rows of a product's first matrix for which the second one keeps its layout, since kernels
    copy it into shared memory."""
    most_keys: int = 128
    """The largest number of scores per row that attention keeps in registers. A warp computes 16 rows, so each of its
    32 threads holds half of this number of scores."""


Costs = TypeVar("Costs", CpuCosts, GpuCosts)
Measured = tuple[tuple[str, float], ...]
"""Measured values that replace estimates: (field, value), sorted by field name."""


@lru_cache(maxsize=64)
def replaced(costs: Costs, measured: Measured) -> Costs:
    """Return the costs with each field that `measured` names set to its measured value."""
    return replace(costs, **dict(measured))


POSITIVE = frozenset(
    "cache_line copy_bandwidth issue_width least_strips loads_per_cycle loop_issue_width matrix_speed"
    " memory_bandwidth multiplies_per_cycle partial_results planned_threads processors remote_bandwidth"
    " second_level_bandwidth shared_bandwidth small_remote_bandwidth staged_row steps_per_outlier stream_bandwidth"
    " streamed_vectors third_level_bandwidth vectorized_turns warpgroup_speed".split()
)
"""The fields that must not be 0, because other costs are divided by them, or nothing could be computed."""


def checked(costs: CpuCosts | GpuCosts, given: Mapping[str, object]) -> Measured:
    """Check measured costs, and return those that differ from `costs`, sorted by field name. Raises
    InvalidArgument for an unknown field, and for a value that is not a number of the field's type, is negative or not
    finite, or is 0 where that is not allowed."""
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
