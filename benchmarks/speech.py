"""A model as of spotted words: 49 rows of 40 features, one depthwise convolution, one dense layer of 4,000 inputs."""

from __future__ import annotations

import numpy as np

from relay.dialects.attributes import Array
from relay.module import IRModule

TEXT = """func.func @main(%features: tensor<1x49x40x1xi8>) -> tensor<1x4xi8> {{
  %kernel = relay.constant {{label = "kernel"}} dense<"0x{kernel}"> : tensor<10x8x1x8xi8>
  %0 = qnn.conv2d %features, %kernel {{strides = array<i64: 2, 2>, padding = array<i64: 4, 3, 5, 3>,
    kernel_layout = "HWOI", input_scale = 0.102 : f32, input_zero_point = -128 : i32, kernel_scale = 0.01 : f32}}
    : (tensor<1x49x40x1xi8>, tensor<10x8x1x8xi8>) -> tensor<1x25x20x8xi32>
  %bias = relay.constant {{label = "bias"}} dense<"0x{bias}"> : tensor<8xi32>
  %1 = relay.nn.bias_add %0, %bias : (tensor<1x25x20x8xi32>, tensor<8xi32>) -> tensor<1x25x20x8xi32>
  %2 = qnn.requantize %1 {{input_scale = 0.00102 : f32, output_scale = 0.17 : f32, output_zero_point = -128 : i32,
    min = -128 : i32, max = 127 : i32, out_dtype = i8, multiplier = 1649267442 : i32, shift = -7 : i32}}
    : (tensor<1x25x20x8xi32>) -> tensor<1x25x20x8xi8>
  %3 = relay.reshape %2 {{newshape = array<i64: 1, 4000>}} : (tensor<1x25x20x8xi8>) -> tensor<1x4000xi8>
  %weights = relay.constant {{label = "weights"}} dense<"0x{weights}"> : tensor<4x4000xi8>
  %4 = qnn.dense %3, %weights {{input_scale = 0.17 : f32, input_zero_point = -128 : i32,
    kernel_scale = 4.4117647e-5 : f32}} : (tensor<1x4000xi8>, tensor<4x4000xi8>) -> tensor<1x4xi32>
  %5 = qnn.requantize %4 {{input_scale = 7.5e-6 : f32, output_scale = 0.05 : f32, output_zero_point = 9 : i32,
    min = -128 : i32, max = 127 : i32, out_dtype = i8, multiplier = 1319413953 : i32, shift = -12 : i32,
    rounding = "f64_away", real_multiplier = 0.00015 : f64}} : (tensor<1x4xi32>) -> tensor<1x4xi8>
  %6 = qnn.softmax %5 {{beta = 1.0 : f32, input_scale = 0.05 : f32, multiplier = 1717986918 : i32, shift = 22 : i32}}
    : (tensor<1x4xi8>) -> tensor<1x4xi8>
  func.return %6 : tensor<1x4xi8>
}}
"""


def speech() -> IRModule:
    """The model, with random weights."""
    random = np.random.default_rng(0)

    def codes(*shape: int) -> Array:
        return random.integers(-127, 128, shape, np.int8)

    constants = {
        "kernel": codes(10, 8, 1, 8),
        "bias": random.integers(-2000, 2000, 8, np.int32),
        "weights": codes(4, 4000),
    }

    return IRModule.parse(TEXT.format(**{name: array.tobytes().hex().upper() for name, array in constants.items()}))
