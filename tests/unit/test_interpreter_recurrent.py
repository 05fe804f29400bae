"""LSTM and SVDF steps against their formulas, one number at a time."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute

from relay.dialects import qnn
from relay.dialects.attributes import Array, elements
from relay.interpreters import compute
from relay.interpreters.arithmetic import (
    FIXED16,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_right_shift,
)
from relay.interpreters.qnn_recurrent import logistic_table, tanh_table

RANDOM = np.random.default_rng(7)
TIME, BATCH, INPUTS, UNITS = 4, 2, 5, 3
CELL_SHIFT = -11


def whole(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i32)


def codes(*shape: int) -> Array:
    return RANDOM.integers(-128, 128, shape, dtype=np.int8)


def rescale(x: int, factor: float) -> int:
    return int(multiply_by_quantized_multiplier(x, *quantize_multiplier(factor)))


def saturate(x: int) -> int:
    return min(max(x, -32768), 32767)


def dot(row: Array, x: list[int], zero_point: int) -> int:
    return sum(int(w) * (v - zero_point) for w, v in zip(row, x, strict=True))


def lstm_step(
    x: list[int], h: list[int], c: list[int], kernels: tuple[Array, Array, Array],
    factors: list[tuple[float, float]], clip: int,
) -> tuple[list[int], list[int]]:  # fmt: skip
    """One step of one batch: zero points 4 (input) and -6 (hidden), hidden rescaled by 0.75 * 2^-22."""
    hidden, cell = list[int](), list[int]()
    for unit in range(UNITS):
        gates = list[int]()
        for gate, (input_factor, recurrent_factor) in enumerate(factors):
            row = gate * UNITS + unit
            total = saturate(rescale(dot(kernels[0][row], x, 4) + int(kernels[2][row]), input_factor))
            gates.append(saturate(total + rescale(dot(kernels[1][row], h, -6), recurrent_factor)))
        forget, output = (int(FIXED16.logistic(gates[g], 3)) for g in (-3, -1))
        candidate = int(FIXED16.tanh(gates[-2], 3))
        write = 32767 - forget if len(factors) == 3 else int(FIXED16.logistic(gates[0], 3))
        kept = int(rounding_right_shift(forget * c[unit], 15))
        state = saturate(kept + int(rounding_right_shift(write * candidate, 30 + CELL_SHIFT)))
        state = min(max(state, -clip), clip) if clip else state
        shown = int(FIXED16.tanh(state, 15 + CELL_SHIFT))
        cell.append(state)
        hidden.append(min(max(rescale(output * shown, 0.75 * 2.0**-22) - 6, -128), 127))
    return hidden, cell


@pytest.mark.parametrize("clip", [0, 900])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("cifg", [False, True])
def test_lstm(cifg: bool, time_major: bool, clip: int) -> None:
    gates = 3 if cifg else 4
    kernels = codes(gates * UNITS, INPUTS), codes(gates * UNITS, UNITS)
    bias = RANDOM.integers(-5000, 5000, gates * UNITS, dtype=np.int32)
    data, hidden = codes(TIME, BATCH, INPUTS), codes(BATCH, UNITS)
    cell = RANDOM.integers(-3000, 3000, (BATCH, UNITS), dtype=np.int16)
    factors = [(0.11 + 0.07 * g, 0.29 - 0.05 * g) for g in range(gates)]
    expected, last_hidden, last_cell = np.zeros((TIME, BATCH, UNITS), int), list[list[int]](), list[list[int]]()
    for b in range(BATCH):
        h, c = hidden[b].tolist(), cell[b].tolist()
        for t in range(TIME):
            h, c = lstm_step(data[t, b].tolist(), h, c, (*kernels, bias), factors, clip)
            expected[t, b] = h
        last_hidden.append(h)
        last_cell.append(c)

    def per_gate(side: int, part: int) -> Attribute:
        return elements([quantize_multiplier(f[side])[part] for f in factors], np.int32)

    multiplier, shift = quantize_multiplier(0.75 * 2.0**-22)
    given: dict[str, Attribute | None] = {
        "input_zero_point": whole(4), "hidden_zero_point": whole(-6),
        "input_multiplier": per_gate(0, 0), "input_shift": per_gate(0, 1),
        "recurrent_multiplier": per_gate(1, 0), "recurrent_shift": per_gate(1, 1),
        "hidden_multiplier": whole(multiplier), "hidden_shift": whole(shift), "cell_shift": whole(CELL_SHIFT),
        "cell_clip": whole(clip), "cifg": BoolAttr.from_bool(cifg), "time_major": BoolAttr.from_bool(time_major),
    }  # fmt: skip
    given_data = data if time_major else np.ascontiguousarray(data.swapaxes(0, 1))
    sequence, h, c = compute(qnn.LstmOp, [given_data, *kernels, bias, hidden, cell], given)
    assert (sequence.dtype, h.dtype, c.dtype) == (np.int8, np.int8, np.int16)
    assert (sequence if time_major else sequence.swapaxes(0, 1)).tolist() == expected.tolist()
    assert h.tolist() == last_hidden and c.tolist() == last_cell
    assert len(np.unique(sequence)) > 4


@pytest.mark.parametrize("bits", [np.int8, np.int16])
@pytest.mark.parametrize("with_bias", [False, True])
def test_svdf(bits: type[np.signedinteger], with_bias: bool) -> None:
    filters, memory, rank = 6, 4, 2
    data, feature = codes(BATCH, INPUTS), codes(filters, INPUTS)
    time = RANDOM.integers(-100, 100, (filters, memory)).astype(bits)
    state = RANDOM.integers(-100, 100, (BATCH, filters * memory)).astype(bits)
    bias = RANDOM.integers(-999, 999, filters // rank, dtype=np.int32)
    low, high = int(np.iinfo(bits).min), int(np.iinfo(bits).max)
    slots = state.reshape(BATCH, filters, memory).tolist()
    expected = np.zeros((BATCH, filters // rank), int)
    for b in range(BATCH):
        for f in range(filters):
            newest = min(max(rescale(dot(feature[f], data[b].tolist(), 3), 0.04), low), high)
            slots[b][f] = slots[b][f][1:] + [newest]
        for u in range(filters // rank):
            rows = range(u * rank, u * rank + rank)
            total = sum(dot(time[f], slots[b][f], 0) for f in rows) + (int(bias[u]) if with_bias else 0)
            expected[b, u] = min(max(rescale(total, 0.004) - 5, -100), 90)
    first, second = quantize_multiplier(0.04), quantize_multiplier(0.004)
    given: dict[str, Attribute | None] = {
        "input_zero_point": whole(3), "rank": whole(rank), "feature_multiplier": whole(first[0]),
        "feature_shift": whole(first[1]), "multiplier": whole(second[0]), "shift": whole(second[1]),
        "output_zero_point": whole(-5), "min": whole(-100), "max": whole(90),
    }  # fmt: skip
    operands = [data, feature, time, *([bias] if with_bias else []), state]
    result, new_state = compute(qnn.SvdfOp, operands, given)
    assert result.dtype == np.int8 and result.tolist() == expected.tolist()
    assert new_state.dtype == bits and new_state.reshape(BATCH, filters, memory).tolist() == slots


def test_tables_start_at_the_lowest_code() -> None:
    for table, low, middle in ((logistic_table(), 11, 16384), (tanh_table(), -32767, 0), (tanh_table(4), -32767, 0)):
        assert table.dtype == np.int16 and table.shape == (1 << 16,) and not table.flags.writeable
        assert table[1 << 15] == middle and abs(int(table[0]) - low) <= 1
    assert tanh_table(4) is tanh_table(4)
