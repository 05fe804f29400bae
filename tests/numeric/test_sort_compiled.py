"""Sorting, compiled, against the interpreter; that against numpy. Many equal numbers, NaN, every axis."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i64

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.driver import build
from relay.interpreters import compute, run
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
def test_sorted(dtype: str) -> None:
    net = Net(1)
    for shape, axis in (((3, 20, 2), 1), ((5, 17), -1)):
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
    module = net.module()
    results = build(module).run(*net.inputs)
    assert isinstance(results, tuple)
    for name, got, want in zip(net.results, results, run(module, net.inputs), strict=True):
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=dtype == "float32"), name


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
