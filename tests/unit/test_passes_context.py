"""PassContext: levels, required and disabled passes, options, nesting, threads, diagnostics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc

from relay.errors import InvalidArgument, Unsupported
from relay.module import IRModule
from relay.passes import CollectedErrors, Pass, PassContext, Reporter, Sequential, config, module_pass
from relay.transform import FoldConstant, Legalize, Simplify
from relay.transforms import legalization
from tests.unit.pass_modules import SMALL, Mark, small, trace


@dataclass(frozen=True)
class Late(Mark):
    """A mark of level 3."""

    name: ClassVar[str] = "late"
    opt_level: ClassVar[int] = 3


def test_the_default():
    ctx = PassContext.current()
    assert (ctx.opt_level, ctx.required_pass, ctx.disabled_pass, ctx.config, ctx.instruments) == (2, [], [], {}, [])


def test_contexts_nest():
    with PassContext(opt_level=1) as outer:
        with PassContext(opt_level=3) as inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
        with pytest.raises(KeyError), PassContext():
            raise KeyError
        assert PassContext.current() is outer
    assert PassContext.current() not in (outer, inner)


def test_each_thread_has_its_own():
    seen: list[int] = []
    with PassContext(opt_level=0):
        thread = threading.Thread(target=lambda: seen.append(PassContext.current().opt_level))
        thread.start()
        thread.join()
    assert seen == [2]


def test_levels_required_and_disabled():
    pipeline = Sequential([Mark("a"), FoldConstant(), Late("z")])
    assert trace(pipeline(small())) == "a"
    with PassContext(opt_level=3):
        assert trace(pipeline(small())) == "az"
    with PassContext(opt_level=0):
        assert str(pipeline(small())).count("relay.add") == 2
    with PassContext(opt_level=0, required_pass=["ConstFolding"]):
        assert str(pipeline(small())).count("relay.add") == 1
    with PassContext(opt_level=3, required_pass=["FoldConstant"], disabled_pass=["fold-constant"]):
        assert str(pipeline(small())).count("relay.add") == 2


def test_a_direct_call_runs_at_any_level_unless_disabled():
    with PassContext(opt_level=0):
        assert trace(Late("z")(small())) == "z"
        assert str(FoldConstant()(small())).count("relay.add") == 1
    with PassContext(disabled_pass=["fold-constant"]):
        assert str(FoldConstant()(small())).count("relay.add") == 2


WRONG: list[tuple[Callable[[], PassContext], str]] = [
    (lambda: PassContext(opt_level=5), "opt_level=5: is not one of 0, 1, 2, 3, 4"),
    (
        lambda: PassContext(disabled_pass=["fold-constnat"]),
        "disabled_pass: there is no pass 'fold-constnat'; did you m",
    ),
    (lambda: PassContext(required_pass="cse"), r"required_pass: is the text 'cse'; write required_pass=\['cse'\]"),
    (lambda: PassContext(config={"fold-constant.maxbytes": 1}), "is not a known key; did you mean fold-constant.max_b"),
    (
        lambda: PassContext(config={"fold-constent.max_bytes": 1}),
        "is not a known key; did you mean fold-constant.max_b",
    ),
    (lambda: PassContext(config={"zzz": 1}), "is not a known key; see PassContext.list_configs"),
    (lambda: PassContext(config={"fold-constant.max_bytes": "1"}), "'1' is not of type int"),
    (lambda: PassContext(config={"fold-constant.max_bytes": True}), "True is not of type int"),
]


@pytest.mark.parametrize(("make", "said"), WRONG)
def test_what_is_not_known_is_an_error(make: Callable[[], PassContext], said: str):
    with pytest.raises(InvalidArgument, match=said):
        make()


@pytest.mark.parametrize("key", ["fold-constant.max_bytes", "relay.FoldConstant.max_bytes", "ConstFolding.max-bytes"])
def test_options_by_configuration(key: str):
    with PassContext(config={key: 8}):
        assert str(FoldConstant()(small())).count("relay.add") == 2
        given = Sequential([FoldConstant(max_bytes=1024)])
        assert str(given(small())).count("relay.add") == 1, "what is given explicitly wins"


def test_options_of_one_pass_as_a_mapping():
    with PassContext(config={"FoldConstant": {"max_bytes": 8}}) as ctx:
        assert ctx.config == {"fold-constant.max_bytes": 8} and str(FoldConstant()(small())).count("relay.add") == 2
    with pytest.raises(
        InvalidArgument, match="'FoldConstant.maxbytes'.*is not a known key; did you mean fold-constant.m"
    ):
        PassContext(config={"FoldConstant": {"maxbytes": 8}})


@dataclass(frozen=True)
class Tiling:
    """What a declared key may hold."""

    rows: int = 4
    unrolled: bool = False


def test_mappings_become_typed_objects(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config, "DECLARED", {})
    config.declare("mine.tiling", Tiling, Tiling(), "how")
    assert PassContext(config={"mine.tiling": {"rows": 8}}).config == {"mine.tiling": Tiling(8)}
    assert PassContext(config={"mine.tiling": Tiling(2)}).config == {"mine.tiling": Tiling(2)}
    with pytest.raises(InvalidArgument, match=r"config\['mine.tiling'\]: has no field 'row'; it has rows, unrolled"):
        PassContext(config={"mine.tiling": {"row": 8}})
    with pytest.raises(InvalidArgument, match=r"config\['mine.tiling.rows'\]: '8' is not of type int"):
        PassContext(config={"mine.tiling": {"rows": "8"}})


def test_configs_are_listed():
    key = PassContext.list_configs()["fold-constant.max_bytes"]
    assert (key.type, key.default) == (int, 16 << 20)


def test_declared_keys(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config, "DECLARED", {})
    config.declare("mine.scale", float, 1.0, "how far")
    assert PassContext(config={"mine.scale": 2}).config == {"mine.scale": 2.0}
    assert PassContext.list_configs()["mine.scale"].doc == "how far"
    with pytest.raises(InvalidArgument, match="is declared already"):
        config.declare("mine.scale", int, 1, "how far")


def test_it_can_be_printed():
    assert repr(PassContext(3, ["cse"])) == "PassContext(opt_level=3, required_pass=['cse'])"


@dataclass(frozen=True)
class Complain(Pass):
    """Reports every op that adds."""

    name: ClassVar[str] = "complain"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        report = PassContext.current().diagnostics
        for inner in op.walk():
            if inner.name == "relay.add":
                report.error(inner, "cannot add")
                report.note(inner, "see the manual")


def test_errors_are_shown_together_with_carets(tmp_path: Path):
    mod = small()
    source = tmp_path / "model.txt"
    source.write_text("line one\n  r = a + b\n")
    adds = [op for op in mod.op.walk() if op.name == "relay.add"]
    adds[0].location = FileLineColLoc(StringAttr(str(source)), IntAttr(2), IntAttr(7))
    with pytest.raises(CollectedErrors) as raised:
        Sequential([Complain(), Simplify()])(mod)
    assert str(raised.value).splitlines() == [
        "pass complain: 2 errors",
        f"{source}:2:7: error: cannot add",
        "    r = a + b",
        "        ^",
        f"{source}:2:7: note: see the manual",
        "    r = a + b",
        "        ^",
        "<text>:6:3: error: cannot add",
        "    %r = relay.add %y, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "    ^",
        "<text>:6:3: note: see the manual",
        "    %r = relay.add %y, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "    ^",
    ]
    assert PassContext.current().diagnostics.diagnostics == []


def test_what_a_pass_reports_does_not_reach_the_next_run():
    @module_pass(opt_level=0, name="report-and-fail")
    def report_and_fail(mod: IRModule, ctx: PassContext) -> IRModule:
        ctx.diagnostics.warning(mod.op, "odd")
        ctx.diagnostics.error(mod.op, "bad")
        raise Unsupported("here", "cannot go on")

    with pytest.raises(Unsupported, match="here: cannot go on") as raised:
        report_and_fail(small())
    assert "error: bad" in raised.value.__notes__[0]
    assert [each.message for each in PassContext.current().diagnostics.diagnostics] == ["odd"]
    Simplify()(small())
    assert PassContext.current().diagnostics.diagnostics == []
    with PassContext() as ctx:
        with pytest.raises(Unsupported):
            report_and_fail(small())
        Simplify()(small())
    assert [each.message for each in ctx.diagnostics.diagnostics] == ["odd"]


def test_contexts_left_in_another_order():
    first, second = PassContext(1), PassContext(3)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert PassContext.current() is second
    second.__exit__(None, None, None)
    with pytest.raises(InvalidArgument, match="PassContext: is left, but was not entered in this thread"):
        second.__exit__(None, None, None)


def test_an_op_of_no_text_is_shown_as_it_prints():
    mod = small()
    add = next(op for op in mod.op.walk() if op.name == "relay.add")
    add.location = FileLineColLoc(StringAttr("/nowhere/model.txt"), IntAttr(2), IntAttr(7))
    report = Reporter()
    report.warning(add, "look")
    add.location = UnknownLoc()
    report.warning(add, "look")
    shown = "  %d = relay.add %c, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n       ^"
    assert list(map(str, report.diagnostics)) == [
        f"{place}: warning: look\n{shown}" for place in ("/nowhere/model.txt:2:7", "relay.add")
    ]


def test_the_caret_stands_under_the_column_behind_tabs():
    mod = IRModule.parse(SMALL.replace("  %y =", "\t %y ="))
    report = Reporter()
    report.note(next(op for op in mod.op.walk() if op.name == "relay.abs"), "here")
    assert report.diagnostics[0].source.splitlines()[1] == "  \t ^"


def test_all_ops_that_no_pattern_takes_are_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        legalization,
        "registered",
        lambda: [EntryPoint("relay", "tests.unit.pass_modules:NO_PATTERNS", "relay.legalize")],
    )
    monkeypatch.setattr(legalization, "LEGAL", ())
    with pytest.raises(
        CollectedErrors, match=r"(?s)pass legalize: .*\n<text>:4:3: error: no leg.*\n<text>:6:3: error:"
    ):
        Legalize()(small())
