"""`expand-math`: functions that GPUs have no instruction for, as arithmetic: the same bits on every device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type, ModuleOp, f32, f64
from xdsl.ir import Operation, SSAValue

from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.gpu import functions
from relay.lowering.gpu.arithmetic import Arithmetic
from relay.lowering.llvm.types import lanes
from relay.lowering.shaped import is_vector, scalar_of
from relay.passes import Pass

EXPANSIONS: dict[str, Callable[..., SSAValue]] = {
    "math.exp": functions.exp,
    "math.log": functions.log,
    "math.tanh": functions.tanh,
    "math.sin": functions.sin,
    "math.cos": functions.cos,
    "math.powf": functions.power,
}
LONG = ("math.sin", "math.cos", "math.powf")
"""Functions that are computed in f64."""


@dataclass(frozen=True)
class ExpandMath(Pass):
    """Turn `math.exp`, `math.log`, `math.tanh`, `math.sin`, `math.cos` and `math.powf` inside `gpu.module` into
    polynomials. In f32, `exp`, `log` and `tanh` are within 2 units of the last place; `sin`, `cos` and `powf` are
    computed in f64 (`sin` and `cos` of more than 2^30 lose digits), and all of f16 in f32."""

    name = "expand-math"
    requires = ("outlined",)
    establishes = ("device-math",)
    invalidates = ()
    why = "makes arithmetic of functions that GPUs lack"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not lacking(op)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in lacking(op):
            result = expand(inner)
            inner.results[0].replace_all_uses_with(result)
            inner.detach()
            inner.erase()


def lacking(op: ModuleOp) -> list[Operation]:
    """The operations of `gpu.module`s that GPUs have no function for."""
    modules = [module for module in op.body.block.ops if isinstance(module, GpuModuleOp)]
    return [inner for module in modules for inner in module.walk() if inner.name in EXPANSIONS]


def expand(op: Operation) -> SSAValue:
    """The value of an operation, computed before it."""
    type = op.results[0].type
    element = scalar_of(type)
    build = Arithmetic(op, lanes(type) if is_vector(type) else 0)
    operands = list(op.operands)
    needed = f64 if isinstance(element, Float64Type) or op.name in LONG else f32
    if element != needed:
        operands = [build.cast(arith.ExtFOp, value, needed) for value in operands]
    result = EXPANSIONS[op.name](build, needed, *operands)
    return result if element == needed else build.cast(arith.TruncFOp, result, element)
