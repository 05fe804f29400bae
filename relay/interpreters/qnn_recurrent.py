"""Numpy implementation of quantized recurrent ops, and the tables of their activations."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from relay.dialects import qnn
from relay.dialects.attributes import Array, to_numpy
from relay.interpreters import tflm
from relay.interpreters.arithmetic import (
    FIXED16,
    Int64,
    code_range,
    int64,
    multiply_by_quantized_multiplier,
    read_only,
    rounding_right_shift,
    wrap32,
)
from relay.interpreters.fixed_point import lookup_codes
from relay.interpreters.meaning import Meanings, number
from relay.interpreters.nn import matrix_product
from relay.interpreters.qnn import to_codes


@cache
def logistic_table(integer_bits: int = 3) -> npt.NDArray[np.int16]:
    """gemmlowp's logistic function in Q0.15 for every int16, from the lowest on; arguments have `integer_bits` integer
    bits."""
    return read_only(FIXED16.logistic(tflm.CODES16, integer_bits).astype(np.int16))


@cache
def tanh_table(integer_bits: int = 3) -> npt.NDArray[np.int16]:
    """gemmlowp's hyperbolic tangent in Q0.15 for every int16, from the lowest on; arguments have `integer_bits` integer
    bits."""
    return read_only(FIXED16.tanh(tflm.CODES16, integer_bits).astype(np.int16))


def gate_tables(numerics: str, integer_bits: int = 3) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    """The tables of the logistic function and the hyperbolic tangent of an LSTM; the latter's arguments have
    `integer_bits` integer bits."""
    if numerics == "tflm":
        return tflm.logistic_table(), tflm.tanh_table(integer_bits)
    return logistic_table(), tanh_table(integer_bits)


def saturate16(x: Int64) -> Int64:
    return np.clip(x, -(1 << 15), (1 << 15) - 1)


def product(x: Array, kernel: Array) -> Int64:
    """`x @ kernel.T` in int32 arithmetic, which wraps; the result is held as int64."""
    return int64(matrix_product(np.asarray(x, np.int32), kernel.astype(np.int32), np.dtype(np.int32)))


def lstm(
    op: qnn.LstmOp,
    data: Array,
    input_kernel: Array,
    recurrent_kernel: Array,
    bias: Array,
    hidden: Array,
    cell: Array,
) -> tuple[Array, Array, Array]:
    time_major, units = bool(op.time_major.value.data), hidden.shape[-1]
    steps = data if time_major else data.swapaxes(0, 1)
    gates = 3 if op.cifg.value.data else 4
    per_gate = [
        np.repeat(to_numpy(attr), units)
        for attr in (op.input_multiplier, op.input_shift, op.recurrent_multiplier, op.recurrent_shift)
    ]
    sigmoid, tanh = gate_tables(op.numerics.data)
    tanh_of_cell = gate_tables(op.numerics.data, 15 + number(op.cell_shift))[1]
    cell_shift, clip, state = number(op.cell_shift), number(op.cell_clip), int64(cell)
    outputs: list[Array] = []
    for x in steps:
        from_input = wrap32(product(int64(x) - number(op.input_zero_point), input_kernel) + bias)
        from_hidden = product(int64(hidden) - number(op.hidden_zero_point), recurrent_kernel)
        total = saturate16(multiply_by_quantized_multiplier(from_input, per_gate[0], per_gate[1]))
        total = saturate16(total + multiply_by_quantized_multiplier(from_hidden, per_gate[2], per_gate[3]))
        parts = np.split(total.astype(np.int16), gates, axis=-1)
        forget, candidate, output = parts[-3], parts[-2], parts[-1]
        forget_gate = int64(lookup_codes(sigmoid, forget))
        input_gate = 32767 - forget_gate if gates == 3 else int64(lookup_codes(sigmoid, parts[0]))
        kept = FIXED16.wrap(rounding_right_shift(forget_gate * state, 15))
        written = input_gate * int64(lookup_codes(tanh, candidate))
        state = saturate16(kept + FIXED16.wrap(rounding_right_shift(written, 30 + cell_shift)))
        if clip > 0:
            state = np.clip(state, -clip, clip)
        shown = int64(lookup_codes(tanh_of_cell, state.astype(np.int16)))
        raw = int64(lookup_codes(sigmoid, output)) * shown
        scaled = multiply_by_quantized_multiplier(raw, number(op.hidden_multiplier), number(op.hidden_shift))
        hidden = to_codes(scaled, number(op.hidden_zero_point), np.dtype(np.int8))
        outputs.append(hidden)
    sequence = np.stack(outputs, 0 if time_major else 1) if outputs else np.zeros((*data.shape[:2], units), np.int8)
    return sequence, hidden, state.astype(np.int16)


def svdf(
    op: qnn.SvdfOp, data: Array, feature_kernel: Array, time_kernel: Array, *bias_and_state: Array
) -> tuple[Array, Array]:
    bias, state = bias_and_state if len(bias_and_state) == 2 else (None, bias_and_state[0])
    (filters, memory), batch, rank = time_kernel.shape, data.shape[0], op.rank.value.data
    slots = int64(state).reshape(batch, filters, memory)
    features = product(int64(data) - number(op.input_zero_point), feature_kernel)
    newest = multiply_by_quantized_multiplier(features, number(op.feature_multiplier), number(op.feature_shift))
    newest = np.clip(newest, *code_range(state.dtype))
    slots = np.concatenate([slots[:, :, 1:], newest[:, :, None]], axis=2)
    total = (slots * time_kernel).sum(axis=2).reshape(batch, filters // rank, rank).sum(axis=2)
    total = wrap32(total if bias is None else total + bias)
    scaled = multiply_by_quantized_multiplier(total, number(op.multiplier), number(op.shift))
    result = to_codes(scaled, number(op.output_zero_point), np.dtype(np.int8), op.min, op.max)
    return result, slots.reshape(state.shape).astype(state.dtype)


MEANINGS: Meanings = {qnn.LstmOp: lstm, qnn.SvdfOp: svdf}
