"""`Abacus`: sums and products, of float32 by numpy, of 8-bit codes by a table of all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from relay.byoc import Artifact, BuildInfo, Compiler, Refusal
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import tensor
from relay.errors import Unsupported
from relay.interpreters import compute

FLOATS: dict[type[Operation], str] = {relay.AddOp: "add", relay.MultiplyOp: "multiply", relay.SubtractOp: "subtract"}
CODES = (qnn.AddOp, qnn.SubtractOp, qnn.MulOp)


@dataclass(frozen=True)
class Abacus(Compiler):
    """Takes each such op by itself, up to `beads` elements if that is given."""

    name: ClassVar[str] = "abacus"
    version: ClassVar[str] = "2"
    beads: int = 0

    def supports(self, op: Operation) -> bool | Refusal:
        if not isinstance(op, CODES) and type(op) not in FLOATS:
            return False
        if type(op) in FLOATS and tensor(op.results[0]).element_type != f32:
            return Refusal("it counts in float32")
        if self.beads and tensor(op.results[0]).element_count() > self.beads:
            return Refusal(f"it has {self.beads} beads")
        return True

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        block = function.body.block
        numbers: dict[SSAValue, int] = {argument: number for number, argument in enumerate(block.args)}
        steps: list[dict[str, object]] = []
        params: dict[str, Array] = {}
        for op in block.ops:
            takes = [numbers[operand] for operand in op.operands]
            if isinstance(op, ReturnOp):
                return Artifact(json.dumps({"steps": steps, "gives": takes}).encode(), params, {"txt": text(steps)})
            if isinstance(op, CODES):
                does = f"{function.sym_name.data}.table_{len(steps)}"
                params[does] = table(op)
            elif isinstance(op, relay.ConstantOp):
                does = f"{function.sym_name.data}.constant_{len(steps)}"
                params[does] = to_numpy(op.value)
            elif type(op) in FLOATS:
                does = FLOATS[type(op)]
            else:
                raise Unsupported(f"abacus: {op.name}", "cannot be counted")
            numbers[op.results[0]] = len(numbers)
            steps.append({"does": does, "takes": takes})
        raise Unsupported(f"abacus: {function.sym_name.data}", "has no func.return")


def table(op: qnn.AddOp | qnn.SubtractOp | qnn.MulOp) -> Array:
    """The result for every pair of codes, by their bytes."""
    codes = np.arange(256, dtype=np.uint8).view(dtype_of(tensor(op.result).element_type))
    return compute(type(op), [codes[:, None], codes[None, :]], op.properties)[0]


def text(steps: Sequence[dict[str, object]]) -> str:
    """The program for people."""
    return "\n".join(f"{step['does']} {step['takes']}" for step in steps)
