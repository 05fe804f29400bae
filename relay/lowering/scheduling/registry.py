"""The list of strategies, and the search for those that apply to an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.lowering.scheduling.attention import Attention
from relay.lowering.scheduling.blocked_reduction import BlockedReduction
from relay.lowering.scheduling.contractions import Contraction
from relay.lowering.scheduling.depthwise import Depthwise
from relay.lowering.scheduling.depthwise_dot import DepthwiseDot
from relay.lowering.scheduling.elementwise import ElementwiseRows
from relay.lowering.scheduling.float_depthwise import FloatDepthwise
from relay.lowering.scheduling.gathered import GatheredRows
from relay.lowering.scheduling.groups import GroupsInTurn
from relay.lowering.scheduling.in_turn import RowsInTurn
from relay.lowering.scheduling.parts import Parts
from relay.lowering.scheduling.plain import Copy, Fill, Nest, Pad
from relay.lowering.scheduling.plan import TileSchedule
from relay.lowering.scheduling.product import PackedProduct
from relay.lowering.scheduling.record import OpSchedule, schedules_in
from relay.lowering.scheduling.reduction import ReductionRows
from relay.lowering.scheduling.row_products import RowProducts, WeightedRows
from relay.lowering.scheduling.scalar_products import ScalarProducts
from relay.lowering.scheduling.staged import Staged
from relay.lowering.scheduling.strategy import Kernel, Strategy
from relay.lowering.scheduling.tables import LookupVectors
from relay.lowering.scheduling.transposes import Squares
from relay.lowering.scheduling.weight_only import WeightOnly
from relay.lowering.scheduling.windows import WindowsInRegisters
from relay.lowering.shaped import UnknownSize

STRATEGIES: Sequence[type[Strategy[Any]]] = (
    ScalarProducts,
    WeightOnly,
    Parts,
    GroupsInTurn,
    FloatDepthwise,
    DepthwiseDot,
    Depthwise,
    BlockedReduction,
    Contraction,
    Attention,
    PackedProduct,
    WindowsInRegisters,
    Pad,
    RowsInTurn,
    LookupVectors,
    Squares,
    GatheredRows,
    Staged,
    ElementwiseRows,
    ReductionRows,
    RowProducts,
    WeightedRows,
    Fill,
    Copy,
    Nest,
)
"""All strategies; of equally cheap ones, the first is chosen."""


RECORDS: Mapping[str, type[OpSchedule]] = {kind.record.strategy: kind.record for kind in STRATEGIES} | {
    TileSchedule.strategy: TileSchedule
}
"""The classes of schedules by the name of the strategy; `tile` is a part of other schedules."""


def schedules_of(function: FuncOp) -> list[OpSchedule]:
    """Return the records of the function's attribute `relay.schedule`, one for each scheduled operation. Raises
    InvalidArgument if a record lacks its strategy or a decision, or contains an attribute that is no decision."""
    return schedules_in(function, RECORDS)


def strategies_for(op: Operation, kernel: Kernel) -> list[Strategy[Any]]:
    """Return all strategies that apply to the operation, or, if it is a `linalg.fill`, to a larger pattern of which the
    fill is the first operation, such as the initialization of sums and the sums."""
    kinds = [kind for kind in STRATEGIES if kernel.target.has_vectors or not kind.vectors]
    every = [found for kind in kinds if (found := match(kind, op, kernel)) is not None]
    return [found for found in every if found.any_length or not found.is_open]


def match(kind: type[Strategy[Any]], op: Operation, kernel: Kernel) -> Strategy[Any] | None:
    """Return the strategy for the operation; None if it does not apply, or if matching depends on a size known only at
    run time."""
    try:
        return kind.match(op, kernel)
    except UnknownSize:
        return None
