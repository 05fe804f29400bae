"""Elementwise operations that read rows at computed places: resized images, rows of tables by number.

What does not depend on the last loop, places and weights, is computed once for each row; elements of rows are read and
computed a vector at a time. The last vector of a row may have elements of the one before it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.affine import is_identity, uses
from relay.lowering.scheduling.body import LIFTED_DIALECTS, Lifter
from relay.lowering.scheduling.elementwise import extents, rows_contiguous
from relay.lowering.scheduling.staged import part
from relay.lowering.shaped import is_buffer

LANES = 16
WIDEST = 64
"""Elements that are only moved."""
LEAST = 4
"""Elements of a row, at least."""


@dataclass(frozen=True)
class Gathered:
    """A body in parts: operations that rows have in common, loads of neighbours, and what is done with them."""

    common: list[Operation]
    loads: list[memref.LoadOp]
    late: list[Operation]


def recognise_gathered(op: linalg.GenericOp) -> Gathered | None:
    """The parts of an operation that reads rows; None where it is none, or reads or computes anything else."""
    maps, last = [m.data for m in op.indexing_maps], len(op.iterator_types) - 1
    if last < 0 or any(kind.data is not IteratorType.PARALLEL for kind in op.iterator_types):
        return None
    outputs = zip(op.outputs, maps[len(op.inputs) :], strict=True)
    if not all(is_identity(map, last + 1) and rows_contiguous(value.type) for value, map in outputs):
        return None
    if any(uses(map, last) for map in maps[: len(op.inputs)]):
        return None
    block = op.body.block
    if any(argument.uses for argument in block.args[len(op.inputs) :]):
        return None
    varying: set[SSAValue] = set()
    parts = Gathered([], [], [])
    for inner in block.ops:
        given = [value for value in inner.operands if value in varying]
        match inner:
            case linalg.YieldOp():
                break
            case linalg.IndexOp() if inner.dim.value.data == last:
                varying.add(inner.result)
            case memref.LoadOp() if given:
                along = inner.indices[-1].owner
                if len(given) > 1 or not isinstance(along, linalg.IndexOp) or along.dim.value.data != last:
                    return None
                if not rows_contiguous(inner.memref.type):
                    return None
                parts.loads.append(inner)
                varying.add(inner.res)
            case _ if not given:
                parts.common.append(inner)
            case _:
                if not inner.name.startswith(LIFTED_DIALECTS) or any(
                    isinstance(v.owner, linalg.IndexOp) for v in given
                ):
                    return None
                parts.late.append(inner)
                varying.update(inner.results)
    return parts if parts.loads else None


def emit_gathered(b: LoopBuilder, op: linalg.GenericOp, features: frozenset[str]) -> bool:
    """Emit the operation if it reads rows at computed places; False, and nothing is emitted, if not."""
    parts = recognise_gathered(op)
    if parts is None or (size := extents(op)[-1]) < LEAST:
        return False
    Rows(b, op, parts, size, features).emit()
    return True


class Rows:
    """Emits one of them."""

    def __init__(self, b: LoopBuilder, op: linalg.GenericOp, parts: Gathered, size: int, features: frozenset[str]):
        self.b, self.op, self.parts, self.size = b, op, parts, size
        self.lanes = (LANES if "avx512f" in features else LANES // 2) if parts.late else WIDEST
        while self.lanes > size:
            self.lanes //= 2
        self.lifter = Lifter(b, self.lanes)

    def emit(self) -> None:
        b, op, block = self.b, self.op, self.op.body.block
        end = block.last_op
        assert end is not None
        common = {value for inner in self.parts.common for value in inner.results} | {*block.args}
        needed = [v for inner in [*self.parts.late, end] for v in inner.operands if v in common]
        more = [*dict.fromkeys(needed), *(load.res for load in self.parts.loads)]
        use = part(block, more, self.parts.late, end.operands)
        with ExitStack() as stack:
            outer: list[Index] = [stack.enter_context(b.loop(0, d, independent=True))[0] for d in extents(op)[:-1]]
            known = self.common(outer)
            scalars = [b.broadcast(known[value], self.lanes) for value in more[: -len(self.parts.loads)]]
            whole = self.size // self.lanes * self.lanes
            with b.loop(0, whole, self.lanes) as (k, _):
                self.vector(use, outer, k, known, scalars)
            if whole < self.size:
                self.vector(use, outer, self.size - self.lanes, known, scalars)
        use.erase(safe_erase=False)

    def common(self, outer: Sequence[Index]) -> dict[SSAValue, SSAValue]:
        """What elements of a row have in common."""
        b, op = self.b, self.op
        known: dict[SSAValue, SSAValue] = {}
        for argument, value, map in zip(op.body.block.args, op.inputs, op.indexing_maps, strict=False):
            at = [b.apply(result, [*outer, 0]) for result in map.data.results]
            known[argument] = b.load(value, at) if is_buffer(value.type) else value
        for inner in self.parts.common:
            if isinstance(inner, linalg.IndexOp):
                known[inner.result] = b.index(outer[inner.dim.value.data])
            else:
                known.update(zip(inner.results, b.add(inner.clone(known)).results, strict=True))
        return known

    def vector(
        self, use: Block, outer: Sequence[Index], k: Index, known: dict[SSAValue, SSAValue], scalars: list[SSAValue]
    ) -> None:
        """Some elements of a row."""
        b = self.b
        loads = [
            b.vector_load(load.memref, [*(known.get(i, i) for i in load.indices[:-1]), k], self.lanes)
            for load in self.parts.loads
        ]
        values = [*self.op.body.block.args, *scalars, *loads]
        for result, target in zip(self.lifter.emit(use, values), self.op.outputs, strict=True):
            b.vector_store(result, target, [*outer, k])
