"""Imports RNN, GRU and LSTM, unrolled. Source: ONNX's formulas of the operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.recurrent import gates
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op

MOST = 1 << 30
"""The maximum number of elements of a state that starts at zero."""
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_PARAMETERS: dict[str, tuple[float, ...]] = {
    "Affine": (1.0, 0.0),
    "LeakyRelu": (0.01,),
    "ThresholdedRelu": (1.0,),
    "ScaledTanh": (1.0, 0.0),
    "HardSigmoid": (0.2, 0.5),
    "Elu": (1.0,),
}
"""The default alpha, and the default beta, of the functions that have them."""
_ACTIVATIONS: dict[str, Callable[[Scalar, float, float], Scalar]] = {
    "Tanh": lambda x, a, b: x.of(relay.TanhOp),
    "Sigmoid": lambda x, a, b: x.of(relay.SigmoidOp),
    "Relu": lambda x, a, b: x.of(relay.MaximumOp, 0.0),
    "Affine": lambda x, a, b: x * a + b,
    "LeakyRelu": lambda x, a, b: (x > 0.0).choose(x, x * a, x),
    "ThresholdedRelu": lambda x, a, b: (x > a).choose(x, 0.0, x),
    "ScaledTanh": lambda x, a, b: (x * b).of(relay.TanhOp) * a,
    "HardSigmoid": lambda x, a, b: (x * a + b).between(0.0, 1.0),
    "Elu": lambda x, a, b: (x > 0.0).choose(x, (x.exp() - 1.0) * a, x),
    "Softsign": lambda x, a, b: x / (x.of(relay.AbsOp) + 1.0),
    "Softplus": lambda x, a, b: (x.exp() + 1.0).of(relay.LogOp),
}


class Direction:
    """One direction of a node: its weights and its step function."""

    HIDDEN: ClassVar[int] = 2
    """The axis of the recurrent weights whose size is that of the hidden state."""

    def __init__(self, importer: Importer, node: Node, number: int) -> None:
        self.importer, self.node, self.number, self.kind = importer, node, number, node.kind
        self.hidden = node.shape(2, 3)[self.HIDDEN]
        names = node.words("activations") or DEFAULTS[node.kind] * node.shape(1, 3)[0]
        count = len(DEFAULTS[node.kind])
        given = [iter(node.reals(f"activation_{each}") or ()) for each in ("alpha", "beta")]
        functions: list[Callable[[Scalar], Scalar]] = []
        for name in names:
            function = _ACTIVATIONS.get(name)
            if function is None:
                raise node.unsupported(f"the activation {name}", f"{', '.join(_ACTIVATIONS)} are supported")
            defaults = _PARAMETERS.get(name, ())
            # only functions that have a parameter consume a value, in the order of all directions' functions
            values = [next(each, default) for each, default in zip(given, defaults, strict=False)]
            alpha, beta = (*values, 0.0, 0.0)[:2]
            functions.append(lambda x, f=function, a=alpha, b=beta: f(x, a, b))
        self.functions = functions[number * count : (number + 1) * count]
        if len(self.functions) != count:
            raise node.malformed(f"has {len(names)} activations")
        self.weight, self.recurrent = (self.of(node.input(n), number) for n in (1, 2))
        bias = node.optional(3)
        self.bias = None if bias is None else self.of(bias, number)
        self.peepholes = None
        if node.kind == "LSTM" and (given := node.optional(7)) is not None:
            self.peepholes = gates(importer, self.of(given, number), 3)
        self.clip = node.real("clip", 0.0)
        self.before = bool(node.integer("linear_before_reset", 0)) if node.kind == "GRU" else False

    def of(self, value: SSAValue, number: int) -> SSAValue:
        """The slice of a tensor that belongs to this direction, along the first axis."""
        return self.importer.row(value, number, 0)

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """`a @ b.T` for a kernel b."""
        return self.importer.call(relay.MatmulOp, a, b, transpose_b=True, out_dtype=self.importer.element(a))

    def inputs(self, x: SSAValue) -> SSAValue:
        """The products of all steps' inputs with the weights, plus biases: [steps * batch, gates * hidden]."""
        importer = self.importer
        steps, batch, size = importer.shape(x)
        found = self.product(importer.reshape(x, [steps * batch, size]), self.weight)
        if self.bias is None:
            return found
        size = GATES[self.kind] * self.hidden
        for half in range(2):
            if half == 0 or not self.before:
                part = importer.slice(self.bias, {0: (half * size, (half + 1) * size)})
                found = importer.call(relay.AddOp, found, part)
        return found

    def clipped(self, x: Scalar) -> Scalar:
        return x.between(-self.clip, self.clip) if self.clip else x

    def step(self, given: SSAValue, states: Sequence[Scalar]) -> list[Scalar]:
        """The new states, from the input products of a step and the previous states."""
        if self.kind == "GRU":
            return [self.gru(given, states[0])]
        hidden = states[0].value
        total = self.importer.call(relay.AddOp, given, self.product(hidden, self.recurrent))
        if self.kind == "RNN":
            return [self.functions[0](self.clipped(Scalar(self.importer, total)))]
        i, o, f, c = gates(self.importer, total, 4)
        cell, (first, second, third) = states[1], self.functions
        if self.peepholes is not None:
            i, f = i + cell * self.peepholes[0], f + cell * self.peepholes[2]
        i, f = first(self.clipped(i)), first(self.clipped(f))
        if self.node.integer("input_forget", 0):
            f = i.number(1.0) - i
        cell = f * cell + i * second(self.clipped(c))
        o = o if self.peepholes is None else o + cell * self.peepholes[1]
        return [first(self.clipped(o)) * third(cell), cell]

    def gru(self, given: SSAValue, hidden: Scalar) -> Scalar:
        """One step of GRU; with `linear_before_reset` the reset gate is applied after the product with the state."""
        importer, size = self.importer, self.hidden
        inputs, (first, second) = gates(importer, given, 3), self.functions
        rows = [importer.slice(self.recurrent, {0: (g * size, (g + 1) * size)}) for g in range(3)]
        after: list[Scalar] = []  # the second half of the bias, which `linear_before_reset` adds to the products
        if self.before and self.bias is not None:
            places = [(3 + g) * size for g in range(3)]
            after = [Scalar(importer, importer.slice(self.bias, {0: (at, at + size)})) for at in places]

        def products(of: Scalar, g: int) -> Scalar:
            return Scalar(importer, self.product(of.value, rows[g]))

        def gate(g: int) -> Scalar:
            found = inputs[g] + products(hidden, g)
            return first(self.clipped(found + after[g] if after else found))

        z, r, h = gate(0), gate(1), inputs[2]
        if self.before:
            inner = products(hidden, 2)
            h = h + r * (inner + after[2] if after else inner)
        else:
            h = h + products(r * hidden, 2)
        h = second(self.clipped(h))
        return (z.number(1.0) - z) * h + z * hidden


