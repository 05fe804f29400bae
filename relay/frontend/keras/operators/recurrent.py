"""LSTM, GRU and simple recurrent layers, step after step, and wrappers of layers. Source: keras/src/layers/rnn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.formulas import Scalar
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_row, values_in
from relay.frontend.keras.operators.activations import activated
from relay.frontend.keras.table import TABLE, layer

States = list[Scalar]
Step = Callable[[SSAValue, States], States]
_STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}


def _step(importer: Importer, node: Layer, weights: dict[str, SSAValue], units: int) -> Step:
    """The new states, of a row of the products with the input, biases added, and the states before."""

    def times(a: Scalar, kernel: SSAValue) -> Scalar:
        return Scalar(importer, importer.call(relay.MatmulOp, a.value, kernel, out_dtype=f32))

    def gates(value: Scalar, count: int) -> list[Scalar]:
        whole = value.value
        return [Scalar(importer, importer.slice(whole, {1: (g * units, g * units + units)})) for g in range(count)]

    def gate(value: Scalar, name: str = "recurrent_activation") -> Scalar:
        return Scalar(importer, activated(importer, node, value.value, name))

    kernel, bias = weights["recurrent_kernel"], weights.get("recurrent_bias")

    def lstm(row: SSAValue, states: States) -> States:
        i, f, c, o = gates(Scalar(importer, row) + times(states[0], kernel), 4)
        carry = gate(f) * states[1] + gate(i) * gate(c, "activation")
        return [gate(o) * gate(carry, "activation"), carry]

    def gru(row: SSAValue, states: States) -> States:
        (h,) = states
        z, r, new = gates(Scalar(importer, row), 3)
        after = node.flag("reset_after", True)
        inner = times(h, kernel if after else importer.slice(kernel, {1: (0, 2 * units)}))
        hz, hr, *hn = gates(inner if bias is None else inner + Scalar(importer, bias), 3 if after else 2)
        z, r = gate(z + hz), gate(r + hr)
        rest = r * hn[0] if after else times(r * h, importer.slice(kernel, {1: (2 * units, 3 * units)}))
        new = gate(new + rest, "activation")
        return [z * h + (z.number(1.0) - z) * new]

    def simple(row: SSAValue, states: States) -> States:
        return [gate(Scalar(importer, row) + times(states[0], kernel), "activation")]

    return {"LSTM": lstm, "GRU": gru, "SimpleRNN": simple}[node.kind]


def _variables(importer: Importer, node: Layer) -> tuple[dict[str, SSAValue], Array]:
    """The variables of the cell; those of a GRU that resets after the product have a bias of each product."""
    cell = node.inner(node.kind, "cell", {})
    biased = node.flag("use_bias", True)
    arrays = cell.weights("kernel", "recurrent_kernel", *["bias"] * biased)
    if biased and arrays["bias"].ndim == 2:
        arrays["bias"], arrays["recurrent_bias"] = arrays["bias"]
    return {name: importer.weight(node, name, each) for name, each in arrays.items()}, arrays["recurrent_kernel"]


@layer("LSTM", "GRU", "SimpleRNN")
def recurrent(importer: Importer, node: Layer) -> list[SSAValue]:
    """The outputs, or the last one, and the last states if they are asked for."""
    node.refuse({"stateful": False})
    x = node.value(0, "sequences")
    if importer.rank(x) != 3 or DYNAMIC in importer.shape(x):
        raise node.unsupported(f"takes {x.type}, of unknown size", "give its shapes")
    weights, kernel = _variables(importer, node)
    units = kernel.shape[0]
    rows = importer.call(relay.MatmulOp, importer.rows(x), weights["kernel"], out_dtype=f32)
    rows = importer.add(rows, weights.get("bias"))
    rows = importer.reshape(rows, [*importer.shape(x)[:2], importer.shape(rows)[1]])
    given = values_in(node.argument(1, "initial_state")) or values_in([*node.arguments[1:]])
    count = _STATES[node.kind]
    if len(given) not in (0, count):
        raise node.malformed(f"is given {len(given)} states, and has {count}")
    zeros = np.zeros((importer.shape(x)[0], units), np.float32)
    states = [Scalar(importer, each) for each in given or [importer.unnamed(zeros)] * count]
    step, outputs = _step(importer, node, weights, units), list[SSAValue]()
    for index in range(importer.shape(x)[1])[:: -1 if node.flag("go_backwards") else 1]:
        states = step(importer.row(rows, index, 1), states)
        outputs.append(states[0].value)
    found = importer.stack(outputs, 1) if node.flag("return_sequences") else outputs[-1]
    return [found, *(each.value for each in states)] if node.flag("return_state") else [found]


def _wrapped(node: Layer, name: str, part: str, *arguments: object) -> Layer:
    """The layer that a wrapper holds."""
    row = node.config.get(name)
    if not is_row(row) or not str(row.get("module")).startswith("keras") or str(row["class_name"]) not in TABLE:
        what = row.get("class_name") if is_row(row) else row
        raise node.unsupported(f"wraps {str(what)[:80]!r}", "the class is not supported")
    return node.inner(str(row["class_name"]), part, row["config"], *arguments)


@layer("Bidirectional")
def bidirectional(importer: Importer, node: Layer) -> list[SSAValue]:
    """A layer from the first step on, and another from the last one on, side by side or added up."""
    x = node.value()
    given = values_in(node.argument(1, "initial_state"))
    half = len(given) // 2
    ways: list[list[SSAValue]] = []
    for name, states in (("forward", given[:half]), ("backward", given[half:])):
        row = f"{name}_layer" if is_row(node.config.get(f"{name}_layer")) else "layer"
        inner = _wrapped(node, row, f"{name}_layer", x, states)
        if inner.kind not in _STATES:
            raise node.unsupported(f"wraps {inner.kind!r}", "LSTM, GRU and SimpleRNN are supported")
        found = recurrent(importer, inner)
        if name == "backward" and inner.flag("return_sequences"):
            found[0] = importer.call(relay.ReverseOp, found[0], axis=[1])
        ways.append(found)
    (a, *first), (b, *second) = ways
    match node.config.get("merge_mode", "concat"):
        case "concat":
            merged = [importer.concatenate([a, b], importer.rank(a) - 1)]
        case "sum":
            merged = [importer.call(relay.AddOp, a, b)]
        case "ave":
            merged = [((Scalar(importer, a) + Scalar(importer, b)) / 2.0).value]
        case "mul":
            merged = [importer.call(relay.MultiplyOp, a, b)]
        case None:
            merged = [a, b]
        case other:
            raise node.malformed(f"merge_mode is {str(other)[:40]!r}")
    return [*merged, *first, *second]


@layer("TimeDistributed")
def time_distributed(importer: Importer, node: Layer) -> SSAValue:
    """The layer for all steps as one batch."""
    x = node.value()
    batch, steps, *rest = importer.shape(x)
    if DYNAMIC in (steps, *rest):
        raise node.unsupported(f"takes {x.type}, of unknown size", "give its shapes")
    folded = importer.reshape(x, [DYNAMIC if batch == DYNAMIC else batch * steps, *rest])
    inner = _wrapped(node, "layer", "layer", folded)
    found = TABLE[inner.kind](importer, inner)
    if not isinstance(found, SSAValue):
        raise node.unsupported(f"wraps {inner.kind!r}, which has several outputs or steps")
    return importer.reshape(found, [batch, steps, *importer.shape(found)[1:]])
