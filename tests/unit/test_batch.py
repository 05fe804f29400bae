"""`from_tflite(..., batch=)`: every row of a result is what a batch of 1 gives, or the operator is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay import signature
from relay.compile.entry import build
from relay.errors import InvalidArgument, RelayError, Unsupported
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import Executable
from relay.transforms.batch import rebatch
from tests.numeric.litert_models import Array, Case, T
from tests.numeric.litert_product_cases import QUANTISED
from tests.numeric.litert_shape_cases import CASES
from tests.numeric.litert_types import data_of
from tests.numeric.written_models import written

DIGITS = Path(__file__).parents[2] / "examples/digits"
MODELS = Path(__file__).parents[2] / "../shared/models"
REAL = sorted(MODELS.glob("*.tflite"))


def numbers(mod: IRModule, rng: np.random.Generator) -> list[Array]:
    """Random inputs; states as they start."""
    found: list[Array] = []
    for info in signature.read(mod["main"])[0]:
        if info.initial is not None:
            found.append(np.array(info.initial))
        elif info.dtype.kind == "b":
            found.append(rng.integers(0, 2, info.shape).astype(info.dtype))
        elif info.dtype.kind == "f":
            found.append(rng.standard_normal(info.shape).astype(info.dtype))
        else:
            limits = np.iinfo(info.dtype)
            found.append(rng.integers(limits.min, limits.max + 1, info.shape).astype(info.dtype))
    return found


def same(got: Array, want: Array) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.kind == "f":
        np.testing.assert_allclose(
            got, want, rtol=1e-4, atol=1e-5 * float(np.abs(want[np.isfinite(want)]).max(initial=1))
        )
    else:
        assert np.array_equal(got, want)


def rows_are_single_images(path: Path, batch: int) -> None:
    """Of the interpreter: states too."""
    many, one = from_tflite(path, batch=batch), from_tflite(path)
    many.verify()
    given = numbers(many, np.random.default_rng(1))
    results = run(many, given)
    for row in range(batch):
        for got, want in zip(results, run(one, [array[row : row + 1] for array in given]), strict=True):
            rows = want.shape[0]
            same(got[row * rows : (row + 1) * rows], want)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.ci if path.stat().st_size > 1 << 19 else ())
        for path in (*sorted(DIGITS.glob("*.tflite")), *REAL)
    ],
    ids=lambda path: path.stem,
)
def test_models_are_imported_for_eight_images(path: Path) -> None:
    mod = from_tflite(path, batch=8)
    mod.verify()
    (inputs, outputs), (stored, results) = (signature.read(m["main"]) for m in (mod, from_tflite(path)))
    for new, old in zip([*inputs, *outputs], [*stored, *results], strict=True):
        assert new.shape == (8 * old.shape[0], *old.shape[1:]) and new.name == old.name


@pytest.mark.parametrize("name", ["digits_int8", "digits_float", "ad01_int8", "keras_lstm_mnist_ptq"])
def test_rows_are_single_images(name: str) -> None:
    path = (DIGITS if name.startswith("digits") else MODELS) / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{name} is not at hand")
    rows_are_single_images(path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_rows_of_every_model_are_single_images(path: Path) -> None:
    rows_are_single_images(path, 2)


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_compiled_rows_are_single_images(path: Path) -> None:
    given = numbers(from_tflite(path, batch=8), np.random.default_rng(2))
    kinds = [info.kind for info in signature.read(from_tflite(path)["main"])[0]]
    inputs = given[: kinds.count("input")]
    got = results_of(build(path, frontend={"batch": 8}), inputs)
    one = build(path)
    for row in range(8):
        one = build(path) if "state" in kinds else one
        for many, single in zip(got, results_of(one, [array[row : row + 1] for array in inputs]), strict=True):
            rows = single.shape[0]
            same(many[row * rows : (row + 1) * rows], single)


def results_of(executable: Executable, inputs: Sequence[Array]) -> list[Array]:
    found = executable.run(*inputs)
    assert found is not None
    return list(found) if isinstance(found, tuple) else [found]


def test_compiled_batch() -> None:
    """By `relay.build(frontend={"batch": 8})`, in the order of the images."""
    path = DIGITS / "digits_int8.tflite"
    many, one = build(path, frontend={"batch": 8}, opt_level=0), build(path, opt_level=0)
    (given,) = numbers(from_tflite(path, batch=8), np.random.default_rng(3))
    assert many.inputs[0].shape[0] == 8
    single = np.concatenate([results_of(one, [given[row : row + 1]])[0] for row in range(8)])
    assert np.array_equal(results_of(many, [given])[0], single)


def test_stored_batch_changes_nothing() -> None:
    path = DIGITS / "digits_int8.tflite"
    assert from_tflite(path, batch=1).to_text() == from_tflite(path).to_text()


@pytest.mark.parametrize("batch", [0, -1, True, "8"])
def test_batches_that_are_none(batch: Any) -> None:
    with pytest.raises(InvalidArgument, match="batch"):
        from_tflite(DIGITS / "digits_int8.tflite", batch=batch)


def integers(*values: int) -> T:
    return T(np.array(values, np.int32), "int32")


X = T([1, 4, 4, 3], "int8", 0.1, 3)
BEFORE = T(np.eye(4, 2, dtype=np.int32) * np.array([1, 0], np.int32), "int32")
MIXING = [
    (Case("MEAN", [X, integers(0, 1)], [T([4, 3], "int8", 0.1, 3)], "ReducerOptions"), "leading axis"),
    (Case("TRANSPOSE", [X, integers(1, 0, 2, 3)], [T([4, 1, 4, 3], "int8", 0.1, 3)]), "leading axis is moved"),
    (Case("PAD", [X, BEFORE], [T([2, 4, 4, 3], "int8", 0.1, 3)]), "padded"),
    (Case("SLICE", [T([2, 3], "float32"), integers(1, 0), integers(1, 3)], [T([1, 3], "float32")]), "a part"),
    (Case("PACK", [X], [T([1, 1, 4, 4, 3], "int8", 0.1, 3)], "PackOptions", {"valuesCount": 1, "axis": 0}), "leading"),
    (Case("SOFTMAX", [T([3], "float32")], [T([3], "float32")], "SoftmaxOptions", {"beta": 1.0}), "leading one"),
    (Case("ADD", [X, T([4, 3], "int8", 0.1, 3)], [X], "AddOptions"), "the inputs have shapes"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "message"), MIXING, ids=[case.kind for case, _ in MIXING])
def test_operators_that_mix_images_are_named(case: Case, message: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema, which writes the models, is not installed")
    from_tflite(case.model())
    with pytest.raises(Unsupported, match=f"{message}") as raised:
        from_tflite(case.model(), batch=4 if case.kind != "SLICE" else 6)
    assert case.kind in str(raised.value) or "shapes" in message


def test_constants_of_the_batch_follow() -> None:
    """Shapes, sizes and bounds that name the leading axis are those of the new batch."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema, which writes the models, is not installed")
    out = T([1, 2, 4, 3], "int8", 0.1, 3)
    numbers_ = [integers(0, 1, 0, 0), integers(1, 3, 4, 3), integers(1, 1, 1, 1)]
    cases = [
        Case("RESHAPE", [X, integers(1, 48)], [T([1, 48], "int8", 0.1, 3)]),
        Case("RESHAPE", [X, integers(-1, 48)], [T([1, 48], "int8", 0.1, 3)]),
        Case("RESHAPE", [X, integers(16, -1)], [T([16, 3], "int8", 0.1, 3)]),
        Case("RESHAPE", [X], [T([1, 48], "int8", 0.1, 3)], "ReshapeOptions", {"newShape": [1, 48]}),
        Case("SLICE", [X, integers(0, 1, 0, 0), integers(1, 2, 4, 3)], [out]),
        Case("STRIDED_SLICE", [X, *numbers_], [out], "StridedSliceOptions"),
    ]
    image = np.random.default_rng(4).integers(-128, 128, (5, 4, 4, 3)).astype(np.int8)
    for case in cases:
        (many,) = run(from_tflite(case.model(), batch=5), [image])
        single = [run(from_tflite(case.model()), [image[row : row + 1]])[0] for row in range(5)]
        assert np.array_equal(many, np.concatenate(single)), case