@op(*GATES)
def recurrent(importer: Importer, node: Node) -> list[SSAValue]:
    return in_directions(importer, node, Direction)


def in_directions(importer: Importer, node: Node, kind: type[Direction]) -> list[SSAValue]:
    """All hidden states, the last ones, and for LSTM the last cell states; both directions concatenated."""
    batch_first = bool(node.integer("layout", 0)) if node.version >= 14 else False
    x = node.input(0)
    if batch_first:
        x = importer.transpose(x, (1, 0, 2))
    if importer.rank(x) != 3 or min(importer.shape(x)) < 0:
        raise node.unsupported(f"input 0 is {node.type(0)}", "its sizes must be known")
    directions = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}.get(node.word("direction"))
    if directions is None or len(directions) != node.shape(1, 3)[0]:
        raise node.malformed(f"the direction {node.word('direction')!r} and {node.shape(1)} do not fit")
    lengths = None if node.optional(4) is None else importer.cast(node.input(4), i64)
    if lengths is not None and (known := importer.known(lengths)) is not None and (known == importer.shape(x)[0]).all():
        lengths = None
    ways = [
        _one_direction(kind, importer, node, x, number, back, lengths, batch_first)
        for number, back in enumerate(directions)
    ]
    outputs, lasts = [way[0] for way in ways], [way[1:] for way in ways]
    whole = importer.stack(outputs, 1)
    found = [importer.transpose(whole, (2, 0, 1, 3)) if batch_first else whole]
    for state in range(len(lasts[0])):
        rows = importer.stack((last[state] for last in lasts), 0)
        found.append(importer.transpose(rows, (1, 0, 2)) if batch_first else rows)
    return found


def _one_direction(
    kind: type[Direction],
    importer: Importer,
    node: Node,
    x: SSAValue,
    number: int,
    back: bool,
    lengths: SSAValue | None,
    batch_first: bool,
) -> list[SSAValue]:
    """One direction: its outputs [steps, batch, hidden] and last states."""
    way = kind(importer, node, number)
    steps, batch, _ = importer.shape(x)
    if back:
        x = _turned(importer, x, lengths)
    inputs = way.inputs(x)
    states: list[Scalar] = []
    for slot in (5, 6)[: 2 if node.kind == "LSTM" else 1]:
        if (given := node.optional(slot)) is not None:
            given = importer.transpose(given, (1, 0, 2)) if batch_first else given
            states.append(Scalar(importer, way.of(given, number)))
        elif batch * way.hidden > MOST:
            raise node.unsupported(f"starts with {batch * way.hidden} zeros", f"give it states of up to {MOST}")
        else:
            states.append(Scalar(importer, importer.unnamed(np.zeros((batch, way.hidden), importer.dtype(x)))))
    outputs: list[SSAValue] = []
    for step in range(steps):
        new = way.step(importer.slice(inputs, {0: (step * batch, (step + 1) * batch)}), states)
        shown = new[0]
        if lengths is not None:  # beyond the end of a sequence states stay, and outputs are 0
            inside = importer.call(relay.GreaterOp, importer.reshape(lengths, [batch, 1]), importer.like(step, lengths))
            mask = Scalar(importer, inside)
            shown = mask.choose(new[0], 0.0, new[0])
            new = [mask.choose(after, before, after) for after, before in zip(new, states, strict=True)]
        states = new
        outputs.append(shown.value)
    whole = importer.stack(outputs, 0)
    return [_turned(importer, whole, lengths) if back else whole, *(state.value for state in states)]


def _turned(importer: Importer, x: SSAValue, lengths: SSAValue | None) -> SSAValue:
    """The input with its steps reversed, each sequence within its length."""
    if lengths is None:
        return importer.call(relay.ReverseOp, x, axis=[0])
    return importer.call(relay.ReverseSequenceOp, x, lengths, seq_axis=0, batch_axis=1)
