"""Imports LSTM, GRU and simple recurrent layers, unrolled, and wrappers of layers. Source: keras/src/layers/rnn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.recurrent import States, gates, unrolled
from relay.frontend.keras.archive import CONTAINERS
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_row, values_in
from relay.frontend.keras.operators.activations import activated
from relay.frontend.keras.table import layer, output, wrapped

_STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}


def _step(importer: Importer, node: Layer, weights: dict[str, SSAValue]) -> Callable[[SSAValue, States], States]:
    """Return a function that computes the new states of a step from the step's products of inputs and weights (biases
    added) and from the previous states."""
    kernel, bias = weights["recurrent_kernel"], weights.get("recurrent_bias")
    units, after = importer.shape(kernel)[0], node.flag("reset_after", True)

    def times(a: Scalar, kernel: SSAValue) -> SSAValue:
        return importer.call(relay.MatmulOp, a.value, kernel, out_dtype=f32)

    def gate(value: Scalar, name: str = "recurrent_activation") -> Scalar:
        return Scalar(importer, activated(importer, node, value.value, name))

    def lstm(row: SSAValue, states: States) -> States:
        i, f, c, o = gates(importer, importer.add(row, times(states[0], kernel)), 4)
        carry = gate(f) * states[1] + gate(i) * gate(c, "activation")
        return [gate(o) * gate(carry, "activation"), carry]

    def gru(row: SSAValue, states: States) -> States:
        """One step of GRU; the recurrent bias is only used if the reset gate is applied after the product."""
        (h,) = states
        z, r, new = gates(importer, row, 3)
        inner = importer.add(times(h, kernel if after else importer.slice(kernel, {1: (0, 2 * units)})), bias)
        hz, hr, *hn = gates(importer, inner, 3 if after else 2)
        z, r = gate(z + hz), gate(r + hr)
        last = (
            r * hn[0] if after else Scalar(importer, times(r * h, importer.slice(kernel, {1: (2 * units, 3 * units)})))
        )
        return [z * h + (z.number(1.0) - z) * gate(new + last, "activation")]

    def simple(row: SSAValue, states: States) -> States:
        return [gate(Scalar(importer, importer.add(row, times(states[0], kernel))), "activation")]

    return {"LSTM": lstm, "GRU": gru, "SimpleRNN": simple}[node.kind]


@layer("LSTM", "GRU", "SimpleRNN")
def recurrent(importer: Importer, node: Layer) -> list[SSAValue]:
    """Import a recurrent layer: all outputs or the last one, and the last states if they are requested."""
    node.refuse({"stateful": False})
    x = importer.real(node.value(0, "sequences"))
    batch, steps, _ = importer.static(x)
    names = ("kernel", "recurrent_kernel", *["bias"] * node.flag("use_bias", True))
    arrays, count = node.inner(node.kind, "cell", {}).weights(*names), _STATES[node.kind]
    if "bias" in arrays and arrays["bias"].ndim == 2:  # a GRU with reset_after has separate biases for both products
        arrays["bias"], arrays["recurrent_bias"] = arrays["bias"]
    weights = {name: importer.weight(node, name, each) for name, each in arrays.items()}
    rows = importer.call(relay.MatmulOp, importer.rows(x), weights["kernel"], out_dtype=f32)
    rows = importer.add(rows, weights.get("bias"))
    rows = importer.reshape(rows, [batch, steps, importer.shape(rows)[1]])
    given = values_in(node.argument(1, "initial_state")) or values_in([*node.arguments[1:]])
    if len(given) not in (0, count):
        raise node.malformed(f"is given {len(given)} states, and has {count}")
    zeros = importer.unnamed(np.zeros((batch, importer.shape(weights["recurrent_kernel"])[0]), np.float32))
    states = [Scalar(importer, each) for each in given or [zeros] * count]
    step = _step(importer, node, weights)
    outputs, states = unrolled(importer, rows, 1, states, step, node.flag("go_backwards"))
    found = importer.stack(outputs, 1) if node.flag("return_sequences") else outputs[-1]
    return [found, *(each.value for each in states)] if node.flag("return_state") else [found]


_MERGES: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "sum": lambda a, b: a + b,
    "ave": lambda a, b: (a + b) / 2.0,
    "mul": lambda a, b: a * b,
}


@layer("Bidirectional")
def bidirectional(importer: Importer, node: Layer) -> list[SSAValue]:
    """Import Bidirectional: a forward and a backward layer, whose outputs are merged."""
    x, given = node.value(), values_in(node.argument(1, "initial_state"))
    half = len(given) // 2
    ways: list[list[SSAValue]] = []
    for part, states in (("forward_layer", given[:half]), ("backward_layer", given[half:])):
        inner = wrapped(node, part if is_row(node.entry(part)) else "layer", part, x, states)
        if inner.kind not in _STATES:
            raise node.unsupported(f"wraps {inner.kind!r}", "LSTM, GRU and SimpleRNN are supported")
        ways.append(recurrent(importer, inner))
        if part == "backward_layer" and inner.flag("return_sequences"):
            ways[-1][0] = importer.call(relay.ReverseOp, ways[-1][0], axis=[1])
    (a, *first), (b, *second) = ways
    if node.config.get("merge_mode", "concat") is None:
        return [a, b, *first, *second]
    mode = node.one_of("merge_mode", ["concat", *_MERGES])
    if mode == "concat":
        return [importer.concatenate([a, b], importer.rank(a) - 1), *first, *second]
    return [_MERGES[mode](Scalar(importer, a), Scalar(importer, b)).value, *first, *second]


@layer("TimeDistributed")
def time_distributed(importer: Importer, node: Layer) -> SSAValue:
    """Import TimeDistributed: apply the layer or model to all steps as one batch."""
    x = node.value()
    batch, *dims = importer.shape(x)
    steps, *rest = importer.static(x, range(1, len(dims) + 1))
    folded = importer.reshape(x, [DYNAMIC if batch == DYNAMIC else batch * steps, *rest])
    row = node.entry("layer")
    if is_row(row) and row.get("class_name") in CONTAINERS:
        (found,) = importer.model(row, f"{node.path}/layer", [folded], node.where)
    else:
        found = output(importer, wrapped(node, "layer", "layer", folded))
    return importer.reshape(found, [batch, steps, *importer.shape(found)[1:]])
