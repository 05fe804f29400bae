"""Imports float recurrent layers: RNN, LSTM, their sequences in one or both directions, and float SVDF."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.recurrent import States
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import FLOATS, Node
from relay.frontend.tflite.operators.recurrent_floats import Builder, Lstm, Slots, state
from relay.frontend.tflite.table import operator

ONE_WAY = Slots(1, 5, 9, 12, 16, 18, 19, 20)
FORWARD = Slots(1, 5, 9, 12, 16, 35, 36, 48)
BACKWARD = Slots(18, 22, 26, 29, 33, 37, 38, 48)


def floats(node: Node, *tensors: Tensor) -> None:
    node.one_type(FLOATS, *tensors, *(node.output(number) for number in range(len(node.operator.outputs))))


def lstm_sequence(importer: Importer, node: Node) -> list[SSAValue]:
    """Import float UNIDIRECTIONAL_SEQUENCE_LSTM."""
    floats(node, node.input(0))
    if node.flag("diagonal_recurrent_tensors"):
        raise node.unsupported("the recurrent weights are diagonal")
    return [Lstm(importer, node, ONE_WAY).run(node.input(0), 0 if node.flag("time_major") else 1)]


@operator("LSTM", versions=(1, 4), inputs=(20, 24))
def lstm(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a float LSTM, which computes a single time step, with the kernel type FULL. The kernel type BASIC (5
    inputs), which TFLite's converter no longer writes, is not supported."""
    data = node.input(0)
    floats(node, data)
    if node.word("kernel_type") not in ("FULL", "0"):
        raise node.unsupported(f"the kernel is {node.word('kernel_type')}")
    node.shape(data, 2)
    return [_one_step(importer, Lstm(importer, node, ONE_WAY).run(data, 1))]


@operator("BIDIRECTIONAL_SEQUENCE_LSTM", versions=(1, 3), inputs=(48, 48), outputs=(1, 2))
def both_ways(importer: Importer, node: Node) -> list[SSAValue]:
    """Import BIDIRECTIONAL_SEQUENCE_LSTM: a forward and a backward layer, whose results are concatenated if
    `merge_outputs` is set.

    If gates are coupled and the batch is the leading axis, LiteRT writes merged results to wrong positions, and they
    differ from relay's.
    """
    floats(node, node.input(0))
    if any(node.optional(number) is not None for number in range(39, 48)):
        raise node.unsupported("has an auxiliary input")
    axis = 0 if node.flag("time_major") else 1
    ways = (FORWARD, False), (BACKWARD, True)
    return merged(importer, node, [Lstm(importer, node, slots).run(node.input(0), axis, back) for slots, back in ways])


def merged(importer: Importer, node: Node, results: list[SSAValue]) -> list[SSAValue]:
    if not node.flag("merge_outputs"):
        return results
    return [importer.call(relay.ConcatenateOp, *results, axis=2)]


def simple(importer: Importer, node: Node, data: Tensor, slots: Sequence[int], axis: int, back: bool) -> SSAValue:
    """A simple RNN with `h = f(W x + R h + b)` in each step; `slots` are the indices of the inputs W, R, b, h."""
    make = Builder(importer, node)
    kernel, recurrent, bias = (node.input(number) for number in slots[:3])

    def step(row: SSAValue, states: States) -> States:
        total = Scalar(importer, row) + make.product(states[0].value, [recurrent])
        return [make.activated(make.biased(total, bias))]

    return make.run(data, [kernel], [state(node, slots[3])], step, axis, back)


@operator("UNIDIRECTIONAL_SEQUENCE_RNN", versions=(1, 3), inputs=(5, 5))
def rnn_sequence(importer: Importer, node: Node) -> list[SSAValue]:
    """Import UNIDIRECTIONAL_SEQUENCE_RNN: `h = f(W x + R h + b)`, step after step."""
    floats(node, node.input(0))
    axis = 0 if node.flag("time_major") else 1
    return [simple(importer, node, node.input(0), (1, 2, 3, 4), axis, False)]


@operator("BIDIRECTIONAL_SEQUENCE_RNN", versions=(1, 3), inputs=(12, 12), outputs=(1, 2))
def rnn_both_ways(importer: Importer, node: Node) -> list[SSAValue]:
    """Import BIDIRECTIONAL_SEQUENCE_RNN: a forward and a backward UNIDIRECTIONAL_SEQUENCE_RNN."""
    floats(node, node.input(0))
    if any(node.optional(number) is not None for number in range(9, 12)):
        raise node.unsupported("has an auxiliary input")
    axis = 0 if node.flag("time_major") else 1
    ways = ((1, 2, 3, 4), False), ((5, 6, 7, 8), True)
    return merged(importer, node, [simple(importer, node, node.input(0), slots, axis, back) for slots, back in ways])


@operator("RNN", versions=(1, 3), inputs=(5, 5))
def rnn(importer: Importer, node: Node) -> list[SSAValue]:
    """Import RNN, a single step: `h = f(W x + R h + b)`."""
    data = node.input(0)
    floats(node, data)
    node.shape(data, 2)
    return [_one_step(importer, simple(importer, node, data, (1, 2, 3, 4), 1, False))]


def _one_step(importer: Importer, result: SSAValue) -> SSAValue:
    """The result of a single step without the time axis."""
    batch, _, width = importer.shape(result)
    return importer.reshape(result, [batch, width])


def svdf(importer: Importer, node: Node) -> list[SSAValue]:
    """Import float SVDF: the features `W x` of each step are kept; the result is `f(the sum over ranks and time of
    features * weights + b)`."""
    data, features, time, bias, memory = (*(node.input(i) for i in range(3)), node.optional(3), state(node, 4))
    floats(node, data, memory, *([bias] if bias is not None else []))
    make, (filters, length), (rank,) = Builder(importer, node), node.shape(time, 2), node.positive("rank")
    batch = node.shape(data, 2)[0]
    if filters % rank:
        raise node.malformed(f"{filters} filters of rank {rank}")
    fresh = make.product(importer.value(data), [features])
    held = importer.reshape(importer.value(memory), [batch, filters, length])
    newest = importer.reshape(fresh.value, [batch, filters, 1])
    held = importer.concatenate([importer.slice(held, {2: (1, length)}), newest] if length > 1 else [newest], 2)
    weights = make.vector(2)
    assert weights is not None, "input 2 is there"
    products = (Scalar(importer, held) * weights).value
    products = Scalar(importer, importer.reshape(products, [batch, filters // rank, rank * length]))
    importer.define(memory, importer.reshape(held, [batch, filters * length]))
    return [make.activated(make.biased(products.of(relay.SumOp, axis=[2]), bias)).value]
