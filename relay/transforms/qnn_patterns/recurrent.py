"""Patterns for recurrent layers: LSTM, unrolled over time, and SVDF, one step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i8, i16, i32, i64
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import ints, to_numpy
from relay.dialects.op import DYNAMIC, shape, tensor
from relay.errors import Unsupported
from relay.interpreters.qnn_recurrent import gate_tables
from relay.transforms.expansion import Expansion, limits
from relay.transforms.legalization import Legalization, pattern
from relay.transforms.location import place
from relay.transforms.qnn_patterns.rescale import finish, rescale

TFLITE = StringAttr("tflite")


def dense(new: Expansion, x: SSAValue, kernel: SSAValue, zero_point: IntegerAttr) -> SSAValue:
    """The i32 matrix product of codes with this zero point and a kernel."""
    given = {"input_zero_point": zero_point if zero_point.value.data else None, "out_dtype": i32}
    return new.value(relay.DenseOp, x, kernel, properties=given)


def sat16(new: Expansion, x: SSAValue) -> SSAValue:
    """Clip x, in i32, to the range of i16."""
    return new.clip(x, *limits(i16))


def shifted_product(new: Expansion, a: SSAValue, b: SSAValue, amount: int) -> SSAValue:
    """The product `a * b` of i16 operands, in i32, divided by 2^`amount` and rounded, halves away from zero."""
    product = new.value(relay.MultiplyOp, new.cast(a, i32), new.cast(b, i32))
    return new.value(relay.RoundingRightShiftOp, product, new.constant(amount, np.int32))


@pattern
def lstm(new: Expansion, op: qnn.LstmOp) -> tuple[SSAValue, SSAValue, SSAValue]:
    """qnn.lstm  =>  one product W x for all steps; per step one product R h, the rescaled gates' sum, tables of
    sigmoid and tanh on their i16 codes, and the cell's and hidden state's products"""
    major = bool(op.time_major.value.data)
    dims = shape(op.data)
    if DYNAMIC in dims:
        raise Unsupported(place(op), "the batch or the number of steps is not known", "give the model fixed shapes")
    (batch, units), steps = shape(op.hidden_state), dims[0] if major else dims[1]
    from_input = dense(new, op.data, op.input_kernel, op.input_zero_point)
    from_input = new.value(relay.BiasAddOp, from_input, op.bias)
    from_input = rescaled_gates(new, from_input, to_numpy(op.input_multiplier), to_numpy(op.input_shift), units)
    from_input = new.cast(sat16(new, from_input), i16)
    hidden, cell, sequence = op.hidden_state, op.cell_state, list[SSAValue]()
    step, axis = Step(new, op, units), IntegerAttr(0 if major else 1, i64)
    for t in range(steps):
        now = new.value(relay.TakeOp, from_input, new.constant([t], np.int32), properties={"axis": axis})
        hidden, cell = step(new.reshape(now, [batch, shape(now)[2]]), hidden, cell)
        sequence.append(new.reshape(hidden, [1, batch, units] if major else [batch, 1, units]))
    result = new.value(relay.ConcatenateOp, *sequence, properties={"axis": axis})
    return result, hidden, cell


def rescaled_gates(
    new: Expansion, x: SSAValue, multiplier: npt.NDArray[np.generic], shift: npt.NDArray[np.generic], units: int
) -> SSAValue:
    """Rescale the gates, side by side on the last axis, each with its own multiplier."""
    return rescale(new, x, np.repeat(multiplier, units), np.repeat(shift, units), TFLITE)


class Step:
    """Builds one time step; its constants are used by all steps."""

    def __init__(self, new: Expansion, op: qnn.LstmOp, units: int):
        self.new, self.op, self.units = new, op, units
        cell_bits = 15 + op.cell_shift.value.data
        if not 0 <= cell_bits <= 15:
            raise Unsupported(
                place(op), f"cell_shift {op.cell_shift.value.data}", "the cell's scale must be 2^-15 to 1"
            )
        sigmoid, tanh = gate_tables(op.numerics.data)
        self.sigmoid = new.constant(sigmoid, np.int16)
        self.tanh = new.constant(tanh, np.int16)
        self.tanh_of_cell = new.constant(gate_tables(op.numerics.data, cell_bits)[1], np.int16)
        self.multiplier, self.shift = to_numpy(op.recurrent_multiplier), to_numpy(op.recurrent_shift)

    def __call__(self, from_input: SSAValue, hidden: SSAValue, cell: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Build the next hidden and cell state, and return them."""
        new, op = self.new, self.op
        recurrent = dense(new, hidden, op.recurrent_kernel, op.hidden_zero_point)
        recurrent = rescaled_gates(new, recurrent, self.multiplier, self.shift, self.units)
        total = new.cast(sat16(new, new.value(relay.AddOp, new.cast(from_input, i32), recurrent)), i16)
        count = shape(total)[1] // self.units
        parts = [new.sliced(total, -1, i * self.units, (i + 1) * self.units) for i in range(count)]
        tables = [self.sigmoid, self.sigmoid, self.tanh, self.sigmoid][4 - count :]
        gates = [new.value(relay.LookupOp, part, table) for part, table in zip(parts, tables, strict=True)]
        forget, candidate, output = gates[-3:]
        admit = gates[0] if count == 4 else new.value(relay.SubtractOp, new.constant(32767, np.int16), forget)
        kept = new.cast(new.cast(shifted_product(new, forget, cell, 15), i16), i32)
        added = shifted_product(new, admit, candidate, 30 + op.cell_shift.value.data)
        total = sat16(new, new.value(relay.AddOp, kept, new.cast(new.cast(added, i16), i32)))
        if bound := op.cell_clip.value.data:
            total = new.clip(total, -bound, bound)
        cell = new.cast(total, i16)
        squashed = new.value(relay.LookupOp, cell, self.tanh_of_cell)
        product = new.value(relay.MultiplyOp, new.cast(output, i32), new.cast(squashed, i32))
        product = rescale(new, product, op.hidden_multiplier.value.data, op.hidden_shift.value.data, TFLITE)
        return finish(new, product, op.hidden_zero_point.value.data, None, None, i8), cell


