"""Messages of the importer that no model of one operator meets: of files with subgraphs or states, of functions that
callers give, of nodes that are asked for what they do not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from relay.dialects.relay import CastOp
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.frontend import from_tflite
from relay.frontend.tflite import table
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import read_model
from relay.frontend.tflite.node import Node
from tests.numeric import test_control_flow_against_litert as flowing
from tests.numeric import test_shapes_against_litert as sizing
from tests.numeric import test_sparse_against_litert as thinning
from tests.numeric import test_spectra_against_litert as hearing
from tests.numeric import test_variables_against_litert as keeping
from tests.numeric.litert_models import Case, T
from tests.numeric.litert_product_cases import QUANTISED
from tests.numeric.litert_shape_cases import CASES as RANDOM
from tests.unit.importer_message_cases import codes, conv, one, weights
from tests.unit.importer_message_cases import f32 as reals

Do = Callable[[Importer, Node], Sequence[SSAValue]]


def asked(do: Do) -> None:
    """What a function of a custom operator asks of importer and node."""
    case = Case("CUSTOM", [reals(2, 3), T(np.ones(3), "float32")], [reals(2, 3)], custom_code="X")
    from_tflite(case.model(), custom_ops={"X": do})


def node() -> Node:
    """A convolution of codes."""
    file = conv([codes(1, 4, 4, 2), weights(2, 3, 3, 2), T(np.ones(2), "int32", 0.1)], codes(1, 2, 2, 2)).model()
    graph = read_model(file).subgraphs[0]
    return Node("x.tflite", graph, graph.operators[0])


def branches_of_a_batch() -> None:
    from_tflite(flowing.model(flowing.Maker(np.random.default_rng(1), "float32").conditional()), batch=2)


def read(data: Any) -> object:
    return read_model(data)


def refused_argument() -> None:
    """What an op says of the properties that a function of the table gives is the file's fault."""

    def cast(importer: Importer, node: Node) -> Sequence[SSAValue]:
        return [importer.emit(CastOp, [importer.value(node.input(0))]).result]

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(table.TABLE, "SQRT", table.Row((1, 1), (1, 1), (1, 1), cast))
        from_tflite(one("SQRT", reals(4), reals(4)).model())


def control(change: Callable[[list[flowing.Graph]], list[flowing.Graph]], kind: str) -> None:
    graphs = getattr(flowing.Maker(np.random.default_rng(1), "float32"), kind)()
    from_tflite(flowing.model(change(graphs)))


def with_state(graphs: list[flowing.Graph]) -> list[flowing.Graph]:
    main, then, otherwise = graphs
    held = T([2, 3], "float32", variable=True)
    return [main, flowing.Graph([*then.tensors, held], then.inputs, then.outputs, then.ops), otherwise]


def one_result(graphs: list[flowing.Graph]) -> list[flowing.Graph]:
    main, *branches = graphs
    return [main, *(flowing.Graph(b.tensors, b.inputs, b.outputs[:1], b.ops) for b in branches)]


def two_conditions(graphs: list[flowing.Graph]) -> list[flowing.Graph]:
    main, test, *rest = graphs
    return [main, flowing.Graph(test.tensors, test.inputs, [*test.outputs, *test.outputs], test.ops), *rest]


def started_state() -> None:
    """A state that the file fills, of two images, for four."""
    case = RANDOM["SVDF"](np.random.default_rng(0), "SVDF")
    case.inputs = [*case.inputs[:4], T(np.arange(24, dtype=np.int16).reshape(2, 12), "int16", 0.1, variable=True)]
    data = case.inputs[0]
    assert data is not None
    data.value = [2, *data.value[1:]]
    from_tflite(case.model(), batch=4)


def recurrent(kind: str, changed: Mapping[int, T] = {}, **values: object) -> None:
    """A recurrent layer of floats, with other inputs or options."""
    case = QUANTISED[kind, "float32"](np.random.default_rng(4), kind, "float32")
    case.inputs = [changed.get(number, tensor) for number, tensor in enumerate(case.inputs)]
    case.values = {**case.values, **values}
    from_tflite(case.model())


ROWS, WIDE = T(np.ones((2, 2), np.int32), "int32"), "UNIDIRECTIONAL_SEQUENCE_LSTM"
RECURRENT: dict[str, Callable[[], None]] = {
    "the activation is SIGN_BIT": lambda: recurrent("RNN", fusedActivationFunction=5),
    "LSTM 'out0': an LSTM without an activation": lambda: recurrent("LSTM", fusedActivationFunction=0),
    "LSTM 'out0': takes no INT16": lambda: recurrent("LSTM", {13: T(np.ones(2), "int16")}),
    "RNN 'out0': takes no INT32": lambda: recurrent("RNN", {1: ROWS}),
    "steps: 1 to 1024 are unrolled": lambda: recurrent(
        "UNIDIRECTIONAL_SEQUENCE_RNN", {0: T([2000, 2000, 1], "float32")}
    ),
    "takes no INT16, FLOAT32": lambda: recurrent(WIDE, {18: T([1, 1], "int16", variable=True)}),
    "RNN 'out0': takes no INT8, FLOAT32": lambda: recurrent("RNN", {0: codes(1, 1)}),
    "LSTM 'out0': the recurrent weights are diagonal": lambda: recurrent(WIDE, diagonalRecurrentTensors=True),
    "the kernel is BASIC": lambda: recurrent("LSTM", kernelType=1),
    "SEQUENCE_LSTM 'out0': has an auxiliary input": lambda: recurrent("BIDIRECTIONAL_SEQUENCE_LSTM", {39: reals(1)}),
    "SEQUENCE_RNN 'out0': has an auxiliary input": lambda: recurrent("BIDIRECTIONAL_SEQUENCE_RNN", {9: reals(1)}),
    "filters of rank 99": lambda: recurrent("SVDF", rank=99),
}
CALLS: dict[str, tuple[type[RelayError], Callable[[], object]]] = {
    **sizing.REFUSED,
    **{words: (Unsupported, lambda file=file: from_tflite(file())) for words, file in hearing.REFUSED.items()},
    **{words: (error, lambda file=file: from_tflite(file())) for words, (error, file) in keeping.REFUSED.items()},
    **{words: (error, lambda file=file: from_tflite(file())) for words, (error, file) in thinning.REFUSED.items()},
    "'out0' is computed at run time": (Unsupported, lambda: asked(lambda i, n: [i.value(n.output())])),
    "of shape (3,) has not the elements of (7,)": (Malformed, lambda: asked(lambda i, n: [i.weight(n.input(1), [7])])),
    "its property 'dtype' is not given": (Malformed, refused_argument),
    "output 3 is missing": (Malformed, lambda: node().output(3)),
    "the option padding is 'VALID', not a number": (Malformed, lambda: node().integer("padding")),
    "the option padding is 'VALID', not a finite number": (Malformed, lambda: node().real("padding")),
    "of INT32 is quantised": (Unsupported, lambda: node().codes(node().input(2))),
    "has states": (Unsupported, lambda: control(with_state, "conditional")),
    "has 2 outputs, but its kind has 1": (Malformed, lambda: control(one_result, "conditional")),
    "its condition has 2 outputs": (Malformed, lambda: control(two_conditions, "loop")),
    "starts with numbers for 2 images": (Unsupported, started_state),
    "data is not bytes": (InvalidArgument, lambda: read(3)),
    "has control flow, whose subgraphs keep their batch": (Unsupported, branches_of_a_batch),
}
"""The error, and the call that ends in it, by words of the message."""
