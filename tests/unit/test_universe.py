"""The `xdsl.universe` entry point: xDSL's own tool sees our dialects and passes; names clash with nobody's."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.target import Target

import relay
from relay.dialects import plug_in
from relay.passes import Pass
from relay.tools import plug_ins
from relay.universe import PASSES, PROVIDERS, TARGETS, UNIVERSE, all_passes

LIST = "from importlib.metadata import entry_points as e; print([p.name for p in e(group='xdsl.universe')])"

MODULE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def installed():
    """Skips unless a process that starts anywhere finds the entry point."""
    found = subprocess.run([sys.executable, "-P", "-c", LIST], capture_output=True, text=True, cwd="/").stdout
    if "'relay'" not in found:
        pytest.skip("relay is not installed as a distribution: pip install -e .")


def xdsl_opt(*args: str) -> subprocess.CompletedProcess[str]:
    """xDSL's own tool, of the environment that runs the tests."""
    command = [str(Path(sys.executable).parent / "xdsl-opt"), *args]
    return subprocess.run(command, input=MODULE, capture_output=True, text=True)


@pytest.mark.usefixtures("installed")
def test_stock_tool_sees_dialects_and_passes():
    done = xdsl_opt("-p", "infer-types,cse")
    assert done.returncode == 0, done.stderr
    assert "%y = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>" in done.stdout


@pytest.mark.usefixtures("installed")
def test_stock_tool_lists_our_passes_and_targets():
    help = "".join(xdsl_opt("--help").stdout.split())
    assert all(name in help for name in (*PASSES, *TARGETS))


def test_the_provider_of_a_property_is_the_first_pass_that_establishes_it():
    found: dict[str, str] = {}
    for name, factory in PASSES.items():
        if issubclass(cls := factory(), Pass):
            found |= {prop: name for prop in cls.establishes if prop not in found}
    assert dict(sorted(found.items())) == PROVIDERS


@pytest.mark.ci
def test_a_provider_is_found_without_importing_the_other_passes():
    program = "import sys; from relay.passes import registry; print(registry.provider('legal'))"
    program += "; print([m for m in sys.modules if m.startswith(('relay.lowering', 'relay.quantize', 'relay.byoc'))])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Legalize" in done.stdout and done.stdout.splitlines()[1] == "[]", done.stderr


def test_exports_only_names_that_xdsl_lacks():
    assert not set(UNIVERSE.all_dialects) & set(XDSL_UNIVERSE.all_dialects)
    assert not set(UNIVERSE.all_passes) & set(XDSL_UNIVERSE.all_passes)
    assert not set(UNIVERSE.all_targets) & set(XDSL_UNIVERSE.all_targets)


@pytest.mark.parametrize("name", UNIVERSE.all_dialects)
def test_dialect_has_its_name(name: str):
    assert UNIVERSE.all_dialects[name]().name == name


def test_every_pass_has_its_name_and_is_found_in_relay_transform():
    """By the name of its class."""
    for name in PASSES:
        cls = all_passes()[name]()
        assert issubclass(cls, ModulePass) and cls.name == name
        assert getattr(relay.transform, cls.__name__) is cls and cls.__name__ in dir(relay.transform)


@pytest.mark.parametrize("name", TARGETS)
def test_target_has_its_name(name: str):
    cls = TARGETS[name]()
    assert issubclass(cls, Target) and cls.name == name


def test_listing_the_universe_imports_no_pass():
    code = (
        "import sys, relay.universe as u; u.all_passes(); "
        "print([m for m in sys.modules if m.startswith(('relay.transforms.', 'relay.lowering.'))])"
    )
    spec = importlib.util.find_spec("relay")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


class Point:
    """An installed entry point."""

    def __init__(self, name: str, value: object):
        self.name, self.value = name, value

    def load(self) -> object:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def test_of_two_plug_ins_with_one_name_the_first_wins(monkeypatch: pytest.MonkeyPatch):
    first, second = Dialect("shared"), Dialect("shared")
    foreign = Universe(all_dialects={"shared": lambda: second, "relay": lambda: second, "own": lambda: second})
    points = [
        Point("z", foreign),
        Point("a", Universe(all_dialects={"shared": lambda: first})),
        Point("relay", UNIVERSE),
    ]

    def installed(group: str) -> list[Point]:
        return sorted(points, key=lambda point: point.name) if group == "xdsl.universe" else []

    monkeypatch.setattr(plug_in, "installed", installed)
    dialects = plug_ins.everything().all_dialects
    assert dialects["shared"]() is first and dialects["own"]() is second
    assert dialects["relay"] is UNIVERSE.all_dialects["relay"]


def test_a_broken_plug_in_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from relay.tools.relay_opt import main

    def installed(group: str) -> list[Point]:
        return [Point("other", ImportError("no module named other"))]

    monkeypatch.setattr(plug_in, "installed", installed)
    assert main([]) == 1
    assert capsys.readouterr().err == "plug-in other: cannot be loaded: no module named other; repair or uninstall it\n"
