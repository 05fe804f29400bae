"""What a strategy for GPUs is: when it applies to an operation, what it decides, what that costs, how it is emitted.

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
from relay.lowering.gpu.attention_kernel import Attention
from relay.lowering.gpu.matrix import Product
from relay.lowering.gpu.points import Producer
from relay.lowering.gpu.producers import Nest, Padded, nest_of
from relay.lowering.gpu.row_attention import RowAttention
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.in_turn import Chain
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
    """Operations of a function that need no launch: `producers` compute buffers where they are read, `pending` fills
    start what follows them, `frames` are copies into the midst of a buffer, with what is around them. `rows`: chains of
    operations on the same rows, by their last one."""

    producers: Mapping[SSAValue, Producer]
    pending: Mapping[Operation, Sequence[linalg.FillOp]]
    frames: Mapping[Operation, tuple[SSAValue, Padded]]
    rows: Mapping[Operation, Chain]

    def nest(self, op: linalg.GenericOp) -> Nest:
        """The operation with what it starts from."""
        return nest_of(op, self.pending.get(op, ()))


@dataclass(frozen=True)
class Kernel:
    """What strategies know about a function while they decide."""

    target: GpuTarget
    given: GivenConstants
    fused: Fused
    products: dict[Operation, Product | None] = field(default_factory=dict[Operation, Product | None])
    """Those of the operations that were looked at."""
    attentions: Mapping[Operation, Attention] = field(default_factory=dict[Operation, Attention])
    """By the last operation of each."""
    row_attentions: Mapping[Operation, RowAttention] = field(default_factory=dict[Operation, RowAttention])
    """The same, of those without matrix units."""


@dataclass(frozen=True)
class Emission:
    """What strategies emit with."""

    builder: LoopBuilder
    given: GivenConstants
    fused: Fused


class Decision(NamedTuple, Generic[S]):
    """What a strategy decides about an operation, and the clocks that this costs."""

    cost: float
    schedule: S


def decided(pick: Picks, kind: type[S], cost: float, why: str) -> Decision[S]:
    """All that was decided, as a schedule of this kind."""
    return Decision(cost, pick.schedule(kind, round(cost), why))


class Strategy(ABC, Generic[S]):
    """One way to run an operation."""

    record: ClassVar[type[Any]]
    """The class of its schedules."""
    tier: ClassVar[int] = 1
    """Of all strategies that apply, the cheapest of the lowest tier is chosen: costs of matrix units are reckoned
    another way than those of threads, and what they can compute they should."""

    @classmethod
    @abstractmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        """This strategy for the operation; None where it does not apply."""

    @abstractmethod
    def decide(self, kernel: Kernel, pick: Picks) -> Decision[S]:
        """What is best for the target, unless `pick` was given something else."""

    @abstractmethod
    def emit(self, emission: Emission, schedule: S) -> None:
        """Emit launches for the operation, as the schedule says."""


def pick_block(kernel: Kernel, pick: Picks, points: int, team: int = 1) -> int:
    """Threads of a block, where each point of so many has a team of them."""
    if team > WARP:
        return pick.only("block", team)
    return pick("block", range(WARP, kernel.target.costs.largest_block + 1, WARP), block_of(kernel, points * team))


def block_of(kernel: Kernel, total: int) -> int:
    """Threads of a block by default, of so many in all."""
    return max(WARP, min(kernel.target.costs.block_threads, -(-total // WARP) * WARP))


def powers(most: int, least: int = 1) -> Sequence[int]:
    """The powers of two up to a number, the largest first."""
    return [1 << n for n in range(most.bit_length() - 1, least.bit_length() - 2, -1)]


def traffic(kernel: Kernel, op: Operation) -> int:
    """Clocks in which the buffers of an operation come to the processors and go."""
    return transfer([value for value in op.operands if is_buffer(value.type)], kernel.target.costs)


def transfer(buffers: Iterable[SSAValue], costs: GpuCosts) -> int:
    """Clocks in which these buffers come to the processors, or go."""
    return sum(size_of(buffer_of(buffer)) for buffer in buffers) // (costs.processors * costs.memory_bandwidth)


def elements(shape: Sequence[int], lanes: int) -> list[int]:
    """A shape of so many neighbours along the last dimension each."""
    return [*shape[:-1], shape[-1] // lanes] if shape else []


def count(shape: Sequence[int], lanes: int = 1) -> int:
    """Points of a shape, so many neighbours at a time."""
    return prod(elements(shape, lanes))
