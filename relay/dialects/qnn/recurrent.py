"""Recurrent layers, whose states are operands and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, TensorType, i8, i16, i32
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from relay.dialects.attributes import to_numpy
from relay.dialects.op import TENSOR, TensorOp, Type, require, shape, tensor
from relay.dialects.qnn.parameters import LITERT, IntParameter, numerics


@irdl_op_definition
class LstmOp(TensorOp):
    """A sequence of int8 LSTM steps with int16 cell state (TFLite UNIDIRECTIONAL_SEQUENCE_LSTM 8x8_16).

    `data` is [time, batch, input] (or [batch, time, input] unless `time_major`). `input_kernel` is [gates*units,
    input], `recurrent_kernel` [gates*units, units], `bias` i32 [gates*units], gates in the order input (absent with
    `cifg`), forget, cell, output; the two multipliers and shifts have one number per gate. sat16 saturates to i16; s
    and t are gemmlowp's int16 sigmoid and tanh, of arguments in Q3.12 (c: with 15 + cell_shift integer bits). Each step
    computes the sum of each gate, i, f, g (cell) and o, from the gate's rows W of input_kernel, R of recurrent_kernel
    and b of bias: `sat16(sat16(rescale(W (x - zp_x) + b)) + rescale(R (h - zp_h)))`. Then `c = clip(sat16(RDBPOT(s(f)
    c, 15) + RDBPOT(s(i) t(g), 30 + cell_shift)), +-cell_clip)` (without the clip if `cell_clip` is 0; with `cifg`, s(i)
    is `32767 - s(f)`), and `h = clamp(rescale(s(o) t(c)) + zp_h)`. `cell_shift` is log2 of the cell's scale. With
    `numerics = "tflm"` s and t interpolate TFLite's table of the logistic function, as its 16-bit LOGISTIC and TANH do.
    Results: the sequence of h, the last h, the last c.
    """

    name = "qnn.lstm"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("input_kernel", "recurrent_kernel", "bias")
    data = operand_def(TENSOR)
    input_kernel = operand_def(TENSOR)
    recurrent_kernel = operand_def(TENSOR)
    bias = operand_def(TENSOR)
    hidden_state = operand_def(TENSOR)
    cell_state = operand_def(TENSOR)
    input_zero_point = prop_def(IntegerAttr)
    hidden_zero_point = prop_def(IntegerAttr)
    input_multiplier = prop_def(IntParameter)
    input_shift = prop_def(IntParameter)
    recurrent_multiplier = prop_def(IntParameter)
    recurrent_shift = prop_def(IntParameter)
    hidden_multiplier = prop_def(IntegerAttr)
    hidden_shift = prop_def(IntegerAttr)
    cell_shift = prop_def(IntegerAttr)
    cell_clip = prop_def(IntegerAttr, default_value=IntegerAttr(0, i32))
    cifg = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))
    time_major = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))
    numerics = prop_def(StringAttr, default_value=LITERT)
    result = result_def(TENSOR)
    last_hidden = result_def(TENSOR)
    last_cell = result_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        data, units = shape(self.data), shape(self.hidden_state)[-1]
        gates = 3 if self.cifg.value.data else 4
        require(len(data) == 3, f"{self.name}: data must have rank 3")
        batch = data[1] if self.time_major.value.data else data[0]
        require(shape(self.input_kernel) == (gates * units, data[2]), f"{self.name}: input_kernel has the wrong shape")
        require(
            shape(self.recurrent_kernel) == (gates * units, units), f"{self.name}: recurrent_kernel has the wrong shape"
        )
        require(shape(self.bias) == (gates * units,), f"{self.name}: bias has the wrong shape")
        require(
            shape(self.hidden_state) == shape(self.cell_state) == (batch, units),
            f"{self.name}: state is not [{batch}, {units}]",
        )
        types = [tensor(v).element_type for v in self.operands]
        require(types == [i8, i8, i8, i32, i8, i16], f"{self.name}: operands must be i8, i8, i8, i32, i8, i16")
        numerics(self, self.numerics)
        for what in ("input_multiplier", "input_shift", "recurrent_multiplier", "recurrent_shift"):
            require(to_numpy(self.properties[what]).shape == (gates,), f"{self.name}: {what} needs {gates} numbers")
        return [TensorType(i8, [*data[:2], units]), tensor(self.hidden_state), tensor(self.cell_state)]

    def independent_along(self, axis: int) -> bool:
        return axis == 0 and not self.time_major.value.data


@irdl_op_definition
class SvdfOp(TensorOp):
    """One step of an int8 SVDF layer: a rank-`rank` filter over the last `memory` inputs (TFLite SVDF).

    data [batch, input]; feature_kernel i8 [filters, input]; time_kernel i16 (or i8) [filters, memory]; bias i32
    [filters / rank]; state i16 (or i8) [batch, filters * memory]. Each step drops the oldest of the `memory` elements
    of each filter in the state, and appends `sat(rescale(feature_kernel (x - zp), feature_multiplier, feature_shift))`.
    Then `y = clamp(rescale(sum over rank and memory of state * time_kernel + bias, multiplier, shift) +
    output_zero_point, min, max)`. Results: y and the new state.
    """

    name = "qnn.svdf"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("feature_kernel", "time_kernel", "bias")
    INDEPENDENT: ClassVar[slice] = slice(1)
    data = operand_def(TENSOR)
    feature_kernel = operand_def(TENSOR)
    time_kernel = operand_def(TENSOR)
    bias = opt_operand_def(TENSOR)
    state = operand_def(TENSOR)
    input_zero_point = prop_def(IntegerAttr)
    rank = prop_def(IntegerAttr)
    feature_multiplier = prop_def(IntegerAttr)
    feature_shift = prop_def(IntegerAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    output_zero_point = prop_def(IntegerAttr)
    min = opt_prop_def(IntegerAttr)
    max = opt_prop_def(IntegerAttr)
    result = result_def(TENSOR)
    new_state = result_def(TENSOR)
    assembly_format = (
        "$data `,` $feature_kernel `,` $time_kernel `,` $state (`bias` $bias^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Type]:
        (batch, inputs), (filters, memory) = shape(self.data), shape(self.time_kernel)
        ranks = self.rank.value.data
        require(ranks > 0 and filters % ranks == 0, f"{self.name}: {filters} filters are not divisible by the rank")
        require(shape(self.feature_kernel) == (filters, inputs), f"{self.name}: feature_kernel has the wrong shape")
        require(
            shape(self.state) == (batch, filters * memory), f"{self.name}: state is not [{batch}, {filters * memory}]"
        )
        require(self.bias is None or shape(self.bias) == (filters // ranks,), f"{self.name}: bias has the wrong shape")
        return [TensorType(i8, [batch, filters // ranks]), tensor(self.state)]
