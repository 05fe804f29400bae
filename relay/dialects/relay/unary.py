"""Functions of one tensor: trigonometric and other float functions, predicates, bit operations, and ops that only look
at the type."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerType, TensorType, i1, i32, i64
from xdsl.irdl import irdl_op_definition, prop_def

from relay.dialects.op import Origin, Type, is_integer, require, shape, tensor
from relay.dialects.relay.elementwise import UnaryOp


class PredicateOp(UnaryOp, ABC):
    """A predicate of each float: `result` holds booleans (`i1`)."""

    def infer(self) -> Sequence[Type]:
        super().infer()
        return [TensorType(i1, shape(self.input))]


class MeasureOp(UnaryOp, ABC):
    """Integers of the type `dtype` (i32 or i64) that follow from the shape alone; lowered once the shape is known."""

    ELEMENTWISE: ClassVar[bool] = False
    FLOAT_ONLY: ClassVar[bool] = False
    dtype = prop_def(IntegerType, default_value=i32)

    def check(self) -> Sequence[int]:
        require(self.dtype in (i32, i64), f"{self.name}: dtype must be i32 or i64")
        return shape(self.input)


@irdl_op_definition
class AcosOp(UnaryOp):
    """`arccos(x)` in [0, pi]; NaN outside [-1, 1]."""

    name = "relay.acos"


@irdl_op_definition
class AcoshOp(UnaryOp):
    """`arcosh(x)`, not negative; NaN below 1."""

    name = "relay.acosh"


@irdl_op_definition
class AsinOp(UnaryOp):
    """`arcsin(x)` in [-pi/2, pi/2]; NaN outside [-1, 1]."""

    name = "relay.asin"


@irdl_op_definition
class AsinhOp(UnaryOp):
    """`arsinh(x)`."""

    name = "relay.asinh"


@irdl_op_definition
class AtanOp(UnaryOp):
    """`arctan(x)` in [-pi/2, pi/2]."""

    name = "relay.atan"


@irdl_op_definition
class AtanhOp(UnaryOp):
    """`artanh(x)`; NaN outside [-1, 1]."""

    name = "relay.atanh"


@irdl_op_definition
class CosOp(UnaryOp):
    """Cosine of x in radians."""

    name = "relay.cos"


@irdl_op_definition
class CoshOp(UnaryOp):
    """`(e**x + e**-x) / 2`."""

    name = "relay.cosh"


@irdl_op_definition
class ErfOp(UnaryOp):
    """`2 / sqrt(pi)` times the integral of `e**-t**2` from 0 to x."""

    name = "relay.erf"


@irdl_op_definition
class Expm1Op(UnaryOp):
    """`e**x - 1`, as exact near zero as elsewhere."""

    name = "relay.expm1"


@irdl_op_definition
class Log2Op(UnaryOp):
    """Logarithm to base 2."""

    name = "relay.log2"


@irdl_op_definition
class Log10Op(UnaryOp):
    """Logarithm to base 10."""

    name = "relay.log10"


@irdl_op_definition
class SinOp(UnaryOp):
    """Sine of x in radians."""

    name = "relay.sin"


@irdl_op_definition
class SinhOp(UnaryOp):
    """`(e**x - e**-x) / 2`."""

    name = "relay.sinh"


@irdl_op_definition
class TanOp(UnaryOp):
    """Tangent of x in radians."""

    name = "relay.tan"


@irdl_op_definition
class TruncOp(UnaryOp):
    """The nearest integer towards zero."""

    name = "relay.trunc"


@irdl_op_definition
class FastErfOp(UnaryOp):
    """`relay.erf`, where an approximation may do; computed as `relay.erf`."""

    name = "relay.fast_erf"


@irdl_op_definition
class FastExpOp(UnaryOp):
    """`relay.exp`, where an approximation may do; computed as `relay.exp`."""

    name = "relay.fast_exp"


@irdl_op_definition
class FastTanhOp(UnaryOp):
    """`relay.tanh`, where an approximation may do; computed as `relay.tanh` unless the pass `fast-math` replaces it."""

    name = "relay.fast_tanh"


@irdl_op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1 as x is negative, zero or positive; NaN stays."""

    name = "relay.sign"
    BOOLEANS: ClassVar[bool] = False
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class CopyOp(UnaryOp):
    """The elements of x as they are."""

    name = "relay.copy"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class BitwiseNotOp(UnaryOp):
    """Every bit flipped."""

    name = "relay.bitwise_not"
    FLOAT_ONLY: ClassVar[bool] = False

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(is_integer(type.element_type), f"{self.name}: takes integers, not {type.element_type}")
        return [type]


@irdl_op_definition
class LogicalNotOp(UnaryOp):
    """Whether x is false."""

    name = "relay.logical_not"
    FLOAT_ONLY: ClassVar[bool] = False

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(type.element_type == i1, f"{self.name}: takes i1, not {type.element_type}")
        return [type]


@irdl_op_definition
class ZerosLikeOp(UnaryOp):
    """Zeros of x's type."""

    name = "relay.zeros_like"
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class OnesLikeOp(UnaryOp):
    """Ones of x's type."""

    name = "relay.ones_like"
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class IsnanOp(PredicateOp):
    """Whether x is NaN."""

    name = "relay.isnan"


@irdl_op_definition
class IsinfOp(PredicateOp):
    """Whether x is plus or minus infinity."""

    name = "relay.isinf"


@irdl_op_definition
class IsfiniteOp(PredicateOp):
    """Whether x is neither infinite nor NaN."""

    name = "relay.isfinite"


@irdl_op_definition
class ShapeOfOp(MeasureOp):
    """The dimensions of x as a vector."""

    name = "relay.shape_of"

    def infer(self) -> Sequence[Type]:
        return [TensorType(self.dtype, [len(self.check())])]


@irdl_op_definition
class NdarraySizeOp(MeasureOp):
    """The number of elements of x as a scalar."""

    name = "relay.ndarray_size"

    def infer(self) -> Sequence[Type]:
        self.check()
        return [TensorType(self.dtype, [])]
