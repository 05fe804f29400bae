"""`signed-codes`: the filecheck test's functions, and sums, pads and their like, give the numbers that they gave."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.transforms.signed_codes import SignedCodes

FILE = Path(__file__).parents[1] / "filecheck/transforms/signed-codes.mlir"
SUM = """func.func @main(%x: tensor<2x64xui8>, %y: tensor<2x64xui8>) -> (tensor<2x66xui8>, tensor<2x64xui8>) {
  %s = qnn.add %x, %y {lhs_scale = 0.04 : f32, lhs_zero_point = 3 : i32, rhs_scale = 0.1 : f32,
    rhs_zero_point = 140 : i32, output_scale = 0.1 : f32, output_zero_point = 99 : i32, left_shift = 20 : i32,
    lhs_multiplier = 1717986918 : i32,
    lhs_shift = -2 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = 0 : i32, multiplier = 1073741824 : i32,
    shift = -18 : i32, min = 20 : i32} : (tensor<2x64xui8>, tensor<2x64xui8>) -> tensor<2x64xui8>
  %p = relay.nn.pad %s {pad_width = array<i64: 0, 0, 1, 1>, pad_value = 200 : ui8}
    : (tensor<2x64xui8>) -> tensor<2x66xui8>
  %m = relay.maximum %s, %x : (tensor<2x64xui8>, tensor<2x64xui8>) -> tensor<2x64xui8>
  func.return %p, %m : tensor<2x66xui8>, tensor<2x64xui8>
}"""


def check(mod: relay.IRModule, function: str, inputs: list[Array]) -> str:
    done = SignedCodes()(mod)
    done.verify()
    for before, after in zip(run(mod, inputs, function), run(done, inputs, function), strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    return str(done)


@pytest.mark.parametrize("function", ["product", "average"])
def test_the_functions_of_the_filecheck_test(function: str):
    rng, mod = np.random.default_rng(0), relay.IRModule.parse(FILE.read_text())
    shape = (1, 4, 4, 2) if function == "product" else (1, 2, 2, 3)
    check(mod, function, [rng.integers(0, 256, shape).astype(np.uint8)])


def test_sums_pads_and_maxima():
    rng, mod = np.random.default_rng(1), relay.IRModule.parse(SUM)
    text = check(mod, "main", [rng.integers(0, 256, (2, 64)).astype(np.uint8) for _ in range(2)])
    assert "pad_value = 72 : i8" in text and "relay.maximum" in text
    assert "(tensor<2x64xi8>, tensor<2x64xi8>) -> tensor<2x64xi8>" in text
