// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: qnn.quantize: takes f32
func.func @quantize(%x: tensor<4xi8>) {
  %r = qnn.quantize %x {scale = 1.0 : f32, zero_point = 0 : i32, out_dtype = i8} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.quantize: scale must be positive
func.func @quantize(%x: tensor<4xf32>) {
  %r = qnn.quantize %x {scale = 0.0 : f32, zero_point = 0 : i32, out_dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.quantize: i32 is no type of codes
func.func @quantize(%x: tensor<4xf32>) {
  %r = qnn.quantize %x {scale = 1.0 : f32, zero_point = 0 : i32, out_dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: qnn.dequantize: 2 numbers in scale for axis of 4
func.func @dequantize(%x: tensor<4xi8>) {
  %r = qnn.dequantize %x {scale = dense<1.0> : tensor<2xf32>, zero_point = 0 : i32} : (tensor<4xi8>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: qnn.requantize: rounding f64_away needs real_multiplier
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 1 : i32, rounding = "f64_away", out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.requantize: shift must lie in -31..30
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 31 : i32, out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.requantize: min is above max
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 1 : i32, min = 1 : i32, max = 0 : i32, out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.softmax: takes 8- or 16-bit codes, not i32
func.func @softmax(%x: tensor<4xi32>) {
  %r = qnn.softmax %x {beta = 1.0 : f32, input_scale = 1.0 : f32, multiplier = 1073741824 : i32, shift = 24 : i32} : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: qnn.concatenate: input_scales needs 2 numbers
func.func @concatenate(%x: tensor<4xui8>) {
  %r = qnn.concatenate %x, %x {axis = 0 : i64, input_scales = dense<1.0> : tensor<3xf32>, input_zero_points = dense<0> : tensor<2xi32>, output_scale = 1.0 : f32, output_zero_point = 0 : i32} : (tensor<4xui8>, tensor<4xui8>) -> tensor<8xui8>
  func.return
}

// -----

// CHECK: qnn.svdf: 4 filters are not divisible by the rank
func.func @svdf(%x: tensor<1x3xi8>, %f: tensor<4x3xi8>, %t: tensor<4x5xi16>, %s: tensor<1x20xi16>) {
  %r0, %r1 = qnn.svdf %x, %f, %t, %s {input_zero_point = 1 : i32, rank = 3 : i64, feature_multiplier = 1073741824 : i32, feature_shift = -3 : i32, multiplier = 1073741824 : i32, shift = -9 : i32, output_zero_point = 4 : i32} : (tensor<1x3xi8>, tensor<4x3xi8>, tensor<4x5xi16>, tensor<1x20xi16>) -> (tensor<1x2xi8>, tensor<1x20xi16>)
  func.return
}

// -----

// CHECK: qnn.lstm: state is not [1, 2]
func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x2xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<2x2xi16>) {
  %r0, %r1, %r2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1> : tensor<4xi32>, input_shift = dense<0> : tensor<4xi32>, recurrent_multiplier = dense<1> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<1x5x3xi8>, tensor<8x3xi8>, tensor<8x2xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<2x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<2x2xi16>)
  func.return
}

// -----

// CHECK: qnn.mul: element types differ
func.func @mul(%x: tensor<4xi8>, %y: tensor<4xui8>) {
  %r = qnn.mul %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, output_scale = 1.0 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -2 : i32} : (tensor<4xi8>, tensor<4xui8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.mul: rounding "upwards" is none of
func.func @mul(%x: tensor<4xi8>, %y: tensor<4xi8>) {
  %r = qnn.mul %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, output_scale = 1.0 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -2 : i32, rounding = "upwards"} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.sigmoid: takes 8- or 16-bit codes, not f32
func.func @sigmoid(%x: tensor<4xf32>) {
  %r = qnn.sigmoid %x {input_scale = 0.125 : f32, input_zero_point = 0 : i32, output_scale = 0.00390625 : f32, output_zero_point = -128 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: qnn.softmax: takes rank 1 or more
func.func @softmax(%x: tensor<i8>) {
  %r = qnn.softmax %x {beta = 1.0 : f32, input_scale = 0.125 : f32, multiplier = 1073741824 : i32, shift = 24 : i32} : (tensor<i8>) -> tensor<i8>
  func.return
}

// -----

// CHECK: qnn.dequantize: scale must be a scalar or a vector, or of the data's rank
func.func @dequantize(%x: tensor<4xi8>) {
  %r = qnn.dequantize %x {scale = dense<1.0> : tensor<2x4xf32>, zero_point = 0 : i32} : (tensor<4xi8>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: qnn.requantize: rounding "up" is none of
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 1 : i32, rounding = "up", out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.requantize: takes integers
func.func @requantize(%x: tensor<4xf32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 1 : i32, out_dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.dequantize: takes integers
func.func @dequantize(%x: tensor<4xf32>) {
  %r = qnn.dequantize %x {scale = 1.0 : f32, zero_point = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: qnn.dynamic_quantize: takes f32
func.func @dynamic_quantize(%x: tensor<2x4xf64>) {
  %c, %s = qnn.dynamic_quantize %x : (tensor<2x4xf64>) -> (tensor<2x4xi8>, tensor<2xf32>)
  func.return
}

// -----

// CHECK: qnn.dynamic_quantize: takes rank 1 or more
func.func @dynamic_quantize(%x: tensor<f32>) {
  %c, %s = qnn.dynamic_quantize %x : (tensor<f32>) -> (tensor<i8>, tensor<f32>)
  func.return
}
