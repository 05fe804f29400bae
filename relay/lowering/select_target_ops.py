"""The pass `select-target-ops`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import SSAValue

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.machine import DotProductOp
from relay.lowering.builder import Before, LoopBuilder
from relay.lowering.shaped import is_vector, vector_of
from relay.lowering.walking import walked
from relay.passes.target_pass import TargetPass
from relay.target import Target
from relay.target.dots import Dot


@dataclass(frozen=True)
class SelectTargetOps(TargetPass):
    """Spell `machine` ops for the target: as LLVM intrinsics of the instructions that it has, on as many lanes as they
    take, else in `arith` and `vector`. On x86, `arith.maximumf` and `arith.minimumf` of vectors become a comparison and
    choices: its instruction for them gives the second number where one is none.
    """

    name: ClassVar[str] = "select-target-ops"
    requires = ("loops",)
    establishes = ("target-ops",)
    invalidates = ()
    why = "spells what processors do at once for the one at hand"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(isinstance(inner, DotProductOp) for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = self.target(op)
        x86 = target.is_x86
        for inner in walked(op):
            if isinstance(inner, DotProductOp):
                select(inner, target)
            elif x86 and isinstance(inner, arith.MaximumfOp | arith.MinimumfOp) and is_vector(inner.result.type):
                choose(inner)


def select(op: DotProductOp, target: Target) -> None:
    """Spell one dot product."""
    sums, codes = op.accumulator.type, op.data.type
    assert is_vector(sums) and is_vector(codes)
    lanes, group = sums.get_shape()[0], codes.get_shape()[0] // sums.get_shape()[0]
    fitting = target.dots_of(group, codes.element_type, op.unsigned is not None)
    dot = next((d for d in fitting if lanes % d.lanes == 0), None)
    b = Before(op)
    result = spelled_out(b, op, lanes, group) if dot is None else spelled(b, op, lanes, dot)
    op.result.replace_all_uses_with(result)
    op.detach()
    op.erase()


def choose(op: arith.MaximumfOp | arith.MinimumfOp) -> None:
    """maximumf %a, %b  =>  select (%b is a number), (select %b > %a, %b, %a), %b: two instructions, one of which does
    not wait for %a, as a rule what was joined before."""
    b, old, new = Before(op), op.lhs, op.rhs
    better = b.compare(new, "ogt" if isinstance(op, arith.MaximumfOp) else "olt", old)
    best = b.select(better, new, old)
    op.result.replace_all_uses_with(b.select(b.compare(new, "ord", new), best, new))
    op.detach()
    op.erase()


def spelled(b: LoopBuilder, op: DotProductOp, lanes: int, dot: Dot) -> SSAValue:
    """As instructions, each on its part of the lanes."""
    operands = [(op.data, dot.group), (op.weights, dot.group)]
    if dot.adds:
        operands.insert(0, (op.accumulator, 1))
    parts: list[SSAValue] = []
    for start in range(0, lanes, dot.lanes):
        pieces = [
            value if lanes == dot.lanes else b.shuffle(value, value, range(start * size, (start + dot.lanes) * size))
            for value, size in operands
        ]
        parts.append(b.intrinsic(dot.intrinsic, pieces, vector_of(i32, dot.lanes)))
    whole = b.joined(parts)
    return whole if dot.adds else b.add(arith.AddiOp(op.accumulator, whole)).result


def spelled_out(b: LoopBuilder, op: DotProductOp, lanes: int, group: int) -> SSAValue:
    """As products of what is widened, one of a group after the other."""
    total: SSAValue = op.accumulator
    for k in range(group):
        picked = [b.shuffle(value, value, range(k, lanes * group, group)) for value in (op.data, op.weights)]
        extend = (ExtSIOp if op.unsigned is None else ExtUIOp, ExtSIOp)
        wide = [b.add(kind(value, vector_of(i32, lanes))).result for kind, value in zip(extend, picked, strict=True)]
        product = b.add(arith.MuliOp(wide[0], wide[1])).result
        total = b.add(arith.AddiOp(total, product)).result
    return total
