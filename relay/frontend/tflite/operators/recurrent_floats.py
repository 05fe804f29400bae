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
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.recurrent import States
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
Step = Callable[[SSAValue, States], States]
"""Returns the new states from the products of a step's data with the kernels and from the previous states."""


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

    def activated(self, x: Scalar) -> Scalar:
        if self.activation == "TANH":
            return x.of(relay.TanhOp)
        return Scalar(self.importer, self.importer.clip_reals(x.value, self.activation))

    def biased(self, x: Scalar, bias: Tensor | None) -> Scalar:
        return Scalar(self.importer, add_bias(self.importer, x.value, bias))

    def vector(self, number: int) -> Scalar | None:
        """An optional input of floats; weights of int8 are dequantized."""
        tensor = self.node.optional(number)
        if tensor is None or tensor.type == "FLOAT32":
            return None if tensor is None else Scalar(self.importer, self.importer.value(tensor))
        if tensor.type != "INT8":
            raise self.node.refuse_types(tensor)
        reals = self.importer.cast(self.importer.value(tensor), self.importer.element(self.node.output()))
        return Scalar(self.importer, reals) * float(self.node.codes(tensor).scale)

    def product(self, value: SSAValue, kernels: Sequence[Tensor]) -> Scalar:
        """`value [n, k]` times the kernels `[units, k]`, with their results concatenated."""
        weights = self.importer.concatenate([self.importer.value(kernel) for kernel in kernels], 0)
        types = {kernel.type for kernel in kernels}
        if types == {"FLOAT32"}:
            return Scalar(self.importer, self.importer.call(relay.DenseOp, value, weights, out_dtype=f32))
        if types != {"INT8"}:
            raise self.node.refuse_types(*kernels)
        scales = [np.full(self.node.shape(kernel, 2)[0], self.node.codes(kernel).scale) for kernel in kernels]
        found = line_products(self.importer, value, weights, np.concatenate(scales), self.asymmetric)
        return Scalar(self.importer, found)

    def steps(self, data: Tensor, time_axis: int, kernels: Sequence[Tensor]) -> list[SSAValue]:
        """The products of each step's data [batch, k] with the kernels, computed for all steps at once."""
        dims = data.shape
        if len(dims) != 3:  # a single step
            count, width = self.node.shape(data, 2)
            dims = (1, count, width) if time_axis == 0 else (count, 1, width)
        if not 1 <= dims[time_axis] <= MOST_STEPS:
            raise self.node.unsupported(f"{dims[time_axis]} steps: 1 to {MOST_STEPS} are unrolled")
        rows = self.importer.reshape(self.importer.value(data), [dims[0] * dims[1], dims[2]])
        whole = self.product(rows, kernels).value
        whole = self.importer.reshape(whole, [*dims[:2], self.importer.shape(whole)[1]])
        return self.importer.unstack(whole, time_axis)

    def run(
        self, data: Tensor, kernels: Sequence[Tensor], memory: Sequence[Tensor], step: Step, axis: int, back: bool
    ) -> SSAValue:
        """Build all steps along the time axis, from the last one to the first if `back`.
        Returns the hidden states of all steps, in the order of the data, stacked along the time axis; the variables
        `memory` of the states get their values after the last step built."""
        states: States = [Scalar(self.importer, self.importer.value(tensor)) for tensor in memory]
        rows, found = self.steps(data, axis, kernels), list[SSAValue]()
        for row in reversed(rows) if back else rows:
            states = step(row, states)
            found.append(states[0].value)
        for tensor, each in zip(memory, states, strict=True):
            self.importer.define(tensor, each.value)
        return self.importer.concatenate(self.importer.layers(found[::-1] if back else found, axis), axis)


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

    def step(self, row: SSAValue, states: States) -> States:
        make, node, (hidden, cell) = self.make, self.node, states
        total = Scalar(self.importer, row) + make.product(hidden.value, self.recurrents)
        parts = self.importer.parts(total.value, [self.units] * len(self.gates), 1)
        sums = {gate: Scalar(self.importer, part) for gate, part in zip(self.gates, parts, strict=True)}
        forget = self.gate(1, sums[1], cell).of(relay.SigmoidOp)
        admit = forget.number(1.0) - forget if self.coupled else self.gate(0, sums[0], cell).of(relay.SigmoidOp)
        candidate = make.activated(self.gate(2, sums[2], None))
        cell = self.clipped(forget * cell + admit * candidate, node.real("cell_clip"))
        output = self.gate(3, sums[3], cell).of(relay.SigmoidOp)
        hidden = output * make.activated(cell)
        projection = node.optional(self.slots.projection)
        if projection is not None:
            bias = node.optional(self.slots.projection + 1)
            hidden = make.biased(make.product(hidden.value, [projection]), bias)
            hidden = self.clipped(hidden, node.real("proj_clip"))
        return [hidden, cell]

    def gate(self, gate: int, value: Scalar, cell: Scalar | None) -> Scalar:
        """The sum of a gate before its activation function."""
        peephole, norm, bias = self.peepholes.get(gate), self.norms[gate], self.biases[gate]
        if peephole is not None and cell is not None:
            value = value + cell * peephole
        if norm is not None:
            value = _normalised(value) * norm
        return value if bias is None else value + bias

    def clipped(self, value: Scalar, bound: float) -> Scalar:
        return value if bound <= 0 else value.between(-bound, bound)


def _normalised(x: Scalar) -> Scalar:
    """The value normalized to mean 0 and variance 1."""
    rest = x - x.of(relay.MeanOp, axis=[1], keepdims=True)
    variance = (rest * rest).of(relay.MeanOp, axis=[1], keepdims=True)
    return rest * (variance + NORM_EPSILON).of(relay.RsqrtOp)
