"""Compilers and loaders by name: registered, installed, misspelled, broken, not installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import relay
from relay.byoc import Artifact, BuildInfo, Compiler, find, names, register, registry, settings
from relay.byoc.onednn import compiler as onednn
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.runtime import loaders
from relay.runtime.loaders import Loader, Native
from tests.abacus_plug_in import importable, installed
from tests.installing import install

FORM = ((4,), np.dtype(np.float32))


@dataclass(frozen=True)
class Gauge(Compiler):
    """With two options."""

    name: ClassVar[str] = "gauge"
    extra: ClassVar[str] = "gauge"
    needle: int = 1
    colour: str = "red"

    def __post_init__(self) -> None:
        if self.needle < 0:
            raise ValueError("a needle is not negative")

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        return Artifact(b"")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry.COMPILERS, "registered", {"gauge": Gauge})


def one_line(caught: pytest.ExceptionInfo[RelayError]) -> bool:
    return "\n" not in str(caught.value)


def test_register_as_decorator_and_by_call():
    @register
    class Meter(Gauge):
        name: ClassVar[str] = "meter"

    assert find("meter") == Meter() and "meter" in names()
    assert register(Gauge) is Gauge and find("gauge", {"needle": 3}) == Gauge(3)
    assert relay.byoc.register is register


def test_only_compilers_with_a_name_are_registered():
    class Nameless(Compiler):
        def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
            return Artifact(b"")

    class Spaced(Nameless):
        name: ClassVar[str] = "two words"

    class Unfinished(Compiler):
        name: ClassVar[str] = "unfinished"

    for wrong, message in [
        (Nameless, "compiler Nameless: has the name None; give it one word as `name`"),
        (Spaced, "compiler Spaced: has the name 'two words'"),
        (Unfinished, "compiler Unfinished: does not define compile"),
    ]:
        with pytest.raises(InvalidArgument, match=message):
            register(wrong)


def test_a_version_is_a_text(monkeypatch: pytest.MonkeyPatch):
    numbered = type("Numbered", (Gauge,), {"name": "numbered", "version": 2})
    with pytest.raises(InvalidArgument, match="compiler Numbered: has the version 2; give it a text"):
        register(numbered)
    monkeypatch.setitem(registry.COMPILERS.registered, "numbered", numbered)
    with pytest.raises(InvalidArgument, match="compiler Numbered: has the version 2"):
        find("numbered")


def test_unknown_names_and_options_name_the_nearest():
    with pytest.raises(InvalidArgument, match="there is no compiler 'gage'; did you mean gauge") as caught:
        find("gage")
    assert one_line(caught)
    with pytest.raises(
        InvalidArgument, match="pass x: there is no compiler 'zzz'; there are .*gauge.*install the pack"
    ):
        find("zzz", where="pass x")
    with pytest.raises(InvalidArgument, match="compiler gauge: has no option 'neddle'; did you mean needle"):
        find("gauge", {"neddle": 1})
    with pytest.raises(InvalidArgument, match="compiler gauge: has no option 'x'; it has needle, colour"):
        find("gauge", {"x": 1})
    with pytest.raises(InvalidArgument, match="^compiler litert, pattern: there is no op 'qnn.conv2'; did you mean"):
        find("litert", {"only": ("qnn.conv2",)})
    with pytest.raises(Unsupported, match="compiler gauge: cannot be made: a needle is not negative"):
        find("gauge", {"needle": -1})


def test_what_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    def missing(self: Gauge) -> str:
        return "the library libgauge is not installed"

    monkeypatch.setattr(Gauge, "missing", missing)
    message = r"compiler gauge: the library libgauge is not installed; pip install 'relay-mlir\[gauge\]'"
    with pytest.raises(Unsupported, match=message) as caught:
        relay.build_external_compiler(relay.IRModule(), "gauge")
    assert one_line(caught)
    monkeypatch.setitem(registry.OURS, "ghost", "relay_no_such_module.compiler:Ghost")
    with pytest.raises(
        Unsupported, match=r"compiler ghost: cannot be loaded: No module .*install 'relay-mlir\[ghost\]'"
    ):
        find("ghost")
    monkeypatch.setitem(loaders.OURS, "ghost", "relay_no_such_module.loader:load")
    with pytest.raises(Unsupported, match=r"the loader of 'ghost' cannot be loaded: No module .*'relay-mlir\[ghost\]'"):
        loaders.load("ghost", "1", "f", b"", {}, [FORM], [FORM], "relay-mlir[ghost]")


@pytest.mark.parametrize(
    ("name", "package", "what"),
    [
        ("onnxruntime", "onnxruntime", "onnxruntime not installed"),
        ("onnxruntime", "onnx", "onnx not installed"),
        ("xnnpack", "ai_edge_litert", "ai-edge-litert is not installed"),
        ("litert", "ai_edge_litert", "ai-edge-litert is not installed"),
        ("onednn", "", "oneDNN's library .* is neither installed nor named by"),
    ],
)
def test_ours_say_which_extra_to_install(monkeypatch: pytest.MonkeyPatch, name: str, package: str, what: str):
    """Whoever builds without what a compiler needs is told the extra, before anything is partitioned."""
    if package:
        monkeypatch.setitem(sys.modules, package, None)
    else:
        monkeypatch.setattr(onednn, "open_library", unavailable)
    extra = registry.load(name).extra
    with pytest.raises(Unsupported, match=rf"^compiler {name}: .*{what}.*; pip install 'relay-mlir\[{extra}\]'$"):
        relay.build(relay.IRModule.parse(ABS), external=name)
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert extra in extras["optional-dependencies"]


def unavailable() -> None:
    raise Unsupported("oneDNN", "is not here")


ABS = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""


def test_a_module_for_a_compiler_that_is_not_here():
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {compiler = "guage", global_symbol = "f"} {
  func.return %x : tensor<4xf32>
}
"""
    with pytest.raises(InvalidArgument, match="function f: there is no compiler 'guage'; did you mean gauge"):
        relay.build(relay.IRModule.parse(text))


