"""Imports LSTM, GRU and RNN of several layers and directions, unrolled. Source: torch.nn.LSTM, GRU, RNN."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.recurrent import States, gates, unrolled
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node
from relay.frontend.torch.operators.nn import times_transposed
from relay.frontend.torch.table import aten


def _step(importer: Importer, kind: str, given: SSAValue, hidden: SSAValue, states: States) -> States:
    """The new states of a step. `given` and `hidden` are the products of the weights with the step's input and with the
    hidden state, both with biases added."""
    if kind == "gru":
        (r, z, n), (hr, hz, hn) = (gates(importer, each, 3) for each in (given, hidden))
        r, z = (r + hr).of(relay.SigmoidOp), (z + hz).of(relay.SigmoidOp)
        n = (n + r * hn).of(relay.TanhOp)
        return [(z.number(1.0) - z) * n + z * states[0]]
    total = importer.call(relay.AddOp, given, hidden)
    if kind != "lstm":
        return [Scalar(importer, importer.call(relay.TanhOp if kind == "rnn_tanh" else relay.ReluOp, total))]
    i, f, g, o = gates(importer, total, 4)
    cell = f.of(relay.SigmoidOp) * states[1] + i.of(relay.SigmoidOp) * g.of(relay.TanhOp)
    return [o.of(relay.SigmoidOp) * cell.of(relay.TanhOp), cell]


def _one_direction(
    importer: Importer, kind: str, x: SSAValue, weights: Sequence[SSAValue], states: States, back: bool
) -> tuple[SSAValue, States]:
    """One direction of a layer: its outputs [steps, batch, hidden] and last states."""
    kernel, recurrent, *biases = weights[:4]
    inputs = times_transposed(importer, x, kernel, biases[0] if biases else None)

    def step(row: SSAValue, states: States) -> States:
        hidden = times_transposed(importer, states[0].value, recurrent, biases[1] if biases else None)
        return _step(importer, kind, row, hidden, states)

    outputs, states = unrolled(importer, inputs, 0, states, step, back)
    return importer.stack(outputs[:: -1 if back else 1], 0), states


@aten("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
def recurrent(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a recurrent layer: the outputs of the last layer, with both directions concatenated, and the last states
    of all layers."""
    kind = node.packet.partition(".")[2]
    x = node.value("input")
    firsts = node.values("hx") if kind == "lstm" else [node.value("hx")]
    lacks = len(node.static("input")) == 2
    if lacks:
        x = importer.call(relay.ExpandDimsOp, x, axis=1)
        firsts = [importer.call(relay.ExpandDimsOp, each, axis=1) for each in firsts]
    batch_first = node.flag("batch_first") and not lacks
    if batch_first:
        x = importer.transpose(x, (1, 0, 2))
    node.evaluates(node.flag("train") and node.real("dropout", 0.0) != 0)
    directions, params = 1 + node.flag("bidirectional"), node.values("params")
    count, layers = 4 if node.flag("has_biases") else 2, node.integer("num_layers")
    if len(params) != count * layers * directions or len({importer.shape(each)[-1] for each in firsts}) > 1:
        what = f"the argument params has {len(params)} weights for {layers} layers"
        raise node.unsupported(what, "projections (proj_size) are not supported")
    lasts: list[States] = []
    for layer in range(layers):
        outputs: list[SSAValue] = []
        for direction in range(directions):
            number = layer * directions + direction
            states = [Scalar(importer, importer.row(each, number, 0)) for each in firsts]
            weights = params[number * count : (number + 1) * count]
            found, states = _one_direction(importer, kind, x, weights, states, direction == 1)
            outputs.append(found)
            lasts.append(states)
        x = importer.concatenate(outputs, 2)
    whole = importer.transpose(x, (1, 0, 2)) if batch_first else x
    finals = [importer.stack((states[i].value for states in lasts), 0) for i in range(len(firsts))]
    found = [whole, *finals]
    return [importer.call(relay.SqueezeOp, each, axis=[1]) for each in found] if lacks else found


@aten("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
def cell(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a cell, a single step of a recurrent layer."""
    kind = node.packet.partition(".")[2].removesuffix("_cell")
    firsts = node.values("hx") if kind == "lstm" else [node.value("hx")]
    x, hidden = (
        times_transposed(importer, each, node.value(weight), node.optional(bias))
        for each, weight, bias in ((node.value("input"), "w_ih", "b_ih"), (firsts[0], "w_hh", "b_hh"))
    )
    states = [Scalar(importer, each) for each in firsts]
    return [each.value for each in _step(importer, kind, x, hidden, states)]
