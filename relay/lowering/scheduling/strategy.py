"""The interface of a strategy: when it applies to an op of a kernel, its decisions and their cost, and how it emits
loops.

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
    """The state of a kernel while strategies are chosen for its ops, one after the other. `waiting`: the padded copies
    of images for which it is not decided yet how they are written; `known`: for each op, the cached result of matching
    a pattern."""

    given: GivenConstants
    target: CpuTarget
    waiting: dict[SSAValue, Padding]
    known: dict[Operation, Any] = field(default_factory=dict[Operation, Any])


@dataclass(frozen=True)
class Emission:
    """The state of a kernel while it is emitted. `paddings`: the padded copies for which no loops are emitted yet, by
    their buffers; `writers`: for each such buffer, the strategy and schedule (`Unit`) that emit the loops; `done`: ops
    to erase at the end."""

    builder: LoopBuilder
    given: GivenConstants
    paddings: dict[SSAValue, Padding]
    writers: Mapping[SSAValue, Unit]
    done: set[Operation]

    def write(self, value: SSAValue) -> None:
        """If the value is a padded copy that is not written yet, write it."""
        if self.paddings.pop(value, None) is not None:
            self.writers[value].emit(self)

    def prepare_padding(self, value: SSAValue, *, pads: bool) -> Padding | None:
        """Prepare a buffer, which may be a padded copy that is not written yet, for being read. If the strategy `pads`
        the data itself, return the padding, and leave the copy unwritten; else write the copy, and return None."""
        if pads:
            return self.paddings.get(value)
        self.write(value)
        return None

    def remove_views(self, value: SSAValue, argument: SSAValue) -> None:
        """Remove the reshapes that make the value a view of an argument of the function."""
        while value is not argument:
            assert isinstance(view := value.owner, memref.CollapseShapeOp | memref.ExpandShapeOp)
            view.detach()
            self.done.add(view)
            value = view.src


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
    """One way to compute an operation `op`, together with the other ops that it `covers`; it is emitted at the last of
    these."""

    record: ClassVar[type[OpSchedule]]
    vectors: ClassVar[bool] = True
    """Whether the strategy needs a target with vectors."""
    any_length: ClassVar[bool] = False
    """Whether the strategy accepts buffers with sizes known only at run time (`Extent`)."""
    op: Operation

    @property
    def name(self) -> str:
        """The strategy's name in attributes."""
        return self.record.strategy

    @property
    def covers(self) -> Sequence[Operation]:
        """All ops that the strategy emits."""
        return (self.op,)

    @property
    def is_open(self) -> bool:
        """Whether a covered op has a buffer with a size known only at run time."""
        values = (value for op in self.covers for value in op.operands)
        return any(isinstance(size, Extent) for value in values if is_buffer(value.type) for size in shape_of(value))

    @property
    def reads(self) -> Sequence[SSAValue]:
        """The buffers that the strategy reads from memory: the operands of the covered ops, or, where it reads through
        a view, the view's source."""
        return [value for op in self.covers for value in op.operands]

    @classmethod
    @abstractmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        """Return the strategy for the op, or for the op that a fill initializes; None if it does not apply."""

    @abstractmethod
    def decide(self, kernel: Kernel, pick: Picks) -> S:
        """Return the decisions for the target: the values that `pick` prescribes, and the best ones for all others."""

    def pads(self, schedule: S) -> Sequence[SSAValue]:
        """Return the padded copies that need not be written, because the strategy pads them itself or needs no
        padding."""
        return ()

    @abstractmethod
    def emit(self, emission: Emission, schedule: S) -> None:
        """Emit loops for the covered ops, as the schedule says."""


@dataclass(frozen=True)
class Started(Strategy[S]):
    """A strategy for an op whose sums a fill initializes (`fill`), and the elementwise operation after it (`epilogue`),
    if there is one."""

    fill: Operation
    epilogue: linalg.GenericOp | None

    @property
    def covers(self) -> Sequence[Operation]:
        return (self.fill, self.op, *([] if self.epilogue is None else [self.epilogue]))


def estimate(kernel: Kernel, op: linalg.GenericOp, elements: int, lanes: int, bytes: int = 4) -> int:
    """Return the estimated cycles of a `linalg.generic` over `elements` elements of `bytes` bytes: those of the ops of
    its body, and of the loads and stores of its operands. An instruction processes `lanes` elements, but no more than
    fit a vector register."""
    return round(-(-at_most(elements) // at_once(kernel.target, lanes, bytes)) * turn(kernel, op))


def turn(kernel: Kernel, op: linalg.GenericOp) -> float:
    """Return the cycles in which the body of a generic computes one vector that fits a register."""
    costs = kernel.target.costs
    return Costs(costs).block(op.body.block) + len(op.operands) / costs.loads_per_cycle


def at_once(target: CpuTarget, lanes: int, bytes: int = 4) -> int:
    """Return the number of elements of a vector of `lanes` that one instruction processes."""
    return min(lanes, max(target.register_bytes // bytes, 1))


def moved(kernel: Kernel, *buffers: SSAValue) -> int:
    """Return the estimated cycles for reading or writing all elements of the given buffers once."""
    costs, register = kernel.target.costs, kernel.target.register_bytes
    return round(sum(map(size_of, buffers)) / min(costs.stream_bandwidth, costs.loads_per_cycle * register))


def started_by(fill: Operation) -> tuple[linalg.GenericOp, float | int] | None:
    """Return the op that accumulates into the result of a fill with a constant, and the constant; else None."""
    if not isinstance(fill, linalg.FillOp) or not isinstance(constant := fill.inputs[0].owner, arith.ConstantOp):
        return None
    target = fill.outputs[0]
    users = [use.operation for use in target.uses if use.operation is not fill]
    op = next((op for op in users if isinstance(op, linalg.GenericOp) and target in tuple(op.outputs)), None)
    return None if op is None else (op, to_numpy(constant.value).item())


def summed_from(fill: Operation, kernel: Kernel) -> linalg.GenericOp | None:
    """Return the op that adds to the buffer which the fill sets to 0. Return None if the operation is not such a fill,
    or if no call of the kernel is known, so that constants which calls pass cannot be packed."""
    started = started_by(fill) if kernel.given.calls else None
    return started[0] if started is not None and started[1] == 0 else None
