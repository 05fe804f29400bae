// RUN: relay-opt %s -p qdq-to-integer --split-input-file | filecheck %s

// A sum of codes with a clamp; from codes to codes; a pad with real zero, which is the zero point.
// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<1x4xi8>, %b: tensor<1x4xi8>) -> tensor<1x6xi8> {
  %0 = qnn.dequantize %a {scale = 0.5 : f32, zero_point = 3 : i32} : (tensor<1x4xi8>) -> tensor<1x4xf32>
  %1 = qnn.dequantize %b {scale = 0.25 : f32, zero_point = -128 : i32} : (tensor<1x4xi8>) -> tensor<1x4xf32>
  %2 = relay.add %0, %1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %3 = relay.clip %2 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = qnn.quantize %3 {scale = 0.0625 : f32, zero_point = -128 : i32, out_dtype = i8} : (tensor<1x4xf32>) -> tensor<1x4xi8>
  %5 = qnn.dequantize %4 {scale = 0.0625 : f32, zero_point = -128 : i32} : (tensor<1x4xi8>) -> tensor<1x4xf32>
  %6 = relay.nn.pad %5 {pad_width = array<i64: 0, 0, 1, 1>, pad_value = 0.0 : f32} : (tensor<1x4xf32>) -> tensor<1x6xf32>
  %7 = qnn.quantize %6 {scale = 0.0625 : f32, zero_point = -128 : i32, out_dtype = i8} : (tensor<1x6xf32>) -> tensor<1x6xi8>
  %8 = qnn.dequantize %7 {scale = 0.0625 : f32, zero_point = -128 : i32} : (tensor<1x6xi8>) -> tensor<1x6xf32>
  %9 = qnn.quantize %8 {scale = 0.125 : f32, zero_point = 0 : i32, out_dtype = i8} : (tensor<1x6xf32>) -> tensor<1x6xi8>
  func.return %9 : tensor<1x6xi8>
}
// CHECK-NEXT:    [[S:%.+]] = qnn.add %a, %b {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 3 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = -128 : i32, output_scale = 6.250000e-02 : f32, output_zero_point = -128 : i32, min = -128 : i32, max = -32 : i32, left_shift = 20 : i32
// CHECK-NEXT:    [[P:%.+]] = relay.nn.pad [[S]] {pad_width = array<i64: 0, 0, 1, 1>, pad_value = -128 : i8}
// CHECK-NEXT:    [[R:%.+]] = qnn.requantize [[P]] {{.*}}output_scale = 1.250000e-01 : f32, output_zero_point = 0 : i32
// CHECK-NEXT:    func.return [[R]]

// -----

// What has no form on codes stays, and why is written down.
// CHECK: builtin.module attributes {relay.qdq = [{op = "{{.*}}relay.exp in @main", why = "relay.exp has no form on codes"}]}
// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<4xi8>) -> tensor<4xi8> {
  %0 = qnn.dequantize %a {scale = 0.5 : f32, zero_point = 3 : i32} : (tensor<4xi8>) -> tensor<4xf32>
  %1 = relay.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = qnn.quantize %1 {scale = 0.5 : f32, zero_point = 3 : i32, out_dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  func.return %2 : tensor<4xi8>
}
// CHECK:         relay.exp

// -----

// Rounded to even: a convolution with a bias of floats and a clamp, moved and compared codes, a table of what is a
// function of one code, and a sum.
// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<1x2x4x4xui8>) -> tensor<1x12xui8> {
  %w = relay.constant dense<[[[[2]], [[3]]], [[[4]], [[5]]], [[[6]], [[7]]]]> : tensor<3x2x1x1xi8>
  %b = relay.constant dense<[1.0, 0.375, -2.0]> : tensor<3xf32>
  %0 = qnn.dequantize %a {scale = 0.5 : f32, zero_point = 3 : i32, product = "f32"} : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xf32>
  %1 = qnn.dequantize %w {scale = dense<[0.5, 0.25, 1.0]> : tensor<3xf32>, zero_point = dense<0> : tensor<3xi32>, axis = 0 : i64, product = "f32"} : (tensor<3x2x1x1xi8>) -> tensor<3x2x1x1xf32>
  %2 = relay.nn.conv2d %0, %1 {data_layout = "NCHW", kernel_layout = "OIHW", out_dtype = f32} : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
  %3 = relay.nn.bias_add %2, %b {axis = 1 : i64} : (tensor<1x3x4x4xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>
  %4 = relay.nn.relu %3 : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %5 = qnn.quantize %4 {scale = 0.5 : f32, zero_point = 10 : i32, rounding = "even", out_dtype = ui8} : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xui8>
  %6 = qnn.dequantize %5 {scale = 0.5 : f32, zero_point = 10 : i32, product = "f32"} : (tensor<1x3x4x4xui8>) -> tensor<1x3x4x4xf32>
  %7 = relay.nn.max_pool2d %6 {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>, layout = "NCHW"} : (tensor<1x3x4x4xf32>) -> tensor<1x3x2x2xf32>
  %8 = relay.reshape %7 {newshape = array<i64: 1, 12>} : (tensor<1x3x2x2xf32>) -> tensor<1x12xf32>
  %9 = relay.exp %8 : (tensor<1x12xf32>) -> tensor<1x12xf32>
  %10 = qnn.quantize %9 {scale = 0.25 : f32, zero_point = 1 : i32, rounding = "even", out_dtype = ui8} : (tensor<1x12xf32>) -> tensor<1x12xui8>
  %11 = qnn.dequantize %10 {scale = 0.25 : f32, zero_point = 1 : i32, product = "f32"} : (tensor<1x12xui8>) -> tensor<1x12xf32>
  %12 = relay.add %8, %11 : (tensor<1x12xf32>, tensor<1x12xf32>) -> tensor<1x12xf32>
  %13 = qnn.quantize %12 {scale = 1.0 : f32, zero_point = 0 : i32, rounding = "even", out_dtype = ui8} : (tensor<1x12xf32>) -> tensor<1x12xui8>
  func.return %13 : tensor<1x12xui8>
}
// CHECK:         [[S:%.+]] = qnn.conv2d %a, {{.*}}data_layout = "NCHW"
// CHECK-NEXT:    [[B:%.+]] = relay.constant dense<[4, 3, -4]> : tensor<3xi32>
// CHECK-NEXT:    [[T:%.+]] = relay.nn.bias_add [[S]], [[B]] {axis = 1 : i64}
// CHECK-NEXT:    [[R:%.+]] = qnn.requantize [[T]] {{.*}}rounding = "f32_even"{{.*}}, min = 10 : i32, max = 255 : i32
// CHECK-NEXT:    [[M:%.+]] = relay.nn.max_pool2d [[R]]
// CHECK-NEXT:    [[F:%.+]] = relay.reshape [[M]]
// CHECK-NEXT:    relay.constant
// CHECK-NEXT:    [[E:%.+]] = relay.lookup [[F]]
// CHECK-NEXT:    qnn.add [[F]], [[E]] {{.*}}rounding = "ort"