@pattern
def svdf(new: Expansion, op: qnn.SvdfOp) -> tuple[SSAValue, SSAValue]:
    """qnn.svdf  =>  state = concat(state[:, 1:], 0) with cast(clip(rescale(W x))) in each filter's last slot;
    cast(clip(rescale(sum(state * time kernel) + bias) + zero point))"""
    ranks = op.rank.value.data
    (batch, _), (filters, memory) = shape(op.data), shape(op.time_kernel)
    type = tensor(op.state).element_type
    fresh = dense(new, op.data, op.feature_kernel, op.input_zero_point)
    fresh = rescale(new, fresh, op.feature_multiplier.value.data, op.feature_shift.value.data, TFLITE)
    fresh = new.reshape(finish(new, fresh, 0, None, None, type), [batch, filters, 1])
    history = new.sliced(new.reshape(op.state, [batch, filters, memory]), -1, 1, memory)
    state = new.joined([history, fresh], 2)
    products = new.value(relay.MultiplyOp, new.cast(state, i32), new.cast(op.time_kernel, i32))
    products = new.reshape(products, [batch, filters // ranks, ranks * memory])
    total = new.value(relay.SumOp, products, properties={"axis": ints([2])})
    if op.bias is not None:
        total = new.value(relay.BiasAddOp, total, op.bias)
    total = rescale(new, total, op.multiplier.value.data, op.shift.value.data, TFLITE)
    result = finish(new, total, op.output_zero_point.value.data, op.min, op.max, i8)
    return result, new.reshape(state, [batch, filters * memory])


PATTERNS: list[type[Legalization]] = [lstm, svdf]
