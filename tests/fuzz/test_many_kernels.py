"""Networks of repeated layers, whose kernels share code, constants and memory: numbers are the interpreter's."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import scf

import relay
from relay.compile.pipeline import default_pipeline
from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.lowering.share_kernels import ShareKernels
from relay.lowering.share_layers import ShareLayers
from relay.module import IRModule
from relay.passes import PassContext, Pipeline
from relay.runtime import Executable
from relay.target import CpuTarget
from tests.conftest import Cases
from tests.fuzz.computed_layers import ComputedLayers
from tests.fuzz.graph_comparison import TARGETS, is_runnable
from tests.fuzz.random_layers import RandomLayers
from tests.fuzz.run_cases import run_cases
from tests.fuzz.test_passes_keep_numbers import same
from tests.numeric.c_sources import SANITIZED, Exported


def ran(executable: Executable, feeds: Sequence[Array]) -> list[Array]:
    """The results of a run, as a list."""
    found = executable.run(*feeds)
    return [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]


def apart(module: IRModule, target: str, level: int, threads: int) -> Executable:
    """The module, built without the passes by which kernels share code."""
    with PassContext(opt_level=level):
        steps = [each for each in default_pipeline(target) if not isinstance(each, ShareKernels | ShareLayers)]
        return relay.build(module, target, pipeline=Pipeline(steps), num_threads=threads)


def check(net: RandomLayers | ComputedLayers) -> str:
    """Build a network for a random target, level and number of threads, maybe by way of `relay.optimize`, and compare
    its results with the interpreter's, and with numpy's where the network has these; of one network in four, also with
    those of kernels that share no code."""
    rng, module = np.random.default_rng([net.seed, 1]), net.module()
    wanted = run(module, net.inputs)
    if isinstance(net, ComputedLayers):
        same(wanted, net.wanted, "interpreted")
    targets = [each for each in TARGETS if is_runnable(each)]
    target, level = targets[int(rng.integers(len(targets)))], int(rng.integers(5))
    threads = int(rng.integers(1, 3))
    source = relay.optimize(module, target, opt_level=level) if rng.random() < 0.3 else module
    executable = relay.build(source, target, opt_level=level, num_threads=threads)
    what = f"{target}, level {level}, {threads} threads"
    found = ran(executable, net.inputs)
    same(found, wanted, what)
    same(ran(executable, net.inputs), found, f"{what}, the second run")
    if rng.random() < 0.25:
        for one, other in zip(found, ran(apart(module, target, level, threads), net.inputs), strict=True):
            assert np.array_equal(one, other, equal_nan=True), f"{what}, no kernels share code"
    kernels = executable.graph["kernels"]
    return "shared" if len(set(kernels)) < len(kernels) else "apart"


def check_in_c(net: RandomLayers) -> str:
    """Export a network as C, where results may overlap inputs, and compare its results under sanitizers. C has no
    control flow."""
    module = net.module()
    if any(isinstance(op, scf.IfOp | scf.WhileOp) for op in net.block.ops):
        return "unsupported"
    with tempfile.TemporaryDirectory() as folder:
        program = Exported(module, Path(folder))
        program.compile("cc", SANITIZED)
        same(program.run(net.inputs), run(module, net.inputs), "exported C")
    return "equal"


@pytest.fixture
def scalar(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine without vectors and threads, as microcontrollers are: results may overlap inputs."""
    monkeypatch.setattr(CpuTarget, "has_vectors", False)
    monkeypatch.setattr(CpuTarget, "has_threads", False)


def draw(number: int) -> RandomLayers:
    """Three to twelve layers."""
    return RandomLayers(number, int(np.random.default_rng([number, 2]).integers(3, 13)))


def test_many_kernels() -> None:
    assert run_cases((2, 4), draw, check)["shared"]


def test_many_kernels_computed_by_numpy() -> None:
    assert run_cases((0, 3), ComputedLayers, check)["shared"]


@pytest.mark.fuzz
def test_many_kernels_of_more_networks(cases: Cases) -> None:
    run_cases(cases(300), draw, check)


@pytest.mark.fuzz
def test_many_kernels_of_more_networks_computed_by_numpy(cases: Cases) -> None:
    run_cases(cases(300), ComputedLayers, check)


def test_many_kernels_of_scalars(scalar: None) -> None:
    run_cases((3, 6), ComputedLayers, check)


@pytest.mark.fuzz
def test_many_kernels_of_scalars_of_more_networks(cases: Cases, scalar: None) -> None:
    run_cases(cases(300), draw, check)


@pytest.mark.fuzz
def test_many_kernels_in_c(cases: Cases) -> None:
    run_cases(cases(50), draw, check_in_c)
