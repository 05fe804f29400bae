"""Comparisons, logic and bitwise ops of two tensors, remainders and powers. All broadcast as numpy does."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition

from relay.dialects.op import require
from relay.dialects.relay.elementwise import BinaryOp, CompareOp


class LogicalOp(BinaryOp, ABC):
    """A `BinaryOp` of booleans (`i1`)."""

    def element(self) -> Attribute:
        type = super().element()
        require(type == i1, f"{self.name}: takes i1, not {type}")
        return type


@irdl_op_definition
class NotEqualOp(CompareOp):
    """`lhs != rhs`: true for NaN."""

    name = "relay.not_equal"


@irdl_op_definition
class GreaterEqualOp(CompareOp):
    """`lhs >= rhs`."""

    name = "relay.greater_equal"


@irdl_op_definition
class LessEqualOp(CompareOp):
    """`lhs <= rhs`."""

    name = "relay.less_equal"


@irdl_op_definition
class LogicalAndOp(LogicalOp):
    """`lhs and rhs`."""

    name = "relay.logical_and"


@irdl_op_definition
class LogicalOrOp(LogicalOp):
    """`lhs or rhs`."""

    name = "relay.logical_or"


@irdl_op_definition
class LogicalXorOp(LogicalOp):
    """`lhs xor rhs`: whether exactly one is true."""

    name = "relay.logical_xor"


@irdl_op_definition
class BitwiseAndOp(BinaryOp):
    """`lhs & rhs`."""

    name = "relay.bitwise_and"
    INTEGER_ONLY: ClassVar[bool] = True


@irdl_op_definition
class BitwiseOrOp(BinaryOp):
    """`lhs | rhs`."""

    name = "relay.bitwise_or"
    INTEGER_ONLY: ClassVar[bool] = True


@irdl_op_definition
class BitwiseXorOp(BinaryOp):
    """`lhs ^ rhs`."""

    name = "relay.bitwise_xor"
    INTEGER_ONLY: ClassVar[bool] = True


@irdl_op_definition
class ModOp(BinaryOp):
    """`lhs - rhs * trunc(lhs / rhs)`, exact: of lhs's sign, as C's `%` and `fmod`; an integer zero divisor gives 0."""

    name = "relay.mod"


@irdl_op_definition
class FloorModOp(BinaryOp):
    """`lhs - rhs * floor(lhs / rhs)`: of rhs's sign, as Python's `%`; an integer zero divisor gives 0.

    Floats: C's `fmod`, plus rhs where that is not zero and the signs differ.
    """

    name = "relay.floor_mod"


@irdl_op_definition
class PowerOp(BinaryOp):
    """`lhs ** rhs`; integers wrap, and a negative integer exponent gives 0."""

    name = "relay.power"
