"""Random modules through passes in random order: the interpreter's numbers stay, and compiled code has the same."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from xdsl.passes import ModulePass

from relay.dialects.attributes import Array
from relay.driver import build, default_pipeline
from relay.interpreters import run
from relay.passes import PassContext, Sequential
from relay.universe import PASSES
from tests.conftest import Cases
from tests.numeric.compiled_modules import equal
from tests.numeric.random_graphs import RandomGraph

SAME_LEVEL = (
    "infer-types", "legalize", "qnn-legalize", "convert-layout", "alter-op-layout", "simplify-inference",
    "fold-explicit-padding", "fold-scale-axis", "combine-parallel-conv2d", "combine-parallel-dense",
    "canonicalize-cast", "dynamic-to-static", "remove-unused-functions", "inline", "simplify", "fold-constant",
    "dead-pixels", "unsigned-codes", "fold-qdq", "merge-composite", "annotate-target", "merge-compiler-regions",
    "prune-regions", "partition-graph", "inline-partitions", "compile-external",
)  # fmt: skip
"""Passes from relay to relay that keep every integer; floats up to rounding."""
CHANGES_NUMBERS = {
    "quantize", "quantize-annotate", "quantize-calibrate", "quantize-realize", "equalize-layers", "fast-math",
    "to-mixed-precision",
}  # fmt: skip
PRINTS = {"print-ir"}
GPU = {
    "schedule-gpu", "convert-parallel-loops-to-gpu", "gpu-kernel-outlining", "expand-math", "nvvm-attach-target",
    "convert-gpu-to-nvvm", "convert-gpu-to-llvm-spv", "gpu-module-to-binary",
}  # fmt: skip


def step(name: str) -> ModulePass:
    return PASSES[name]()()


def same(got: Sequence[Array], want: Sequence[Array], what: str) -> None:
    for mine, right in zip(got, want, strict=True):
        if right.dtype.kind == "f":
            limit = 1e-4 * float(np.abs(right).max(initial=1e-3))
            assert mine.shape == right.shape and np.abs(mine - right).max(initial=0) <= limit, what
        else:
            assert equal(mine, right), what


def check(number: int) -> None:
    """A module through some passes one by one, then built."""
    rng = random.Random(number)
    net = RandomGraph(number, floats=rng.random() < 0.4, size=rng.randrange(1, 8))
    mod = net.module()
    wanted = run(mod, net.inputs)
    names = rng.sample(SAME_LEVEL, 4)
    for count, name in enumerate(names):
        with PassContext(opt_level=4):
            mod = Sequential([step(name)])(mod)
        mod.verify()
        same(run(mod, net.inputs), wanted, f"case {number}: {names[: count + 1]}")
    found = build(mod, opt_level=rng.randrange(5)).run(*net.inputs)
    assert found is not None
    same(found if isinstance(found, tuple) else (found,), wanted, f"case {number}: {names} and a build")


def fuzz(cases: Iterable[int]) -> None:
    count = 0
    for number in cases:
        check(number)
        count += 1
    print(f"{count} modules")


def test_every_pass_has_its_place() -> None:
    lowering = {each.name for each in default_pipeline() if each.name in PASSES}
    assert {*SAME_LEVEL, *CHANGES_NUMBERS, *PRINTS, *GPU, *lowering} == {*PASSES}


def test_passes_keep_numbers() -> None:
    fuzz(range(2))


@pytest.mark.fuzz
def test_passes_keep_the_numbers_of_many(cases: Cases) -> None:
    fuzz(cases(300))
