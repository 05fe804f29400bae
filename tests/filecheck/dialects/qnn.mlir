// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @quantize(
func.func @quantize(%x: tensor<1x4xf32>) {
  // CHECK: %q = qnn.quantize %x {scale = 5.000000e-01 : f32, zero_point = 3 : i32, out_dtype = ui8} : (tensor<1x4xf32>) -> tensor<1x4xui8>
  %q = qnn.quantize %x {scale = 5.000000e-01 : f32, zero_point = 3 : i32, out_dtype = ui8} : (tensor<1x4xf32>) -> tensor<1x4xui8>
  // CHECK: %x2 = qnn.dequantize %q {scale = 5.000000e-01 : f32, zero_point = 3 : i32} : (tensor<1x4xui8>) -> tensor<1x4xf32>
  %x2 = qnn.dequantize %q {scale = 5.000000e-01 : f32, zero_point = 3 : i32} : (tensor<1x4xui8>) -> tensor<1x4xf32>
  // CHECK: %codes, %scale = qnn.dynamic_quantize %x : (tensor<1x4xf32>) -> (tensor<1x4xi8>, tensor<1xf32>)
  %codes, %scale = qnn.dynamic_quantize %x : (tensor<1x4xf32>) -> (tensor<1x4xi8>, tensor<1xf32>)
  func.return
}

// CHECK-LABEL: func.func @requantize(
func.func @requantize(%x: tensor<1x2xi32>) {
  // CHECK: %tensor = qnn.requantize %x {input_scale = 2.500000e-01 : f32, output_scale = 5.000000e-01 : f32, output_zero_point = -1 : i32, multiplier = 1073741824 : i32, shift = 0 : i32, min = -1 : i32, max = 127 : i32, out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  %tensor = qnn.requantize %x {input_scale = 2.500000e-01 : f32, output_scale = 5.000000e-01 : f32, output_zero_point = -1 : i32, multiplier = 1073741824 : i32, shift = 0 : i32, min = -1 : i32, max = 127 : i32, out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  // CHECK: %axis = qnn.requantize %x {input_scale = dense<[2.500000e-01, 5.000000e-01]> : tensor<2xf32>, output_scale = 5.000000e-01 : f32, output_zero_point = 0 : i32, multiplier = dense<1073741824> : tensor<2xi32>, shift = dense<[0, 1]> : tensor<2xi32>, out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  %axis = qnn.requantize %x {input_scale = dense<[2.500000e-01, 5.000000e-01]> : tensor<2xf32>, output_scale = 5.000000e-01 : f32, output_zero_point = 0 : i32, multiplier = dense<1073741824> : tensor<2xi32>, shift = dense<[0, 1]> : tensor<2xi32>, out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  // CHECK: %double = qnn.requantize %x {input_scale = 2.500000e-01 : f32, output_scale = 5.000000e-01 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 0 : i32, real_multiplier = 5.000000e-01 : f64, rounding = "f64_away", out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  %double = qnn.requantize %x {input_scale = 2.500000e-01 : f32, output_scale = 5.000000e-01 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 0 : i32, real_multiplier = 5.000000e-01 : f64, rounding = "f64_away", out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  func.return
}

// CHECK-LABEL: func.func @conv2d(
func.func @conv2d(%x: tensor<1x4x4x2xi8>, %k: tensor<3x1x1x2xi8>) {
  // CHECK: %r = qnn.conv2d %x, %k {input_scale = 5.000000e-01 : f32, input_zero_point = -128 : i32, kernel_scale = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>} : (tensor<1x4x4x2xi8>, tensor<3x1x1x2xi8>) -> tensor<1x4x4x3xi32>
  %r = qnn.conv2d %x, %k {input_scale = 5.000000e-01 : f32, input_zero_point = -128 : i32, kernel_scale = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>} : (tensor<1x4x4x2xi8>, tensor<3x1x1x2xi8>) -> tensor<1x4x4x3xi32>
  func.return
}

