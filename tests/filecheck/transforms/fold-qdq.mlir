// RUN: relay-opt %s -p fold-qdq --split-input-file | filecheck %s

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
