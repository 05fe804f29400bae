"""The writer of flatbuffers and .tflite files, read back by the importer's own reader."""

from __future__ import annotations

import numpy as np
import pytest

from relay.byoc.quantized import Codes
from relay.byoc.xnnpack.model import Model
from relay.errors import InvalidArgument
from relay.frontend import from_tflite
from relay.frontend.tflite import schema
from relay.frontend.tflite.model import read_model
from relay.interpreters import run
from tests.numeric.flatbuffer import BYTES_ALIGNMENT, Table, serialize
from tests.numeric.litert_shape_cases import CASES
from tests.numeric.written_models import written


def add_file() -> bytes:
    """`relu6(x + constant)` of floats, and the codes of it."""
    model = Model("main", "test")
    shape = (2, 3)
    x = model.tensor(shape, np.dtype(np.float32), name="x")
    constant = model.constant(np.arange(6, dtype=np.float32).reshape(shape), name="c")
    total = model.tensor(shape, np.dtype(np.float32))
    model.operator("ADD", [x, constant], [total], {"fused_activation_function": "RELU6"})
    result = model.tensor(shape, np.dtype(np.int8), Codes(0.5, -3), "codes")
    model.operator("QUANTIZE", [total], [result])
    return model.finish([x], [result])


def test_file_is_read_back() -> None:
    (graph,) = read_model(add_file(), "file").subgraphs
    assert [tensor.name for tensor in graph.tensors] == ["x", "c", "t2", "codes"]
    assert [operator.kind for operator in graph.operators] == ["ADD", "QUANTIZE"]
    assert graph.operators[0].options["fused_activation_function"] == "RELU6"
    found = graph.tensors[3].quantization
    assert found is not None and (found.scale.tolist(), found.zero_point.tolist()) == ([0.5], [-3])
    assert graph.tensors[1].to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_file_computes_what_was_written() -> None:
    x = np.array([[-9, 0, 1], [2, 3, 0.5]], np.float32)
    (result,) = run(from_tflite(add_file()), [x])
    assert result.tolist() == [[-3, -1, 3], [7, 9, 8]]


@pytest.mark.parametrize("kind", sorted({*CASES}))
def test_a_written_case_is_imported_as_litert_writes_it(kind: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema, which writes the models, is not installed")
    case = CASES[kind](np.random.default_rng(1), kind)
    assert from_tflite(written(case)).to_text(weights=True) == from_tflite(case.model()).to_text(weights=True)


def test_weights_are_aligned() -> None:
    data = np.arange(37, dtype=np.uint8)
    for padding in range(20):
        table = Table(schema.BUFFER, {"data": data})
        file = serialize(Table(schema.MODEL, {"description": "d" * padding, "buffers": [table, table]}), b"TFL3")
        at = file.find(data.tobytes())
        while at >= 0:
            assert at % BYTES_ALIGNMENT == 0
            at = file.find(data.tobytes(), at + 1)


def test_defaults_and_absent_fields_take_no_place() -> None:
    bare = serialize(Table(schema.BUFFER, {}), b"TFL3")
    assert serialize(Table(schema.BUFFER, {"offset": 0, "data": None}), b"TFL3") == bare
    assert len(serialize(Table(schema.BUFFER, {"offset": 1}), b"TFL3")) > len(bare)


def test_wide_fields_are_aligned() -> None:
    file = serialize(Table(schema.BUFFER, {"data": np.zeros(3, np.uint8), "offset": 5, "size": 7}), b"TFL3")
    for number in (5, 7):
        assert file.index(number.to_bytes(8, "little")) % 8 == 0


def test_what_is_no_child_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="is no vector"):
        serialize(Table(schema.BUFFER, {"data": 3}), b"TFL3")
