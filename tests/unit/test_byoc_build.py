"""Modules given to external compilers in one call, step by step, half-way, and in the words of the first discussion."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

import relay
from relay.byoc import Artifact, BuildInfo, Compiler, Entry, PruneRegions, is_op, registry, wildcard
from relay.dialects import relay as ops
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.passes import Pass, PassContext
from relay.runtime import Executable, create, loaders
from tests.abacus_plug_in import installed
from tests.unit.pass_modules import DATA, DIGITS

TEXT = """
func.func @main(%x: tensor<3x4xf32>, %y: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %w = relay.constant {label = "w"} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = relay.multiply %x, %w : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = relay.add %0, %y : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %2 = relay.abs %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = relay.add %2, %1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = relay.multiply %2, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %3, %4 : tensor<3x4xf32>, tensor<3x4xf32>
}
"""
X, Y = np.arange(12, dtype=np.float32).reshape(3, 4) - 6, np.array([1, -2, 3, -4], np.float32)
SUM = X * np.array([1, 2, 3, 4], np.float32) + Y
WANTED = abs(SUM) + SUM, abs(SUM) * abs(SUM)


def module() -> relay.IRModule:
    return relay.IRModule.parse(TEXT)


def right(executable: Executable) -> bool:
    found = executable.run(X, Y)
    return isinstance(found, tuple) and all(map(np.array_equal, found, WANTED))


@dataclass(frozen=True)
class Before(Pass):
    """Marks the module."""

    name: ClassVar[str] = "before-pairs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["marked"] = StringAttr(",".join(f.sym_name.data for f in op.walk() if isinstance(f, FuncOp)))


@dataclass(frozen=True)
class Pairs(Compiler):
    """`x * w + y` as one, and sums alone; not exact. It marks the module before, and its functions after."""

    name: ClassVar[str] = "pairs"
    exact: ClassVar[bool] = False
    difference: ClassVar[str] = "one rounding less"
    seen: ClassVar[list[str]] = []
    taught: ClassVar[Sequence[ModulePass]] = ()

    def patterns(self) -> Sequence[Entry]:
        return [Entry("fma", is_op("add")(is_op("multiply")(wildcard(), wildcard()), wildcard()))]

    def supports(self, op: Operation) -> bool:
        return isinstance(op, ops.AddOp)

    def before_annotation(self) -> Sequence[ModulePass]:
        return [Before()]

    def on_functions(self) -> Sequence[ModulePass]:
        return self.taught

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        self.seen.append(function.sym_name.data)
        return Artifact(str(relay.IRModule(ModuleOp([function.clone()]))).encode())


def load_pairs(artifact: bytes, symbol: str, *given: object) -> Callable[[Sequence[Array], Sequence[Array]], None]:
    """Runs the text by the interpreter: for tests only, a loader knows nothing of the compiler."""
    mod = relay.IRModule.parse(artifact.decode())

    def run(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        for array, result in zip(outputs, relay.interpreters.run(mod, inputs, symbol), strict=True):
            array[...] = result

    return run


@pytest.fixture(autouse=True)
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    installed(tmp_path, monkeypatch)
    monkeypatch.setitem(registry.COMPILERS.registered, "pairs", Pairs)
    monkeypatch.setitem(loaders.LOADERS.registered, "pairs", load_pairs)
    monkeypatch.setattr(Pairs, "seen", [])
    monkeypatch.setattr(Pairs, "taught", ())


def compilers(mod: relay.IRModule) -> list[str]:
    """The compilers of the module's functions, in order."""
    found = [function.attributes.get("compiler") for function in mod.functions.values()]
    return [attr.data for attr in found if isinstance(attr, StringAttr)]


def test_one_call_is_the_passes_one_by_one():
    parted = relay.build_external_compiler(module(), target="pairs")
    by_hand = module()
    for step in relay.byoc.external_pipeline("pairs"):
        by_hand = step(by_hand) if isinstance(step, Pass) else by_hand
    assert str(parted) == str(by_hand) and compilers(parted) == ["pairs", "pairs"]
    assert [step.name for step in relay.byoc.external_pipeline("pairs")] == [
        "annotate-external-compiler",
        "merge-compiler-regions",
        "prune-regions",
        "partition-graph",
    ]
    assert parted.op.attributes["marked"] == StringAttr("main")
    assert right(relay.build(parted)) and Pairs.seen == ["relay_pairs_main_0", "relay_pairs_main_1"]
    assert "compiler" not in str(module()), "the module given stays as it is"


@pytest.mark.parametrize("steps", range(5))
def test_a_module_that_is_only_on_the_way_there_is_built(steps: int):
    """Annotations and regions become functions."""
    mod = relay.byoc.external_pipeline("pairs")[:steps](module())
    executable = relay.build(mod)
    assert right(executable) and len(executable.externals) == (0, 2, 2, 2, 2)[steps]


