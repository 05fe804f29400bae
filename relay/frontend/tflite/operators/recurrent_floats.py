"""Builds float recurrent layers, unrolled over time: LSTM and simple RNN in one or both directions, and a step of SVDF.

Weights may be int8: then each row of data and state is quantised at run time. Source: TFLite's `lstm_eval.cc`,
`kernel_utils.cc`, `svdf.h`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import FLOATS, Node
from relay.frontend.tflite.operators.convolution import add_bias
from relay.frontend.tflite.operators.hybrid import line_products
from relay.frontend.tflite.scales import is_clamp

MOST_STEPS = 1024
"""The maximum number of steps that are unrolled."""
NORM_EPSILON = 1e-8
"""The epsilon that layer norms add to the variance."""
Step = Callable[..., list[SSAValue]]
"""Returns the new states, the hidden state first, from the products of a step's data with the kernels and from the
previous states."""


def state(node: Node, number: int) -> Tensor:
    """An input that the operator changes: a variable of the file, which becomes an argument and a result."""
    tensor = node.input(number)
    if not tensor.is_variable or tensor.index in node.graph.inputs:
        raise node.unsupported(f"the state {tensor} is no variable")
    return tensor


class Builder:
    """Builds the relay ops of one recurrent TFLite operator, `node`, with its activation and its float or int8
    weights."""

    def __init__(self, importer: Importer, node: Node) -> None:
        self.importer, self.node = importer, node
        self.asymmetric = node.flag("asymmetric_quantize_inputs")
        self.activation = node.word("fused_activation_function")
        if self.activation != "TANH" and not is_clamp(self.activation):
            raise node.unsupported(f"the activation is {self.activation}")

    def times(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.importer.call(relay.MultiplyOp, lhs, rhs)

    def plus(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.importer.call(relay.AddOp, lhs, rhs)

    def activated(self, value: SSAValue) -> SSAValue:
        if self.activation == "TANH":
            return self.importer.call(relay.TanhOp, value)
        return self.importer.clip_reals(value, self.activation)

    def vector(self, number: int) -> SSAValue | None:
        """An optional input of floats; weights of int8 are dequantized."""
        tensor = self.node.optional(number)
        if tensor is None or tensor.type == "FLOAT32":
            return None if tensor is None else self.importer.value(tensor)
        if tensor.type != "INT8":
            raise self.node.refuse_types(tensor)
        reals = self.importer.cast(self.importer.value(tensor), self.importer.element(self.node.output()))
        return self.times(reals, self.importer.scalar(float(self.node.codes(tensor).scale), reals))

    def product(self, value: SSAValue, kernels: Sequence[Tensor]) -> SSAValue:
        """`value [n, k]` times the kernels `[units, k]`, with their results concatenated."""
        weights = self.importer.concatenate([self.importer.value(kernel) for kernel in kernels], 0)
        types = {kernel.type for kernel in kernels}
        if types == {"FLOAT32"}:
            return self.importer.call(relay.DenseOp, value, weights, out_dtype=f32)
        if types != {"INT8"}:
            raise self.node.refuse_types(*kernels)
        scales = [np.full(self.node.shape(kernel, 2)[0], self.node.codes(kernel).scale) for kernel in kernels]
        return line_products(self.importer, value, weights, np.concatenate(scales), self.asymmetric)

    def steps(self, data: Tensor, time_axis: int, kernels: Sequence[Tensor]) -> list[SSAValue]:
        """The products of each step's data [batch, k] with the kernels, computed for all steps at once."""
        dims = data.shape
        if len(dims) != 3:  # a single step
            count, width = self.node.shape(data, 2)
            dims = (1, count, width) if time_axis == 0 else (count, 1, width)
        if not 1 <= dims[time_axis] <= MOST_STEPS:
            raise self.node.unsupported(f"{dims[time_axis]} steps: 1 to {MOST_STEPS} are unrolled")
        rows = self.importer.reshape(self.importer.value(data), [dims[0] * dims[1], dims[2]])
        whole = self.product(rows, kernels)
        width = self.importer.shape(whole)[1]
        whole = self.importer.reshape(whole, [*dims[:2], width])
        batch = dims[1 - time_axis]
        parts = self.importer.parts(whole, [1] * dims[time_axis], time_axis)
        return [self.importer.reshape(each, [batch, width]) for each in parts]

    def run(
        self, data: Tensor, kernels: Sequence[Tensor], memory: Sequence[Tensor], step: Step, axis: int, back: bool
    ) -> SSAValue:
        """Build all steps along the time axis, from the last one to the first if `back`.
        Returns the hidden states of all steps, in the order of the data, stacked along the time axis; the variables
        `memory` of the states get their values after the last step built."""
        states = [self.importer.value(tensor) for tensor in memory]
        rows = self.steps(data, axis, kernels)
        found: list[SSAValue] = []
        for row in reversed(rows) if back else rows:
            states = step(row, *states)
            found.append(states[0])
        for tensor, value in zip(memory, states, strict=True):
            self.importer.define(tensor, value)
        batch, width = self.importer.shape(found[0])
        dims = [1, batch, width] if axis == 0 else [batch, 1, width]
        layers = [self.importer.reshape(each, dims) for each in (found[::-1] if back else found)]
        return self.importer.concatenate(layers, axis)