// CHECK-LABEL: func.func @dense(
func.func @dense(%x: tensor<1x16xi8>, %k: tensor<10x16xi8>) {
  // CHECK: %r = qnn.dense %x, %k {input_scale = 5.000000e-01 : f32, input_zero_point = 4 : i32, kernel_scale = 2.500000e-01 : f32} : (tensor<1x16xi8>, tensor<10x16xi8>) -> tensor<1x10xi32>
  %r = qnn.dense %x, %k {input_scale = 5.000000e-01 : f32, input_zero_point = 4 : i32, kernel_scale = 2.500000e-01 : f32} : (tensor<1x16xi8>, tensor<10x16xi8>) -> tensor<1x10xi32>
  func.return
}

// CHECK-LABEL: func.func @binary(
func.func @binary(%x: tensor<1x4xi8>, %y: tensor<4xi8>) {
  // CHECK: %add = qnn.add %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -18 : i32, left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32, min = -128 : i32, max = 127 : i32} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  %add = qnn.add %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -18 : i32, left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32, min = -128 : i32, max = 127 : i32} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  // CHECK: %subtract = qnn.subtract %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -18 : i32, left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  %subtract = qnn.subtract %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -18 : i32, left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  // CHECK: %mul = qnn.mul %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -2 : i32, rounding = "tflite_single"} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  %mul = qnn.mul %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -2 : i32, rounding = "tflite_single"} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  func.return
}

// CHECK-LABEL: func.func @mean(
func.func @mean(%x: tensor<1x4x4x8xui8>) {
  // CHECK: %r = qnn.mean %x {axis = array<i64: 1, 2>, keepdims = true, input_scale = 5.000000e-01 : f32, input_zero_point = 128 : i32, output_scale = 5.000000e-01 : f32, output_zero_point = 128 : i32, multiplier = 1073741824 : i32, shift = -3 : i32} : (tensor<1x4x4x8xui8>) -> tensor<1x1x1x8xui8>
  %r = qnn.mean %x {axis = array<i64: 1, 2>, keepdims = true, input_scale = 5.000000e-01 : f32, input_zero_point = 128 : i32, output_scale = 5.000000e-01 : f32, output_zero_point = 128 : i32, multiplier = 1073741824 : i32, shift = -3 : i32} : (tensor<1x4x4x8xui8>) -> tensor<1x1x1x8xui8>
  func.return
}

// CHECK-LABEL: func.func @functions(
func.func @functions(%x: tensor<1x10xi8>) {
  // CHECK: %softmax = qnn.softmax %x {beta = 1.000000e+00 : f32, input_scale = 1.250000e-01 : f32, multiplier = 1073741824 : i32, shift = 24 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  %softmax = qnn.softmax %x {beta = 1.000000e+00 : f32, input_scale = 1.250000e-01 : f32, multiplier = 1073741824 : i32, shift = 24 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  // CHECK: %sigmoid = qnn.sigmoid %x {input_scale = 1.250000e-01 : f32, input_zero_point = 0 : i32, output_scale = 3.906250e-03 : f32, output_zero_point = -128 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  %sigmoid = qnn.sigmoid %x {input_scale = 1.250000e-01 : f32, input_zero_point = 0 : i32, output_scale = 3.906250e-03 : f32, output_zero_point = -128 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  // CHECK: %tanh = qnn.tanh %x {input_scale = 1.250000e-01 : f32, input_zero_point = 0 : i32, output_scale = 7.812500e-03 : f32, output_zero_point = 0 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  %tanh = qnn.tanh %x {input_scale = 1.250000e-01 : f32, input_zero_point = 0 : i32, output_scale = 7.812500e-03 : f32, output_zero_point = 0 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  func.return
}

// CHECK-LABEL: func.func @concatenate(
func.func @concatenate(%x: tensor<1x2xui8>, %y: tensor<1x3xui8>) {
  // CHECK: %r = qnn.concatenate %x, %y {axis = 1 : i64, input_scales = dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>, input_zero_points = dense<[128, 127]> : tensor<2xi32>, output_scale = 5.000000e-01 : f32, output_zero_point = 128 : i32} : (tensor<1x2xui8>, tensor<1x3xui8>) -> tensor<1x5xui8>
  %r = qnn.concatenate %x, %y {axis = 1 : i64, input_scales = dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>, input_zero_points = dense<[128, 127]> : tensor<2xi32>, output_scale = 5.000000e-01 : f32, output_zero_point = 128 : i32} : (tensor<1x2xui8>, tensor<1x3xui8>) -> tensor<1x5xui8>
  func.return
}