def test_compilers_in_the_order_of_preference():
    for target, wanted in [
        (["abacus", "pairs"], ["abacus", "abacus", "abacus"]),
        (["pairs", "abacus"], ["pairs", "pairs", "abacus"]),
        ("pairs, abacus", ["pairs", "pairs", "abacus"]),
        ({"abacus": {"beads": 4}, "pairs": {}}, ["pairs", "pairs"]),
    ]:
        parted = relay.build_external_compiler(module(), target)
        assert sorted(compilers(parted)) == sorted(wanted)
        assert right(relay.build(parted))


def test_options_stay_with_the_module():
    parted = relay.build_external_compiler(module(), {"abacus": {"beads": 4}})
    assert compilers(parted) == [] and "it has 4 beads" in str(relay.byoc.partition_report(parted))
    assert "byoc.options = {abacus = {beads = 4 : i64}}" in str(parted)
    with pytest.raises(InvalidArgument, match="compiler abacus: has no option 'beds'; did you mean beads"):
        relay.build_external_compiler(module(), {"abacus": {"beds": 4}})


def test_compilers_that_must_be_exact():
    exact = relay.build_external_compiler(module(), ["pairs", "abacus"], exact=True)
    assert compilers(exact) == ["abacus"] * 3 and right(relay.build(exact))
    report = str(relay.byoc.partition_report(relay.build_external_compiler(module(), "pairs", exact=True)))
    assert "integers must be exact, and" in report and "one rounding less" in report
    with pytest.raises(InvalidArgument, match="exact: is 'yes'; it is True or False"):
        relay.build_external_compiler(module(), "pairs", exact=cast(Any, "yes"))


def test_small_regions_can_be_left_to_the_host():
    assert compilers(relay.build_external_compiler(module(), "pairs", prune=PruneRegions(compute=True))) == []
    assert compilers(relay.build_external_compiler(module(), "pairs", prune=PruneRegions(min_ops=2, compute=False)))


def test_build_takes_the_names():
    images, codes = (np.load(DATA)[key][:5] for key in ("int8_images", "int8_out"))
    executable = relay.build(DIGITS, external={"abacus": {"beads": 100000}}, exact=True)
    assert list(executable.externals) == ["relay_abacus_main_0"]
    for image, code in zip(images, codes, strict=True):
        assert np.array_equal(np.asarray(executable.run(image[None])), code[None])
    assert right(relay.build(module(), external=["abacus"])) and right(relay.build(module(), external="abacus"))
    with pytest.raises(InvalidArgument, match="there is no compiler 'abacuss'; did you mean abacus"):
        relay.build(DIGITS, external="abacuss")
    with pytest.raises(InvalidArgument, match="target: names no external compiler; there are .*abacus"):
        relay.build(DIGITS, external=[])
    with pytest.raises(
        InvalidArgument, match="exact: is for external compilers, and none is named; write external='x'"
    ):
        relay.build(DIGITS, exact=True)


def test_the_snippets_of_the_first_discussion():
    """As they were written; the module was in scope of `build_external_compiler`, and is its first argument."""
    mod = module()
    mod = relay.transform.AnnotateExternalCompiler("abacus")(mod)
    mod = relay.transform.PartitionGraph()(mod)
    graph, lib, params = relay.build(mod, target="llvm")
    assert right(create(graph, lib, params)) and len(create(graph, lib, params).externals) == 4

    mod = module()
    mod = relay.build_external_compiler(mod, target="abacus")
    graph, lib, params = relay.build(mod, target="llvm")
    assert right(create(graph, lib, params)) and len(create(graph, lib, params).externals) == 3

    mod = module()
    func = mod["main"]
    func = func.set_func_attr("compiler", "abacus")
    mod["main"] = func
    mod = relay.transform.AnnotateExternalCompiler()(mod)
    mod = relay.transform.PartitionGraph()(mod)
    graph, lib, params = relay.build(mod, target="llvm")
    assert right(create(graph, lib, params)) and len(create(graph, lib, params).externals) == 4


def test_functions_are_xdsl_s():
    mod = module()
    func = mod["main"]
    assert func.__class__ is FuncOp and isinstance(func.set_func_attr("note", [1, "x", True]), FuncOp)
    assert mod.functions["main"].attributes["note"] == func.attributes["note"]
    assert 'note = [1 : i64, "x", true]' in str(mod)
    folded = relay.transform.FoldConstant()(func)
    mod["other"] = folded
    assert list(mod) == ["main", "other"] and mod["other"].set_func_attr("n", 1.5) is mod.functions["other"]
    with pytest.raises(InvalidArgument, match="attribute x of @main: is <object"):
        func.set_func_attr("x", object())


def test_a_function_that_asks_is_partitioned_by_build():
    mod = module()
    mod["main"].set_func_attr("compiler", "pairs")
    executable = relay.build(mod)
    assert right(executable) and len(executable.externals) == 2


def test_optimising_passes_leave_external_functions_alone():
    parted = relay.build_external_compiler(relay.frontend.from_tflite(DIGITS), "abacus")
    before = str(parted["relay_abacus_main_0"])
    assert "qnn.add" in before
    for step in (relay.transform.Legalize(), relay.transform.FoldConstant(), relay.transform.Simplify()):
        parted = step(parted)
    assert str(parted["relay_abacus_main_0"]) == before and "qnn." not in str(parted["main"])
    assert relay.build(parted).externals


