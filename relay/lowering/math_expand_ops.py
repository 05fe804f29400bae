"""`math-expand-ops`: expands functions without a machine instruction into arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type, ModuleOp, f32, f64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.attributes import to_numpy
from relay.lowering.llvm.types import lanes
from relay.lowering.math import angles, functions, wide
from relay.lowering.math.arithmetic import Arithmetic
from relay.lowering.shaped import is_vector, scalar_of
from relay.lowering.walking import walked
from relay.passes.target_pass import TargetPass
from relay.target import Target
from relay.target.record import UNKNOWN
from relay.transforms.dead_ops import erase_dead

SHORT: dict[str, Callable[[Arithmetic, SSAValue, Attribute], SSAValue]] = {
    "math.exp": functions.exp,
    "math.log": functions.log,
    "math.tanh": functions.tanh,
    "math.erf": functions.erf,
    "math.expm1": functions.expm1,
}
"""The emitters of functions of floats of at most 32 bits that are computed in f32, by the name of the op."""

READ = ONE, HALF, ROOT, INVERSE_ROOT = 1.0, 0.5, sqrt(2), sqrt(0.5)
"""The constants by which a GELU is recognised."""

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
"""Functions of f64 that are expanded in GPU kernels."""


@dataclass(frozen=True)
class MathExpandOps(TargetPass):
    """Expand functions such as `math.exp`, of scalars and vectors, into polynomials in `arith`.

    The functions are `exp`, `expm1`, `log`, `tanh`, `erf`, `sin`, `cos`, `tan`, their inverse and hyperbolic ones,
    `powf`, `log2` and `log10`. Results in f32 are within 2 units of the last place, including denormals, and special
    values are those of C's library. No function is called. Products are fused with sums if the target has an
    instruction for it. All processors and devices with such an instruction compute the same bits, whatever the length
    of their vectors; so do all targets without it. Functions of f16 and bf16 are computed in f32 or f64, and the result
    is rounded. `arith.truncf` of f64 to 16 bits is expanded, too, except on devices. Functions of f64 are left to the
    mathematical library, except inside `gpu.module`: there `exp`, `expm1`, `log`, `tanh`, `sin`, `cos` (of less than
    2^30) and `powf` become polynomials.

    `x * (1 + erf(x / sqrt(2))) * 0.5` in f32 (GELU) is one function, within 2.4e-7 of its value for |x| < 8.

    If the module's target has fused multiply-adds, the polynomials use them, and divisions of vectors by constants
    become a product and two multiply-adds; AVX-512 multiplies by powers of two, and computes reciprocals of roots by
    Newton's iteration, with the same bits.
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
            if (
                inner.name == arith.MulfOp.name
                and isinstance(inner, arith.MulfOp)
                and (x := gelu_of(inner)) is not None
            ):
                inner.result.replace_all_uses_with(functions.gelu(arithmetic(inner, target), x, f32))
                erase_dead([inner])
        for inner in walked(op):
            if (expand := expansion(inner, target)) is not None:
                Rewriter.replace_op(inner, [], [expand()])


def expansion(op: Operation, target: Target = UNKNOWN) -> Callable[[], SSAValue] | None:
    """Return a function that inserts, before the op, the ops that replace it, and returns their value. None if the op
    is not expanded."""
    if op.name == arith.DivfOp.name and isinstance(op, arith.DivfOp):
        return inverse_root(op, target) or over_constant(op, target)
    if op.name not in SHORT and op.name not in WIDE and op.name != "arith.truncf":
        return None
    element, build = scalar_of(op.results[0].type), arithmetic(op, target)
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
    """1 / sqrt(x)  =>  Newton's iteration for the quotient, with the same bits, which avoids a division after the slow
    square root."""
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
    """x / c  =>  a product and two multiply-adds with the same bits, for vectors, if the target fuses these."""
    number = op.rhs.owner
    if not isinstance(number, arith.ConstantOp) or not is_vector(op.result.type) or scalar_of(op.result.type) != f32:
        return None
    values = to_numpy(number.value).reshape(-1)
    divisor = float(values[0])
    if on_device(op) or not target.fuses or (values != divisor).any() or not 1 < divisor < 2.0**26:
        return None
    build = Arithmetic(op, lanes(op.result.type), target)
    return lambda: functions.over(build, op.lhs, divisor)


def gelu_of(op: arith.MulfOp) -> SSAValue | None:
    """Return the x of `x * (1 + erf(x / sqrt(2))) * 0.5` in f32, with the products in any order, and the quotient
    possibly written as a product; else None."""
    factors: list[SSAValue] = [op.lhs, op.rhs]
    for value in (op.lhs, op.rhs):
        if isinstance(inner := value.owner, arith.MulfOp):
            factors.remove(value)
            factors += [inner.lhs, inner.rhs]
    sums = [value.owner for value in factors if isinstance(value.owner, arith.AddfOp)]
    if scalar_of(op.result.type) != f32 or len(factors) != 3 or on_device(op):
        return None
    for sum in sums:
        for curve, one in ((sum.lhs, sum.rhs), (sum.rhs, sum.lhs)):
            if isinstance(curve.owner, math.ErfOp) and is_number(one, ONE):
                left = [value for value in factors if value.owner is not sum and not is_number(value, HALF)]
                if len(left) == 1 and is_over_root_of_two(curve.owner.operand, left[0]):
                    return left[0]
    return None


def is_over_root_of_two(value: SSAValue, x: SSAValue) -> bool:
    """Whether a value is x divided by the square root of 2, or multiplied by that of 1/2."""
    owner = value.owner
    if isinstance(owner, arith.DivfOp):
        return owner.lhs is x and is_number(owner.rhs, ROOT)
    if not isinstance(owner, arith.MulfOp):
        return False
    return any(a is x and is_number(b, INVERSE_ROOT) for a, b in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)))


def is_number(value: SSAValue, number: float) -> bool:
    """Whether a value is a constant with `number`, or one of its float32 neighbours, in all lanes."""
    if not isinstance(constant := value.owner, arith.ConstantOp):
        return False
    return all(is_near(each, number) for each in np.unique(to_numpy(constant.value)))


def is_near(value: float, number: float) -> bool:
    """Whether a value is the float32 nearest to a number, or a neighbour of it."""
    return bool(abs(value - number) <= 1e-7 * number)


def arithmetic(op: Operation, target: Target) -> Arithmetic:
    """Return an `Arithmetic` that inserts ops before the op, for its type: scalars or vectors."""
    type = op.results[0].type
    return Arithmetic(op, lanes(type) if is_vector(type) else 0, target)


def on_device(op: Operation) -> bool:
    """Whether the op is inside a `gpu.module`."""
    parent = op.parent_op()
    while parent is not None and parent.name != "gpu.module":
        parent = parent.parent_op()
    return parent is not None