PLUG_IN = """
[project]
name = "relay-plug"
version = "1"

[project.entry-points."relay.byoc"]
plug = "relay_plug.compiler:Plug"

[project.entry-points."relay.byoc.runtime"]
plug = "relay_plug.loader:load"

[tool.setuptools]
packages = ["relay_plug"]
"""


@pytest.mark.parametrize(
    ("compiler", "loader", "wrong"),
    [
        ("raise RuntimeError('worn out')", "raise RuntimeError('worn out')", "cannot be loaded: worn out; repair or"),
        ("import relay_gone", "import relay_gone", "cannot be loaded: No module named 'relay_gone'; install"),
        ("Plug = 3", "load = 3", "is no (external compiler|loader); repair or uninstall the plug-in"),
        ("", "", "has no attribute"),
    ],
)
def test_broken_plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, loader: str, wrong: str):
    package = tmp_path / "plug" / "relay_plug"
    package.mkdir(parents=True)
    (package.parent / "pyproject.toml").write_text(PLUG_IN)
    (package / "__init__.py").write_text("")
    (package / "compiler.py").write_text(compiler)
    (package / "loader.py").write_text(loader)
    importable(install(package.parent, tmp_path / "site"), "relay_plug", monkeypatch)
    assert "plug" in names()
    with pytest.raises(Unsupported, match=f"compiler plug: .*{wrong}") as caught:
        find("plug")
    assert one_line(caught)
    with pytest.raises(Unsupported, match=f"external function f: .*{wrong}") as caught:
        loaders.load("plug", "1", "f", b"", {}, [FORM], [FORM])
    assert one_line(caught)