def test_texts_and_side_cars_hold_artifacts():
    text = (
        TEXT.replace("3x4xf32", "300x4xf32")
        .replace(
            "dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>\n",
            f"dense<{np.ones((300, 4)).tolist()}> : tensor<300x4xf32>\n",
        )
        .replace("%x, %w : (tensor<300x4xf32>, tensor<4xf32>)", "%x, %w : (tensor<300x4xf32>, tensor<300x4xf32>)")
    )
    compiled = relay.transform.CompileExternal()(relay.build_external_compiler(relay.IRModule.parse(text), "abacus"))
    assert "dense_resource<w_relay_abacus_main_0.constant_0_" in str(compiled)
    whole = relay.IRModule.parse(compiled.to_text(weights=True))
    parts = relay.IRModule.parse(str(compiled), compiled.side_car())
    x = np.ones((300, 4), np.float32)
    for mod in (compiled, whole, parts):
        found = relay.build(mod).run(x, Y)
        assert isinstance(found, tuple) and np.array_equal(found[0], abs(x + Y) + (x + Y))
    with pytest.raises(InvalidArgument, match="is named by the text but its bytes are not there"):
        relay.build(relay.IRModule.parse(str(compiled)))


@dataclass(frozen=True)
class Spoils(Pass):
    """Gives the functions another type, or takes them away."""

    name: ClassVar[str] = "spoils"
    gone: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            if self.gone:
                function.detach()
            else:
                function.detach_region(function.body)
                function.add_region(Region(Block([ReturnOp()])))
                function.function_type = FuncOp("f", ([], [])).function_type


def test_passes_of_the_compiler_see_its_functions_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Pairs, "taught", (Before(), relay.transform.Legalize()))
    assert right(relay.build(module(), external="pairs"))
    for spoils, message in [(Spoils(), r"is now \(\) -> \(\)"), (Spoils(gone=True), "is gone")]:
        monkeypatch.setattr(Pairs, "taught", (spoils,))
        match = f"compiler pairs: function relay_pairs_main_0: {message} after the passes of on_functions or compile"
        with pytest.raises(Unsupported, match=match):
            relay.build(module(), external="pairs")


def test_what_compilers_do_wrong(monkeypatch: pytest.MonkeyPatch):
    def fails(self: Pairs, function: FuncOp, build: BuildInfo) -> Artifact:
        raise RuntimeError("out of ink")

    def bare(self: Pairs, function: FuncOp, build: BuildInfo) -> Any:
        return b"bytes"

    def refuses(self: Pairs, function: FuncOp, build: BuildInfo) -> Artifact:
        raise Unsupported("pairs: relay.add", "is too wide")

    for wrong, message in [
        (fails, "compiler pairs: function relay_pairs_main_0: failed: RuntimeError: out of ink; tell"),
        (bare, "compiler pairs: function relay_pairs_main_0: gave b'bytes', which is no Artifact"),
        (refuses, "pairs: relay.add: is too wide"),
    ]:
        monkeypatch.setattr(Pairs, "compile", wrong)
        with pytest.raises(Unsupported, match=message):
            relay.build(module(), external="pairs")


def test_compile_external_is_needed():
    parted = relay.build_external_compiler(module(), "pairs")
    assert right(relay.build(parted, pipeline="legalize,fuse-ops")), "what code generation needs is completed"
    with PassContext(disabled_pass=["compile-external"]), pytest.raises(InvalidArgument, match="'compile-external'"):
        relay.build(parted)
    assert all(compilers(relay.optimize(parted))) and "byoc.artifact" in str(relay.optimize(parted))


def test_builds_in_threads():
    failed: list[BaseException] = []

    def work() -> None:
        try:
            assert right(relay.build(module(), external="pairs"))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


MOBILENET = Path(__file__).parents[2] / "../shared/models/tf2_mobilenet_v2_1.0_224_ptq.tflite"


@pytest.mark.parametrize("model", [DIGITS, pytest.param(MOBILENET, marks=pytest.mark.ci)], ids=["digits", "mobilenet"])
def test_three_ways_to_ask_give_the_same_work(model: Path):
    """Passes, the attribute and the function use the same patterns: the same ops leave the host."""
    if not model.exists():
        pytest.skip("the model is not here")

    def taken(mod: relay.IRModule) -> list[tuple[str, int]]:
        return sorted((row.op, row.macs) for row in mod.partition_report().of("systolic"))

    mod = relay.frontend.from_tflite(model)
    one = relay.transform.PartitionGraph()(relay.transform.AnnotateExternalCompiler("systolic")(mod))
    asked = mod.clone()
    asked["main"] = asked["main"].set_func_attr("compiler", "systolic")
    two = relay.transform.CompileExternal()(asked)
    three = relay.build_external_compiler(mod, target="systolic")
    assert taken(one) == taken(two) == taken(three)
    assert sum(macs for _, macs in taken(one)) > 0
