"""Instruments: the order of events, exceptions, and what the built-in ones say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.errors import InvalidArgument, Malformed
from relay.frontend import from_tflite
from relay.module import IRModule
from relay.passes import Pass, PassContext, PassInfo, PassInstrument, Sequential, pass_instrument
from relay.passes.checking import pipeline_of
from relay.transform import (
    BisectLimit,
    CrashReproducer,
    DumpIR,
    FoldConstant,
    FuseOps,
    Legalize,
    OpStatistics,
    PassPrintingInstrument,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    PrintChanged,
    Simplify,
    VerifyEach,
)
from tests.unit.pass_modules import DIGITS, Log, Mark, small, trace


@dataclass(frozen=True)
class Crash(Pass):
    """Fails."""

    name: ClassVar[str] = "crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("lost")


def test_instruments_nest():
    lines: list[str] = []
    with PassContext(instruments=[Log("1 ", lines), Log("2 ", lines)]):
        Sequential([Sequential([Mark()], name="inner")])(small())
    assert lines == [
        "1 enter", "2 enter",
        "1 before inner", "2 before inner", "1 before mark", "2 before mark",
        "2 after mark", "1 after mark", "2 after inner", "1 after inner",
        "1 exit", "2 exit",
    ]  # fmt: skip


def test_direct_calls_are_told_too():
    log = Log()
    with PassContext(instruments=[log]):
        Mark()(small())
    Mark()(small())
    assert log.lines == ["enter", "before mark", "after mark", "exit"]


def test_should_run_vetoes_but_not_what_is_required():
    class No(PassInstrument):
        def should_run(self, mod: IRModule, info: PassInfo) -> bool:
            return info.name == "fuse-ops"

    log = Log()
    with PassContext(instruments=[No(), log]):
        mod = Sequential([Mark(), FuseOps()])(from_tflite(DIGITS))
    assert trace(mod) == "" and "before mark" not in log.lines and "after legalize" in log.lines


def test_a_failing_pass_is_told_and_the_context_exits():
    log = Log()
    with pytest.raises(KeyError), PassContext(instruments=[log]):
        Sequential([Mark(), Crash(), Mark()])(small())
    assert log.lines == ["enter", "before mark", "after mark", "before crash", "failed crash", "exit"]


class Fails(Log):
    """Raises in one method."""

    def __init__(self, method: str, lines: list[str]):
        super().__init__("bad ", lines)
        self.method = method

    def note(self, text: str) -> None:
        super().note(text)
        if text.split()[0] == self.method:
            raise ValueError(self.method)


def test_entering_fails():
    lines: list[str] = []
    ctx = PassContext(instruments=[Log("1 ", lines), Fails("enter", lines), Log("3 ", lines)])
    with pytest.raises(ValueError, match="enter"), ctx:
        raise AssertionError
    assert lines == ["1 enter", "bad enter", "1 exit"] and ctx.instruments == []
    assert PassContext.current() is not ctx


def test_exiting_fails():
    lines: list[str] = []
    ctx = PassContext(instruments=[Fails("exit", lines), Log("2 ", lines)])
    with pytest.raises(ValueError, match="exit"), ctx:
        pass
    assert lines[-2:] == ["bad exit", "2 exit"] and ctx.instruments == []


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("before", ["1 before mark", "bad before mark", "1 failed mark"]),
        ("after", ["1 before mark", "bad before mark", "bad after mark", "bad failed mark", "1 failed mark"]),
    ],
)
def test_an_instrument_fails_around_a_pass(method: str, wanted: list[str]):
    lines: list[str] = []
    ctx = PassContext(instruments=[Log("1 ", lines), Fails(method, lines)])
    with pytest.raises(ValueError, match=method), ctx:
        Mark()(small())
    assert lines[2:-2] == wanted and lines[-2:] == ["1 exit", "bad exit"]


def test_an_instrument_that_fails_about_a_failure_is_a_note():
    with pytest.raises(KeyError) as raised, PassContext(instruments=[Fails("failed", [])]):
        Crash()(small())
    assert raised.value.__notes__ == ["in pass crash", "instrument Fails: ValueError: failed"]


def test_instruments_can_be_replaced():
    lines: list[str] = []
    with PassContext(instruments=[Log("1 ", lines)]) as ctx:
        ctx.override_instruments([Log("2 ", lines)])
        Mark()(small())
    assert lines == ["1 enter", "1 exit", "2 enter", "2 before mark", "2 after mark", "2 exit"]


def test_any_class_with_the_methods_can_be_an_instrument():
    seen: list[str] = []

    @pass_instrument
    class Watch:
        def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
            seen.append(info.name)

    with PassContext(instruments=[Watch()]):
        Mark()(small())
    assert seen == ["mark"]
    with pytest.raises(InvalidArgument, match="pass_instrument int: has none of the methods enter_pass_ctx"):
        pass_instrument(int)


def test_timing():
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        Sequential([Sequential([FoldConstant(), Simplify()], name="group"), Mark()])(small())
    group, mark = timing.root.inner
    assert [entry.name for entry in group.inner] == ["fold-constant", "simplify"] and mark.name == "mark"
    assert (group.inner[0].ops_before, group.inner[0].ops_after, group.ops_after) == (7, 6, 6)
    assert group.total >= sum(entry.total for entry in group.inner) > 0 and group.self_time >= 0
    assert abs(timing.root.total - group.total - mark.total) < 1e-9
    lines = timing.render().splitlines()
    assert re.fullmatch(r" +[\d.]+ +[\d.]+ +[\d.]+% +7 -> 6 +    fold-constant", lines[3])


def test_timing_of_a_failure():
    timing = PassTimingInstrument()
    with pytest.raises(KeyError), PassContext(instruments=[timing]):
        Sequential([Sequential([Crash()], name="group")])(small())
    assert timing.root.inner[0].inner[0].name == "crash" and timing.root.total > 0


def test_statistics():
    statistics = OpStatistics()
    with PassContext(instruments=[statistics]):
        Sequential([FoldConstant(), Simplify()])(small())
    assert statistics.render() == "fold-constant: relay.add -1\nsimplify: no change"


def test_printing():
    out = StringIO()
    named = PassPrintingInstrument(before=["SimplifyExpr"], after=["fold-constant"], stream=out)
    with PassContext(instruments=[named]):
        Sequential([FoldConstant(), Mark(), Simplify()])(small())
    assert re.findall("// IR .*", out.getvalue()) == ["// IR after fold-constant", "// IR before simplify"]
    out = StringIO()
    with PassContext(instruments=[PrintBeforeAll(out), PrintAfterAll(out)]):
        Sequential([FoldConstant(), Mark()])(small())
    wanted = ["before fold-constant", "after fold-constant", "before mark", "after mark"]
    assert re.findall("// IR (.*)", out.getvalue()) == wanted and out.getvalue().count("func.func") == 4


@pytest.mark.parametrize("colour", [True, False])
def test_printing_what_changed(colour: bool):
    out = StringIO()
    with PassContext(instruments=[PrintChanged(out, colour=colour)]):
        Sequential([FoldConstant(), Simplify()])(small())
    text = out.getvalue()
    assert "// fold-constant changed\n" in text and "// simplify changed nothing\n" in text
    assert text.count("\n-") + text.count("\n\x1b[31m-") == 3 and ("\x1b[32m+" in text) == colour


def test_dumps(tmp_path: Path):
    folder = tmp_path / "dump"
    for _ in range(2):
        with PassContext(instruments=[DumpIR(folder, refresh=True)]):
            Sequential([FoldConstant(), Mark()])(small())
        (folder / "mine.mlir").write_text("")
    assert sorted(path.name for path in folder.iterdir()) == [
        "000_input.mlir", "001_fold-constant.mlir", "002_mark.mlir", "mine.mlir"]  # fmt: skip
    assert "trace" in (folder / "002_mark.mlir").read_text()
    with (
        pytest.raises(InvalidArgument, match="DumpIR .*mine.mlir"),
        PassContext(instruments=[DumpIR(folder / "mine.mlir")]),
    ):
        pass


@dataclass(frozen=True)
class Spoil(Pass):
    """Leaves a function without a name."""

    name: ClassVar[str] = "spoil"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        IRModule(op)["main"].properties.pop("sym_name")


def test_verification_names_the_pass():
    with (
        pytest.raises(Malformed, match="after pass spoil: the module is not valid"),
        PassContext(instruments=[VerifyEach()]),
    ):
        Sequential([Mark(), Spoil(), Mark()])(small())


@pytest.mark.parametrize(("limit", "wanted"), [(-1, "ab"), (0, ""), (1, "a")])
def test_bisection_limit(limit: int, wanted: str):
    bisect = BisectLimit(limit)
    with PassContext(instruments=[bisect]):
        mod = Sequential([Legalize(), Mark("a"), Sequential([Mark("b")]), FuseOps()])(small())
    assert trace(mod) == wanted and "elementwise_0" in str(mod)
    assert len(bisect.log) == 2 and ("NOT" in bisect.log[1]) == (limit in (0, 1))


def test_a_crash_is_reproduced(tmp_path: Path):
    path = tmp_path / "crash.mlir"
    reproducer = CrashReproducer(path)
    with pytest.raises(KeyError), PassContext(instruments=[reproducer]):
        Sequential([FoldConstant(), Crash(), Mark()])(small())
    text = path.read_text()
    assert reproducer.written and pipeline_of(text) == "crash" and pipeline_of("func.func") is None
    assert text.splitlines()[1] == "// KeyError: 'lost'" and IRModule.parse(text)["main"]
