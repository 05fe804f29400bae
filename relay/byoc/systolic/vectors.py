"""Generates the ops of the vector unit: quantized sums, averages, softmax. `*_refusal` returns why an op is not
supported."""

from __future__ import annotations

from math import prod

import numpy as np

from relay.byoc.quantized import code_limits, dtype, form_refusal
from relay.byoc.systolic.assembler import INPUT_ROWS, INPUTS, PARAMETERS, RESULT_ROWS, RESULTS, Assembler
from relay.byoc.systolic.isa import LANES, Add, Average, Softmax
from relay.byoc.systolic.products import load_pixels
from relay.dialects import qnn, relay
from relay.dialects.attributes import int_values
from relay.dialects.op import shape
from relay.interpreters.qnn import softmax_exp_table

CHUNK = RESULT_ROWS * LANES
"""The number of bytes of a tensor that an elementwise op processes at a time, such that each operand takes half of the
scratchpad's input rows."""


def reshape_refusal(op: relay.ReshapeOp) -> str | None:
    found = dtype(op.result)
    return None if found == np.int8 else f"the accelerator holds int8, not {found}"


def add_refusal(op: qnn.AddOp) -> str | None:
    if dtype(op.result) != np.int8:
        return "the vector unit adds int8"
    if shape(op.lhs) != shape(op.rhs):
        return "the vector unit does not broadcast"
    if op.rounding.data != "tflite":
        return f"the vector unit rounds as tflite, not as {op.rounding.data}"
    if not 0 <= op.left_shift.value.data <= 20:
        return f"a left shift of {op.left_shift.value.data} could overflow"
    return None


def write_add(program: Assembler, op: qnn.AddOp, target: int) -> None:
    numbers = [op.left_shift]
    numbers += [op.lhs_zero_point, op.lhs_multiplier, op.lhs_shift, op.rhs_zero_point, op.rhs_multiplier, op.rhs_shift]
    numbers += [op.multiplier, op.shift, op.output_zero_point]
    program.parameters(np.array([*(n.value.data for n in numbers), *code_limits(op)], np.int32))
    second = INPUTS + INPUT_ROWS // 2
    size = prod(shape(op.result))
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        program.load(program.addresses[op.lhs] + start, INPUTS, count)
        program.load(program.addresses[op.rhs] + start, second, count)
        program.emit(Add(lhs=INPUTS, rhs=second, row=RESULTS, rows=-(-count // LANES), parameters=PARAMETERS))
        program.store(target + start, RESULTS, count)


def average_refusal(op: relay.AvgPool2dOp) -> str | None:
    _, height, width, channels = shape(op.data)
    if (reason := form_refusal(op)) is not None:
        return reason
    if dtype(op.data) != np.int8:
        return "the vector unit averages int8"
    if int_values(op.pool_size) != (height, width) or any(int_values(op.padding)):
        return "the vector unit averages whole images only"
    if not 0 < height * width * -(-channels // LANES) <= INPUT_ROWS:
        return f"its image takes more than {INPUT_ROWS} rows of the scratchpad"
    return None


def write_average(program: Assembler, op: relay.AvgPool2dOp, target: int) -> None:
    images, height, width, channels = shape(op.data)
    blocks, pixels = -(-channels // LANES), height * width
    for image in range(images):
        where = program.addresses[op.data] + image * pixels * channels
        load_pixels(program, where, INPUTS, channels, pixels)
        for block in range(blocks):
            program.emit(Average(row=INPUTS + block, stride=blocks, rows=pixels, target=RESULTS + block))
        program.store(target + image * channels, RESULTS, channels)


def softmax_refusal(op: qnn.SoftmaxOp) -> str | None:
    if dtype(op.input) != np.int8:
        return "the vector unit's softmax takes int8"
    if not 0 < shape(op.input)[-1] <= 256:
        return f"the vector unit's softmax takes 256 codes, not {shape(op.input)[-1]}"
    return None


def write_softmax(program: Assembler, op: qnn.SoftmaxOp, target: int) -> None:
    program.parameters(softmax_exp_table(op.multiplier.value.data, op.shift.value.data))
    count = shape(op.input)[-1]
    for start in range(0, prod(shape(op.input)), count):
        program.load(program.addresses[op.input] + start, INPUTS, count)
        program.emit(Softmax(row=INPUTS, target=RESULTS, count=count, table=PARAMETERS))
        program.store(target + start, RESULTS, count)


def copy(program: Assembler, source: int, target: int, size: int) -> None:
    """Copy `size` bytes from one memory address to another, through the scratchpad."""
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        program.load(source + start, RESULTS, count)
        program.store(target + start, RESULTS, count)
