"""What a machine has and costs stands in `relay.target` alone: it is read from there, and estimates follow from it."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from relay.compile.pipeline import default_pipeline
from relay.lowering.scheduling.elementwise import ElementwiseSchedule
from relay.lowering.scheduling.registry import schedules_of
from relay.module import IRModule
from relay.passes import Pipeline
from relay.target import attach, resolve
from relay.target.chips import CHIPS
from relay.target.costs import POSITIVE, CpuCosts, GpuCosts
from relay.target.dots import DOTS
from relay.target.llvm_features import BASELINE, NAMES
from relay.target.record import CACHED, FUSING, HALF_FLOATS, REGISTERS, TABLES

ROOT = Path(__file__).parents[2] / "relay"
ELSEWHERE = {
    "runtime/processor.py": "the runtime names features as Linux does, and imports nothing of the compiler",
    "dialects/gpu_targets.py": "upstream's defaults are the syntax of an attribute",
    "tools/pipeline_options.py": "an example in a help text",
}
"""Where names of machines stand, and why."""


@cache
def sources() -> dict[str, str]:
    """The source of everything but relay.target."""
    every = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}
    return {name: path.read_text() for name, path in every.items() if not name.startswith("target/")}


WORDS = {"bf16", "dot", "fma", "mma", "shuffle", "wgmma"}
"""Names of features that are names of types, operations and strategies, too."""


def names_of_machines() -> set[str]:
    """Features and chips, but those of one letter."""
    found = {*HALF_FLOATS, *CACHED, *FUSING, *REGISTERS, *CHIPS}
    found.update(*(chip.features | {chip.ptx.lstrip("+")} for chip in CHIPS.values()))
    found.update(*(dot.features for dot in DOTS), *TABLES.values(), *(names.split() for names in NAMES.values()))
    found.update(*(features for _, features in BASELINE.values()))
    return {name for name in found - WORDS if len(name) > 1}


def named(source: str, names: re.Pattern[str]) -> bool:
    """Whether a text that is no docstring has one of the names as a word."""
    if not names.search(source):
        return False
    tree = ast.parse(source)
    shown = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in shown]
    return any(isinstance(text.value, str) and names.search(f'"{text.value}"') for text in texts)


def test_features_are_named_in_the_target_alone():
    names = re.compile(rf"""["',+ ]({"|".join(map(re.escape, sorted(names_of_machines())))})["', ]""")
    assert {name for name, source in sources().items() if named(source, names)} == ELSEWHERE.keys()


@pytest.mark.parametrize("record", [CpuCosts, GpuCosts])
def test_every_cost_is_read(record: type):
    every = "\n".join([*sources().values(), (ROOT / "target" / "record.py").read_text()])
    read = set(re.findall(r"\b(?:costs|target)\.(?=(\w+))", every))
    assert {field.name for field in fields(record)} - read == set()


def test_what_must_be_positive_is_a_cost():
    assert POSITIVE <= {field.name for record in (CpuCosts, GpuCosts) for field in fields(record)}


def test_the_width_of_a_vector_is_said_once():
    again = re.compile(r"^(\w+, )*LANES\b.* = ", re.MULTILINE)
    rooms = ("lowering/", "passes/", "transforms/")
    assert not [name for name, source in sources().items() if name.startswith(rooms) and again.search(source)]


ELEMENTWISE = """func.func private @kernel(%x: memref<8x64xi32>, %r: memref<8x64xi32>) {
  linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x64xi32>) outs(%r : memref<8x64xi32>) {
  ^bb0(%a: i32, %b: i32):
    %0 = arith.addi %a, %a : i32
    linalg.yield %0 : i32
  }
  func.return
}"""  # noqa: E501
REDUCTION = """func.func private @kernel(%x: memref<8x64xi32>, %r: memref<8xi32>) {
  linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<8x64xi32>) outs(%r : memref<8xi32>) {
  ^bb0(%a: i32, %b: i32):
    %0 = arith.addi %a, %b : i32
    linalg.yield %0 : i32
  }
  func.return
}"""  # noqa: E501
POOL = """func.func private @kernel(%x: memref<1x8x8x32xf32>, %w: memref<2x2xf32>, %r: memref<1x4x4x32xf32>) {
  %low = arith.constant -1.0 : f32
  linalg.fill ins(%low : f32) outs(%r : memref<1x4x4x32xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, y, x, c, i, j) -> (n, 2 * y + i, 2 * x + j, c)>, affine_map<(n, y, x, c, i, j) -> (i, j)>, affine_map<(n, y, x, c, i, j) -> (n, y, x, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : memref<1x8x8x32xf32>, memref<2x2xf32>) outs(%r : memref<1x4x4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.maximumf %a, %c : f32
    linalg.yield %0 : f32
  }
  func.return
}"""  # noqa: E501
FILL = """func.func private @kernel(%r: memref<8x64xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<8x64xi32>)
  func.return
}"""
MACHINES = ["x86_64 -mcpu=cascadelake", "x86_64 -mcpu=haswell", "aarch64", "cortex-m4"]


@pytest.mark.parametrize(
    ("text", "strategy"),
    [(ELEMENTWISE, "elementwise"), (REDUCTION, "reduction"), (POOL, "windows"), (FILL, "fill")],
    ids=["elementwise", "reduction", "windows", "fill"],
)
def test_estimates_follow_from_the_registers_of_the_target(text: str, strategy: str):
    """A register holds 16, 8, 4 and 1 numbers of 32 bits; what computes with vectors is not for the last one."""
    found: list[int] = []
    for machine in MACHINES if strategy in ("elementwise", "fill") else MACHINES[:-1]:
        module = IRModule.parse(text)
        attach(module.op, resolve(machine).with_costs({"stream_bandwidth": 1000}))
        (schedule,) = schedules_of(Pipeline.parse("schedule")(module)["kernel"])
        assert schedule.strategy == strategy
        found.append(schedule.cycles)
    assert [round(cycles / found[0]) for cycles in found] == [1, 2, 4, 16][: len(found)]


def test_estimates_follow_from_measured_costs():
    module = IRModule.parse(ELEMENTWISE)
    found: list[int] = []
    for measured in ({}, {"loop_issue_width": 1}, {"loads_per_cycle": 1}):
        attach(module.op, resolve("aarch64").with_costs(measured))
        found += [
            each.cycles for each in schedules_of(Pipeline.parse("schedule")(IRModule.parse(str(module)))["kernel"])
        ]
    assert found[0] < found[1] and found[0] < found[2]


def widths(target: str, operations: int, columns: int = 200, dtype: str = "i32") -> tuple[int, ...]:
    """Elements that a kernel of so many additions and maxima computes at once."""
    kind, lines = f"tensor<3x{columns}x{dtype}>", list[str]()
    for number in range(operations):
        op, read = ("add", "maximum")[number % 2], "x" if number == 0 else str(number - 1)
        lines.append(f"%{number} = relay.{op} %{read}, %{'yz'[number % 2]} : ({kind}, {kind}) -> {kind}")
    text = f"func.func @main(%x: {kind}, %y: {kind}, %z: {kind}) -> {kind} {{\n" + "\n".join(lines)
    module = IRModule.parse(f"{text}\nfunc.return %{operations - 1} : {kind}\n}}")
    steps = [*default_pipeline(target)]
    scheduled = Pipeline(steps[: [step.name for step in steps].index("schedule") + 1])(module)
    (schedule,) = schedules_of(next(f for name, f in scheduled.functions.items() if name != "main"))
    assert isinstance(schedule, ElementwiseSchedule)
    return schedule.lanes


@pytest.mark.parametrize(
    ("target", "operations", "columns", "dtype", "wanted"),
    [
        ("haswell", 16, 200, "i32", (64, 32, 16, 1)),
        ("haswell", 16, 200, "i64", (32, 16, 1)),
        ("haswell", 4, 200, "i32", (16, 1)),
        ("haswell", 16, 20, "i32", (16, 1)),
        ("cascadelake", 16, 200, "i32", (16, 1)),
    ],
)
def test_long_bodies_take_wider_vectors(
    target: str, operations: int, columns: int, dtype: str, wanted: tuple[int, ...]
):
    assert widths(f"x86_64-linux-gnu -mcpu={target}", operations, columns, dtype) == wanted
