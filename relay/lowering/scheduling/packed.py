"""The constants of one call of a contraction: what its schedule makes of the weights, at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.scheduling import outliers
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.packing import as_matrix, initial_accumulator, pack, padded
from relay.lowering.scheduling.packing import runs as runs_of_codes
from relay.lowering.scheduling.padding import Span
from relay.lowering.scheduling.plan import Plan, Tile, plan, turns_codes
from relay.target.dots import Dot


def kernel_offset(conv: Convolution) -> int:
    """What the dot product's signed kernel codes lack: 128 for unsigned weights."""
    return 128 if conv.kernel.unsigned else 0


def data_offset(conv: Convolution, dot: Dot) -> int:
    """What the codes that the dot product takes have too much."""
    if not turns_codes(conv, dot):
        return 0
    return 128 if dot.unsigned else -128


def needs_sums(conv: Convolution) -> bool:
    """Whether the kernel's zero point asks for the sums of the data."""
    return not conv.is_float and conv.kernel.zero_point != kernel_offset(conv)


def plan_for(
    conv: Convolution,
    kernels: Sequence[Array],
    features: frozenset[str],
    *,
    flat: bool,
    turns: bool,
    tile: Tile | None = None,
) -> Plan:
    """The plan for the kernels of all calls: what does not fit a dot product's weights decides with."""
    first = plan(conv, features, flat=flat, turns=turns, tile=tile)
    if first.group != 4 or not needs_sums(conv):
        return first
    if all(outliers.few(conv, kernel, first.vectors) for kernel in kernels):
        return replace(first, extra=max(outliers.most_steps(conv, kernel, first.vectors) for kernel in kernels))
    return plan(conv, features, flat=flat, turns=turns, sums=True, tile=tile)


@dataclass(frozen=True)
class Packed:
    """The constants of one call of a kernel: weights, initial accumulators, and what else the schedule reads: which
    of 4 codes count in the sums, or where the initial accumulators of each row start, and an order of bytes."""

    weights: Array
    initial: Array
    more: tuple[Array, ...] = ()

    @property
    def columns(self) -> tuple[Array, ...]:
        return (self.weights, self.initial, *self.more)


def pack_constants(conv: Convolution, plan: Plan, kernel: Array, runs: Sequence[Span] = ()) -> Packed:
    """Numbers of the micro-kernel for the weights of one call; initial accumulators for each of `runs`, of the kernel
    rows that count there."""

    def starting(offset: int) -> Array:
        kernels = [kernel[:, start:stop] for _, _, start, stop in runs] or [kernel]
        return np.concatenate([initial_accumulator(conv, part, offset) for part in kernels])

    if conv.is_float:
        matrix = as_matrix(conv, kernel, 1)
        zeros = padded(np.zeros(conv.outputs, np.float32))
        return Packed(pack(matrix, plan.vectors, 1), np.tile(zeros, max(len(runs), 1)))
    if plan.dot is None or plan.group == 2:
        matrix = as_matrix(conv, kernel, plan.group)
        initial = starting(conv.data.zero_point)
        return Packed(pack(matrix, plan.vectors, plan.group).astype(np.int16), initial)
    initial = starting(conv.data.zero_point + data_offset(conv, plan.dot))
    more: tuple[Array, ...] = ()
    if plan.sums or not needs_sums(conv):
        codes = kernel.astype(np.int16) - kernel_offset(conv)
    else:
        codes, _ = outliers.centred(conv, kernel)
    if plan.sums:
        more = (runs_of_codes(conv, np.ones_like(kernel[:1], np.int8), plan.group).reshape(-1),)
    elif plan.extra:
        found = outliers.extra_steps(conv, kernel, plan.vectors, plan.extra)
        more = (found.weights, found.counts, found.offsets)
    return Packed(pack(runs_of_codes(conv, codes, plan.group), plan.vectors, plan.group).astype(np.int8), initial, more)
