"""Requirements: transitive, run once while valid; cycles, unknown names and disabled passes; requests; analyses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from relay.errors import InvalidArgument, Malformed
from relay.frontend import from_tflite
from relay.module import IRModule
from relay.passes import Pass, PassContext, Sequential, module_pass, registry
from relay.transform import FoldConstant, FuseOps, InferTypes, Simplify, liveness, shapes, use_counts
from tests.unit.pass_modules import DIGITS, Log, Mark, small, trace


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch):
    """Passes A <- B <- C by their requirements, known by name; A establishes a property."""
    monkeypatch.setattr(registry, "MADE", {"need-a": NeedA, "need-b": NeedB, "need-c": NeedC, "spoil-a": SpoilA})


@dataclass(frozen=True)
class NeedA(Mark):
    """Establishes `a-holds`."""

    name: ClassVar[str] = "need-a"
    letter: str = "a"
    establishes = ("a-holds",)
    invalidates = ()


@dataclass(frozen=True)
class NeedB(Mark):
    """Requires a property."""

    name: ClassVar[str] = "need-b"
    letter: str = "b"
    requires = ("a-holds",)
    invalidates = ()


@dataclass(frozen=True)
class NeedC(Mark):
    """Requires a pass by its alias."""

    name: ClassVar[str] = "need-c"
    letter: str = "c"
    requires = ("NeedB",)
    invalidates = ()


@dataclass(frozen=True)
class SpoilA(Mark):
    """Makes `a-holds` invalid."""

    name: ClassVar[str] = "spoil-a"
    letter: str = "s"
    invalidates = ("a-holds",)


@pytest.mark.parametrize(
    ("passes", "wanted"),
    [
        ([NeedC()], "abc"),
        ([NeedC(), NeedC(), NeedB()], "abccb"),
        ([NeedA(), NeedC()], "abc"),
        ([NeedB(), SpoilA(), NeedB()], "absab"),
        ([NeedA(), SpoilA(), NeedC()], "asabc"),
        ([NeedA(), Mark("?"), NeedB()], "a?ab"),
    ],
)
def test_what_is_required_runs_once_while_it_is_valid(passes: list[Mark], wanted: str):
    assert trace(Sequential(passes)(small())) == wanted


def test_a_direct_call_has_requirements_too():
    assert trace(NeedC()(small())) == "abc"


def test_a_pipeline_has_requirements():
    assert trace(Sequential([Sequential([Mark("x")], required=["need-b"])])(small())) == "abx"


def test_the_plan_says_why():
    planned = Sequential([NeedC(), Simplify()]).plan(PassContext(0))
    assert [(row.name, row.runs) for row in planned] == [
        ("need-a", True), ("need-b", True), ("need-c", True), ("simplify", False)]  # fmt: skip
    assert planned[0].why.startswith("required by need-b") and planned[3].why == "from opt_level 1"


def test_a_circle_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(NeedA, "requires", ("need-c",))
    with pytest.raises(InvalidArgument, match="in a circle: need-b -> need-a -> need-c -> need-b"):
        NeedB()(small())


def test_an_unknown_requirement_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(NeedA, "requires", ("infer-typse",))
    with pytest.raises(
        InvalidArgument, match="pass need-a, required: there is no pass 'infer-typse'; did you mean inf"
    ):
        NeedB()(small())


def test_disabling_what_is_required_is_an_error_that_says_by_whom():
    with PassContext(disabled_pass=["NeedA"]):
        assert trace(Sequential([NeedA(), Mark("x")])(small())) == "x"
        with pytest.raises(
            InvalidArgument, match=r"disabled_pass 'need-a': is required by need-b \(it needs 'a-holds'\)"
        ):
            NeedC()(small())


def test_what_is_seen_to_hold_is_not_established_again():
    log = Log()
    with PassContext(instruments=[log]):
        FuseOps()(small())
        FuseOps()(from_tflite(DIGITS))
    assert log.lines == ["enter", "before fuse-ops", "after fuse-ops", "before legalize", "after legalize",
                         "before fuse-ops", "after fuse-ops", "exit"]  # fmt: skip


def test_requests_print_parse_and_run():
    mod = small()
    mod.request_pass("mark{letter=x}", before="SimplifyExpr")
    mod.request_pass("mark{letter=y}", after="simplify")
    mod.request_pass("mark{letter=z}")
    assert 'relay.requests = [{pass = "mark{letter=x}", before = "SimplifyExpr"}' in str(mod)
    registry.MADE["mark"] = Mark
    after = Sequential([FoldConstant(), Simplify(), Mark("!")])(IRModule.parse(str(mod)))
    assert trace(after) == "zxy!" and "requests" not in str(after) and "requests" in str(mod)


def test_a_pass_can_request_a_later_one():
    registry.MADE["mark"] = Mark

    def ask(mod: IRModule, ctx: PassContext) -> IRModule:
        mod.request_pass("mark{letter=r}", before="simplify")
        return mod

    asking = module_pass(ask, opt_level=0)
    assert trace(Sequential([asking, Mark("a"), Simplify(), Mark("b")])(small())) == "arb"


def test_a_request_waits_for_its_pass():
    mod = small()
    mod.request_pass("fold-constant", before="fuse-ops")
    assert "fuse-ops" in str(Simplify()(mod))


def test_bad_requests():
    def again(mod: IRModule, ctx: PassContext) -> IRModule:
        mod.request_pass("again", before="simplify")
        return mod

    with pytest.raises(InvalidArgument, match=r"request_pass\('again', before='simplify'\): follows 100 others"):
        Sequential([module_pass(again, opt_level=0, name="again"), Simplify()])(small())
    with pytest.raises(InvalidArgument, match="has both before and after"):
        small().request_pass("cse", before="dce", after="dce")
    mod = IRModule.parse("builtin.module attributes {relay.requests = [3 : i32]} {}")
    with pytest.raises(Malformed, match="module attribute relay.requests: has 3"):
        Simplify()(mod)


@dataclass(frozen=True)
class Look(Pass):
    """Keeps what the analyses say."""

    name: ClassVar[str] = "look"
    preserves = ("use-counts",)
    seen: ClassVar[list[object]] = []

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.seen.extend([use_counts(op), liveness(op)])


def test_analyses_are_kept_until_a_pass_does_not_preserve_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Look, "seen", [])
    Sequential([Look(), Look(), InferTypes(), Look()])(small())
    counts, lives = Look.seen[0::2], Look.seen[1::2]
    assert counts[0] is counts[1] and counts[2] is not counts[0]
    assert lives[1] is not lives[0]
    mod = small()
    assert use_counts(mod.op) is not use_counts(mod.op), "nothing is kept outside of a pipeline"


def test_what_the_analyses_say():
    mod = small()
    values: dict[str | None, SSAValue] = {v.name_hint: v for op in mod["main"].body.block.ops for v in op.results}
    values["x"] = mod["main"].body.block.args[0]
    counts, lives = use_counts(mod), liveness(mod.op)
    assert {name: counts[value] for name, value in values.items()} == {"x": 1, "c": 2, "d": 1, "y": 1, "r": 1}
    spans = {name: (lives[value].first, lives[value].last) for name, value in values.items()}
    assert spans == {"x": (-1, 2), "c": (0, 1), "d": (1, 3), "y": (2, 3), "r": (3, 4)}
    assert shapes(mod.op)[values["r"]] == (4,)