def test_a_plug_in_must_have_the_name_it_is_installed_under(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = installed(tmp_path, monkeypatch)
    entries = next(site.glob("*.dist-info")) / "entry_points.txt"
    entries.write_text("[relay.byoc]\ncalculator = relay_abacus.compiler:Abacus\n")
    with pytest.raises(Unsupported, match="compiler calculator: relay_abacus.compiler:Abacus calls itself 'abacus'"):
        find("calculator")


def test_an_installed_package_names_what_pip_would_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    installed(tmp_path, monkeypatch)
    assert "abacus" in names() and find("abacus", {"beads": 5}).version == "2"
    assert registry.requirement("abacus") == "relay-abacus"
    assert registry.requirement("gauge") == "relay-mlir[gauge]" and registry.requirement("none_such") == ""


HIDDEN = PLUG_IN.replace("plug = ", "c = ")


def test_a_package_that_ours_hide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ours go first; the warning says that there is another, where both are, and what to do."""
    package = tmp_path / "plug" / "relay_plug"
    package.mkdir(parents=True)
    (package.parent / "pyproject.toml").write_text(HIDDEN)
    (package / "__init__.py").write_text("")
    importable(install(package.parent, tmp_path / "site"), "relay_plug", monkeypatch)
    where = "relay.byoc.c.compiler:CCompiler hides relay_plug.compiler:Plug; give one of them another name"
    with pytest.warns(RuntimeWarning, match=f"^compiler c: {where}$"):
        assert registry.load("c").__name__ == "CCompiler"
    where = "relay.byoc.c.loader:load hides relay_plug.loader:load; give one of them another name"
    with pytest.warns(RuntimeWarning, match=f"^loader c: {where}$"):
        assert loaders.find("c", "function f").__module__ == "relay.byoc.c.loader"


def test_registering_what_is_there_warns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry.COMPILERS, "registered", {})

    def made(title: str, called: str) -> type[Compiler]:
        return type(title, (Gauge,), {"name": called, "__module__": "shop"})

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register(made("First", "thing"))
        register(made("First", "thing"))  # a notebook's cell that runs again
    with pytest.warns(RuntimeWarning, match="^compiler thing: shop:Second hides shop:First; give one of them"):
        register(made("Second", "thing"))
    with pytest.warns(RuntimeWarning, match="^compiler c: shop:Third hides relay.byoc.c.compiler:CCompiler; give"):
        register(made("Third", "c"))
    assert registry.load("c").__name__ == "Third"


def test_registering_a_loader_that_is_there_warns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loaders.LOADERS, "registered", {})

    def made(called: str) -> Loader:
        def load(*arguments: object) -> Native:
            return Native(1)

        load.__module__, load.__qualname__ = "shop", called
        return load

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaders.register_loader("thing", made("first"))
        loaders.register_loader("thing", made("first"))  # a notebook's cell that runs again
        loaders.register_loader("other", partial(made("first")))
    with pytest.warns(RuntimeWarning, match="^loader thing: shop:second hides shop:first; give one of them"):
        loaders.register_loader("thing", made("second"))
    with pytest.warns(RuntimeWarning, match="^loader c: shop:third hides relay.byoc.c.loader:load; give one of"):
        loaders.register_loader("c", third := made("third"))
    assert loaders.find("c", "function f") is third


def test_settings_of_a_module():
    module = ModuleOp([])
    settings.write(module, {"gauge": {"needle": 4, "colour": "blue"}, "other": {"list": [1, 2.5, "x", True]}}, True)
    again = relay.IRModule.parse(str(module)).op
    assert settings.read(again) == {
        "gauge": {"needle": 4, "colour": "blue"},
        "other": {"list": (1, 2.5, "x", True)},
    }
    assert settings.requires_exact(again) and not settings.requires_exact(ModuleOp([]))
    made = settings.compiler_of(again, "gauge")
    assert (made.name, made.version, made.exact) == ("gauge", "1", True)
    with pytest.raises(InvalidArgument, match="exact: is 1; it is True or False"):
        settings.write(module, {}, cast(Any, 1))
    with pytest.raises(Malformed, match='module attribute byoc.exact: is "yes"; it is true or false'):
        settings.requires_exact(relay.IRModule.parse('module attributes {byoc.exact = "yes"} {}').op)
    with pytest.raises(InvalidArgument, match="byoc.options gauge.*: is <object"):
        settings.write(module, {"gauge": {"x": object()}})
    for wrong in ('"text"', "{gauge = 3 : i64}"):
        with pytest.raises(Malformed, match="module attribute byoc.options"):
            settings.read(relay.IRModule.parse(f"builtin.module attributes {{byoc.options = {wrong}}} {{}}").op)


def test_ours_have_a_compiler_and_a_loader():
    assert list(registry.OURS) == list(loaders.OURS) == sorted(registry.OURS)
    for name in registry.OURS:
        assert issubclass(registry.load(name), Compiler)


def test_importing_is_lazy():
    code = """
import sys
import tomllib
import warnings
import relay.byoc, relay.runtime
assert not any(name == "xdsl" or name.startswith("xdsl.") for name in sys.modules)
print(relay.byoc.Refusal("no").reason)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "no\n", done.stderr
