"""`math-expand-ops`: functions that processors have no instruction for, as arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type, ModuleOp, f32, f64
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects.attributes import to_numpy
from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.llvm.types import lanes
from relay.lowering.math import angles, functions, wide
from relay.lowering.math.arithmetic import Arithmetic
from relay.lowering.shaped import is_vector, scalar_of
from relay.lowering.walking import walked
from relay.passes.target_pass import TargetPass
from relay.target import Target
from relay.target.record import UNKNOWN

SHORT: dict[str, Callable[[Arithmetic, SSAValue, Attribute], SSAValue]] = {
    "math.exp": functions.exp,
    "math.log": functions.log,
    "math.tanh": functions.tanh,
    "math.erf": functions.erf,
    "math.expm1": functions.expm1,
}
"""Functions that are computed in f32."""

WIDE: dict[str, Callable[..., SSAValue]] = {
    "math.sin": angles.sin,
    "math.cos": angles.cos,
    "math.tan": angles.tan,
    "math.powf": wide.power,
    "math.log2": wide.log2,
    "math.log10": wide.log10,
    "math.asin": wide.asin,
    "math.acos": wide.acos,
    "math.atan": wide.atan,
    "math.sinh": wide.sinh,
    "math.cosh": wide.cosh,
    "math.asinh": wide.asinh,
    "math.acosh": wide.acosh,
    "math.atanh": wide.atanh,
}
"""Functions of f32 that are computed in f64."""

LONG: dict[str, Callable[..., SSAValue]] = {
    "math.exp": partial(functions.exp, e=f64),
    "math.expm1": partial(functions.expm1, e=f64),
    "math.log": partial(functions.log, e=f64),
    "math.tanh": partial(functions.tanh, e=f64),
    "math.sin": angles.sin_long,
    "math.cos": angles.cos_long,
    "math.powf": wide.power,
}
"""Functions of f64 on devices."""


@dataclass(frozen=True)
class MathExpandOps(TargetPass):
    """Turn `math.exp`, `math.expm1`, `math.log`, `math.tanh`, `math.erf`, `math.sin`, `math.cos`, `math.tan`, their
    inverse and hyperbolic ones, `math.powf`, `math.log2` and `math.log10` into polynomials over `arith`, of scalars and
    vectors.

    Results in f32 are within 2 units of the last place, denormals included, and special as those of C's library are.
    Nothing is called. Products are fused with sums where the target does that by one instruction: all such processors
    and devices, and all vectors, compute the same bits, and so do all that do not fuse. Of f16 and bf16, results of f32
    or f64 are rounded, and so is `arith.truncf` of f64. Functions of f64 stay for the mathematical library, except
    inside `gpu.module`: there `exp`, `expm1`, `log`, `tanh`, `sin`, `cos` (of less than 2^30) and `powf` become
    polynomials.

    Where the module's target fuses multiply-adds, so do the polynomials, and vectors are divided by constants by them;
    AVX-512 multiplies by powers of two, and divides one by roots in Newton's steps, for the same bits.
    """

    name = "math-expand-ops"
    requires = ("loops",)
    establishes = ("functions",)
    invalidates = ()
    why = "expands exp, tanh and the like into arithmetic"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(expansion(inner) for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = self.target(op)
        for inner in walked(op):
            if (expand := expansion(inner, target)) is not None:
                inner.results[0].replace_all_uses_with(expand())
                inner.detach()
                inner.erase()


def expansion(op: Operation, target: Target = UNKNOWN) -> Callable[[], SSAValue] | None:
    """What computes the operation's value before it; None where it stays."""
    if op.name == arith.DivfOp.name and isinstance(op, arith.DivfOp):
        return inverse_root(op, target) or over_constant(op, target)
    if op.name not in SHORT and op.name not in WIDE and op.name != "arith.truncf":
        return None
    type = op.results[0].type
    element = scalar_of(type)
    build = Arithmetic(op, lanes(type) if is_vector(type) else 0, target)
    if op.name == "arith.truncf":
        far = isinstance(scalar_of(op.operands[0].type), Float64Type) and element != f32 and not on_device(op)
        return (lambda: wide.narrow(build, op.operands[0], element)) if far else None
    if isinstance(element, Float64Type):
        long = LONG.get(op.name) if on_device(op) else None
        return None if long is None else lambda: long(build, *op.operands)
    needed = f32 if op.name in SHORT else f64

    def value() -> SSAValue:
        same = element == needed
        operands = [x if same else build.cast(arith.ExtFOp, x, needed) for x in op.operands]
        found = SHORT[op.name](build, operands[0], f32) if op.name in SHORT else WIDE[op.name](build, *operands)
        if needed == f64 and element not in (f32, f64) and not on_device(op):
            return wide.narrow(build, found, element)
        return found if same else build.cast(arith.TruncFOp, found, element)

    return value


def inverse_root(op: arith.DivfOp, target: Target) -> Callable[[], SSAValue] | None:
    """1 / sqrt(x)  =>  Newton's iteration for the quotient, for the same bits: the root is long enough by itself."""
    root, one = op.rhs.owner, op.lhs.owner
    if not isinstance(root, math.SqrtOp) or not isinstance(one, arith.ConstantOp) or not is_vector(op.result.type):
        return None
    build = Arithmetic(op, lanes(op.result.type), target)
    if not build.has_instructions(op.rhs) or (to_numpy(one.value) != 1).any():
        return None

    def value() -> SSAValue:
        near = build.about_one_over(op.rhs)
        assert near is not None
        return functions.inverse(build, op.rhs, near)

    return value


def over_constant(op: arith.DivfOp, target: Target) -> Callable[[], SSAValue] | None:
    """x / c  =>  a product and two multiply-adds for the same bits, of vectors, where the target fuses these."""
    number = op.rhs.owner
    if not isinstance(number, arith.ConstantOp) or not is_vector(op.result.type) or scalar_of(op.result.type) != f32:
        return None
    values = to_numpy(number.value).reshape(-1)
    divisor = float(values[0])
    if on_device(op) or not target.fuses or (values != divisor).any() or not 1 < divisor < 2.0**26:
        return None
    build = Arithmetic(op, lanes(op.result.type), target)
    return lambda: functions.over(build, op.lhs, divisor)


def on_device(op: Operation) -> bool:
    """Whether the operation is inside a `gpu.module`."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, GpuModuleOp):
        parent = parent.parent_op()
    return parent is not None
