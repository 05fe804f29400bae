"""Shapes that the file does not know: results follow from inputs, which callers may give another shape, as LiteRT's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relay.compile.entry import build
from relay.errors import InvalidArgument, Malformed, RelayError
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.runtime import DynamicExecutable
from relay.tools.relay_opt import main
from tests.numeric.litert_models import Array, Case, Reference, T, pack, schema
from tests.numeric.litert_shape_cases import CASES
from tests.numeric.test_control_flow_against_litert import Graph, Op, model

ONE = T([1, 1], "float32")
KERNEL = T(np.arange(8, dtype=np.float32).reshape(1, 1, 4, 2), "float32")
"""Depthwise, of 4 samples."""


@pytest.fixture(autouse=True)
def installed() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")


def listener(*, free: bool = True) -> bytes:
    """A window over `[1, n]` samples, and their number: all shapes are stored as for one sample."""
    s = schema()
    tensors = [ONE, T(np.array([1, 1, -1, 1]), "int32"), T([1, 1, 1, 1], "float32"), KERNEL, T([1, 1, 1, 2], "float32")]
    tensors += [T([4], "int32"), T(np.zeros(2, np.float32), "float32")]
    values = {"padding": 1, "strideH": 2, "strideW": 2, "depthMultiplier": 2}
    ops = [
        Op("RESHAPE", [0, 1], [2]),
        Op("DEPTHWISE_CONV_2D", [2, 3, 6], [4], "DepthwiseConv2DOptions", values),
        Op("SHAPE", [4], [5], "ShapeOptions", {"outType": 2}),
    ]
    file = model([Graph(tensors, [0], [4, 5], ops)])
    if not free:
        return file
    whole = s.ModelT.InitFromObj(s.Model.GetRootAs(file))
    whole.subgraphs[0].tensors[0].shapeSignature = [-1, -1]
    return pack(whole)


def resized(file: bytes, given: Array) -> list[Array]:
    """What LiteRT gives for an input of that shape."""
    litert: Any = importlib.import_module("ai_edge_litert.interpreter")
    found = litert.Interpreter(model_content=file, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    (detail,) = found.get_input_details()
    found.resize_tensor_input(detail["index"], given.shape)
    found.allocate_tensors()
    found.set_tensor(detail["index"], given)
    found.invoke()
    return [found.get_tensor(each["index"]) for each in found.get_output_details()]


@pytest.mark.parametrize("samples", [4, 9, 30])
def test_an_input_of_another_shape(samples: int) -> None:
    given = np.random.default_rng(samples).standard_normal((1, samples)).astype(np.float32)
    for file in (listener(), listener(free=False)):
        module = from_tflite(file, shapes={"t0": (1, samples)})
        module.verify()
        for found, wanted in zip(run(module, [given]), resized(file, given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_build_with_another_shape() -> None:
    given = np.random.default_rng(0).standard_normal((1, 12)).astype(np.float32)
    found = build(listener(), frontend={"shapes": {"t0": [1, 12]}}).run(given)
    assert isinstance(found, tuple) and found[0] is not None
    np.testing.assert_allclose(found[0], resized(listener(), given)[0], rtol=1e-5, atol=1e-5)


def test_sizes_that_the_file_leaves_open_are_those_of_the_run() -> None:
    executable = build(listener())
    assert isinstance(executable, DynamicExecutable)
    assert [symbol.name for symbol in executable.sizes] == ["t0.0", "t0.1"]
    for samples in (6, 13):
        given = np.random.default_rng(samples).standard_normal((1, samples)).astype(np.float32)
        found = executable.run(given)
        assert isinstance(found, tuple)
        for got, wanted in zip(found, resized(listener(), given), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_the_tool_takes_shapes(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "listener.tflite"
    path.write_bytes(listener())
    main([str(path), "--shape", "t0=1x20"])
    assert "tensor<1x20xf32>" in capsys.readouterr().out
    for wrong in ("t0", "t0=1x", "t0=axb"):
        assert main([str(path), "--shape", wrong]) == 1
        assert "--shape" in capsys.readouterr().err


def stale(case: Case) -> bytes:
    """The file with other shapes stored for its results."""
    for spec in case.outputs:
        spec.value = [1] * len(spec.value)
    return case.model()


@pytest.mark.parametrize("kind", ["CONV_2D", "RESHAPE", "CONCATENATION", "TRANSPOSE", "PAD", "SUM", "STRIDED_SLICE"])
def test_stored_shapes_of_results_are_not_read(kind: str) -> None:
    """LiteRT computes them anew."""
    rng = np.random.default_rng(1)
    case = CASES[kind](rng, kind)
    wanted = Reference(case.model()).run(feeds := case.feeds(rng))
    stale(case)
    for found in (run(from_tflite(case.model()), feeds), Reference(case.model()).run(feeds)):
        assert [array.shape for array in found] == [array.shape for array in wanted]
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-5)


def test_many_numbers_from_a_shape_are_left_to_the_run() -> None:
    tensors = [T([40, 40], "float32"), T([2], "int32"), T(np.array(7), "int32"), T([1, 1], "int32")]
    ops = [Op("SHAPE", [0], [1], "ShapeOptions", {"outType": 2}), Op("FILL", [1, 2], [3], "FillOptions")]
    module = from_tflite(model([Graph(tensors, [0], [3], ops)]))
    assert [op.name for op in module["main"].body.block.ops] == ["relay.constant", "relay.full", "func.return"]


def both() -> object:
    return from_tflite(listener(), batch=2, shapes={"t0": (1, 8)})


def given(name: str, *sizes: Any) -> Callable[[], object]:
    return lambda: from_tflite(listener(), shapes={name: sizes})


def large() -> object:
    """A result of more elements than there may be."""
    times = T(np.array([1 << 30, 1 << 30]), "int32")
    return from_tflite(Case("TILE", [T([1, 1], "float32"), times], [T([1, 1], "float32")], "TileOptions").model())


REFUSED: dict[str, tuple[type[RelayError], Callable[[], object]]] = {
    "input 't0': is of unknown size [-1, -1]; give it: shapes={'t0': (...)}, or --shape t0=NxN": (
        InvalidArgument,
        lambda: from_tflite(listener()),
    ),
    "both batch and shapes are given": (InvalidArgument, both),
    "shapes['x']: names no input of <bytes>; it has 't0' [-1, -1]": (InvalidArgument, given("x", 1, 8)),
    "shapes['t0']: (1, 0) is no shape for [-1, -1]": (InvalidArgument, given("t0", 1, 0)),
    "is no shape for [-1, -1]": (InvalidArgument, given("t0", 1, 1, 1)),
    "does not fit": (Malformed, given("t0", 1, 3)),
    "would be tensor<1073741824x1073741824xf32>": (Malformed, large),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words: str) -> None:
    error, call = REFUSED[words]
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)
