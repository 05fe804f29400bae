"""Imports quantized recurrent layers with state between runs: UNIDIRECTIONAL_SEQUENCE_LSTM (8-bit with 16-bit cell
state) and SVDF.

Float layers are in `recurrent_sequences.py`.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.attributes import Array
from relay.frontend.importing.builder import multiplier_attrs, multiplier_vectors, number
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.operators.recurrent_floats import state
from relay.frontend.tflite.operators.recurrent_sequences import lstm_sequence
from relay.frontend.tflite.operators.recurrent_sequences import svdf as float_svdf
from relay.frontend.tflite.table import operator
from relay.interpreters.arithmetic import quantize_multiplier, quantize_multipliers, round_away

_GATE_SCALE = np.float32(2.0**-12)
"""The scale of the gates' sums: Q3.12."""
_NOT_BUILT = ((range(9, 12), "peephole connections"), (range(16, 18), "a projection"), (range(20, 24), "layer norms"))


@operator("UNIDIRECTIONAL_SEQUENCE_LSTM", versions=(1, 4), inputs=(20, 24), known={"tflm": "INT8"})
def unidirectional_sequence_lstm(importer: Importer, node: Node) -> list[SSAValue]:
    """Import UNIDIRECTIONAL_SEQUENCE_LSTM. Inputs: data, 4 input kernels, 4 recurrent kernels, 3 peepholes, 4 biases, 2
    projections, 2 states, 4 norms.

    The gates are in the order input (absent if it is coupled to the forget gate), forget, cell, output. All scales are
    multiplied in float32.
    """
    if node.input(0).type == "FLOAT32":
        return lstm_sequence(importer, node)
    for numbers, what in _NOT_BUILT:
        if any(node.optional(number) is not None for number in numbers):
            raise node.unsupported(f"has {what}")
    if node.word("fused_activation_function") != "TANH":
        raise node.unsupported(f"the activation is {node.word('fused_activation_function')}, not TANH")
    if node.flag("diagonal_recurrent_tensors"):
        raise node.unsupported("the recurrent weights are diagonal")
    coupled = node.optional(1) is None
    gates = range(1 if coupled else 0, 4)
    data, hidden, cell = node.input(0), state(node, 18), state(node, 19)
    inputs, recurrents = [node.input(1 + gate) for gate in gates], [node.input(5 + gate) for gate in gates]
    biases = [node.optional(12 + gate) for gate in gates]
    _check_types(node, (data, node.output(), hidden, *inputs, *recurrents), cell, biases)
    units = node.shape(inputs[0], 2)[0]
    zeros = np.zeros(units, np.int32)
    operands = [
        importer.value(data),
        _stack(importer, node, [node.array(tensor) for tensor in inputs], "input_kernel"),
        _stack(importer, node, [node.array(tensor) for tensor in recurrents], "recurrent_kernel"),
        _stack(importer, node, [zeros if tensor is None else node.array(tensor) for tensor in biases], "bias"),
        importer.value(hidden),
        importer.value(cell),
    ]
    source, previous, result = node.codes(data), node.codes(hidden), node.codes(node.intermediate(4))
    if previous.zero_point != result.zero_point:
        raise node.unsupported(f"the zero points of {hidden} and {node.intermediate(4)} differ")
    output_scale = np.float32(2.0**-15 / np.float64(result.scale) * 2.0**-15)
    properties: dict[str, Attribute] = {
        "input_zero_point": number(source.zero_point),
        "hidden_zero_point": number(previous.zero_point),
        **_gate_multipliers(node, "input", inputs, source.scale),
        **_gate_multipliers(node, "recurrent", recurrents, previous.scale),
        **multiplier_attrs(quantize_multiplier(float(output_scale)), "hidden_"),
        "cell_shift": number(_cell_shift(node, cell)),
        "cell_clip": number(_cell_clip(node, cell)),
        "cifg": BoolAttr.from_bool(coupled),
        "time_major": BoolAttr.from_bool(node.flag("time_major")),
        "numerics": StringAttr(importer.numerics.curves),
    }
    result, last_hidden, last_cell = importer.several(qnn.LstmOp, *operands, **properties)
    importer.define(hidden, last_hidden)
    importer.define(cell, last_cell)
    return [result]