class Slots(NamedTuple):
    """The indices of an LSTM's tensors among the inputs of an operator. Where there are several tensors of a kind, such
    as one per gate, it is the index of the first, and the others follow."""

    kernel: int
    recurrent: int
    peephole: int
    bias: int
    projection: int
    hidden: int
    cell: int
    norm: int


class Lstm:
    """An LSTM with the gates input (absent if it is coupled to the forget gate), forget, cell, output. Each gate is
    `f(norm(W x + R h + p * c) + b)`, with kernels W of the data x and R of the hidden state h, peephole weights p of
    the cell state c (optional), layer normalization `norm` (optional), bias b and activation function f. Then c becomes
    `forget * c + input * cell`, and h `P (output * f(c)) + d`, with a projection P and its bias d (both optional)."""

    def __init__(self, importer: Importer, node: Node, slots: Slots) -> None:
        self.make, self.importer, self.node, self.slots = Builder(importer, node), importer, node, slots
        if self.make.activation == "NONE":  # LiteRT multiplies the output gate by the candidate, not by the cell state
            raise node.unsupported("an LSTM without an activation; TANH is the usual one")
        self.coupled = node.optional(slots.kernel) is None
        self.gates = range(1 if self.coupled else 0, 4)
        self.kernels = [node.input(slots.kernel + gate) for gate in self.gates]
        self.recurrents = [node.input(slots.recurrent + gate) for gate in self.gates]
        self.units = node.shape(self.recurrents[0], 2)[0]
        self.norms = {gate: self.make.vector(slots.norm + gate) for gate in self.gates}
        self.biases = {gate: self.make.vector(slots.bias + gate) for gate in self.gates}
        self.peepholes = {gate: self.make.vector(slots.peephole + n) for n, gate in enumerate((0, 1, 3))}

    def run(self, data: Tensor, time_axis: int, backward: bool = False) -> SSAValue:
        """Build all steps (`Builder.run`)."""
        memory = state(self.node, self.slots.hidden), state(self.node, self.slots.cell)
        self.node.one_type(FLOATS, *memory)
        return self.make.run(data, self.kernels, memory, self.step, time_axis, backward)

    def step(self, row: SSAValue, hidden: SSAValue, cell: SSAValue) -> list[SSAValue]:
        make, node, units = self.make, self.node, self.units
        total = make.plus(row, make.product(hidden, self.recurrents))
        parts = dict(zip(self.gates, self.importer.parts(total, [units] * len(self.gates), 1), strict=True))
        forget = self.importer.call(relay.SigmoidOp, self.gate(1, parts[1], cell))
        if self.coupled:
            admit = self.importer.call(relay.SubtractOp, self.importer.scalar(1.0, forget), forget)
        else:
            admit = self.importer.call(relay.SigmoidOp, self.gate(0, parts[0], cell))
        candidate = make.activated(self.gate(2, parts[2], None))
        cell = make.plus(make.times(forget, cell), make.times(admit, candidate))
        cell = self.clipped(cell, node.real("cell_clip"))
        output = self.importer.call(relay.SigmoidOp, self.gate(3, parts[3], cell))
        hidden = make.times(output, make.activated(cell))
        projection = node.optional(self.slots.projection)
        if projection is not None:
            bias = node.optional(self.slots.projection + 1)
            hidden = add_bias(self.importer, make.product(hidden, [projection]), bias)
            hidden = self.clipped(hidden, node.real("proj_clip"))
        return [hidden, cell]

    def gate(self, gate: int, value: SSAValue, cell: SSAValue | None) -> SSAValue:
        """The sum of a gate before its activation function."""
        make, peephole, norm, bias = self.make, self.peepholes.get(gate), self.norms[gate], self.biases[gate]
        if peephole is not None and cell is not None:
            value = make.plus(value, make.times(cell, peephole))
        if norm is not None:
            value = make.times(self.normalised(value), norm)
        return value if bias is None else make.plus(value, bias)

    def normalised(self, value: SSAValue) -> SSAValue:
        """The value normalized to mean 0 and variance 1."""
        make, axis = self.make, [1]
        mean = self.importer.call(relay.MeanOp, value, axis=axis, keepdims=True)
        rest = self.importer.call(relay.SubtractOp, value, mean)
        variance = self.importer.call(relay.MeanOp, make.times(rest, rest), axis=axis, keepdims=True)
        root = self.importer.call(relay.RsqrtOp, make.plus(variance, self.importer.scalar(NORM_EPSILON, variance)))
        return make.times(rest, root)

    def clipped(self, value: SSAValue, bound: float) -> SSAValue:
        if bound <= 0:
            return value
        return self.importer.clip(value, -bound, bound)
