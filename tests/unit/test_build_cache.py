"""A build that was done before is found again, and only that one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr

import relay
from relay.compile import cache
from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.compile.request import Recipe
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import PassContext, PassInstrument
from relay.runtime import Executable
from relay.target import CpuTarget, host
from tests.unit.test_build import DATA, DENSE, DIGITS, WEIGHTS, X, product

ROOT = Path(__file__).parents[2]


class Made:
    """Counts what is compiled."""

    def __init__(self) -> None:
        self.count = 0


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A cache of one's own, and how often something was compiled since."""
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "cache"))
    found, keep = Made(), cache.keep

    def counting(key: str, executable: Executable) -> None:
        found.count += 1
        keep(key, executable)

    monkeypatch.setattr(cache, "keep", counting)
    return found


def dense() -> IRModule:
    return IRModule.parse(DENSE)


def output(executable: Executable, *inputs: Array) -> Array:
    """The one output."""
    result = executable.run(*inputs)
    assert isinstance(result, np.ndarray)
    return result


def test_the_second_build_is_found(made: Made):
    for _ in range(3):
        assert np.array_equal(output(build(dense()), X), product())
    assert made.count == 1


def test_a_file_is_not_even_read_as_a_model(made: Made, monkeypatch: pytest.MonkeyPatch):
    first = build(DIGITS)
    monkeypatch.setattr(relay.frontend, "from_tflite", None)
    second = build(DIGITS)
    images = DATA["int8_images"][:5, None]
    assert all(np.array_equal(output(first, image), output(second, image)) for image in images) and made.count == 1
    assert (first.inputs, first.outputs, first.graph) == (second.inputs, second.outputs, second.graph)


def test_what_a_build_depends_on(made: Made):
    weights = {"weights": WEIGHTS + np.int8(1)}
    larger = {"weights": WEIGHTS + np.int8(2)}
    plain = CpuTarget(host().triple, host().cpu, frozenset())
    ways: list[Callable[[], Executable]] = [
        lambda: build(dense()),
        lambda: build(dense(), params=weights),
        lambda: build(dense(), params=larger),
        lambda: build(dense(), opt_level=0),
        lambda: build(dense(), target=plain),
        lambda: build(dense(), target=host().with_costs({"fork": 9})),
        lambda: build(dense(), pipeline="legalize,fold-constant"),
    ]
    for number, way in enumerate(ways, 1):
        way()
        way()
        assert made.count == number
    builds = len(ways)
    for context in (PassContext(disabled_pass=["cse"]), PassContext(config={"fold-constant.max_bytes": 5})):
        with context:
            build(dense())
            build(dense())
        builds += 1
        assert made.count == builds, context
    assert np.array_equal(output(build(dense(), params=weights), X), product(weights["weights"]))
    assert np.array_equal(output(build(dense(), params=larger), X), product(larger["weights"]))


def test_weights_that_print_alike(made: Made):
    """Text tells large weights by the start of their hash only; all of it counts."""
    text = 'func.func @main(%x: tensor<1xf32>) -> tensor<1000xf32> {\n  %w = relay.constant {label = "w"} WEIGHT\n'
    text += "  %0 = relay.add %x, %w : (tensor<1xf32>, tensor<1000xf32>) -> tensor<1000xf32>\n"
    text += "  func.return %0 : tensor<1000xf32>\n}\n"
    first, second = (
        IRModule.parse(text.replace("WEIGHT", f"dense<{value}> : tensor<1000xf32>")) for value in ("1.0", "2.0")
    )
    assert output(build(first), np.zeros(1, np.float32))[0] == 1.0
    assert output(build(second), np.zeros(1, np.float32))[0] == 2.0
    assert made.count == 2


def test_the_texts_are_made_when_asked_for(made: Made):
    module = dense()
    first, second = build(module), build(module)
    module.op.attributes["changed"] = UnitAttr()
    assert made.count == 1
    for kind in ("mlir", "ll", "asm"):
        assert first.get_source(kind) == second.get_source(kind) != ""
    with pytest.raises(InvalidArgument, match="the sources are: asm, ll, mlir"):
        second.get_source("ptx")


