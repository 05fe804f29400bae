"""The pass `to-mixed-precision`."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, inf
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import relay
from relay.dialects.attributes import scalar_attr, to_numpy
from relay.dialects.op import Origin, TensorOp, tensor
from relay.errors import InvalidArgument, Unsupported
from relay.passes.target_pass import TargetPass
from relay.target import Target
from relay.target.dots import DOTS, half_dot
from relay.target.record import HALF_FLOATS
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import Expansion
from relay.transforms.half_products import has_weights, takes_pairs
from relay.transforms.legalization import own, settle

DTYPES = ("f16", "bf16")
"""The element types that the pass can compute in. A target without instructions for one would only be slower and less
exact."""
HIGHEST = 65504.0
"""The largest finite value of the type f16."""
ALWAYS = (relay.Conv1dOp, relay.Conv2dOp, relay.Conv3dOp, relay.DenseOp, relay.MatmulOp, relay.BatchMatmulOp)
ARITHMETIC = (relay.AddOp, relay.SubtractOp, relay.MultiplyOp, relay.NegativeOp, relay.AbsOp, relay.BiasAddOp)
"""Ops that this pass computes in half precision, each with one rounding. Other ops (roots, exponentials, sums over
axes) would lose more."""


class CastOfCast(RewritePattern):
    """cast f16 (cast f32 (%x : f16))  =>  %x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.CastOp, rewriter: PatternRewriter) -> None:
        if (source := narrow(op.input)) is not None and op.dtype == f16:
            rewriter.replace(op, [], [source])


def narrow(value: SSAValue) -> SSAValue | None:
    """The f16 value from which this f32 value is cast; None if there is none."""
    owner = value.owner
    if not isinstance(owner, relay.CastOp) or owner.dtype != f32:
        return None
    return owner.input if tensor(owner.input).element_type == f16 else None


@dataclass(frozen=True)
class ToMixedPrecision(TargetPass):
    """Compute float32 convolutions and matrix products in the half-precision type `dtype`. The same holds for
    elementwise sums, products and moves of elements that follow them; sums over axes, roots, exponentials, softmax and
    means stay in float32, as do arguments and results.

    With `bf16`, only data and constant weights of products are rounded, if the target has an instruction that sums
    pairs of them (AVX512-BF16, or Arm's `bf16`); sums and all else stay float32. Raises Unsupported where the module's
    target has no arithmetic of f16, or no such instruction.
    """

    name: ClassVar[str] = "to-mixed-precision"
    opt_level = 0
    invalidates = ("folded",)
    why = "computes in half precision"
    dtype: str = "f16"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = self.target(op)
        self.check(target)
        if self.dtype == "bf16":
            for inner in list(own(op)):
                if has_weights(inner) and takes_pairs(inner, target) and tensor(inner.results[0]).element_type == f32:
                    by_pairs(inner)
            return
        for inner in list(own(op)):
            if isinstance(inner, ALWAYS) and tensor(inner.results[0]).element_type == f32 and not overflows(inner):
                halve(inner)
            elif isinstance(inner, TensorOp) and follows(inner):
                halve(inner)
        settle(op, [CastOfCast()])
        erase_dead(op.walk())

    def check(self, target: Target) -> None:
        """Raise InvalidArgument or Unsupported if an option is not valid, or not possible on the target."""
        if self.dtype not in DTYPES:
            raise InvalidArgument("to-mixed-precision", f"dtype is '{self.dtype}'", f"one of {', '.join(DTYPES)}")
        if not (target.half_floats if self.dtype == "f16" else half_dot(target.features)):
            pairs = [" ".join(sorted(dot.features)) for dot in DOTS if dot.element == bf16]
            features = HALF_FLOATS if self.dtype == "f16" else pairs
            hint = f"attach a target with {' or '.join(features)}, or leave the pass out"
            raise Unsupported("to-mixed-precision", f"the target has no arithmetic of {self.dtype}", hint)


def follows(op: TensorOp) -> bool:
    """Whether the op only moves elements or does cheap arithmetic, and all its non-constant float operands, at least
    one, come from half precision."""
    if len(op.results) != 1 or tensor(op.results[0]).element_type != f32:
        return False
    if not isinstance(op, ARITHMETIC) and op.origin not in (Origin.MOVED, Origin.SELECTED):
        return False
    if overflows(op):
        return False
    floats = [value for value in op.operands if tensor(value).element_type == f32]
    varying = [value for value in floats if not isinstance(value.owner, relay.ConstantOp)]
    return bool(varying) and all(narrow(value) is not None for value in varying)


def overflows(op: TensorOp) -> bool:
    """Whether a constant operand or a fill value of the op exceeds the range of half precision. Clip bounds that are
    never reached may become infinite."""
    fills = [to_numpy(op.properties[name]).item() for name in op.FILLS]
    if isinstance(op, relay.ClipOp):
        low, high = fills
        fills = [low if low > 0 else 0.0, high if high < 0 else 0.0]
    constants = [value.owner for value in op.operands if tensor(value).element_type == f32]
    arrays = [to_numpy(owner.value) for owner in constants if isinstance(owner, relay.ConstantOp)]
    return any(
        bool((np.isfinite(array) & (np.abs(array) > HIGHEST)).any()) for array in [*arrays, *map(np.array, fills)]
    )


def by_pairs(op: Operation) -> None:
    """Replace the op by one on data and weights rounded to bf16, with sums in float32."""
    assert isinstance(op, TensorOp)
    new = Expansion(op)
    operands = [new.cast(value, bf16) for value in op.operands]
    new.replace(PatternRewriter(op), new.value(type(op), *operands, properties=op.properties))


def halve(op: Operation) -> None:
    """Replace the op by one whose operands are cast to half precision, and cast its result back."""
    assert isinstance(op, TensorOp)
    new = Expansion(op)
    properties = dict[str, Attribute | None](op.properties)
    if isinstance(op, ALWAYS):
        properties["out_dtype"] = f16
    for name in op.FILLS:
        fill = to_numpy(op.properties[name]).item()
        properties[name] = scalar_attr(copysign(inf, fill) if abs(fill) > HIGHEST else fill, f16)
    floats = [value for value in op.operands if tensor(value).element_type == f32]
    operands = [new.cast(value, f16) if value in floats else value for value in op.operands]
    result = new.value(type(op), *operands, properties=properties)
    new.replace(PatternRewriter(op), new.cast(result, f32))
