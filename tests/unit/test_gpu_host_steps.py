"""What the host does between kernels: decides, and calls external functions. Devices are the emulator."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from _pytest.mark import ParameterSet

import relay
from relay.dialects.attributes import Array
from relay.errors import RelayError, Unsupported
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import Executable, loaders
from relay.runtime.opencl_driver import driver
from tests.marks import ci
from tests.unit.gpu_driver import copies, emulated_cuda
from tests.unit.interpreting import as_text, load_text
from tests.unit.partitioning_modules import Known
from tests.unit.test_branches import CASES, arguments, case
from tests.unit.test_loops import LOOPS, check_turns, loop


def mostly(names: Iterable[str], *default: str) -> list[ParameterSet]:
    """All of them; those that are not named are slow."""
    return [pytest.param(name, marks=() if name in default else pytest.mark.slow) for name in names]


def outputs_of(executable: Executable, given: list[Array]) -> list[Array]:
    found = executable.run(*given)
    assert found is not None
    return [*found] if isinstance(found, tuple) else [found]


def equal(mod: IRModule, executable: Executable, given: list[Array]) -> bool:
    return all(
        np.allclose(a, b, rtol=1e-5) for a, b in zip(outputs_of(executable, given), run(mod, given), strict=True)
    )


@pytest.mark.parametrize(
    "name",
    [
        "nested",
        *ci(("shapes", "condition")),
        *mostly([name for name in CASES if name not in ("nested", "shapes", "condition")]),
    ],
)
def test_branches(name: str):
    executable = relay.build(case(name), target="cuda")
    with emulated_cuda(executable):
        for first, second in [(True, False), (False, False), (True, True)]:
            assert equal(case(name), executable, arguments(first, second))


@pytest.mark.parametrize("name", mostly(["nested", "convolutions", "several"], "nested"))
def test_branches_without_kernels(name: str):
    executable = relay.build(case(name), target="cuda", pipeline="legalize,relay-to-linalg")
    with emulated_cuda(executable):
        for first in (True, False):
            assert equal(case(name), executable, arguments(first, True))


@pytest.mark.parametrize("name", mostly(LOOPS, "tested"))
def test_loops(name: str):
    executable = relay.build(loop(name), target="cuda")
    with emulated_cuda(executable) as driver:
        check_turns(loop(name), executable, 0, 1, 3)
        launched = driver.calls.count("cuLaunchKernel")
        check_turns(loop(name), executable, 2)
        assert driver.calls.count("cuLaunchKernel") == launched  # turns are graphs


@pytest.mark.parametrize("name", mostly(["simple", "nested", "between"], "between"))
def test_external_functions(known: Known, monkeypatch: pytest.MonkeyPatch, name: str):
    known("x", "abs", "add", "exp", "nn.conv2d", compiled=as_text)
    monkeypatch.setitem(loaders.LOADERS.registered, "x", load_text)
    executable = relay.build(case(name), target="cuda", external="x")
    assert executable.externals
    with emulated_cuda(executable):
        for first in (True, False):
            assert equal(case(name), executable, arguments(first, True))


T = "tensor<6xf32>"
EDGES = f"""func.func @main(%x: {T}, %y: {T}) -> {T} {{
  %0 = relay.negative %x : ({T}) -> {T}
  %1 = relay.add %0, %y : ({T}, {T}) -> {T}
  %2 = relay.exp %1 : ({T}) -> {T}
  %3 = relay.abs %2 : ({T}) -> {T}
  %4 = relay.subtract %3, %1 : ({T}, {T}) -> {T}
  func.return %4 : {T}
}}"""


def test_copies_are_at_the_edges_of_a_region_only(known: Known, monkeypatch: pytest.MonkeyPatch):
    known("x", "exp", "abs", compiled=as_text)
    monkeypatch.setitem(loaders.LOADERS.registered, "x", load_text)
    mod = IRModule.parse(EDGES)
    executable = relay.build(mod, target="cuda", external="x")
    given = [np.arange(6, dtype=np.float32) - k for k in (1, 3)]
    with emulated_cuda(executable) as driver:
        assert equal(mod, executable, given)
        driver.calls.clear()
        assert equal(mod, executable, given)
        assert copies(driver.calls) == ["up", "down", "up", "down"]
        assert driver.calls.count("cuGraphLaunch") == 2
        session = executable.on()
        result = session.run(*given)
        assert not isinstance(result, tuple) and np.allclose(result, run(mod, given)[0], rtol=1e-5)


def test_what_an_external_function_raises(known: Known, monkeypatch: pytest.MonkeyPatch):
    def broken(*arguments: object) -> None:
        raise ArithmeticError("no")

    def load(*arguments: object) -> object:
        return broken

    known("x", "exp", "abs", compiled=as_text)
    monkeypatch.setitem(loaders.LOADERS.registered, "x", load)
    executable = relay.build(IRModule.parse(EDGES), target="cuda", external="x")
    given = [np.ones(6, np.float32)] * 2
    with emulated_cuda(executable):
        for call in (executable.run, executable.on().run):
            with pytest.raises(RelayError, match="compiled by 'x': raised ArithmeticError: no"):
                call(*given)


@pytest.mark.parametrize("name", mostly(["simple", "several", "between"], "between"))
def test_on_a_device_of_opencl(known: Known, monkeypatch: pytest.MonkeyPatch, name: str):
    try:
        driver(0)
    except Unsupported as error:
        pytest.skip(str(error))
    known("x", "abs", "exp", compiled=as_text)
    monkeypatch.setitem(loaders.LOADERS.registered, "x", load_text)
    executable = relay.build(case(name), target="opencl", external="x")
    for first in (True, False):
        assert equal(case(name), executable, arguments(first, True))
