// RUN: relay-opt %s -p 'quantize-calibrate{bias_correction=false statistics="%S/quantize-calibrate.json"}' | filecheck %s
// RUN: not relay-opt %s -p quantize-calibrate 2>&1 | filecheck %s --check-prefix=NONE

// What the file remembers of each value becomes its scale; weights have one for each output channel.
func.func @main(%x: tensor<1x2xf32>) -> tensor<2x1xf32> {
  %w = relay.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = relay.constant dense<[0.5, -0.5]> : tensor<2xf32>
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  %2 = relay.clip %1 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %3 = relay.nn.dense %2, %w {out_dtype = f32} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  %4 = relay.reshape %3 {newshape = array<i64: 2, 1>} : (tensor<1x2xf32>) -> tensor<2x1xf32>
  func.return %4 : tensor<2x1xf32>
}
// CHECK:         {value = "a0", group = "a0", scale = 0.00784313772 : f32, zero_point = -1 : i32}
// CHECK:         relay.nn.dense %x, %w {quantize = {integer, kernel_scale = dense<[0.0157480314, 0.0314960629]> : tensor<2xf32>, kernel_zero_point = 0 : i32}
// CHECK:         relay.clip %1 {quantize = {integer, value = "v4", group = "v4", scale = 0.0196078438 : f32, zero_point = -128 : i32}
// CHECK:         relay.nn.dense %2, %w {quantize = {integer, value = "v5", group = "v5", scale = 0.113725491 : f32
// CHECK:         relay.reshape %3 {quantize = {integer, value = "v6", group = "v5", scale = 0.113725491 : f32

// NONE: quantize-calibrate: has nothing to calibrate with; write samples = [array, ...] with some tens of real inputs, then Quantize(calibration=samples)
