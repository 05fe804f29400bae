// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @matmul(
func.func @matmul(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>) {
  // CHECK: %r = relay.nn.matmul %a, %b {out_dtype = f32} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %r = relay.nn.matmul %a, %b {out_dtype = f32} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  func.return
}

// CHECK-LABEL: func.func @batch_matmul(
func.func @batch_matmul(%a: tensor<2x1x4x8xi8>, %b: tensor<3x5x8xi8>) {
  // CHECK: %r = relay.nn.batch_matmul %a, %b {input_zero_point = 4 : i32, kernel_zero_point = -1 : i32} : (tensor<2x1x4x8xi8>, tensor<3x5x8xi8>) -> tensor<2x3x4x5xi32>
  %r = relay.nn.batch_matmul %a, %b {input_zero_point = 4 : i32, kernel_zero_point = -1 : i32} : (tensor<2x1x4x8xi8>, tensor<3x5x8xi8>) -> tensor<2x3x4x5xi32>
  func.return
}

// CHECK-LABEL: func.func @transposed(
func.func @transposed(%a: tensor<3x8x4xi16>, %b: tensor<3x8x5xi8>) {
  // CHECK: %r = relay.nn.batch_matmul %a, %b {transpose_a = true, out_dtype = i64, transpose_b = false} : (tensor<3x8x4xi16>, tensor<3x8x5xi8>) -> tensor<3x4x5xi64>
  %r = relay.nn.batch_matmul %a, %b {transpose_a = true, out_dtype = i64, transpose_b = false} : (tensor<3x8x4xi16>, tensor<3x8x5xi8>) -> tensor<3x4x5xi64>
  func.return
}
