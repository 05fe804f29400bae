"""Pipelines: editing, names, text, nesting, equality, and what calling one does."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination as Cse

from relay.dialects.context import make_context
from relay.errors import InvalidArgument, RelayError
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.schedule import Schedule
from relay.module import IRModule
from relay.passes import PassContext, Pipeline, Sequential
from relay.transform import FoldConstant, FuseOps, InferTypes, Legalize, PrintIR, Simplify
from tests.unit.pass_modules import Mark, small, trace


def letters(pipeline: Pipeline) -> str:
    return "".join(step.letter for step in pipeline if isinstance(step, Mark))


def marks(text: str) -> Pipeline:
    return Pipeline([Mark(letter) for letter in text])


def test_runs_in_order_on_a_clone():
    mod = small()
    assert trace(marks("abc")(mod)) == "abc" and trace(mod) == ""


def test_clones_once(monkeypatch: pytest.MonkeyPatch):
    clones: list[ModuleOp] = []
    original = ModuleOp.clone

    def clone(self: ModuleOp) -> ModuleOp:
        clones.append(self)
        return original(self)

    monkeypatch.setattr(ModuleOp, "clone", clone)
    Pipeline([Mark("a"), marks("bcd"), FoldConstant(), FuseOps()])(small())
    assert len(clones) == 1


def test_applies_in_place():
    mod = small()
    marks("ab").apply(mod)
    assert trace(mod) == "ab"


def test_takes_either_form_and_gives_it_back():
    assert isinstance(marks("a")(small().op), ModuleOp)
    assert trace(Mark("x")(small())) == "x"


EDITS: list[tuple[Callable[[Pipeline], Pipeline], str]] = [
    (lambda p: p.insert_before("fold-constant", Mark("x")), "axb"),
    (lambda p: p.insert_after("fold-constant", Mark("x")), "axb"),
    (lambda p: p.run_before("FoldConstant", Mark("x")).run_after("FoldConstant", Mark("y")), "axyb"),
    (lambda p: p.insert_before("ConstFolding", marks("xy")), "axyb"),
    (lambda p: p.insert_after("mark#2", Mark("x")), "abx"),
    (lambda p: p.remove("mark#1").remove("mark"), ""),
    (lambda p: p.replace("mark#2", Mark("x")), "ax"),
    (lambda p: p.insert_before("mark#1", "infer-types,cse").append(Mark("z")), "abz"),
]


@pytest.mark.parametrize(("edit", "wanted"), EDITS)
def test_editing_returns_the_pipeline(edit: Callable[[Pipeline], Pipeline], wanted: str):
    pipeline = Pipeline([Mark("a"), FoldConstant(), Mark("b")])
    assert edit(pipeline) is pipeline and letters(pipeline) == wanted


def test_before_and_after_are_where_they_say():
    pipeline = Pipeline([FoldConstant(), Simplify()]).insert_after("fold-constant", Cse())
    assert str(pipeline.insert_before("simplify", InferTypes())) == "fold-constant,cse,infer-types,simplify"


def test_an_ambiguous_name_lists_the_positions():
    with pytest.raises(InvalidArgument, match=r"'mark' matches the passes at positions 0, 2; write mark#1 to mark#2"):
        Pipeline([Mark("a"), Simplify(), Mark("b")]).remove("mark")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cse", "has no pass 'cse'; it has fold-constant"),
        ("fold-constnat", "there is no pass 'fold-constnat'; did you mean fold-constant"),
        ("fold-constant#2", "has 1 of 'fold-constant', no 'fold-constant#2'"),
        ("fold-constant#x", "no 'fold-constant#x'"),
    ],
)
def test_a_name_that_is_not_there(name: str, said: str):
    with pytest.raises(InvalidArgument, match=said):
        Pipeline([FoldConstant()]).index(name)


def test_is_a_sequence_of_its_passes():
    pipeline = Pipeline([Mark("a"), Pipeline([FoldConstant(), Mark("b")], name="group"), Simplify()])
    assert [step.name for step in pipeline] == ["mark", "fold-constant", "mark", "simplify"] and len(pipeline) == 4
    assert (pipeline.index("fold-constant"), pipeline.index("simplify"), pipeline.index("group")) == (1, 3, 1)
    assert pipeline[1] == FoldConstant() == pipeline["ConstFolding"] and pipeline[-1] == Simplify()
    assert letters(pipeline[1:3]) == "b" and isinstance(pipeline[:2], Pipeline)
    assert "simplify" in pipeline and "SimplifyExpr" in pipeline and "cse" not in pipeline
    assert len(pipeline + [Cse()]) == 5


def test_edits_reach_into_groups():
    pipeline = Pipeline([Mark("a"), Pipeline([Mark("b"), Simplify()], name="group")])
    pipeline.insert_before("simplify", Mark("x"))
    assert letters(pipeline) == "abx" and len(pipeline.items) == 2
    assert letters(pipeline.remove("group")) == "a"


def test_a_group_has_a_level():
    pipeline = Pipeline([Mark("a"), Sequential([Mark("b")], opt_level=3, name="fast"), Mark("c")])
    assert trace(pipeline(small())) == "ac"
    with PassContext(opt_level=3):
        assert trace(pipeline(small())) == "abc"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "legalize",
        "legalize,fold-constant{max_bytes=1024},cse,fuse-ops",
        'attach-target{target="aarch64 -mcpu=neoverse-v1 -mattr=-sve"},legalize,canonicalize',
        'annotate-external-compiler{targets="targets","targets" choose="cost"},annotate-target{targets="a"}',
    ],
)
def test_text_round_trips(text: str):
    assert str(Pipeline.parse(text)) == text and Pipeline.parse(str(Pipeline.parse(text))) == Pipeline.parse(text)


def test_text_takes_aliases_and_prints_canonical_names():
    assert str(Pipeline.parse("FoldConstant{max-bytes=8},EliminateCommonSubexpr,InferType")) == (
        "fold-constant{max_bytes=8},cse,infer-types"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("legalize,,cse", "Expected pass name here"),
        ("legalise", "there is no pass 'legalise'; did you mean legalize"),
        ("fold-constant{bytes=1}", "pass fold-constant: has no option 'bytes'; did you mean max_bytes"),
        ("fold-constant{max_bytes=much}", "pass fold-constant: option max_bytes is 'much', and not int"),
        ("apply-individual-rewrite{pattern_name=x}", "pass apply-individual-rewrite: .* requires argument"),
        ("cse,fold-constant{max_bytes=1 max-bytes=2}", "pass fold-constant: has the option 'max_bytes' twice"),
        ("annotate-target{targets=a,b targets},cse", "pass annotate-target: has the option 'targets' twice; write"),
    ],
)
def test_bad_text(text: str, said: str):
    with pytest.raises(InvalidArgument, match=said):
        Pipeline.parse(text)


def test_a_pass_has_a_name():
    class Nameless(ModulePass):
        def apply(self, ctx: Context, op: ModuleOp) -> None: ...

    with pytest.raises(InvalidArgument, match="pass Nameless: has no name; give the class one: name = 'my-pass'"):
        Pipeline([Nameless()])(small())


def test_equality_is_of_passes_and_options():
    assert Pipeline([FoldConstant()]) == Pipeline([Pipeline([FoldConstant()])])
    assert Pipeline([FoldConstant()]) != Pipeline([FoldConstant(max_bytes=1)])
    copy = (pipeline := Pipeline([Pipeline([Simplify()])])).copy()
    copy.insert_before("simplify", Cse())
    assert copy != pipeline and len(pipeline) == 1


def test_names_are_items():
    assert Pipeline(["FoldConstant", "fold-constant{max_bytes=1}"]) == Pipeline(
        [FoldConstant(), FoldConstant(max_bytes=1)]
    )
    with pytest.raises(InvalidArgument, match="there is no pass 'no-such-pass'"):
        Pipeline(["no-such-pass"])


LONG = """func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = relay.negative %x : (tensor<1000xf32>) -> tensor<1000xf32>
  func.return %0 : tensor<1000xf32>
}"""
"""A module whose schedule has loops, which relay-to-linalg does not take."""


def test_a_wrong_order_says_so():
    said = "pass relay-to-linalg: ran already, since bufferize requires it, and fails after that: .*; put it before buf"
    with pytest.raises(RelayError, match=said):
        Pipeline([Schedule(), RelayToLinalg()])(IRModule.parse(LONG))


@pytest.mark.parametrize("item", [FoldConstant, 3])
def test_only_passes_are_items(item: object):
    with pytest.raises(InvalidArgument, match="is a class; write FoldConstant|is no pass"):
        Pipeline(cast(list[Mark], [item]))


def test_runs_in_the_pipeline_of_xdsl():
    mod = small()
    PassPipeline(tuple(Pipeline([Mark("a"), FoldConstant(), Mark("b")]))).apply(make_context(), mod.op)
    assert trace(mod) == "ab" and str(mod).count("relay.add") == 1


def test_a_pass_on_a_function_gives_a_function():
    mod = small()
    folded = FoldConstant()(mod["main"])
    assert isinstance(folded, FuncOp) and folded.parent is None and str(folded).count("relay.add") == 1
    assert str(mod["main"]).count("relay.add") == 2
    simple = Sequential([FoldConstant(), Simplify()])(folded)
    assert isinstance(simple, FuncOp) and simple.parent is None and str(simple) == str(folded)


def test_a_pass_that_makes_functions_wants_the_module():
    with pytest.raises(InvalidArgument, match=r"@main: the pass made other functions \(elementwise_0\); give it"):
        FuseOps()(small()["main"])


def test_a_pass_tells_about_itself():
    info = FuseOps().info
    assert (info.name, info.opt_level) == ("fuse-ops", 0) and "legal" in info.required


def test_printing_is_a_pass(capsys: pytest.CaptureFixture[str]):
    mod = small()
    assert str(Sequential([PrintIR("as it was"), FoldConstant()])(mod)) != str(mod)
    assert capsys.readouterr().err == f"// as it was\n{mod}"


def test_a_pass_wants_a_module():
    with pytest.raises(InvalidArgument, match="module: 3 is no module; import a model with relay.frontend"):
        Legalize()(cast(ModuleOp, 3))
