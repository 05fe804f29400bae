"""Transposes by squares in registers, held against the interpreter, and what is computed of them."""

from __future__ import annotations

import platform
import re

import pytest

from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.target import host
from tests.marks import ci
from tests.numeric.compiled_modules import Net

CASES = {
    "int8": [((64, 64), (1, 0)), ((37, 19), (1, 0)), ((2, 5, 7, 70), (0, 3, 1, 2)), ((3, 16, 20), (2, 0, 1))],
    "uint8": [((1, 9, 3), (0, 2, 1)), ((2, 70, 5, 7), (0, 2, 3, 1))],
    "int16": [((33, 41), (1, 0)), ((8, 8), (1, 0))],
    "float32": [((40, 33), (1, 0)), ((2, 3, 5, 20), (3, 1, 0, 2)), ((4, 6), (1, 0)), ((2, 3, 4), (2, 1, 0))],
    "float64": [((17, 9), (1, 0))],
}


def transposes() -> Net:
    """Whole squares or not, sides that are shorter than a square; elements of all widths."""
    net = Net(53)
    for dtype, cases in CASES.items():
        for shape, order in cases:
            codes = net.numbers("float32" if dtype == "float64" else dtype, *shape).astype(dtype)
            turned = net.add(relay.TransposeOp, [net.argument(codes)], {"axes": ints(order)})
            net.result(f"{dtype} {shape} {order}", turned)
    return net


@pytest.mark.parametrize("features", ["", *ci(("avx2,+fma", "sse2"))])
def test_transposes(features: str):
    if features and platform.machine() != "x86_64":
        pytest.skip("a processor of another kind")
    if "avx2" in features and "avx2" not in host().features:
        pytest.skip("this CPU has no AVX2")
    transposes().check(f"x86_64-unknown-linux-gnu -mattr=+{features}" if features else "llvm")


def test_what_is_computed_of_a_transpose_is_rows():
    net = Net(54)
    x, y = (net.argument(net.numbers("float32", *shape)) for shape in ((32, 48), (48, 32)))
    turned = net.add(relay.TransposeOp, [x], {"axes": ints((1, 0))})
    net.result("sum", net.add(relay.AddOp, [net.add(relay.MultiplyOp, [turned, turned], {}), y], {}))
    module = net.module()
    default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(module)
    text = str(module)
    assert len(re.findall(r"vector\.shuffle .*vector<16xf32>, vector<16xf32>", text)) == 16 * 4
    assert len(re.findall(r"arith\.addf .*vector<16xf32>", text)) == 1
    assert not re.search(r"memref\.load .*xf32>", text)
