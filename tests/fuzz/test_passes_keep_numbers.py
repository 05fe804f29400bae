"""Random modules through passes in random order: the interpreter's numbers stay, and compiled code has the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from xdsl.passes import ModulePass

from relay import signature
from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects.attributes import Array
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.module import IRModule
from relay.passes import PassContext, Sequential
from relay.universe import PASSES
from tests.conftest import Cases
from tests.fuzz.random_modules import RandomModule
from tests.fuzz.run_cases import run_cases
from tests.numeric.compiled_modules import equal
from tests.numeric.litert_comparison import Accepted, accepted
from tests.numeric.litert_models import joined
from tests.numeric.litert_product_cases import QUANTISED
from tests.numeric.litert_shape_cases import CASES

SAME_LEVEL = (
    "infer-types", "legalize", "qnn-legalize", "convert-layout", "alter-op-layout", "simplify-inference",
    "fold-explicit-padding", "fold-scale-axis", "combine-parallel-conv2d", "combine-parallel-dense",
    "canonicalize-cast", "dynamic-to-static", "remove-unused-functions", "inline", "simplify", "fold-constant",
    "dead-pixels", "unsigned-codes", "signed-codes", "qdq-to-integer", "merge-composite",
    "annotate-target",
    "annotate-external-compiler", "merge-compiler-regions", "prune-regions", "partition-graph", "inline-partitions",
    "compile-external", "raise-ops",
)  # fmt: skip
"""Passes from relay to relay that keep every integer; floats up to rounding."""
CHANGES_NUMBERS = {
    "quantize", "quantize-annotate", "quantize-calibrate", "quantize-realize", "equalize-layers", "fast-math",
    "to-mixed-precision", "weight-only",
}  # fmt: skip
PRINTS = {"print-ir", "print-choices"}
GPU = {
    "schedule-gpu", "convert-parallel-loops-to-gpu", "gpu-kernel-outlining", "math-expand-ops", "nvvm-attach-target",
    "convert-gpu-to-nvvm", "convert-gpu-to-llvm-spv", "gpu-module-to-binary",
}  # fmt: skip
ON_REQUEST = {"linalg-specialize-generic-ops"}
"""Below relay, and in no pipeline: tests/numeric/test_object_code_by_mlir.py runs what it makes."""

MAKES_STATES = {"caches-in-place"}
"""Takes other inputs and gives other results: tests/unit/test_caches_in_place.py runs what it makes."""


def step(name: str) -> ModulePass:
    return PASSES[name]()()


def same(got: Sequence[Array], want: Sequence[Array], what: str) -> None:
    for mine, right in zip(got, want, strict=True):
        if right.dtype.kind == "f":
            limit = 1e-4 * float(np.abs(right).max(initial=1e-3))
            assert mine.shape == right.shape and np.abs(mine - right).max(initial=0) <= limit, what
        else:
            assert equal(mine, right), what


def through(mod: IRModule, names: Sequence[str], feeds: Sequence[Array], what: str) -> tuple[IRModule, list[Array]]:
    """The module after these passes, of which none may change what the interpreter makes of it; and that."""
    wanted = list(run(mod, feeds))
    for count, name in enumerate(names):
        with PassContext(opt_level=4):
            mod = Sequential([step(name)])(mod)
        mod.verify()
        same(run(mod, feeds), wanted, f"{what}: {names[: count + 1]}")
    return mod, wanted


def check(number: int) -> str:
    """A module through some passes one by one, then built."""
    rng = random.Random(number)
    net = RandomModule(number, rng.randrange(1, 6))
    names = rng.sample(SAME_LEVEL, 4)
    mod, wanted = through(net.module(), names, net.inputs, f"case {number}")
    found = build(mod, opt_level=rng.randrange(5)).run(*net.inputs)
    assert found is not None
    same(found if isinstance(found, tuple) else (found,), wanted, f"case {number}: {names} and a build")
    return "kept"


def check_operators(number: int) -> str:
    """Operators of a model, all kinds of them, through many passes."""
    rng = np.random.default_rng(number)
    kinds = [*CASES, *QUANTISED]
    models: list[Accepted] = []
    while len(models) < 4:
        kind = kinds[int(rng.integers(len(kinds)))]
        model = accepted(CASES[kind](rng, kind) if isinstance(kind, str) else QUANTISED[kind](rng, *kind), rng)
        models += [model] if model is not None else []
    mod = from_tflite(joined([model.case for model in models]))
    inputs, _ = signature.read(mod["main"])
    states = [np.array(info.initial) for info in inputs if info.kind == "state"]
    feeds = [array for model in models for array in model.feeds[0]]
    names = [str(name) for name in rng.permutation(SAME_LEVEL)[:8]]
    through(mod, names, [*feeds, *states], f"case {number}, {[model.case.kind for model in models]}")
    return "kept"


def fuzz(check: Callable[[int], str], cases: Iterable[int]) -> None:
    run_cases(cases, lambda number: number, check)


def test_every_pass_has_its_place() -> None:
    lowering = {each.name for each in default_pipeline() if each.name in PASSES}
    placed = {*SAME_LEVEL, *CHANGES_NUMBERS, *PRINTS, *GPU, *ON_REQUEST, *MAKES_STATES, *lowering}
    assert not {*PASSES} - placed, "add it to SAME_LEVEL if it keeps numbers, else to the list above that fits"
    assert not placed - {*PASSES}, "there is no such pass any more"


def test_passes_keep_numbers() -> None:
    fuzz(check, range(3))


def test_passes_keep_the_numbers_of_operators() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds the models")
    fuzz(check_operators, range(8))


@pytest.mark.fuzz
def test_passes_keep_the_numbers_of_many(cases: Cases) -> None:
    fuzz(check, cases(1000))


@pytest.mark.fuzz
def test_passes_keep_the_numbers_of_many_operators(cases: Cases) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds the models")
    fuzz(check_operators, cases(1000))
