"""Tensors of no elements between kernels: models that hold some are built, and run."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.interpreters import run
from tests.numeric.litert_models import Case, Reference, T

OPS = {
    "relay.sum %0 {axis = array<i64: 1>}": "tensor<0xf32>",
    "relay.nn.softmax %0 {beta = 1.0 : f32}": "tensor<0x4xf32>",
    "relay.negative %0": "tensor<0x4xf32>",
}


@pytest.mark.parametrize(("op", "result"), OPS.items())
def test_a_kernel_of_nothing(op: str, result: str):
    """An argument that no operation writes is reshaped, and read."""
    mod = relay.IRModule.parse(f"""
func.func @main(%x: tensor<2x0x4xf32>) -> {result} {{
  %0 = relay.reshape %x {{newshape = array<i64: 0, 4>}} : (tensor<2x0x4xf32>) -> tensor<0x4xf32>
  %r = {op} : (tensor<0x4xf32>) -> {result}
  func.return %r : {result}
}}""")
    x = np.zeros((2, 0, 4), np.float32)
    found = relay.build(mod).run(x)
    assert isinstance(found, np.ndarray) and found.shape == run(mod, [x])[0].shape


INTERPRETED = {
    "relay.nn.softmax %x {beta = 1.0 : f32}": "8x0xf32",
    "relay.nn.log_softmax %x": "8x0xf32",
    "relay.nn.fast_softmax %x": "8x0xf32",
    "qnn.softmax %x {beta = 1.0 : f32, input_scale = 0.1 : f32, multiplier = 1 : i32, shift = 9 : i32}": "8x0xi8",
    "qnn.softmax %x {beta = 1.0 : f32, input_scale = 0.1 : f32, multiplier = 1 : i32, shift = 4 : i32}": "8x0xi16",
    "qnn.table_softmax %x {input_scale = 0.1 : f32, output_scale = 0.1 : f32, output_zero_point = 0 : i32}": "8x0xi8",
}


@pytest.mark.parametrize(("op", "kind"), INTERPRETED.items())
def test_softmax_along_an_axis_of_nothing(op: str, kind: str):
    mod = relay.IRModule.parse(f"""
func.func @main(%x: tensor<{kind}>) -> tensor<{kind}> {{
  %r = {op} : (tensor<{kind}>) -> tensor<{kind}>
  func.return %r : tensor<{kind}>
}}""")
    x = np.zeros((8, 0), kind.split("x")[-1].replace("f", "float").replace("i", "int"))
    assert run(mod, [x])[0].shape == x.shape


def test_diagonals_of_no_matrices():
    mod = relay.IRModule.parse("""
func.func @main(%x: tensor<0x4x4xf32>, %d: tensor<0x4xf32>) -> tensor<0x4x4xf32> {
  %r = relay.matrix_set_diag %x, %d : (tensor<0x4x4xf32>, tensor<0x4xf32>) -> tensor<0x4x4xf32>
  func.return %r : tensor<0x4x4xf32>
}""")
    assert run(mod, [np.zeros((0, 4, 4), np.float32), np.zeros((0, 4), np.float32)])[0].shape == (0, 4, 4)


@pytest.mark.parametrize("asymmetric", [False, True])
def test_a_batch_of_none_by_weights_of_codes(asymmetric: bool):
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    weights = T(np.arange(12, dtype=np.int8).reshape(3, 4), "int8", 0.01)
    values = {"asymmetricQuantizeInputs": asymmetric}
    inputs, outputs = [T([0, 4], "float32"), weights, None], [T([0, 3], "float32")]
    file = Case("FULLY_CONNECTED", inputs, outputs, "FullyConnectedOptions", values, 5).model()
    x = np.zeros((0, 4), np.float32)
    (wanted,), found = Reference(file).run([x]), relay.build(file).run(x)
    assert isinstance(found, np.ndarray) and found.shape == wanted.shape
