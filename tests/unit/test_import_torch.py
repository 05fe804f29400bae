"""The importer of PyTorch programs: archives, sizes, states, and what it says of those that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay import symbols
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
        "an argument of the kind custom_obj",
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
