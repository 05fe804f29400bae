"""Quantised ONNX models against what ONNX Runtime 1.31.1 gave: `out` without its optimisations, `opt` with all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.byoc.partitioning.work import multiplications
from relay.interpreters import run
from relay.quantize import QdqToInteger, integer_share, stayed

onnx = pytest.importorskip("onnx", reason="needs the package onnx")
from tests.numeric.onnx_quantised import Array  # noqa: E402

FOLDER = Path(__file__).parents[3] / "shared" / "models" / "onnx"
EXACT = {
    "ultraface_slim_qoperator_u8u8": ("out", "opt"),
    "shufflenet_randomw_qoperator": ("out", "opt"),
    "ultraface_slim_qdq_u8s8": ("opt",),
    "bert_tiny_qdq": ("out", "opt"),
}
"""Models of codes, and the results that theirs are equal to."""
NEAR = {"bert_tiny_dynamic_int8": 1e-4, "bert_tiny_nbits4": 1e-5, "ppocr_cls_qdq_a16w8": 1e-4}
"""Models whose products are of floats at last, and how far off they may be, of the largest result: the last by three
steps of its 16-bit result, which are 2^-16 each (seen at level 0; one or none at level 1)."""
RUNS = ("r0", "r1", "r2")
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the models are not there")


def goldens(name: str) -> dict[str, Array]:
    with np.load(FOLDER / "golden" / f"{name}.npz") as found:
        return dict(found)


def given(golden: dict[str, Array], what: str) -> list[Array]:
    """`r0_in` and the like, in order."""
    return [golden[f"{what}{i}"] for i in range(len(golden)) if f"{what}{i}" in golden]


def imported(name: str, inputs: list[Array]) -> relay.IRModule:
    path = FOLDER / f"{name}.onnx"
    graph = onnx.load(path).graph
    names = [each.name for each in graph.input if each.name not in {each.name for each in graph.initializer}]
    shapes = {each: array.shape for each, array in zip(names, inputs, strict=True)}
    module = relay.frontend.from_onnx(path, shapes=shapes)
    return QdqToInteger()(module)


def telling(golden: dict[str, Array], what: str) -> Iterator[str]:
    """The results of a run that take many values or differ from those of another input: others show nothing."""
    other = what.replace("r0", "r1") if what.startswith("r0") else f"r0{what[2:]}"
    for i, array in enumerate(given(golden, what)):
        before = golden[f"{other}{i}"]
        if np.unique(array).size >= 50 or (array.shape == before.shape and (array != before).any()):
            yield f"{what}{i}"


def compare(name: str, found: list[Array], golden: dict[str, Array], which: str) -> None:
    for kind in EXACT.get(name, ("out", "opt")):
        names = [*telling(golden, f"{which}_{kind}")]
        assert names
        for key in names:
            array, wanted = found[int(key.removeprefix(f"{which}_{kind}"))], golden[key]
            if name in EXACT:
                np.testing.assert_array_equal(array, wanted)
            else:
                off = np.abs(array.astype(np.float64) - wanted).max()
                assert off <= NEAR[name] * np.abs(wanted).max()


SMALL = ("ultraface_slim_qoperator_u8u8", "bert_tiny_qdq", "bert_tiny_dynamic_int8", "bert_tiny_nbits4")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SMALL else pytest.mark.ci) for n in (*EXACT, *NEAR)])
def test_model_interpreted(name: str) -> None:
    golden = goldens(name)
    inputs = given(golden, "r0_in")
    compare(name, [*run(imported(name, inputs), inputs)], golden, "r0")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EXACT, *NEAR])
def test_model_compiled(name: str) -> None:
    golden = goldens(name)
    for which in RUNS:
        inputs = given(golden, f"{which}_in")
        module = imported(name, inputs)
        for level in range(5):
            executable = relay.build(module, opt_level=level)
            for threads in (1, 2):
                executable.num_threads = threads
                found = executable(*inputs)
                arrays = [np.asarray(each) for each in (found if isinstance(found, tuple | list) else [found])]
                compare(name, arrays, golden, which)


def products(name: str, inputs: list[Array]) -> int:
    """Multiply-accumulates of the file's convolutions and products, by its own shapes."""
    model = onnx.load(FOLDER / f"{name}.onnx")
    for given, array in zip(model.graph.input, inputs, strict=False):  # initializers may follow
        for dim, size in zip(given.type.tensor_type.shape.dim, array.shape, strict=True):
            dim.dim_value = size
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    dims = {each.name: [d.dim_value for d in each.type.tensor_type.shape.dim] for each in graph.value_info}
    dims |= {each.name: [*each.dims] for each in graph.initializer}
    found = 0
    for node in graph.node:
        if node.op_type in ("Conv", "MatMul", "Gemm"):
            kernel = dims[node.input[1]]
            turned = any(each.name == "transB" and each.i for each in node.attribute)
            inner = int(np.prod(kernel[1:])) if turned or node.op_type == "Conv" else kernel[0]
            found += int(np.prod(dims[node.output[0]])) * inner
    return found


@pytest.mark.parametrize(
    ("name", "share", "reasons"),
    [
        ("ultraface_slim_qdq_u8s8", 1.0, {}),
        pytest.param(
            "ppocr_cls_qdq_a16w8",
            0.0,
            {
                "ONNX Runtime has integer kernels of 8-bit codes only": 171,
                "relay.nn.max_pool2d has no form on codes": 1,
            },
            marks=pytest.mark.ci,
        ),
    ],
)
def test_report(name: str, share: float, reasons: dict[str, int]) -> None:
    """What stays in float, why, and the share of multiply-accumulates."""
    inputs = given(goldens(name), "r0_in")
    module = imported(name, inputs)
    assert dict(Counter(why for _, why in stayed(module))) == reasons
    assert integer_share(module["main"]) == share
    assert sum(multiplications(op) for op in module["main"].walk()) == products(name, inputs) > 1_000_000


def test_definition_in_floats() -> None:
    """`numerics="qdq"`: no pass is asked for, and the results are those without optimisations, but for sums of floats
    in another order."""
    name = "ultraface_slim_qdq_u8s8"
    golden = goldens(name)
    (image,) = given(golden, "r0_in")
    module = relay.frontend.from_onnx(FOLDER / f"{name}.onnx", numerics="qdq")
    assert "relay.requests" not in module.op.attributes
    found = run(module, [image])
    for array, wanted in zip(found, given(golden, "r0_out"), strict=True):
        assert (array != wanted).mean() < 0.2 and (np.abs(array - wanted) > 0.2).sum() == 0