def test_a_found_executable_can_be_saved(made: Made, tmp_path: Path):
    build(dense()).save(tmp_path / "first")
    build(dense()).save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_code_for_another_machine_is_found(made: Made, tmp_path: Path):
    for name in ("first", "second"):
        build(dense(), target="aarch64-linux-gnu" if "x86_64" in host().triple else "x86_64-linux-gnu").save(
            tmp_path / name
        )
    assert made.count == 1 and (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_external_compilers_always_run_and_the_rest_is_found(made: Made, tmp_path: Path):
    passes = "annotate-target{targets=c},merge-compiler-regions,partition-graph,compile-external"
    for number in range(2):
        executable = build(dense(), pipeline=passes)
        assert "define void @relay_main(" in executable.get_source("ll")
        assert [*executable.externals] and np.array_equal(output(executable, X), product())
        assert made.count == 1
        executable.save(tmp_path / str(number))
        assert "relay_c_main_0(" in executable.get_source("relay_c_main_0.c")
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
    build(dense(), external="c")
    build(dense(), external="c")
    assert made.count == 2
    build(dense(), external={"c": {"flags": "-O1"}})
    assert made.count == 3


def test_passes_that_read_files_are_always_run(made: Made, tmp_path: Path):
    """What is in a file is not told by its name, in whichever way a pass is given it."""
    file = tmp_path / "statistics.json"
    file.write_text("{}")
    with PassContext(config={"quantize.statistics": str(file)}):
        build(dense())
    told = default_pipeline().insert_before("legalize", f'quantize{{statistics="{file}"}}')
    recipe = Recipe(dense(), host(), {}, told, PassContext(), {})
    assert made.count == 0 and cache.key(dense(), recipe) is None
    file.unlink()
    assert cache.key(dense(), recipe) is not None


@pytest.mark.ci
def test_functions_of_custom_operators_are_always_called(made: Made):
    """The text of a function does not tell what it does."""
    build(DIGITS, frontend={"custom_ops": {"Mine": print}})
    assert made.count == 0
    name = build(DIGITS).inputs[0].name
    ways = ({"batch": 1, "numerics": "litert"}, {"outputs": [0]}, {"shapes": {name: (1, 8, 8, 1)}})
    for number, frontend in enumerate(ways, 2):
        found = [build(DIGITS, frontend=frontend) for _ in range(2)]
        assert made.count == number and found[0].inputs == found[1].inputs


def test_passes_that_a_module_asks_for_are_always_run(made: Made):
    asking = dense()
    asking.request_pass("cse", before="fuse-ops")
    for _ in range(2):
        assert np.array_equal(output(build(asking), X), product())
    assert made.count == 0


def test_passes_of_others_and_instruments_are_always_run(made: Made):
    seen: list[str] = []

    def count(mod: IRModule, ctx: PassContext) -> IRModule:
        seen.append("ran")
        return mod

    mine = relay.transform.module_pass(count, opt_level=0, name="count-builds")
    for _ in range(2):
        build(dense(), pipeline=default_pipeline().insert_before("fuse-ops", mine))
    assert seen == ["ran", "ran"] and made.count == 0
    for _ in range(2):
        with PassContext(instruments=[PassInstrument()]):
            build(dense())
    assert made.count == 0


@pytest.mark.ci
def test_what_is_found_has_the_names_of_its_own_file(made: Made, tmp_path: Path):
    """Layers of tables and of exports; models of equal bytes, and the bytes alone, have other names."""
    other = tmp_path / "other.tflite"
    shutil.copyfile(DIGITS, other)

    def names(model: Path | bytes | IRModule, folder: str) -> tuple[str, set[str]]:
        executable = build(model)
        file = next(file for file in executable.export(tmp_path / folder) if file.suffix == ".md")
        told = str(executable.graph["layers"]) + file.read_text()
        return file.read_text(), set(re.findall(r"\(([^()]*):\d+:0\)", told))

    for model, name in ((DIGITS.read_bytes(), "<bytes>"), (DIGITS, DIGITS.name), (other, other.name)):
        first, second = (names(model, folder) for folder in ("first", "second"))
        assert first == second and first[1] == {name}
    assert made.count == 3
    modules = [relay.frontend.from_tflite(path) for path in (DIGITS, other, DIGITS)]
    assert [names(each, "module")[1] for each in modules] == [{DIGITS.name}, {other.name}, {DIGITS.name}]
    assert made.count == 5


def test_damage_and_a_changed_compiler(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    build(dense())
    for entry in (tmp_path / "cache").iterdir():
        entry.write_bytes(b"damaged")
    assert np.array_equal(output(build(dense()), X), product()) and made.count == 2
    monkeypatch.setattr(cache, "compiler", lambda: "another")
    build(dense())
    assert made.count == 3


@pytest.mark.ci
def test_another_process_finds_it(tmp_path: Path):
    program = f"""
import relay
from relay.lowering import codegen
from relay.compile import cache
made = []
keep = cache.keep
cache.keep = lambda *given: (made.append(1), keep(*given))
relay.build({str(DIGITS)!r})
print(len(made))
"""
    environment = {**os.environ, "RELAY_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for seed, expected in (("1", "1"), ("2", "0")):
        environment["PYTHONHASHSEED"] = seed
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == expected, done.stderr


def test_object_code_is_kept_by_its_text(made: Made, tmp_path: Path):
    build(dense())
    build(dense(), params={"weights": WEIGHTS + np.int8(1)})
    kinds = sorted(entry.name.partition("-")[0] for entry in (tmp_path / "cache").iterdir())
    assert kinds == ["build", "build", "object"] and made.count == 2
