"""`share-layers`, `share-kernels`: layers quantized one by one share kernels; results are as if they did not."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from benchmarks.transformers import Encoder
from relay.compile.pipeline import default_pipeline
from relay.lowering.share_kernels import ShareKernels
from relay.lowering.share_layers import ShareLayers
from relay.module import IRModule
from relay.passes import PassContext, Pipeline
from relay.runtime import Executable
from relay.target import host


def encoder() -> IRModule:
    """Three layers, each with scales and zero points of its own."""
    return relay.frontend.from_onnx(Encoder(3, 32, 2, 64, 9).model().SerializeToString())


HOST = "llvm"
OTHERS = [
    pytest.param(
        f"x86_64-unknown-linux-gnu {options}",
        marks=[pytest.mark.ci, pytest.mark.skipif(not runs, reason="other processor")],
    )
    for options, runs in (
        ("-mcpu=haswell", host().features >= {"avx2", "fma"}),
        ("-mcpu=skylake-avx512", host().features >= {"avx512bw", "avx512vl"}),
    )
]
"""Processors that multiply pairs of codes: zero points of attention are subtracted there."""


@pytest.fixture(scope="module", params=[HOST, *OTHERS])
def pair(request: pytest.FixtureRequest) -> tuple[Executable, Executable]:
    """With kernels shared, and without."""
    target = str(request.param)
    steps = list(default_pipeline(target))
    plain = Pipeline([step for step in steps if not isinstance(step, ShareKernels | ShareLayers)])
    assert len(list(plain)) == len(steps) - 2
    with PassContext(opt_level=1):
        return relay.build(encoder(), target), relay.build(encoder(), target, pipeline=plain)


def test_layers_share_the_code(pair: tuple[Executable, Executable]) -> None:
    shared, plain = (len(set(each.graph["kernels"])) for each in pair)
    assert plain >= shared + 10
    assert len(pair[0].library.code) < 0.7 * len(pair[1].library.code)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_those_of_kernels_apart(pair: tuple[Executable, Executable], threads: int) -> None:
    given = [np.random.default_rng(2).normal(size=spec.shape).astype(spec.dtype) for spec in pair[0].inputs]
    shared, plain = pair
    shared.num_threads = plain.num_threads = threads
    np.testing.assert_array_equal(np.asarray(shared.run(*given)), np.asarray(plain.run(*given)))
