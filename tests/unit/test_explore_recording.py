"""A recorded run: its steps, its snapshots, its times, and what becomes of errors."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Thread
from time import sleep
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

import relay
from relay.errors import InvalidArgument, Unsupported
from relay.module import IRModule
from relay.passes import Pass, PassContext, Pipeline
from relay.viewer import Record, Recording, record
from relay.viewer import recording as machinery
from relay.viewer.snapshot import Snapshot, take
from tests.unit.explore_modules import adds
from tests.unit.pass_modules import DIGITS


@pytest.fixture(scope="module")
def digits() -> IRModule:
    return relay.frontend.from_tflite(DIGITS)


@pytest.fixture(scope="module")
def through(digits: IRModule) -> Record:
    """The digits through all that build runs."""
    return record(digits)


@pytest.fixture(scope="module")
def lowered(digits: IRModule) -> IRModule:
    """What the default pipeline makes of the digits."""
    return relay.optimize(digits, pipeline=relay.default_pipeline())


def says(found: Record) -> list[tuple[str, str, int | None]]:
    return [(step.name, step.status, step.place) for step in found.steps]


def test_default_pipeline(digits: IRModule, through: Record, lowered: IRModule):
    default = relay.default_pipeline()
    assert says(through) == [(step.name, "ran", place) for place, step in enumerate(default)]
    assert through.error == "" and all(step.seconds > 0 for step in through.steps)
    assert through.seconds == sum(step.seconds for step in through.steps)
    assert through.snapshots[0].text == str(digits)
    assert through.snapshots[-1].text == str(lowered)


def test_text_without_what_the_target_gives_anyway(digits: IRModule, through: Record):
    assert through.pipeline.startswith("attach-target,compile-external,legalize,")
    first = record(digits, through.pipeline.partition(",fold-constant")[0])
    assert first.snapshots[-1].text == through.snapshots[first.steps[-1].after].text
    other = 'attach-target{target="riscv64"},legalize'
    assert record(adds(), other).pipeline == other


def test_a_pass_that_changes_nothing_has_no_snapshot(through: Record):
    texts = [snapshot.text for snapshot in through.snapshots]
    assert all(a != b for a, b in zip(texts, texts[1:], strict=False))
    steps = {step.name: step for step in through.steps}
    assert steps["fold-constant"].before == steps["fold-constant"].after
    assert [s.after for s in through.steps][-1] == len(texts) - 1
    assert all(b.before == a.after for a, b in zip(through.steps, through.steps[1:], strict=False))


def test_snapshots_are_the_text_and_know_its_lines(digits: IRModule, lowered: IRModule):
    for mod in (digits, relay.optimize(digits), lowered):
        found = take(mod)
        assert found.text == str(mod)
        assert found.ops == sum(1 for _ in mod.op.walk()) and found.kinds["builtin.module"] == 1
        assert [part.name for part in found.parts] == list(mod.functions)
        for part, function in zip(found.parts, mod.functions.values(), strict=True):
            first, last = found.lines[part.lines[0]], found.lines[part.lines[1] - 1]
            assert f"func.func {'private ' if 'private' in first else ''}@{part.name}(" in first and last == "  }"
            assert part.ops == sum(1 for _ in function.walk())
            assert [found.lines[node.lines[0]] for node in part.graph.nodes if node.kind == "op"] != [] or part.ops > 1


def test_each_line_knows_its_source(digits: IRModule):
    found = take(digits)
    for function in digits.functions.values():
        for op in function.body.block.ops:
            if op.name == "qnn.conv2d":
                line = next(n for n, text in enumerate(found.lines) if f" = {op.name} " in text)
                source = found.sources[found.source_of[line]]
                assert source.startswith("operator ") and "CONV_2D" in source and DIGITS.name in source
                return
    raise AssertionError("the digits have a convolution")


def test_ops_in_no_function():
    found = take(IRModule.parse("%c = relay.constant dense<1.0> : tensor<2xf32>\nfunc.func @f() { func.return }"))
    assert [(part.name, part.loose, part.ops) for part in found.parts] == [("module", True, 1), ("f", False, 2)]
    assert take(IRModule()).parts == []


def test_times_are_without_the_snapshots(monkeypatch: pytest.MonkeyPatch):
    def slowly(mod: IRModule) -> Snapshot:
        sleep(0.05)
        return take(mod)

    monkeypatch.setattr(machinery, "take", slowly)
    assert 0 < record(adds(), "cse,dce").seconds < 0.05


def test_the_module_stays_as_it_is():
    mod = adds()
    before = str(mod)
    assert record(mod, "cse").snapshots[-1].text != before == str(mod)


def test_what_another_pass_requires_is_a_step_of_its_own():
    found = record(adds(), "cse,bufferize")
    assert found.steps[0].place == 0 and found.steps[-1].place == 1
    between = found.steps[1:-1]
    assert "relay-to-linalg" in [step.name for step in between]
    assert all(step.place is None and "needs it" in step.why for step in between)


def test_levels():
    at_1 = record(adds(), "dce,cse,infer-types", opt_level=1)
    assert says(at_1) == [("dce", "ran", 0), ("cse", "skipped", 1), ("infer-types", "ran", 2)]
    assert at_1.steps[1].why == "runs from opt_level 2"
    assert says(record(adds(), "cse")) == [("cse", "ran", 0)]
    named = {step.name for step in relay.default_pipeline("llvm", 0)}
    assert {step.name for step in record(adds(), opt_level=0).steps} <= named | {"legalize"}


def test_the_same_pass_twice():
    assert says(record(adds(), "cse,dce,cse")) == [("cse", "ran", 0), ("dce", "ran", 1), ("cse", "ran", 2)]
    inner = Pipeline.parse("cse")
    assert says(record(adds(), Pipeline([inner, *Pipeline.parse("dce")]))) == [("cse", "ran", 0), ("dce", "ran", 1)]


@dataclass(frozen=True)
class Break(Pass):
    """Changes the module, then fails as it is told."""

    name = "break"
    error: ClassVar[Exception] = Unsupported("here", "not today", "come again")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["half"] = StringAttr("done")
        raise self.error


@dataclass(frozen=True)
class Spoil(Pass):
    """Leaves a module that is not valid."""

    name = "spoil"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        function = op.body.ops.first
        assert isinstance(function, FuncOp) and (end := function.body.block.last_op) is not None
        end.detach()


@dataclass(frozen=True)
class Nest(Pass):
    """Runs other passes inside."""

    name = "nest"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        Pipeline.parse("cse,dce").apply(op, ctx)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Unsupported("here", "not today", "come again"), "here: not today; come again"),
        (KeyError("k"), "pass break: KeyError: 'k'"),
    ],
)
def test_an_error_of_a_pass_is_recorded(error: Exception, words: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Break, "error", error)
    found = record(adds(), Pipeline([*Pipeline.parse("cse"), Break(), *Pipeline.parse("dce")]))
    assert says(found) == [("cse", "ran", 0), ("break", "failed", 1), ("dce", "skipped", 2)]
    assert found.error == found.steps[1].why == words
    assert 'half = "done"' in found.snapshots[found.steps[1].after].text
    assert found.steps[2].why == "the run ended before"


def test_an_invalid_module_is_recorded():
    spoiled = Pipeline([Spoil(), *Pipeline.parse("dce")])
    for each in (False, True):
        found = record(adds(), spoiled, verify=each)
        assert says(found) == [("spoil", "failed", 0), ("dce", "skipped", 1)]
        assert found.error.startswith("after pass spoil: the module is not valid: ")
        assert "func.return" not in found.snapshots[found.steps[0].after].text


def test_an_invalid_module_is_noticed_before_the_first_pass():
    mod = adds()
    Spoil().apply(Context(), mod.op)
    assert record(mod, "dce", verify=True).error.startswith("before the first pass: the module is not valid: ")


def test_passes_inside_a_pass_are_part_of_it():
    found = record(adds(), Pipeline([Nest()]))
    assert says(found) == [("nest", "ran", 0)] and found.snapshots[-1].ops == found.snapshots[0].ops - 1


def test_a_bad_pipeline_is_refused_at_once():
    for text, words in (("cse,nosuch", "there is no pass 'nosuch'"), ("cse{", "'cse{'"), ("cse{a=1}", "pass cse")):
        with pytest.raises(InvalidArgument, match=words.replace("{", "\\{")):
            record(adds(), text)
    with pytest.raises(InvalidArgument, match="opt_level=7"):
        record(adds(), "cse", opt_level=7)
    with pytest.raises(Unsupported, match="target 'abacus'"):
        record(adds(), "cse", target="abacus")


def test_no_pass_at_all():
    found = record(adds(), "")
    assert found.steps == [] and len(found.snapshots) == 1 and found.seconds == 0


def test_stop():
    run = Recording(adds(), "cse,dce")
    run.recorder.stop.set()
    found = run.run()
    assert says(found) == [("cse", "skipped", 0), ("dce", "skipped", 1)] and found.error == "before cse: stopped"
    assert len(found.snapshots) == 1


def test_in_a_thread_and_under_a_context():
    results: list[Record] = []
    with PassContext(opt_level=0, disabled_pass=["cse"]):
        thread = Thread(target=lambda: results.append(record(adds(), "cse")))
        thread.start()
        thread.join()
        assert says(results[0]) == says(record(adds(), "cse")) == [("cse", "ran", 0)]
