"""`share-layers`, `share-kernels`: layers quantized one by one share kernels; results are as if they did not."""

from __future__ import annotations

from typing import cast

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

Pair = tuple[Executable, Executable, int]


def encoder(layers: int) -> IRModule:
    """Layers with scales and zero points of their own."""
    return relay.frontend.from_onnx(Encoder(layers, 32, 2, 64, 9).model().SerializeToString())


HOST = "llvm"
OTHERS = [
    pytest.param(
        (f"x86_64-unknown-linux-gnu {options}", 3),
        marks=[pytest.mark.ci, pytest.mark.skipif(not runs, reason="other processor")],
    )
    for options, runs in (
        ("-mcpu=haswell", host().features >= {"avx2", "fma"}),
        ("-mcpu=skylake-avx512", host().features >= {"avx512bw", "avx512vl"}),
    )
]
"""Processors that multiply pairs of codes: zero points of attention are subtracted there."""


@pytest.fixture(scope="module", params=[(HOST, 2), pytest.param((HOST, 3), marks=pytest.mark.ci), *OTHERS], ids=str)
def pair(request: pytest.FixtureRequest) -> Pair:
    """With kernels shared, and without; of how many layers."""
    target, layers = cast("tuple[str, int]", request.param)
    steps = list(default_pipeline(target))
    plain = Pipeline([step for step in steps if not isinstance(step, ShareKernels | ShareLayers)])
    assert len(list(plain)) == len(steps) - 2
    with PassContext(opt_level=1):
        module = encoder(layers)
        return relay.build(module, target), relay.build(module, target, pipeline=plain), layers


def test_layers_share_the_code(pair: Pair) -> None:
    shared, plain = (len(set(each.graph["kernels"])) for each in pair[:2])
    assert plain >= shared + {2: 9, 3: 10}[pair[2]]
    assert len(pair[0].library.code) < 0.7 * len(pair[1].library.code)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_those_of_kernels_apart(pair: Pair, threads: int) -> None:
    given = [np.random.default_rng(2).normal(size=spec.shape).astype(spec.dtype) for spec in pair[0].inputs]
    shared, plain, _ = pair
    shared.num_threads = plain.num_threads = threads
    np.testing.assert_array_equal(np.asarray(shared.run(*given)), np.asarray(plain.run(*given)))
