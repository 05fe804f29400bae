"""Reductions over chosen and over all other axes, compiled, against the interpreter; that against numpy."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute

from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, ints
from relay.interpreters import compute
from relay.target import host
from tests.numeric.compiled_modules import Net

SHAPE = (3, 4, 37)
AXES: list[list[int]] = [[0], [-1], [0, 2], []]


def properties(axes: list[int], **flags: bool) -> dict[str, Attribute]:
    return {"axis": ints(axes), **{name: BoolAttr.from_bool(flag) for name, flag in flags.items()}}


@pytest.mark.parametrize(
    "dtype", ["float32", *(pytest.param(d, marks=pytest.mark.slow) for d in ("int8", "uint8", "int32"))]
)
def test_products_and_means(dtype: str) -> None:
    net = Net(1)
    x = net.argument(net.numbers(dtype, *SHAPE) + np.array(dtype == "float32", dtype))
    for op in (relay.ProdOp, relay.MeanOp):
        for axes in AXES:
            for keepdims, exclude in ((False, False), (True, True)):
                wanted = properties(axes, keepdims=keepdims, exclude=exclude)
                net.result(f"{op.name} {axes} {exclude}", net.add(op, [x], wanted))
    net.check()


def sums_of_codes() -> Net:
    """Along rows of whole vectors or not; the first of the rows are of extremes."""
    net = Net(4)
    for dtype in ("int8", "uint8"):
        for size in (32, 64, 71, 256, 300, 768, 1000):
            codes = net.numbers(dtype, 3, size)
            codes[:2] = [[np.iinfo(dtype).min], [np.iinfo(dtype).max]]
            wide = net.add(relay.CastOp, [net.argument(codes)], {"dtype": element_type("int32")})
            net.result(f"{dtype} {size}", net.add(relay.SumOp, [wide], properties([1])))
    return net


@pytest.mark.parametrize(
    "features", ["", pytest.param("avx2,+fma", marks=pytest.mark.ci), pytest.param("sse2", marks=pytest.mark.slow)]
)
def test_sums_of_codes(features: str) -> None:
    if features and platform.machine() != "x86_64":
        pytest.skip("a processor of another kind")
    if "avx2" in features and "avx2" not in host().features:
        pytest.skip("this CPU has no AVX2")
    sums_of_codes().check(f"x86_64-unknown-linux-gnu -mattr=+{features}" if features else "llvm")


@pytest.mark.parametrize(
    ("target", "dots"),
    [("x86_64-linux-gnu -mcpu=cascadelake", "vpdpbusd"), ("aarch64-linux-gnu -mattr=+dotprod", "sdot")],
)
def test_sums_are_dot_products(target: str, dots: str) -> None:
    module = sums_of_codes().module()
    default_pipeline(target).apply(module)
    assert dots in str(module)


def test_variances_and_booleans() -> None:
    net = Net(2)
    x, b = net.argument(net.numbers("float32", *SHAPE)), net.argument(net.rng.random(SHAPE) < 0.9)
    for axes in AXES:
        mean = net.add(relay.MeanOp, [x], properties(axes, keepdims=True))
        for unbiased in (False, True):
            net.result(f"{axes} {unbiased}", net.add(relay.VarianceOp, [x, mean], properties(axes, unbiased=unbiased)))
        for op in (relay.AllOp, relay.AnyOp):
            net.result(f"{op.name} {axes}", net.add(op, [b], properties(axes)))
    net.check()


def test_meaning() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 4))
    mean: Array = x.mean((0, 2), keepdims=True)
    others = properties([1], exclude=True)
    assert np.allclose(compute(relay.MeanOp, [x], others)[0], x.mean((0, 2)))
    for unbiased in (False, True):
        (result,) = compute(relay.VarianceOp, [x, mean], others | {"unbiased": BoolAttr.from_bool(unbiased)})
        assert np.allclose(result, x.var((0, 2), ddof=int(unbiased)))
    assert np.allclose(compute(relay.ProdOp, [x], properties([0, 1]))[0], x.prod((0, 1)))
    b = np.array([[True, False], [True, True]])
    assert compute(relay.AllOp, [b], properties([1]))[0].tolist() == [False, True]
    assert compute(relay.AnyOp, [~b], properties([1]))[0].tolist() == [True, False]
    codes = np.array([-128, -128, -127, -126], np.int8)
    assert compute(relay.MeanOp, [codes], properties([]))[0] == -127
