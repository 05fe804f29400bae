"""The constants of one call of a contraction, which its schedule packs at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay.dialects.amx import WORD
from relay.dialects.attributes import Array
from relay.lowering.scheduling import outliers
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.packing import as_matrix, initial_accumulator, pack, padded, rows_of_codes
from relay.lowering.scheduling.packing import runs as runs_of_codes
from relay.lowering.scheduling.padding import Span
from relay.lowering.scheduling.plan import MATRIX, TileSchedule, data_offset, kernel_offset, needs_sums
from relay.mapping import spilled


@dataclass(frozen=True)
class Packed:
    """The constants of one call of a kernel: packed weights and initial accumulators.

    `more`: other constants that the schedule needs, such as a row of weights 1 (0 at padding) with which the kernel
    sums the data, or the parts of weights that exceed 8 bits (outliers), which the kernel multiplies in extra steps.
    """

    weights: Array
    initial: Array
    more: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", spilled(self.weights))

    @property
    def columns(self) -> tuple[Array, ...]:
        return (self.weights, self.initial, *self.more)


def pack_constants(conv: Convolution, schedule: TileSchedule, kernel: Array, runs: Sequence[Span] = ()) -> Packed:
    """Return the weights that one call passes to a kernel, `kernel`, in the order in which the micro-kernel reads them,
    and the initial accumulators. `runs`: spans of result rows; each gets its own initial accumulators, which only count
    the kernel rows that are inside the image there."""

    def starting(offset: int) -> Array:
        kernels = [kernel[:, start:stop] for _, _, start, stop in runs] or [kernel]
        return np.concatenate([initial_accumulator(conv, part, offset) for part in kernels])

    if conv.is_float:
        return pack_floats(conv, schedule.vectors, kernel, max(len(runs), 1), schedule.codes_per_step)
    group = schedule.codes_per_step
    if group < 4:
        initial = starting(conv.data.zero_point)
        element = np.int8 if schedule.narrow_weights else np.int16
        return Packed(pack(as_matrix(conv, kernel, group), schedule.vectors, group).astype(element), initial)
    initial = starting(conv.data.zero_point + data_offset(conv, schedule))
    more: tuple[Array, ...] = ()
    if schedule.sums_of_data or not needs_sums(conv):
        codes = kernel.astype(np.int16) - kernel_offset(conv)
    else:
        codes, _ = outliers.centred(conv, kernel)
    if schedule.sums_of_data:
        more = (runs_of_codes(conv, np.ones_like(kernel[:1], np.int8), group).reshape(-1),)
    elif schedule.outlier_steps:
        found = outliers.extra_steps(conv, kernel, schedule.vectors, schedule.outlier_steps)
        more = (found.weights, found.counts, found.offsets)
    if group > MATRIX:
        weights = pack(rows_of_codes(conv, codes, group), schedule.vectors, WORD)
    else:
        weights = pack(runs_of_codes(conv, codes, group), schedule.vectors, group)
    return Packed(weights.astype(np.int8), initial, more)


def pack_floats(conv: Convolution, vectors: int, kernel: Array, runs: int = 1, group: int = 1) -> Packed:
    """Pack float weights in blocks of `vectors` vectors of channels. The initial accumulators are zeros, one set for
    each of `runs` spans of result rows."""
    zeros = padded(np.zeros(conv.outputs, np.float32))
    return Packed(pack(as_matrix(conv, kernel, group), vectors, group), np.tile(zeros, runs))
