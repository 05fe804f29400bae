"""explore: what a choice may be, where it is tried, what is recorded, and going on from a log."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import relay
from relay.errors import InvalidArgument, Malformed, RelayError
from relay.exploration import Choices, Latency
from relay.exploration.choices import read
from relay.module import IRModule
from relay.passes import CollectedErrors, Diagnostic, PassContext, Pipeline
from relay.passes.diagnostics import Severity
from relay.quantize import Quantize
from relay.runtime import Executable
from relay.target import CpuTarget, host
from relay.transform import FoldConstant, PassTimingInstrument, explore, module_pass
from tests.unit.exploration_measures import Tighter, adds, arena, end, process
from tests.unit.pass_modules import DIGITS, ROOT, SMALL, small

CLIPPED = """func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %r = relay.clip %x {a_min = -5 : i8, a_max = 9 : i8} : (tensor<4xi8>) -> tensor<4xi8>
  func.return %r : tensor<4xi8>
}
"""


FLOATS = """func.func @main(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %w = relay.constant dense<0.5> : tensor<4x4xf32>
  %r = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  func.return %r : tensor<1x4xf32>
}
"""


def without_folding(pipeline: Pipeline) -> Pipeline:
    return pipeline.remove("fold-constant")


def not_a_pipeline(pipeline: Pipeline) -> int:
    return 3


CHOICES: Choices = {
    "default": {},
    "text": "legalize,fuse-ops",
    "pipeline": Pipeline([FoldConstant()]),
    "pass": FoldConstant(),
    "edited": without_folding,
    "options": {"opt_level": 1, "fold-constant.max_bytes": 0, "disabled_pass": ["dce"]},
    "level and edit": {"opt_level": 3, "pipeline": without_folding},
    "plain": {"target": CpuTarget(host().triple, "x86-64", frozenset())},
}


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield pool


def test_every_kind_of_choice_is_built_and_measured():
    found = explore(small(), CHOICES, measure=adds, check=True)
    assert list(found) == list(CHOICES) and all(trial.checked and trial.error is None for trial in found.values())
    assert found["default"].value == 1.0 and found["edited"].value == 2.0
    assert found["options"].options == {
        "opt_level": 1,
        "disabled_pass": ["dce"],
        "config": {"fold-constant.max_bytes": "0"},
    }
    assert found.best is found["default"] and "relay.abs" in str(found.module)
    x = np.array([1, 2, 3, 4], np.float32)
    assert np.array_equal(np.asarray(found.build().run(x)), 2 + x)
    assert adds(found.build("edited")) == 2


def test_a_grid():
    axes: Choices = {"opt_level": [0, 2], "pipeline": [None, without_folding], "fold-constant.max_bytes": [0]}
    found = explore(small(), axes, measure=adds)
    assert list(found) == [
        "opt_level=0, pipeline=None, fold-constant.max_bytes=0",
        "opt_level=0, pipeline=without_folding, fold-constant.max_bytes=0",
        "opt_level=2, pipeline=None, fold-constant.max_bytes=0",
        "opt_level=2, pipeline=without_folding, fold-constant.max_bytes=0",
    ]


def test_the_context_is_where_choices_begin():
    timing = PassTimingInstrument()
    with PassContext(opt_level=0, config={"fold-constant.max_bytes": 8}, instruments=[timing]):
        level, folding = explore(small(), {"as it is": {}, "level 2": {"opt_level": 2}}, measure=adds).values()
    assert level.options == {"opt_level": 0, "config": {"fold-constant.max_bytes": "8"}}
    assert folding.options["opt_level"] == 2 and folding.value == 2.0
    assert sum(entry.name == "fuse-ops" for entry in timing.root.inner) == 2
    with relay.BuildConfig(remove=["fold-constant"]):
        (edited,) = read({"edited": {}}, "llvm")
    assert isinstance(edited.pipeline, str) and "fold-constant" not in edited.pipeline


def test_the_latency_is_the_median_of_rounds_that_interleave():
    order: list[int] = []

    def watch(executable: Executable) -> float:
        order.append(id(executable))
        return len(order)

    found = explore(small(), {"a": {}, "b": {"opt_level": 0}}, measure=watch, rounds=3)
    assert order[:2] == order[2:4] == order[4:] and order[0] != order[1]
    assert found["a"].values == (1, 3, 5) and found["a"].value == 3
    found = explore(small(), {"a": {}})
    assert len(found.best.values) == 9 and all(0 < value < 0.1 for value in found.best.columns[0])


def test_inputs_of_the_latency():
    executable = relay.build(DIGITS)
    image = np.zeros((1, 8, 8, 1), np.int8)
    for inputs in (None, [image], {executable.inputs[0].name: image}):
        assert 0 < Latency(inputs)(executable) < 0.1
    with pytest.raises(InvalidArgument, match="inputs: are 2; the model has 1"):
        Latency([np.zeros(1), np.zeros(1)])(executable)


def test_several_numbers_have_a_front(tmp_path: Path):
    """Error, latency, memory: c is worse than a in all but one number, and equal there."""
    given = {"a": (1.0, 4.0, 2.0), "b": (3.0, 1.0, 2.0), "c": (2.0, 4.0, 3.0), "d": (1.0, 4.0, 2.0)}
    names = iter([*given, *given])
    log, choices = tmp_path / "log.json", cast(Choices, {name: {} for name in given})
    found = explore(small(), choices, measure=lambda executable: given[next(names)], rounds=2, log=log)
    assert [trial.name for trial in found.front] == ["a", "b", "d"] and found.best.name == "a"
    assert found["c"].value == (2.0, 4.0, 3.0) and [trial.name for trial in found.ties] == ["d"]
    assert [line[0] for line in str(found).splitlines()] == ["*", "*", " ", "*"]
    assert "value 2</th>" in found.to_html() and "+200.0%" in found.to_html()
    again = explore(small(), choices, measure=lambda executable: given[next(names)], rounds=2, log=log)
    assert again.trials == found.trials and next(names, None) is None
    with pytest.raises(InvalidArgument, match="measure: returned tuples of other lengths"):
        lengths = iter([(1.0,), (1.0, 2.0)])
        explore(small(), {"a": {}, "b": {}}, measure=lambda executable: next(lengths))


def test_what_the_measurements_do_not_tell_apart_is_a_tie():
    given = {"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 2.0, 3.0, 3.0], "c": [9.0, 8.0, 9.0, 9.0], "d": [1.0, 2.0, 9.0, 9.0]}
    turns = iter([values[turn] for turn in range(4) for values in given.values()])
    found = explore(small(), {name: {} for name in given}, measure=lambda executable: next(turns), rounds=4)
    assert found["a"].spread == ((1.75, 3.25),) and found.best.name == "a"
    assert [trial.name for trial in found.ties] == ["b", "d"]
    assert [line[0] for line in str(found).splitlines()] == ["*", "~", " ", "~"]
    assert "1.75 .. 3.25" in str(found)


def test_objects_among_options_are_kept(tmp_path: Path, processes: Executor):
    """Samples have no text: a pipeline that holds them goes as it is, and a log tells them apart."""
    samples = [np.ones((1, 4), np.float32)] * 2
    mod = IRModule.parse(FLOATS)

    def quantized(data: list[np.ndarray[Any, Any]]) -> Choices:
        return {"a": lambda p: p.insert_before("legalize", Quantize(calibration=data)), "b": {}}

    found = explore(mod, quantized(samples), measure=adds, log=tmp_path / "log.json")
    assert found["a"].error is None and isinstance(found.choices["a"].pipeline, Pipeline)
    assert explore(mod, quantized(samples), measure=adds, executor=processes)["a"].error is None
    with pytest.raises(InvalidArgument, match="has another choice named 'a'"):
        explore(mod, quantized([samples[0] * 2]), measure=adds, log=tmp_path / "log.json")


def test_what_fails_is_recorded_and_never_the_best():
    def fails(executable: Executable) -> float:
        if adds(executable) == 1:
            raise ValueError("no such meter")
        return 1.0

    found = explore(small(), {"default": {}, "edited": without_folding}, measure=fails)
    assert found["default"].error == "ValueError: no such meter" and found["default"].value is None
    assert found.best is found["edited"]
    lines = str(found).splitlines()
    assert lines[0].split() == [
        "failed",
        f"{found['default'].seconds:.2f}",
        "s",
        "default:",
        *"ValueError: no such meter".split(),
    ]
    assert lines[1].startswith("*") and lines[1].endswith(" edited")
    with pytest.raises(RelayError, match="explore: none of 1 choices could be built and measured; a: ValueError: no"):
        explore(small(), {"a": {}}, measure=fails)
    with pytest.raises(RelayError, match="a: measure: returned nan; return a number"):
        explore(small(), {"a": {}}, measure=lambda executable: float("nan"))


def test_wrong_results_do_not_win():
    mod = IRModule.parse(CLIPPED)
    wrong = Pipeline([Tighter()])
    assert explore(mod, {"right": {}, "wrong": wrong}, measure=lambda e: -id(e))["wrong"].error is None
    found = explore(
        mod, {"right": {}, "wrong": wrong}, measure=adds, check=True, inputs=[np.array([-9, 0, 3, 20], np.int8)]
    )
    assert found.best.name == "right" and not found["wrong"].checked
    said = "its results are not those of the first choice: result 0 differs in 3 of 4 elements, first [1]: -5 instead"
    assert (found["wrong"].error or "").startswith(said)
    with pytest.raises(RelayError, match=r"choices\['first'\]: is what the others are compared with, and failed"):
        explore(mod, {"first": {"disabled_pass": ["plan-memory"]}}, check=True)


WRONG: list[tuple[Mapping[str, object], str]] = [
    ({}, "choices: is empty; name at least one"),
    ({"a": [1], "b": "cse"}, "choices: 'a' is a list of values of a grid, 'b' is not"),
    ({"a": []}, r"choices\['a'\]: is a list without values"),
    ({"a": 3}, r"choices\['a'\]: 3 is no choice; give a Pipeline"),
    ({"a": "legalise"}, r"choices\['a'\]: pipeline: there is no pass 'legalise'; did you mean legalize"),
    ({"a": {"optlevel": 1}}, r"choices\['a'\]: has the unknown key 'optlevel'; known are pipeline"),
    ({"a": {"opt_level": 9}}, r"choices\['a'\]: opt_level=9: is not one of 0"),
    ({"a": {"fold-constant.bytes": 9}}, r"choices\['a'\]: config\['fold-constant.bytes'\]: is not a known key"),
    ({"a": {"config": 1}}, r"choices\['a'\]: its config is 1"),
    ({"a": {"disabled_pass": "cse"}}, r"choices\['a'\]: its disabled_pass is 'cse'"),
    ({"a": {"target": 7}}, r"choices\['a'\]: its target is 7"),
    ({"opt_level": [1, 2], "target": ["vulkan"]}, "target 'vulkan': is not known"),
    ({"a": not_a_pipeline}, r"choices\['a'\]: returned 3; return the pipeline that is to run"),
]


@pytest.mark.parametrize(("choices", "said"), WRONG)
def test_choices_that_are_not_understood(choices: Mapping[str, object], said: str):
    with pytest.raises(RelayError, match=said):
        explore(small(), cast(Choices, choices))


def test_rounds_are_a_number():
    with pytest.raises(InvalidArgument, match="rounds=0: is no number of rounds"):
        explore(small(), {"a": {}}, rounds=0)


# Elsewhere


def test_choices_are_tried_in_processes(processes: Executor):
    local = explore(small(), CHOICES, measure=adds)
    found = explore(small(), CHOICES, measure=adds, executor=processes, check=True)
    assert [trial.values for trial in found.values()] == [trial.values for trial in local.values()]
    assert all(trial.checked for trial in found.values())
    where = explore(small(), {"a": {}}, measure=process, executor=processes)
    assert os.getpid() != where.best.value


@pytest.mark.ci
def test_the_latency_of_a_file_is_measured_in_processes(processes: Executor):
    assert explore(DIGITS, {"a": {}}, executor=processes).best.values[8:]


def test_passes_of_no_name_are_sent_as_they_are(processes: Executor):
    mod = IRModule.parse(CLIPPED)
    inputs = [np.array([-9, 0, 3, 20], np.int8)]
    choices: Choices = {"right": {}, "wrong": Pipeline([Tighter()])}
    found = explore(mod, choices, measure=adds, executor=processes, check=True, inputs=inputs)
    assert "not those of the first choice" in (found["wrong"].error or "")


def test_what_cannot_be_sent_says_so(processes: Executor):
    @module_pass(opt_level=0, name="nothing")
    def nothing(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod

    found = explore(small(), {"a": {}, "made": Pipeline([nothing])}, measure=adds, executor=processes)
    assert found.best.name == "a"
    assert (found["made"].error or "").startswith("executor: the choice cannot be pickled: Can't ")


@pytest.mark.ci
def test_a_process_that_ends_is_an_error_of_its_choice():
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        pytest.raises(RelayError, match="a: the executor failed"),
    ):
        explore(small(), {"a": {}}, measure=end, executor=pool)


def test_threads_do_too():
    with ThreadPoolExecutor(2) as pool, PassContext(opt_level=1):
        found = explore(small(), CHOICES, measure=adds, executor=pool, check=True)
    assert all(trial.checked for trial in found.values()) and found["default"].options["opt_level"] == 1


def test_errors_of_every_kind_can_be_sent():
    errors = CollectedErrors("pass p", (Diagnostic(Severity.ERROR, "here", "bad", "  x\n  ^"),))
    for error in (errors, InvalidArgument("a", "b", "c")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_choices_are_tried_on_a_dask_cluster():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        choices: Choices = {"default": {}, "level 0": {"opt_level": 0}, "edited": lambda p: p.remove("simplify")}
        found = explore(small(), choices, executor=client.get_executor(), check=True)
        where = explore(small(), {"a": {}}, measure=process, executor=client.get_executor())
    assert all(trial.checked and len(trial.values) == 9 for trial in found.values())
    assert where.best.value != os.getpid()


# Going on


def test_a_log_is_gone_on_from(tmp_path: Path):
    path, built = tmp_path / "x.json", list[Executable]()

    def count(executable: Executable) -> float:
        built.append(executable)
        if adds(executable) == 2 and len(built) < 3:
            raise KeyboardInterrupt
        return len(built)

    choices: Choices = {"default": {}, "edited": without_folding}
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        explore(small(), choices, measure=count, executor=pool, log=path)
    assert list(json.loads(path.read_text())["trials"]) == ["default"]
    found = explore(small(), {"new": {"opt_level": 1}, **choices}, measure=count, log=path)
    assert [trial.value for trial in found.values()] == [3, 1, 4] and list(found) == ["new", "default", "edited"]
    assert explore(small(), choices, measure=count, log=path)["edited"] == found["edited"] and len(built) == 4
    assert list(json.loads(path.read_text())["trials"]) == ["default", "new", "edited"], "other trials stay"
    explore(small(), choices, measure=count, log=path, check=True)
    assert len(built) == 6, "what was not checked is run again"
    explore(small(), choices, measure=count, log=path, check=True)
    assert len(built) == 6


def test_what_failed_is_run_again(tmp_path: Path):
    path, broken = tmp_path / "x.json", [True]

    def meter(executable: Executable) -> float:
        if broken[0] and adds(executable) == 2:
            raise OSError("unplugged")
        return 5

    choices: Choices = {"a": {}, "b": without_folding}
    assert explore(small(), choices, measure=meter, log=path)["b"].error == "OSError: unplugged"
    broken[0] = False
    assert explore(small(), choices, measure=meter, log=path)["b"].value == 5


def test_a_log_of_something_else_is_refused(tmp_path: Path):
    path = tmp_path / "x.json"
    explore(small(), {"a": {}}, measure=adds, log=path)
    hint = "name another file, or remove this one to start anew"
    with pytest.raises(InvalidArgument, match=rf"x.json: is of another module: \w+, not \w+; {hint}"):
        explore(IRModule.parse(SMALL.replace("1.0", "2.0")), {"a": {}}, measure=adds, log=path)
    with pytest.raises(InvalidArgument, match="x.json: is of another measure: adds, not arena"):
        explore(small(), {"a": {}}, measure=arena, log=path)
    with pytest.raises(InvalidArgument, match="x.json: is of another inputs: random, not "):
        explore(small(), {"a": {}}, measure=adds, log=path, inputs=[np.zeros(4, np.float32)])
    with pytest.raises(InvalidArgument, match=r"x.json: has another choice named 'a': \{'opt_level': 2\}"):
        explore(small(), {"a": {"opt_level": 1}}, measure=adds, log=path)
    for content in ("", "[]", "{}", '{"format": 2}', '{"format": 1, "subject": {}, "trials": {"a": {}}}'):
        path.write_text(content)
        with pytest.raises(Malformed, match="x.json: is no log of an exploration"):
            explore(small(), {"a": {}}, measure=adds, log=path)
    with pytest.raises(InvalidArgument, match="cannot be written: No such file"):
        explore(small(), {"a": {}}, measure=adds, log=tmp_path / "nowhere" / "x.json")
    with pytest.raises(InvalidArgument, match="cannot be read: "):
        explore(small(), {"a": {}}, measure=adds, log=tmp_path)


@pytest.mark.slow
def test_the_examples_of_the_documentation_run(tmp_path: Path):
    page = (ROOT / "docs" / "exploring_choices.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", "\n".join(blocks)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert len(blocks) == page.count("```python") >= 3 and done.returncode == 0, done.stderr
    times = r"(?:[ *~] +[\d.e-]+ +[+-][\d.]+% +[\d.e-]+ \.\. [\d.e-]+ +[\d.]+ s  [\w ]+\n){4}"
    counts = r"(?:[ *] +\d+ +[+-][\d.]+% +\d+ +[+-][\d.]+% +[\d.]+ s  [\w \[\]']+\n){2}"
    assert re.fullmatch(times + counts, done.stdout), done.stdout
