"""Activations, normalization across channels, and losses."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, BoolAttr, FloatAttr, IntegerAttr, TensorType, i64
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from relay.dialects.op import DYNAMIC, TENSOR, AxisOp, OneResultOp, Type, require, shape, tensor

LAST = IntegerAttr(-1, i64)


class ActivationOp(OneResultOp, ABC):
    """A function of a tensor, whose result has the type of the operand."""

    FLOAT_ONLY: ClassVar[bool] = True
    data = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.data)
        floats = isinstance(type.element_type, AnyFloat)
        require(floats or not self.FLOAT_ONLY, f"{self.name}: takes floats, not {type.element_type}")
        return [type]


class AlongAxisOp(AxisOp, ActivationOp, ABC):
    """An op that processes every row along `axis` separately."""

    SAME_AXES: ClassVar[bool] = True
    axis = prop_def(IntegerAttr, default_value=LAST)

    def infer(self) -> Sequence[Type]:
        require(self.along >= 0, f"{self.name}: takes rank 1 or more")
        return super().infer()


@irdl_op_definition
class ReluOp(ActivationOp):
    """`max(x, 0)`."""

    name = "relay.nn.relu"
    ELEMENTWISE: ClassVar[bool] = True
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class LeakyReluOp(ActivationOp):
    """`x > 0 ? x : alpha * x`."""

    name = "relay.nn.leaky_relu"
    ELEMENTWISE: ClassVar[bool] = True
    alpha = prop_def(FloatAttr)


@irdl_op_definition
class GeluOp(ActivationOp):
    """`x / 2 * (1 + erf(x * sqrt(1/2)))`; with `approximate`, `tanh(sqrt(2 / pi) * (x + 0.044715 x^3))` replaces the
    erf."""

    name = "relay.nn.gelu"
    ELEMENTWISE: ClassVar[bool] = True
    approximate = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))


@irdl_op_definition
class PreluOp(AxisOp, OneResultOp):
    """`x > 0 ? x : alpha[c] * x`, c the position along `axis`."""

    name = "relay.nn.prelu"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("alpha",)
    INDEPENDENT: ClassVar[slice] = slice(None)
    data = operand_def(TENSOR)
    alpha = operand_def(TENSOR)
    axis = prop_def(IntegerAttr, default_value=LAST)

    def infer(self) -> Sequence[Type]:
        size, alpha, type = shape(self.data)[self.along], shape(self.alpha), tensor(self.data)
        require(isinstance(type.element_type, AnyFloat), f"{self.name}: takes floats, not {type.element_type}")
        require(type.element_type == tensor(self.alpha).element_type, f"{self.name}: element types differ")
        fits = len(alpha) == 1 and (alpha[0] == size or DYNAMIC in (alpha[0], size))
        require(fits, f"{self.name}: alpha {list(alpha)} for axis of {size}")
        return [type]


@irdl_op_definition
class LogSoftmaxOp(AlongAxisOp):
    """`x - max - log(sum(exp(x - max)))` along `axis`."""

    name = "relay.nn.log_softmax"


@irdl_op_definition
class FastSoftmaxOp(AlongAxisOp):
    """`exp(x - max) / sum` along `axis`; Relay allows an approximate exponential, ours is that of `nn.softmax`."""

    name = "relay.nn.fast_softmax"


@irdl_op_definition
class LrnOp(AlongAxisOp):
    """`x / (bias + alpha / size * sum of x^2)^beta`; the sum is over the `size` neighbours along `axis`.

    They are `(size - 1) / 2` (rounded down) before to `size / 2` after; those outside count as 0.
    """

    name = "relay.nn.lrn"
    size = prop_def(IntegerAttr, default_value=IntegerAttr(5, i64))
    bias = prop_def(FloatAttr)
    alpha = prop_def(FloatAttr)
    beta = prop_def(FloatAttr)

    def neighbours(self) -> tuple[int, int]:
        """The numbers of neighbours (before, after) along the axis that are included in the sum."""
        size = self.size.value.data
        return (size - 1) // 2, size // 2

    def infer(self) -> Sequence[Type]:
        require(self.size.value.data > 0, f"{self.name}: size must be positive")
        return super().infer()


class LossOp(OneResultOp, ABC):
    """A scalar loss from predictions and targets of equal shape [n, classes...]."""

    predictions = operand_def(TENSOR)
    targets = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        x, y = tensor(self.predictions), tensor(self.targets)
        require(isinstance(x.element_type, AnyFloat), f"{self.name}: takes floats, not {x.element_type}")
        require(x == y and len(x.get_shape()) >= 1, f"{self.name}: predictions are {x}, targets {y}")
        return [TensorType(x.element_type, [])]


@irdl_op_definition
class CrossEntropyOp(LossOp):
    """`-sum(log(predictions) * targets) / n`, where n is the size of the first axis."""

    name = "relay.nn.cross_entropy"


@irdl_op_definition
class CrossEntropyWithLogitsOp(LossOp):
    """`-sum(predictions * targets) / n`, for predictions that are logarithms; n is the size of their first axis."""

    name = "relay.nn.cross_entropy_with_logits"