// -----

// Codes of 16 bits stay.
// CHECK: why = "ONNX Runtime has integer kernels of 8-bit codes only"
// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<4xi16>) -> tensor<4xi16> {
  %0 = qnn.dequantize %a {scale = 0.5 : f32, zero_point = 0 : i32, product = "f32"} : (tensor<4xi16>) -> tensor<4xf32>
  %1 = relay.add %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = qnn.quantize %1 {scale = 0.5 : f32, zero_point = 3 : i32, rounding = "even", out_dtype = i16} : (tensor<4xf32>) -> tensor<4xi16>
  func.return %2 : tensor<4xi16>
}

// -----

// PyTorch's quantization, by the inverse of the scale: a mean of whole axes is one of integers, a mean of windows stays.
// CHECK: why = "relay.nn.avg_pool2d has no form on codes"
// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<1x2x4x4xi8>) -> (tensor<1x2xi8>, tensor<1x2x2x2xi8>) {
  %0 = qnn.dequantize %a {scale = 0.5 : f32, zero_point = 3 : i32, product = "f32"} : (tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xf32>
  %1 = relay.mean %0 {axis = array<i64: 2, 3>} : (tensor<1x2x4x4xf32>) -> tensor<1x2xf32>
  %2 = qnn.quantize %1 {scale = 0.25 : f32, zero_point = -1 : i32, rounding = "even_inverse", out_dtype = i8} : (tensor<1x2xf32>) -> tensor<1x2xi8>
  %3 = relay.nn.avg_pool2d %0 {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>, layout = "NCHW"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %4 = qnn.quantize %3 {scale = 0.25 : f32, zero_point = -1 : i32, rounding = "even_inverse", out_dtype = i8} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xi8>
  func.return %2, %4 : tensor<1x2xi8>, tensor<1x2x2x2xi8>
}
// CHECK:         [[C:%.+]] = relay.cast %a {dtype = i32}
// CHECK-NEXT:    [[S:%.+]] = relay.sum [[C]] {axis = array<i64: 2, 3>}
// CHECK-NEXT:    qnn.requantize [[S]] {{.*}}rounding = "f32_even"{{.*}}real_multiplier = 1.250000e-01 : f32, input_zero_point = 48 : i32
// CHECK:         relay.nn.avg_pool2d
// CHECK:         qnn.quantize {{.*}}rounding = "even_inverse"

// -----

// A product whose result is used as reals: exact sums of codes, scaled per column.
// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<2x3xui8>) -> tensor<2x2xf32> {
  %w = relay.constant dense<[[2, 3], [4, 5], [6, 7]]> : tensor<3x2xi8>
  %0 = qnn.dequantize %a {scale = 0.5 : f32, zero_point = 3 : i32, product = "f32"} : (tensor<2x3xui8>) -> tensor<2x3xf32>
  %1 = qnn.dequantize %w {scale = dense<[0.5, 0.25]> : tensor<2xf32>, zero_point = dense<0> : tensor<2xi32>, axis = 1 : i64, product = "f32"} : (tensor<3x2xi8>) -> tensor<3x2xf32>
  %2 = relay.nn.matmul %0, %1 {out_dtype = f32} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %3 = relay.erf %2 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %3 : tensor<2x2xf32>
}
// CHECK:         [[S:%.+]] = qnn.dense %a, {{.*}}input_zero_point = 3 : i32
// CHECK-NEXT:    [[F:%.+]] = relay.cast [[S]]
// CHECK-NEXT:    [[C:%.+]] = relay.constant dense<[2.500000e-01, 1.250000e-01]> : tensor<2xf32>
// CHECK-NEXT:    [[P:%.+]] = relay.multiply [[F]], [[C]]
// CHECK-NEXT:    relay.erf [[P]]