RECURRENT = (
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "LSTM",
    "RNN",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
)


@pytest.mark.parametrize("kind", [*RECURRENT, "BIDIRECTIONAL_SEQUENCE_RNN", "SVDF"])
def test_sequences_of_a_batch_have_nothing_to_do_with_each_other(kind: str) -> None:
    """Their states too."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema, which writes the models, is not installed")
    cases = (QUANTISED[kind, "float32"](np.random.default_rng(seed), kind, "float32") for seed in range(100))
    single = (case for case in cases if [*data_of(case).value][0] == 1 and not case.values.get("timeMajor"))
    model = next(single).model()
    many, one = from_tflite(model, batch=3), from_tflite(model)
    given = numbers(many, np.random.default_rng(5))
    results = run(many, given)
    for row in range(3):
        for got, want in zip(results, run(one, [array[row : row + 1] for array in given]), strict=True):
            same(got[row : row + 1], want)


def test_indices_of_each_image() -> None:
    """GATHER with batch dimensions: if the indices are the images' own."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema, which writes the models, is not installed")
    data, out = T([1, 4, 2], "float32"), T([1, 3, 2], "float32")
    values = {"axis": 1, "batchDims": 1}
    model = Case("GATHER", [data, T([1, 3], "int32")], [out], "GatherOptions", values, 5).model()
    x, places = np.arange(24, dtype=np.float32).reshape(3, 4, 2), np.array([[0, 3, 1], [2, 2, 0], [1, 0, 3]], np.int32)
    (many,) = run(from_tflite(model, batch=3), [x, places])
    assert np.array_equal(many, np.take_along_axis(x, places[..., None], 1))
    with pytest.raises(Unsupported, match="its batch dimensions count images"):
        known = T(np.array([[0, 3, 1]], np.int32), "int32")
        from_tflite(Case("GATHER", [data, known], [out], "GatherOptions", values, 5).model(), batch=3)


