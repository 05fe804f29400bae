"""Sorting, compiled, against the interpreter; that against numpy. Many equal numbers, NaN, every axis."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i64

from relay.compile.entry import build
from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.interpreters import compute, run
from relay.lowering.linalg.sort import RANKED
from tests.numeric.compiled_modules import Net


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    if dtype != "float32":
        return rng.integers(0, 9, shape).astype(dtype) - np.array(dtype != "uint8", dtype)
    found = rng.integers(-4, 5, shape).astype(np.float32) / 2
    found[rng.random(shape) < 0.1] = np.nan
    return found


@pytest.mark.parametrize(
    "dtype", ["float32", *(pytest.param(d, marks=pytest.mark.slow) for d in ("int8", "uint8", "int64"))]
)
@pytest.mark.parametrize(("shape", "axis"), [((3, 20, 2), 1), pytest.param((5, 17), -1, marks=pytest.mark.ci)])
def test_sorted(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    check_sorted(dtype, shape, axis)


FURTHER = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("uint8", "int64")]


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.ci), *FURTHER])
def test_the_longest_axes_are_merged(dtype: str) -> None:
    """One more than two runs of the longest that ranks sort."""
    net = Net(1)
    net.result("sort", net.add(relay.SortOp, [net.argument(numbers(net.rng, dtype, RANKED * 2 + 1))], {}))
    compare(net)


@pytest.mark.parametrize("dtype", ["float32", *FURTHER])
def test_long_axes_are_merged(dtype: str) -> None:
    """An axis in the middle, the last run a short one."""
    net = Net(1)
    y = net.argument(numbers(net.rng, dtype, 2, 75, 3))
    new = relay.TopkOp.make([y], {"axis": IntegerAttr(1, i64), "k": IntegerAttr(70, i64), "dtype": i64})
    net.block.add_op(new)
    for place, result in enumerate(new.results):
        net.result(f"topk {place}", result)
    compare(net)


@pytest.mark.slow
def test_a_very_long_axis() -> None:
    net = Net(2)
    x = net.argument(numbers(net.rng, "float32", 100_001))
    net.result("argsort", net.add(relay.ArgsortOp, [x], {}))
    found = build(net.module()).run(*net.inputs)
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, np.argsort(net.inputs[0], kind="stable"))


def check_sorted(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    net = Net(1)
    x = net.argument(numbers(net.rng, dtype, *shape))
    for ascend in (False, True):
        properties = {"axis": IntegerAttr(axis, i64), "is_ascend": BoolAttr.from_bool(ascend)}
        name = f"{shape} {axis} {ascend}"
        net.result(f"sort {name}", net.add(relay.SortOp, [x], properties))
        net.result(f"argsort {name}", net.add(relay.ArgsortOp, [x], {**properties, "dtype": i64}))
        new = relay.TopkOp.make([x], {**properties, "k": IntegerAttr(-(-shape[axis] // 3), i64)})
        net.block.add_op(new)
        for place, result in enumerate(new.results):
            net.result(f"topk {name} {place}", result)
    compare(net)


def compare(net: Net) -> None:
    module = net.module()
    found = build(module).run(*net.inputs)
    results = found if isinstance(found, tuple) else (np.asarray(found),)
    for name, got, want in zip(net.results, results, run(module, net.inputs), strict=True):
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=want.dtype.kind == "f"), name


def test_meaning() -> None:
    x = np.array([3, 1, 3, 2, 1], np.int8)
    assert compute(relay.ArgsortOp, [x])[0].tolist() == [1, 4, 3, 0, 2]
    down = {"is_ascend": BoolAttr.from_bool(False)}
    assert compute(relay.ArgsortOp, [x], down)[0].tolist() == [0, 2, 3, 1, 4]
    assert compute(relay.SortOp, [x])[0].tolist() == [1, 1, 2, 3, 3]
    values, indices = compute(relay.TopkOp, [x], {"k": IntegerAttr(2, i64)})
    assert values.tolist() == [3, 3] and indices.tolist() == [0, 2]
    (indices,) = compute(relay.TopkOp, [x], {"k": IntegerAttr(2, i64), "ret_type": StringAttr("indices")})
    assert indices.tolist() == [0, 2]
    floats = np.array([np.nan, 1, -np.inf, np.inf], np.float32)
    assert compute(relay.ArgsortOp, [floats])[0].tolist() == [2, 1, 3, 0]
    assert compute(relay.ArgsortOp, [floats], down)[0].tolist() == [0, 3, 1, 2]
