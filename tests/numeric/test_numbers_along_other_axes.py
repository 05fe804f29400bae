"""A bias, or multipliers, along another axis than the channels: external compilers and passes leave them alone."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import relay
from relay.interpreters import run
from relay.transform import QdqToInteger

VECTORS = (
    "multiplier = dense<[1073741824, 1473741824]> : tensor<2xi32>, shift = dense<[-4, -3]> : tensor<2xi32>",
    "multiplier = 1073741824 : i32, shift = -4 : i32",
)


def layer(bias_axis: int, axis: int | None) -> relay.IRModule:
    """Codes: as many rows as channels, so that another axis fits."""
    numbers = VECTORS[1] if axis is None else f"{VECTORS[0]}, axis = {axis} : i64"
    return relay.IRModule.parse(f"""
func.func @main(%x: tensor<2x3xi8>) -> tensor<2x2xi8> {{
  %k = relay.constant dense<[[1, 2, 3], [-4, 5, 9]]> : tensor<2x3xi8>
  %b = relay.constant dense<[100, 3000]> : tensor<2xi32>
  %0 = qnn.dense %x, %k {{input_scale = 0.5 : f32, input_zero_point = 3 : i32, kernel_scale = 0.25 : f32,
    kernel_zero_point = 0 : i32}} : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x2xi32>
  %1 = relay.nn.bias_add %0, %b {{axis = {bias_axis} : i64}} : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  %2 = qnn.requantize %1 {{input_scale = 0.125 : f32, output_scale = 4.0 : f32, output_zero_point = 1 : i32,
    {numbers}, out_dtype = i8}} : (tensor<2x2xi32>) -> tensor<2x2xi8>
  func.return %2 : tensor<2x2xi8>
}}""")


@pytest.mark.parametrize("external", [None, "c", "systolic", "xnnpack"])
@pytest.mark.parametrize(("bias_axis", "axis"), [(0, None), (1, 0), (-1, -1)])
def test_external_compilers(external: str | None, bias_axis: int, axis: int | None):
    if external == "c" and shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    if external == "xnnpack":
        pytest.importorskip("ai_edge_litert", reason="LiteRT, which runs XNNPACK, is not installed")
    mod = layer(bias_axis, axis)
    x = np.array([[1, -7, 100], [-128, 127, 5]], np.int8)
    options: dict[str, Any] = {} if external is None else {"external": [external], "exact": True}
    np.testing.assert_array_equal(relay.build(mod, **options).run(x), run(mod, [x])[0])


@pytest.mark.parametrize("axis", [0, 1])
def test_qdq_to_integer(axis: int):
    mod = relay.IRModule.parse(f"""
func.func @main(%x: tensor<2x3xi8>) -> tensor<2x2xi8> {{
  %k = relay.constant dense<[[1, 2, 3], [-4, 5, 9]]> : tensor<2x3xi8>
  %b = relay.constant dense<[100, 3000]> : tensor<2xi32>
  %0 = qnn.dequantize %x {{scale = 0.5 : f32, zero_point = 3 : i32}} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %1 = qnn.dequantize %k {{scale = 0.25 : f32, zero_point = 0 : i32}} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %2 = qnn.dequantize %b {{scale = 0.125 : f32, zero_point = 0 : i32}} : (tensor<2xi32>) -> tensor<2xf32>
  %3 = relay.nn.dense %0, %1 {{out_dtype = f32}} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  %4 = relay.nn.bias_add %3, %2 {{axis = {axis} : i64}} : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %5 = qnn.quantize %4 {{scale = 4.0 : f32, zero_point = 1 : i32, out_dtype = i8}} : (tensor<2x2xf32>) -> tensor<2x2xi8>
  func.return %5 : tensor<2x2xi8>
}}""")
    folded = QdqToInteger()(mod)
    assert ("qnn.dense" in str(folded)) == (axis == 1)
    x = np.array([[1, -7, 100], [-128, 127, 5]], np.int8)
    np.testing.assert_array_equal(run(folded, [x])[0], run(mod, [x])[0])
