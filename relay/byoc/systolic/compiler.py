"""The plug-in `systolic`: which ops the accelerator takes, and why not others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from relay.byoc import entries
from relay.byoc.compiler import Artifact, BuildInfo, Compiler, Refusal
from relay.byoc.partitioning.scope import opened
from relay.byoc.patterns import Entry, Match
from relay.byoc.systolic import vectors
from relay.byoc.systolic.codegen import generate
from relay.byoc.systolic.cost import op_cycles
from relay.byoc.systolic.isa import CLOCK, Load, address, listing
from relay.byoc.systolic.products import product_of
from relay.dialects import qnn, relay
from relay.transforms.signed_codes import SignedCodes


def check(match: Match) -> bool | Refusal:
    """Whether the accelerator supports the matched product."""
    product = product_of(match.ops)
    return product if isinstance(product, Refusal) else True


REFUSALS: Mapping[type[Operation], Callable[[Any], str | None]] = {
    relay.ReshapeOp: vectors.reshape_refusal,
    qnn.AddOp: vectors.add_refusal,
    relay.AvgPool2dOp: vectors.average_refusal,
    qnn.SoftmaxOp: vectors.softmax_refusal,
}
"""For each op that the accelerator runs outside of products, the function that gives the reason to refuse it."""


@dataclass(frozen=True)
class SystolicCompiler(Compiler):
    """Compiles int8 convolution and dense for a 16 x 16 array, and residual sums, averages and softmax for a vector
    unit."""

    name: ClassVar[str] = "systolic"
    version: ClassVar[str] = "2"
    hoists: ClassVar[bool] = False
    faults: ClassVar[Sequence[Mapping[str, object]]] = ({"fault": True},)

    fault: bool = False
    """Let programs begin with a load from an invalid address, to test how a device's fault is reported."""

    def patterns(self) -> Sequence[Entry]:
        return [Entry(kind, entries.quantized(kind), check) for kind in ("conv2d", "dense")]

    def before_annotation(self) -> Sequence[ModulePass]:
        return [SignedCodes()]

    def supports(self, op: Operation) -> bool | Refusal:
        if isinstance(op, qnn.Conv2dOp | qnn.DenseOp | relay.BiasAddOp | qnn.RequantizeOp):
            return False  # parts of products, for which the pattern's check gives the reason
        if (refusal := REFUSALS.get(type(op))) is None:
            return Refusal(f"the accelerator has no instructions for {op.name}")
        return entries.taken(refusal(op))

    def cost(self, ops: Sequence[Operation]) -> float | None:
        cycles = [op_cycles(op) for op in opened(ops)]
        known = [n for n in cycles if n is not None]
        return sum(known) / CLOCK if len(known) == len(cycles) else None

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        program = generate(function)
        if self.fault:
            program.code.insert(0, Load(address=address(1 << 20), row=0))
        return Artifact(program.pack(), sources={"asm": listing(program.code)}, workspace=program.workspace)