NO_RULE = {
    "BATCH_TO_SPACE_ND": "makes images of parts of several",
    "DYNAMIC_UPDATE_SLICE": "its start has a number for each axis, not for each image",
    "FILL": "takes a scalar",
    "MATRIX_DIAG": "puts diagonals into zeros of the stored batch",
    "NON_MAX_SUPPRESSION_V4": "takes the boxes of one image, without an axis of images",
    "NON_MAX_SUPPRESSION_V5": "takes the boxes of one image, without an axis of images",
    "RANGE": "takes constants only",
    "SCATTER_ND": "its indices may count images",
    "SHAPE": "gives the stored batch",
    "SPACE_TO_BATCH_ND": "makes images of parts of one, those of all images at one place side by side",
}
"""Kinds of operators that take no other batch, and why."""


def inputs_of(case: Case) -> Iterator[Case]:
    """The operator as it is, then with all inputs but one as constants."""
    yield case
    free = [slot for slot, t in enumerate(case.inputs) if t and not isinstance(t.value, np.ndarray) and not t.variable]
    values = dict(zip(free, case.feeds(np.random.default_rng(7)), strict=True))
    for kept in free if len(free) > 1 else ():
        constants = {
            slot: replace(case.inputs[slot] or T([], "int8"), value=values[slot]) for slot in free if slot != kept
        }
        yield replace(case, inputs=[constants.get(slot, each) for slot, each in enumerate(case.inputs)])


def refusal(case: Case) -> str:
    """Why a model of one operator is refused for twice its images; else they are what two runs of half as many give."""
    model = written(case)
    try:
        one = from_tflite(model)
        sizes = [next(iter(info.shape), 0) for info in signature.read(one["main"])[0]]
        many = from_tflite(model, batch=2 * max(sizes, default=1))
    except RelayError as error:
        return str(error)
    many.verify()
    rng = np.random.default_rng(6)
    halves = [numbers(one, rng), numbers(one, rng)]
    results = run(many, [np.concatenate(pair) for pair in zip(*halves, strict=True)])
    for got, *wanted in zip(results, *(run(one, half) for half in halves), strict=True):
        same(got, np.concatenate(wanted) if got.ndim else wanted[0])
    return ""


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.ci if kind in NO_RULE else ())
        for kind in sorted({*CASES} | {kind for kind, _ in QUANTISED})
    ],
)
def test_every_kind_has_a_rule_or_says_why(kind: str) -> None:
    makers: list[Callable[[np.random.Generator], Case]] = []
    if kind in CASES:
        makers.append(lambda rng: CASES[kind](rng, kind))
    for name, of in QUANTISED:
        if name == kind:
            makers.append(lambda rng, of=of: QUANTISED[kind, of](rng, kind, of))
    cases = (each for seed in range(12) for make in makers for each in inputs_of(make(np.random.default_rng(seed))))
    reasons = set[str]()
    for case in cases:
        reason = refusal(case)
        if not reason:
            assert kind not in NO_RULE, f"{kind} has a rule: it is in NO_RULE"
            return
        reasons.add(reason)
    assert kind in NO_RULE, f"{kind} has no rule for another batch, and is not in NO_RULE: {reasons}"


@pytest.mark.parametrize(
    ("operands", "properties", "why"),
    [
        ("%x, %w", "", ""),
        ("%x, %w", "transpose_a = true, ", "it is not known to keep the images of a batch apart"),
        ("%w, %x", "", "it is not known to keep the images of a batch apart"),
        ("%x, %x", "", "it is not known to keep the images of a batch apart"),
    ],
)
def test_rows_of_a_product_of_matrices(operands: str, properties: str, why: str):
    mod = IRModule.parse(
        f"""func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> attributes {{relay.inputs = [{{name = "x"}}]}} {{
          %w = relay.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]]> : tensor<3x3xf32>
          %r = relay.nn.matmul {operands} {{{properties}out_dtype = f32}}
            : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
          func.return %r : tensor<3x3xf32>
        }}"""
    )
    if why:
        with pytest.raises(Unsupported, match=why):
            rebatch(mod, 5, "m")
        return
    rebatch(mod, 5, "m")
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    weights = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10]], np.float32)
    assert np.array_equal(run(mod, [x])[0], x @ weights)
