"""MLIR's own tool takes what the passes to GPUs make, with no dialect that it does not know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import pytest
from xdsl.passes import ModulePass

import relay
from relay.compile.gpu import gpu_passes
from relay.frontend import from_tflite
from relay.module import IRModule
from relay.passes import Pipeline
from relay.target import resolve_gpu
from tests.numeric.mlir_runner import MLIR_OPT, needs_mlir, tool
from tests.unit.gpu_driver import DIGITS, digits


@cache
def levels(target: str) -> Sequence[tuple[str, IRModule]]:
    """The module after each pass below linalg."""
    mod = relay.optimize(from_tflite(DIGITS / "digits_int8.tflite"), target)
    steps: list[ModulePass] = gpu_passes(resolve_gpu(target))
    found: list[tuple[str, IRModule]] = []
    for step in steps:
        mod = Pipeline([step])(mod)
        found.append((step.name, mod))
    return found[steps.index(next(step for step in steps if step.name == "schedule-gpu")) :]


@needs_mlir
@pytest.mark.ci
@pytest.mark.parametrize("target", ["cuda", pytest.param("opencl", marks=pytest.mark.slow)])
def test_every_level_is_taken(target: str):
    assert MLIR_OPT is not None
    taken = levels(target)
    assert [name for name, _ in taken][:3] == ["schedule-gpu", "convert-parallel-loops-to-gpu", "gpu-kernel-outlining"]
    texts = "// -----\n".join(mod.to_text(weights=True) + "\n" for _, mod in taken)
    tool([MLIR_OPT, "--verify-each", "--split-input-file"], texts)


@needs_mlir
@pytest.mark.ci
def test_its_own_pipeline_makes_the_same_kernels():
    """From the kernels that `gpu-kernel-outlining` makes to PTX, by MLIR alone."""
    assert MLIR_OPT is not None
    mod = dict(levels("cuda"))["gpu-kernel-outlining"]
    options = "cubin-chip=sm_80 cubin-features=+ptx70 cubin-format=isa"
    text = tool([MLIR_OPT, f"--gpu-lower-to-nvvm-pipeline={options}"], mod.to_text(weights=True))
    ours = digits().get_source("ptx")
    assert set(re.findall(r"\.visible \.entry (\w+)\(", text)) == set(re.findall(r"\.visible \.entry (\w+)\(", ours))
