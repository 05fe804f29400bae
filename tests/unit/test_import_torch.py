"""The importer of PyTorch programs: archives, sizes, states, and what it says of those that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay import signature, symbols
from relay.errors import Malformed, RelayError, Unsupported
from relay.frontend import from_pytorch
from relay.interpreters import run
from tests.numeric.torch_programs import Json, archive, invoke, tensor

BERT = Path(__file__).parents[2] / "../shared/models/onnx/bert_tiny.pt2"
MATRIX = ((2, 3), "float32")


def unary(target: str, arguments: Json | None = None, **program: Any) -> bytes:
    """A program of one call on a matrix."""
    node = invoke(target, {"self": tensor("x"), **(arguments or {})}, "y")
    return archive([node], {"x": MATRIX}, ["y"], {"y": MATRIX}, **program)


def test_a_weight_is_a_constant_of_its_name_that_shares_the_bytes() -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    node = invoke("aten.add.Tensor", {"self": tensor("x"), "other": tensor("w"), "alpha": {"as_int": 2}}, "y")
    module = from_pytorch(archive([node], {"x": MATRIX}, ["y"], {"y": MATRIX}, {"w": weight}))
    assert 'label = "w"' in str(module)
    (found,) = run(module, [np.ones((2, 3), np.float32)])
    assert (found == 1 + 2 * weight).all()


def test_open_sizes_are_symbols_with_their_ranges() -> None:
    node = invoke("aten.relu.default", {"self": tensor("x")}, "y")
    ranges = {"s0": {"min_val": 2, "max_val": 64}}
    data = archive([node], {"x": (("s0", 3), "float32")}, ["y"], range_constraints=ranges)
    (symbol,) = symbols.read(from_pytorch(data)["main"])
    assert (symbol.name, symbol.places, symbol.minimum, symbol.maximum) == ("s0", ((0, 0),), 2, 64)
    assert "tensor<5x3xf32>" in str(from_pytorch(data, shapes={"x": (5, 3)}))


@pytest.mark.parametrize("text", ["-Infinity", "Infinity", "NaN", "-inf"])
def test_numbers_that_are_not_finite_are_texts(text: str) -> None:
    module = from_pytorch(unary("aten.full_like.default", {"fill_value": {"as_float": text}}))
    (found,) = run(module, [np.ones((2, 3), np.float32)])
    assert np.array_equal(found, np.full((2, 3), float(text), np.float32), equal_nan=True)


def test_formulas_of_integers_are_of_floats() -> None:
    node = invoke("aten.exp2.default", {"self": tensor("x")}, "y")
    x = np.arange(6).reshape(2, 3)
    (found,) = run(from_pytorch(archive([node], {"x": ((2, 3), "int64")}, ["y"], {"y": MATRIX})), [x])
    assert np.allclose(found, 2.0**x)


REFUSED: dict[str, tuple[bytes, type[RelayError], str]] = {
    "random": (unary("aten.rand_like.default"), Unsupported, "aten.rand_like.default 'y': draws random numbers"),
    "training": (
        unary("aten.dropout.default", {"train": {"as_bool": True}}),
        Unsupported,
        r"is in training mode; export the model after model.eval\(\)",
    ),
    "values": (unary("aten.nonzero.default"), Unsupported, "the size of its result, or of another one, depends on"),
    "kind": (
        unary("aten.abs.default", {"a": {"as_custom_obj": {}}}),
        Unsupported,
        "the argument a is of the kind custom_obj",
    ),
    "type": (unary("aten.sum.default"), Malformed, "gives tensor<f32>, which is tensor<2x3xf32> in the file"),
    "axis": (unary("aten.flip.default", {"dims": {"as_ints": [5]}}), Malformed, "axis 5 is outside a tensor of rank 2"),
    "version": (
        unary("aten.abs.default", schema_version={"major": 9}),
        Unsupported,
        "of version {'major': 9}; save it",
    ),
    "element": (
        unary("aten._to_copy.default", {"dtype": {"as_scalar_type": 10}}),
        Unsupported,
        "has the element type complex64",
    ),
    "name": (unary("aten.add.Tensor", {"other": tensor("z")}), Malformed, "takes 'z', which no node before it gives"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name: str) -> None:
    data, error, said = REFUSED[name]
    with pytest.raises(error, match=said):
        from_pytorch(data)


@pytest.mark.skipif(not BERT.exists(), reason="needs ../shared/models")
def test_bert_gives_what_its_onnx_gives() -> None:
    """The ONNX file was exported from the same program; ONNX Runtime's results, of sizes of its own each."""
    golden = np.load(BERT.parent / "golden/bert_tiny_random.npz")
    for case in ("r0", "r1"):
        inputs = [golden[f"{case}_in{number}"] for number in range(3)]
        shapes = {name: each.shape for name, each in zip("amt", inputs, strict=True)}
        (found,) = run(from_pytorch(BERT, shapes=shapes), inputs)
        wanted = golden[f"{case}_out0"]
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_buffers_that_are_written_in_place_are_states() -> None:
    """As `export` leaves them (`add_`), and by the signature, as `run_decompositions` does."""
    node = invoke("aten.add_.Tensor", {"self": tensor("b"), "other": tensor("x")}, "y")
    data = archive([node], {"x": MATRIX}, ["y"], {"y": MATRIX}, {"b": np.ones((2, 3), np.float32)}, buffers=["b"])
    module = from_pytorch(data)
    inputs, outputs = signature.read(module["main"])
    assert [(each.name, each.kind) for each in inputs] == [("x", "input"), ("b", "state")]
    assert [(each.name, each.kind) for each in outputs] == [("y", "output"), ("b", "state")]
    found = run(module, [np.ones((2, 3), np.float32), np.full((2, 3), 5, np.float32)])
    assert [each.max() for each in found] == [6, 6]


