"""The interface of a strategy: when it applies to an op of a kernel, what it decides and costs, and how it is emitted.

A strategy is one file with a record of its decisions and a class, and one line of `registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

from xdsl.dialects import arith, memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import to_numpy
from relay.lowering.builder import LoopBuilder
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.padding import Padding
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.sharing import size_of
from relay.lowering.scheduling.work import Costs
from relay.lowering.shaped import Extent, at_most, is_buffer, shape_of
from relay.target import CpuTarget

S = TypeVar("S", bound=OpSchedule)
Scheduled = linalg.GenericOp | linalg.FillOp | memref.CopyOp
"""The ops that are scheduled."""


@dataclass
class Kernel:
    """The state of a kernel while its ops are decided about, in the order of emission. `waiting`: padded copies that
    are not needed so far."""

    given: GivenConstants
    target: CpuTarget
    waiting: dict[SSAValue, Padding]
    known: dict[Operation, Any] = field(default_factory=dict[Operation, Any])


@dataclass(frozen=True)
class Emission:
    """The state of a kernel while it is emitted. `done`: ops to erase at the end; `paddings`: padded copies that are
    not needed so far; `writers`: the units that write those which will be."""

    builder: LoopBuilder
    given: GivenConstants
    paddings: dict[SSAValue, Padding]
    writers: Mapping[SSAValue, Unit]
    done: set[Operation]

    def write(self, value: SSAValue) -> None:
        """Write the padded copy that the value is, if it is one that is not written yet."""
        if self.paddings.pop(value, None) is not None:
            self.writers[value].emit(self)


@dataclass(frozen=True)
class Unit:
    """A strategy and its decisions, for ops that are emitted together."""

    strategy: Strategy[Any]
    schedule: OpSchedule

    def emit(self, emission: Emission) -> None:
        """Emit loops for the ops."""
        self.strategy.emit(emission, self.schedule)


@dataclass(frozen=True)
class Strategy(ABC, Generic[S]):
    """One way to run an operation `op`, and with it what it `covers`, where the last of these stands."""

    record: ClassVar[type[OpSchedule]]
    vectors: ClassVar[bool] = True
    """Whether it needs a target with vectors."""
    any_length: ClassVar[bool] = False
    """Whether it accepts buffers with sizes known only at run time (`Extent`)."""
    op: Operation

    @property
    def name(self) -> str:
        """The name in attributes."""
        return self.record.strategy

    @property
    def covers(self) -> Sequence[Operation]:
        """All ops that it emits."""
        return (self.op,)

    @property
    def is_open(self) -> bool:
        """Whether sizes of what this covers are known at run time only."""
        values = (value for op in self.covers for value in op.operands)
        return any(isinstance(size, Extent) for value in values if is_buffer(value.type) for size in shape_of(value))

    @property
    def reads(self) -> Sequence[SSAValue]:
        """Buffers that this reads as they are: operands of what it covers, unless it looks through a view."""
        return [value for op in self.covers for value in op.operands]

    @classmethod
    @abstractmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        """The strategy for the op, or for the op that a fill initializes; None if it does not apply."""

    @abstractmethod
    def decide(self, kernel: Kernel, pick: Picks) -> S:
        """The best decisions for the target, unless `pick` has others."""

    def pads(self, schedule: S) -> Sequence[SSAValue]:
        """The padded copies that this does not need: it pads by itself, or needs no padding."""
        return ()

    @abstractmethod
    def emit(self, emission: Emission, schedule: S) -> None:
        """Emit loops for the covered ops, as the schedule says."""


def estimate(kernel: Kernel, op: linalg.GenericOp, elements: int, lanes: int, bytes: int = 4) -> int:
    """Cycles of a generic over so many elements of so many bytes, `lanes` at a time as far as a register holds them:
    what its body computes, and its operands, which are loaded or stored."""
    return round(-(-at_most(elements) // at_once(kernel.target, lanes, bytes)) * turn(kernel, op))


def turn(kernel: Kernel, op: linalg.GenericOp) -> float:
    """Cycles of a generic for the elements of one register."""
    costs = kernel.target.costs
    return Costs(costs).block(op.body.block) + len(op.operands) / costs.loads_per_cycle


def at_once(target: CpuTarget, lanes: int, bytes: int = 4) -> int:
    """Elements that an instruction takes of a vector of `lanes`."""
    return min(lanes, max(target.register_bytes // bytes, 1))


def moved(kernel: Kernel, *buffers: SSAValue) -> int:
    """Cycles in which buffers are read or written, element after element."""
    costs, register = kernel.target.costs, kernel.target.register_bytes
    return round(sum(map(size_of, buffers)) / min(costs.stream_bandwidth, costs.loads_per_cycle * register))


def started_by(fill: linalg.FillOp) -> tuple[linalg.GenericOp, float | int] | None:
    """The op that accumulates into the result of a fill with a number, and the number."""
    target, constant = fill.outputs[0], fill.inputs[0].owner
    if not isinstance(constant, arith.ConstantOp):
        return None
    users = [use.operation for use in target.uses if use.operation is not fill]
    op = next((op for op in users if isinstance(op, linalg.GenericOp) and target in tuple(op.outputs)), None)
    return None if op is None else (op, to_numpy(constant.value).item())
