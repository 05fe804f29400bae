"""Whatever a plug-in raises, or gives that is no answer, is one clear error that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import relay
from relay.byoc import Artifact, BuildInfo, Compiler, Refusal
from relay.byoc.c import artifact as of_c
from relay.byoc.patterns import Entry, is_op, wildcard
from relay.byoc.registry import COMPILERS, register
from relay.byoc.settings import exact_part
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.runtime import loaders
from relay.runtime.loaders import Native

TEXT = """
func.func @main(%x: tensor<SIZEx4xf32>) -> tensor<SIZEx4xf32> {
  %0 = relay.negative %x : (tensor<SIZEx4xf32>) -> tensor<SIZEx4xf32>
  func.return %0 : tensor<SIZEx4xf32>
}
"""


def fails(*arguments: object) -> Any:
    raise KeyError("lost")


def gives(value: object) -> Callable[..., Any]:
    return lambda *arguments: value


@pytest.fixture
def plug_in() -> Iterator[type[Compiler]]:
    class Faulty(Compiler):
        name = "faulty"

        def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
            return Artifact(b"x")

    register(Faulty)
    Faulty.supports = gives(True)
    yield Faulty
    del COMPILERS.registered["faulty"]


def built(size: str = "2", choose: str = "order") -> None:
    module = relay.IRModule.parse(TEXT.replace("SIZE", size))
    relay.transform.CompileExternal()(relay.build_external_compiler(module, target="faulty", choose=choose))


def unsound(*parts: Any, **named: Any) -> Artifact:
    return Artifact(*parts, **named)


def refuses_with_none(*arguments: object) -> Any:
    return Refusal(cast(str, None))


def rewires(compiler: Compiler, op: Operation) -> bool:
    op.results[0].replace_all_uses_with(op.operands[0])
    return True


def misspelt(*arguments: object) -> Any:
    return [Entry("e", is_op("nn.conv2"))]


checked = Entry("e", is_op("relay.negative")(wildcard()), fails)


@pytest.mark.parametrize(
    ("method", "does", "said"),
    [
        ("supports", fails, r"supports\(relay.negative\) failed: KeyError: 'lost'"),
        ("supports", refuses_with_none, r"^compiler faulty, Refusal: its reason is None; give it a text"),
        ("supports", rewires, r"^compiler faulty: supports\(relay.negative\) changed the module; it only answers"),
        ("supports", gives("no way"), r"supports\(relay.negative\) gave 'no way'"),
        ("patterns", fails, "patterns failed"),
        ("patterns", gives(None), "patterns failed: TypeError"),
        ("patterns", gives([3]), "patterns gave what is no Entry"),
        (
            "patterns",
            misspelt,
            "^compiler faulty, pattern: .*'nn.conv2'; did you mean",
        ),
        ("patterns", gives([checked]), "^compiler faulty, pattern e: its check failed: KeyError"),
        (
            "patterns",
            gives([replace(checked, check=gives(None))]),
            "^compiler faulty, pattern e: its check gave None; it",
        ),
        ("cost", fails, "cost failed"),
        ("cost", gives("much"), "cost gave 'much'"),
        ("cost", gives(float("nan")), "cost gave nan"),
        ("off_by", fails, "off_by failed: KeyError"),
        ("off_by", gives(-1), "^compiler faulty: off_by gave -1; it gives a number of codes or None"),
        ("off_by", gives(0.5), "off_by gave 0.5"),
        ("before_annotation", fails, "before_annotation failed"),
        ("before_annotation", gives(["csee"]), "there is no pass 'csee'"),
        ("on_functions", fails, "on_functions failed"),
        ("on_functions", gives(["csee"]), "there is no pass 'csee'"),
        ("compile", fails, "failed: KeyError"),
        ("compile", gives(unsound(3)), "what it made of relay_faulty_main_0 failed"),
        ("compile", gives(unsound(b"x", sources={"c": 3})), "a source is int, no text"),
    ],
)
def test_a_faulty_compiler(plug_in: type[Compiler], method: str, does: Callable[..., Any], said: str) -> None:
    setattr(plug_in, method, does)
    with pytest.raises((Unsupported, InvalidArgument), match=said):
        built(choose="cost" if method == "cost" else "order")


def test_a_sound_one_passes(plug_in: type[Compiler]) -> None:
    built()


def test_unknown_sizes_stay_with_the_host(plug_in: type[Compiler]) -> None:
    module = relay.IRModule.parse(TEXT.replace("SIZE", "?"))
    parted = relay.build_external_compiler(module, target="faulty")
    assert list(parted.functions) == ["main"] and "a size of it is not known" in str(parted.partition_report())


@pytest.mark.parametrize("target", [3, None, ["c", 3], b"c", {"c": 3}])
def test_a_target_that_is_none(target: Any) -> None:
    with pytest.raises(InvalidArgument, match="external compiler: is "):
        relay.build_external_compiler(relay.IRModule.parse(TEXT.replace("SIZE", "2")), target=target)


@pytest.mark.parametrize("address", [0, 1.5, "x", None])
def test_a_native_function_without_address(address: Any) -> None:
    loaders.register_loader("faulty", gives(Native(address)))
    try:
        with pytest.raises(Malformed, match="a Native holds addresses"):
            loaders.load("faulty", "1", "f", b"", {}, [], [])
    finally:
        del loaders.LOADERS.registered["faulty"]


def test_a_shortened_shared_object_is_not_loaded() -> None:
    whole = of_c.write(of_c.Header("f", 0, [], []), b"code" * 100)
    assert of_c.read(whole, "f")[1] == b"code" * 100
    with pytest.raises(Malformed, match="is damaged: the shared object is not what was compiled"):
        of_c.read(whole[:-7], "f")


def test_the_exact_part_of_a_compiler_calls_its_methods_as_they_are():
    """Also functions that stand on the instance, as static methods do on the class."""

    class Other(Compiler):
        name = "other"

        def cost(self, ops: Sequence[Operation]) -> float:
            return 2.0

        def compile(self, function: FuncOp, build: BuildInfo) -> FuncOp:
            return function

    compiler = Other()
    vars(compiler)["missing"] = lambda: "a library"
    part = exact_part(compiler)
    assert (part.missing(), part.cost([]), part.regions([])) == ("a library", 2.0, [[]])