def _check_types(node: Node, codes: tuple[Tensor, ...], cell: Tensor, biases: list[Tensor | None]) -> None:
    if cell.type != "INT16" or any(tensor.type != "INT8" for tensor in codes):
        raise node.refuse_types(*codes, cell, hint="only int8 with an int16 cell state is")
    if any(bias is not None and bias.type != "INT32" for bias in biases):
        raise node.refuse_types(*biases)


def _stack(importer: Importer, node: Node, arrays: list[Array], what: str) -> SSAValue:
    """The gates' weights concatenated to one constant, named after the operator."""
    if any(array.shape[1:] != arrays[0].shape[1:] for array in arrays):
        raise node.malformed(f"the gates' weights have shapes {[array.shape for array in arrays]}")
    return importer.constant(np.concatenate(arrays), f"{node.name}/{what}")


def _gate_multipliers(node: Node, what: str, kernels: list[Tensor], scale: np.float32) -> dict[str, Attribute]:
    found = quantize_multipliers(np.array([node.codes(kernel).scale * scale / _GATE_SCALE for kernel in kernels]))
    return {f"{what}_{label}": each for label, each in multiplier_vectors(found).items()}


def _cell_shift(node: Node, cell: Tensor) -> int:
    """The exponent of the cell's scale, which must be a power of two."""
    scale = node.codes(cell).scale
    power = int(round_away(np.asarray(np.log2(scale))))
    if scale != np.float32(2.0**power) or not -15 <= power <= -1:
        raise node.unsupported(f"the scale of {cell} is {scale}, not a power of two")
    return power


def _cell_clip(node: Node, cell: Tensor) -> int:
    clip = np.float32(node.real("cell_clip"))
    return int(np.clip(clip / node.codes(cell).scale, -32768, 32767)) if clip > 0 else 0


@operator("SVDF", versions=(1, 4), inputs=(5, 5), known={"tflm": "INT8"})
def svdf(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SVDF. Inputs: data, feature weights, time weights, bias, state. Scales are multiplied in float32.

    The reference kernel only accepts the activation RELU, and does not apply it: only the range of the type bounds the
    result.
    """
    if node.input(0).type == "FLOAT32":
        return float_svdf(importer, node)
    data, features, time, bias, memory = (*(node.input(i) for i in range(3)), node.optional(3), state(node, 4))
    out = node.output()
    if node.types(data, features, out) != ("INT8", "INT8", "INT8") or memory.type not in ("INT8", "INT16"):
        raise node.refuse_types(data, features, memory, out)
    if time.type != memory.type or (bias is not None and bias.type != "INT32"):
        raise node.refuse_types(time, memory, bias)
    for tensor in (data, features, time):
        node.shape(tensor, 2)
    source, target, held = node.codes(data), node.codes(out), node.codes(memory)
    if node.activation() != "RELU":
        raise node.unsupported(f"the fused activation is {node.activation()}, not RELU")
    feature = quantize_multiplier(float(source.scale * node.codes(features).scale / held.scale))
    last = quantize_multiplier(float(held.scale * node.codes(time).scale / target.scale))
    properties: dict[str, Attribute] = {
        "input_zero_point": number(source.zero_point),
        "rank": number(*node.positive("rank")),
        **multiplier_attrs(feature, "feature_"),
        **multiplier_attrs(last),
        "output_zero_point": number(target.zero_point),
        "min": number(target.low),
        "max": number(target.high),
    }
    operands = [importer.value(tensor) for tensor in (data, features, time, bias, memory) if tensor is not None]
    result, new_state = importer.several(qnn.SvdfOp, *operands, **properties)
    importer.define(memory, new_state)
    return [result]
