"""The interface of a GPU strategy: when it applies to an operation, its decisions and their cost, and how it emits
launches.

A strategy is one file with a record of its decisions and a class, and one line of `STRATEGIES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from xdsl.dialects import memref, scf
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.lowering.builder import LoopBuilder
from relay.lowering.gpu.matrix import Product
from relay.lowering.gpu.points import Producer
from relay.lowering.gpu.producers import Nest, nest_of
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.in_turn import Chain
from relay.lowering.scheduling.padding import Padding
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import buffer_of, is_buffer, size_of
from relay.target import GpuTarget
from relay.target.costs import GpuCosts
from relay.target.record import WARP

S = TypeVar("S", bound=OpSchedule)
Scheduled = linalg.GenericOp | linalg.FillOp | memref.CopyOp | scf.ForOp
"""The operations that are scheduled."""


@dataclass(frozen=True)
class Fused:
    """Operations of a function that need no launch of their own. `producers` are computed where their buffers are read;
    `pending`: for an operation, the fills that set the initial values of its results; `frames`: copies into the middle
    of a buffer, with the padding around them; `rows`: chains of operations on the same rows, by their last
    operation."""

    producers: Mapping[SSAValue, Producer]
    pending: Mapping[Operation, Sequence[linalg.FillOp]]
    frames: Mapping[Operation, Padding]
    rows: Mapping[Operation, Chain]

    def nest(self, op: linalg.GenericOp) -> Nest:
        """Return the operation as a loop nest, with its initial values."""
        return nest_of(op, self.pending.get(op, ()))


@dataclass(frozen=True)
class Kernel:
    """The state of a function that strategies read while they decide."""

    target: GpuTarget
    given: GivenConstants
    fused: Fused
    products: dict[Operation, Product | None] = field(default_factory=dict[Operation, Product | None])
    """The products that were recognised, by operation; None for operations that are no product."""
    chained: Mapping[Operation, Strategy[Any]] = field(default_factory=dict[Operation, Any])
    """The strategies that compute whole chains of operations, such as attentions, by the last operation."""


@dataclass(frozen=True)
class Emission:
    """What a strategy needs to emit code into a function: `builder` inserts the ops, `given` has the constants that
    calls of the function pass, `fused` the operations that need no launch of their own."""

    builder: LoopBuilder
    given: GivenConstants
    fused: Fused


class Decision(NamedTuple, Generic[S]):
    """A strategy's decisions about an operation, and their cost in clock cycles."""

    cost: float
    schedule: S


class Strategy(ABC, Generic[S]):
    """One way to compute an operation."""

    record: ClassVar[type[Any]]
    """The class of the strategy's schedules."""
    tier: ClassVar[int] = 1
    """Of all strategies that apply, the cheapest one of the lowest tier is chosen: the costs of matrix units are
    estimated differently from those of threads, and matrix units are preferred wherever they apply."""

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        """Return the strategy for the operation; None if it does not apply, or is only found for whole chains
        (`Kernel.chained`)."""
        return cls.match_nest(kernel.fused.nest(op), kernel) if isinstance(op, linalg.GenericOp) else None

    @classmethod
    def match_nest(cls, nest: Nest, kernel: Kernel) -> Self | None:
        """Return the strategy for a loop nest; None if it does not apply."""
        return None

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[S]:
        """Return the strategy's decisions: those that `pick` prescribes, and for the others the best ones for the
        target. Raises InvalidArgument if `pick` prescribes one that is not possible."""
        cost, why = self.pick_all(kernel, pick)
        return Decision(cost, pick.schedule(self.record, round(cost), why))

    @abstractmethod
    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        """Make all decisions by `pick`; return their cost in clock cycles, and the reason for them."""

    @abstractmethod
    def emit(self, emission: Emission, schedule: S) -> None:
        """Emit launches for the operation, as the schedule says."""


def pick_block(kernel: Kernel, pick: Picks, points: int, team: int = 1) -> int:
    """Decide the number of threads of a block, and return it. The kernel computes `points` results or groups of
    results, each by a team of `team` cooperating threads."""
    if team > WARP:
        return pick.only("block", team)
    return pick("block", range(WARP, kernel.target.costs.largest_block + 1, WARP), block_of(kernel, points * team))


def block_of(kernel: Kernel, total: int) -> int:
    """Return the default number of threads of a block, for `total` threads."""
    return max(WARP, min(kernel.target.costs.block_threads, -(-total // WARP) * WARP))


def powers(most: int, least: int = 1) -> Sequence[int]:
    """Return the powers of two from `most` down to `least`."""
    return [1 << n for n in range(most.bit_length() - 1, least.bit_length() - 2, -1)]


def traffic(kernel: Kernel, op: Operation) -> int:
    """Return the clock cycles for transferring the buffers of an operation from or to memory."""
    return transfer([value for value in op.operands if is_buffer(value.type)], kernel.target.costs)


def transfer(buffers: Iterable[SSAValue], costs: GpuCosts) -> int:
    """Return the clock cycles for transferring these buffers from or to memory."""
    return sum(size_of(buffer_of(buffer)) for buffer in buffers) // (costs.processors * costs.memory_bandwidth)


def elements(shape: Sequence[int], lanes: int) -> list[int]:
    """Return the shape in units of `lanes` neighbours along the last dimension."""
    return [*shape[:-1], shape[-1] // lanes] if shape else []


def count(shape: Sequence[int], lanes: int = 1) -> int:
    """Return the number of points of a shape, in units of `lanes` neighbours."""
    return prod(elements(shape, lanes))
