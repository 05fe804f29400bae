"""Products of bf16 by instructions that add up pairs of them: near those in float64, and used for bf16 alone."""

from __future__ import annotations

import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from relay import IRModule, build
from relay.dialects.attributes import Array
from relay.exploration.tuning import DrawSchedules
from relay.interpreters import run
from relay.passes import Pass
from tests.numeric.drawn_schedules import PlainSchedules
from tests.numeric.test_schedule_attributes import with_pass

X86 = "x86_64-unknown-linux-gnu -mcpu=cooperlake"
PAIRS = {X86: r"\bvdpbf16ps\b", "aarch64-unknown-linux-gnu -mcpu=neoverse-v1": r"\bbfdot\b"}
"""The instruction of each target."""
ADDING, ROUNDING = 2.0**-24, 2.0**-8
"""What adding one product rounds away, of all products' magnitudes; and rounding a result to bf16, of the result."""

DENSE = "%y = relay.nn.dense %x, %w {out_dtype = T} : (X, W) -> Y"
STACKS = "%y = relay.nn.batch_matmul %x, %w {transpose_b = false, out_dtype = T} : (X, W) -> Y"
TURNED = "%y = relay.nn.batch_matmul %x, %w {out_dtype = T} : (X, W) -> Y"
MATMUL = "%y = relay.nn.matmul %x, %w {out_dtype = T} : (X, W) -> Y"
LINE = "%y = relay.nn.conv1d %x, %w {out_dtype = T} : (X, W) -> Y"


def conv2d(given: str) -> str:
    return f"%y = relay.nn.conv2d %x, %w {{{given}out_dtype = T}} : (X, W) -> Y"


CASES = {
    "dense": (DENSE, "33x48", "40x48", "33x40"),
    "deep": (DENSE, "5x4096", "24x4096", "5x24"),
    "row": (DENSE, "1x130", "70x130", "1x70"),
    "computed": (DENSE, "33x48", "40x48", "33x40"),
    "matmul": (MATMUL, "17x34", "34x19", "17x19"),
    "computed matmul": (MATMUL, "17x34", "34x19", "17x19"),
    "computed stacks": (STACKS, "3x18x34", "3x34x21", "3x18x21"),
    "computed turned": (TURNED, "3x18x34", "3x21x34", "3x18x21"),
    "pointwise": (conv2d(""), "1x9x9x24", "20x1x1x24", "1x9x9x20"),
    "same": (conv2d("padding = array<i64: 1, 1, 1, 1>, "), "2x9x9x6", "20x3x3x6", "2x9x9x20"),
    "strided": (
        conv2d("strides = array<i64: 2, 2>, dilation = array<i64: 2, 2>, "),
        "1x11x11x4",
        "20x3x3x4",
        "1x4x4x20",
    ),
    "groups": (conv2d("groups = 4 : i64, "), "1x6x6x32", "48x3x3x8", "1x4x4x48"),
    "line": (LINE, "1x20x6", "18x5x6", "1x16x18"),
}
"""An op, and the sizes of data, weights (constants, but where the name says computed) and result."""
ALONE = {
    "odd": (DENSE, "33x47", "40x47", "33x40"),
    "computed few": (DENSE, "2x48", "40x48", "2x40"),
    "three channels": (conv2d("padding = array<i64: 1, 1, 1, 1>, "), "1x8x8x3", "20x3x3x3", "1x8x8x20"),
    "depthwise": (conv2d('groups = 16 : i64, kernel_layout = "HWOI", '), "1x8x8x16", "3x3x16x1", "1x6x6x16"),
}
"""Pairs would not lie side by side, or packing the weights would not pay."""