def test_a_write_through_a_view_of_a_buffer_is_refused() -> None:
    """It changes the state, of which only whole new values are known."""
    view = invoke("aten.view.default", {"self": tensor("b"), "size": {"as_ints": [6]}}, "v")
    write = invoke("aten.add_.Tensor", {"self": tensor("v"), "other": {"as_int": 1}}, "w")
    read = invoke("aten.add.Tensor", {"self": tensor("x"), "other": tensor("b")}, "y")
    types = {"v": ((6,), "float32"), "w": ((6,), "float32"), "y": MATRIX}
    weights = {"b": np.ones((2, 3), np.float32)}
    with pytest.raises(Unsupported, match="writes to a part of a buffer"):
        from_pytorch(archive([view, write, read], {"x": MATRIX}, ["y"], types, weights, ["b"]))


def test_what_was_written_through_a_view_is_not_read_by_another_name() -> None:
    """`add_` writes to the flat view; the matrix is out of date, and says so where it is read."""
    view = invoke("aten.view.default", {"self": tensor("a"), "size": {"as_ints": [6]}}, "v")
    first = invoke("aten.relu.default", {"self": tensor("x")}, "a")
    write = invoke("aten.add_.Tensor", {"self": tensor("v"), "other": {"as_int": 1}}, "w")
    last = invoke("aten.neg.default", {"self": tensor("a")}, "y")
    types = {"a": MATRIX, "v": ((6,), "float32"), "w": ((6,), "float32"), "y": MATRIX}
    with pytest.raises(Unsupported, match="'a', which is not computed, or is a view of what was written in place"):
        from_pytorch(archive([first, view, write, last], {"x": MATRIX}, ["y"], types))
    (found,) = run(from_pytorch(archive([first, view, write], {"x": MATRIX}, ["w"], types)), [np.zeros((2, 3), "f")])
    assert found.tolist() == [1] * 6


def test_codes_are_those_of_torch() -> None:
    """`clamp(rint(x * (1 / scale)) + zero_point)` of float32, and back."""
    x = np.linspace(-3, 3, 96, dtype=np.float32).reshape(2, 48) * np.float32(0.7)
    scale, last = 0.1 / 3, {"quant_min": {"as_int": -128}, "quant_max": {"as_int": 100}, "dtype": {"as_scalar_type": 2}}
    given = {"scale": {"as_float": scale}, "zero_point": {"as_int": 3}, **last}
    codes = invoke("quantized_decomposed.quantize_per_tensor.default", {"input": tensor("x"), **given}, "q")
    reals = invoke("quantized_decomposed.dequantize_per_tensor.default", {"input": tensor("q"), **given}, "y")
    shape = ((2, 48), "float32")
    data = archive([codes, reals], {"x": shape}, ["q", "y"], {"q": ((2, 48), "int8"), "y": shape})
    inverse = np.float32(1) / np.float32(scale)
    wanted = np.clip(np.rint(x * inverse) + 3, -128, 100)
    found = run(from_pytorch(data, numerics="qdq"), [x])
    assert np.array_equal(found[0], wanted) and found[0].dtype == np.int8
    assert np.array_equal(found[1], (wanted - 3).astype(np.float32) * np.float32(scale))


@pytest.mark.parametrize("kind", ["SYMMETRIC", "ASYMMETRIC"])
def test_blocks_are_quantized_by_their_own_range(kind: str) -> None:
    """Scales and zero points that torchao's formulas give for blocks of three; back, within half a step."""
    x = (np.random.default_rng(0).normal(size=(4, 6)) * 3).astype(np.float32)
    bounds = {"block_size": {"as_ints": [1, 3]}, "quant_min": {"as_int": -127}, "quant_max": {"as_int": 127}}
    kinds = {"mapping_type": {"as_string": kind}, "target_dtype": {"as_scalar_type": 2}, "eps": {"as_float": 1e-5}}
    given = {**bounds, "scale": tensor("s"), "zero_point": tensor("z")}
    nodes = [
        invoke("torchao.choose_qparams_affine.default", {"input": tensor("x"), **kinds, **bounds}, "s", "z"),
        invoke("torchao.quantize_affine.default", {"input": tensor("x"), **given}, "q"),
        invoke("torchao.dequantize_affine.default", {"input": tensor("q"), **given}, "y"),
    ]
    shape = ((4, 6), "float32")
    types = {"s": ((4, 2), "float32"), "z": ((4, 2), "int64"), "q": ((4, 6), "int8"), "y": shape}
    scale, zero, codes, back = run(from_pytorch(archive(nodes, {"x": shape}, ["s", "z", "q", "y"], types)), [x])
    blocks = x.reshape(4, 2, 3)
    low, high = np.minimum(blocks.min(2), 0), np.maximum(blocks.max(2), 0)
    if kind == "SYMMETRIC":
        low, high = -np.maximum(-low, high), np.maximum(-low, high)
    assert np.allclose(scale, (high - low) / 254, rtol=1e-6)
    assert np.array_equal(zero, 0 * zero if kind == "SYMMETRIC" else np.clip(-127 - np.rint(low / scale), -127, 127))
    assert codes.dtype == np.int8 and abs(codes.astype(int)).max() <= 127
    assert (abs(back - x).reshape(4, 2, 3) <= 0.5001 * scale[..., None] + 1e-6).all()