def model(case: str, type: str, result: str, weights: Array) -> IRModule:
    """`type`: that of data and weights."""
    op, *sizes = (CASES | ALONE)[case]
    kinds = [f"tensor<{size}x{each}>" for size, each in zip(sizes, (type, type, result), strict=True)]
    for letter, text in zip("XWYT", [*kinds, result], strict=True):
        op = re.sub(rf"\b{letter}\b", text, op)
    computed = case.startswith("computed")
    given = f"%x: {kinds[0]}" + (f", %w: {kinds[1]}" if computed else "")
    constant = "" if computed else f"%w = relay.constant dense_resource<w> : {kinds[1]}\n"
    text = f"func.func @main({given}) -> {kinds[2]} {{\n{constant}{op}\nfunc.return %y : {kinds[2]}\n}}"
    return IRModule.parse(text, weights={"w": weights})


@cache
def given(case: str) -> list[Array]:
    """Data and weights, as bf16."""
    rng = np.random.default_rng(0)
    sizes = [[int(n) for n in size.split("x")] for size in (CASES | ALONE)[case][1:3]]
    return [rng.standard_normal(size).astype(ml_dtypes.bfloat16) for size in sizes]


def used(case: str, arrays: list[Array]) -> list[Array]:
    return arrays if case.startswith("computed") else arrays[:1]


@cache
def in_double(case: str) -> tuple[Array, Array]:
    """The sums, and those of the products' magnitudes."""
    doubles = [array.astype(np.float64) for array in given(case)]
    sizes = [np.abs(array) for array in doubles]
    (exact,), (whole,) = (run(model(case, "f64", "f64", each[1]), used(case, each)) for each in (doubles, sizes))
    return exact, whole


def check(case: str, result: str, passes: Pass | None = None) -> None:
    """Compiled, the sums are within the bound."""
    arrays, (exact, whole) = given(case), in_double(case)
    count = arrays[1].size // exact.shape[-1]
    module = model(case, "bf16", result, arrays[1])
    halves = build(module) if passes is None else build(module, pipeline=with_pass(passes))
    got = np.asarray(halves.run(*used(case, arrays))).astype(np.float64)
    bound = count * ADDING * whole + (ROUNDING * np.abs(exact) if result == "bf16" else 0)
    assert got.shape == exact.shape and (np.abs(got - exact) <= bound).all()


FEW = ("dense", "row", "matmul", "computed stacks", "pointwise", "line")
"""What rounds its results, and has other schedules, by default."""


@pytest.mark.parametrize(
    ("case", "result"),
    [
        pytest.param(case, result, marks=() if result == "f32" or case in FEW else pytest.mark.ci)
        for case in (*CASES, *ALONE)
        for result in ("f32", "bf16")
    ],
)
def test_sums_of_products_are_near_those_in_float64(case: str, result: str):
    check(case, result)


SCHEDULES = {"plain": PlainSchedules(), **{str(seed): DrawSchedules(seed) for seed in range(3)}}


@pytest.mark.parametrize(
    ("case", "passes"),
    [
        pytest.param(case, passes, id=f"{case}-{name}", marks=() if name == "0" and case in FEW else pytest.mark.ci)
        for case in CASES
        for name, passes in SCHEDULES.items()
    ],
)
def test_other_schedules(case: str, passes: Pass):
    check(case, "f32", passes)


@pytest.mark.ci
@pytest.mark.parametrize("target", PAIRS)
@pytest.mark.parametrize("case", [*CASES, *ALONE])
def test_pairs_of_bf16_and_of_nothing_else(case: str, target: str):
    arrays = given(case)
    halves = build(model(case, "bf16", "bf16", arrays[1]), target=target).get_source("asm")
    assert (re.search(PAIRS[target], halves) is not None) == (case in CASES)
    floats = build(model(case, "f32", "f32", arrays[1].astype(np.float32)), target=target).get_source("asm")
    assert re.search(PAIRS[target], floats) is None


def test_one_infinity_is_not_a_number_beside_no_weight():
    """What lies behind a row is not multiplied, not even by 0."""
    x, w = given("dense")
    x = x.copy()
    x[3, 5] = np.inf
    (want,) = run(model("dense", "bf16", "f32", w), [x])
    got = np.asarray(build(model("dense", "bf16", "f32", w)).run(x))
    assert np.array_equal(np.isfinite(got), np.isfinite(want)) and np.array_equal(got[3], want[3])
