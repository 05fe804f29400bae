// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @conv1d(
func.func @conv1d(%x: tensor<1x8x4xf32>, %k: tensor<6x3x4xf32>) {
  // CHECK: %r = relay.nn.conv1d %x, %k {strides = array<i64: 2>, padding = array<i64: 1, 0>, out_dtype = f32} : (tensor<1x8x4xf32>, tensor<6x3x4xf32>) -> tensor<1x4x6xf32>
  %r = relay.nn.conv1d %x, %k {strides = array<i64: 2>, padding = array<i64: 1, 0>, out_dtype = f32} : (tensor<1x8x4xf32>, tensor<6x3x4xf32>) -> tensor<1x4x6xf32>
  func.return
}

// CHECK-LABEL: func.func @conv3d(
func.func @conv3d(%x: tensor<?x4x5x6x7xi8>, %k: tensor<8x3x3x3x4xi8>) {
  // CHECK: %r = relay.nn.conv3d %x, %k {dilation = array<i64: 1, 1, 2>, data_layout = "NCDHW", kernel_layout = "ODHWI", input_zero_point = 3 : i32} : (tensor<?x4x5x6x7xi8>, tensor<8x3x3x3x4xi8>) -> tensor<?x8x3x4x3xi32>
  %r = relay.nn.conv3d %x, %k {dilation = array<i64: 1, 1, 2>, data_layout = "NCDHW", kernel_layout = "ODHWI", input_zero_point = 3 : i32} : (tensor<?x4x5x6x7xi8>, tensor<8x3x3x3x4xi8>) -> tensor<?x8x3x4x3xi32>
  func.return
}

// CHECK-LABEL: func.func @conv1d_transpose(
func.func @conv1d_transpose(%x: tensor<1x4x8xf32>, %k: tensor<4x6x3xf32>) {
  // CHECK: %r = relay.nn.conv1d_transpose %x, %k {strides = array<i64: 2>, data_layout = "NCW", kernel_layout = "IOW", out_dtype = f32, output_padding = array<i64: 1>} : (tensor<1x4x8xf32>, tensor<4x6x3xf32>) -> tensor<1x6x18xf32>
  %r = relay.nn.conv1d_transpose %x, %k {strides = array<i64: 2>, data_layout = "NCW", kernel_layout = "IOW", out_dtype = f32, output_padding = array<i64: 1>} : (tensor<1x4x8xf32>, tensor<4x6x3xf32>) -> tensor<1x6x18xf32>
  func.return
}

// CHECK-LABEL: func.func @conv2d_transpose(
func.func @conv2d_transpose(%x: tensor<1x4x4x8xi8>, %k: tensor<6x3x3x8xi8>) {
  // CHECK: %r = relay.nn.conv2d_transpose %x, %k {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, input_zero_point = -128 : i32} : (tensor<1x4x4x8xi8>, tensor<6x3x3x8xi8>) -> tensor<1x8x8x6xi32>
  %r = relay.nn.conv2d_transpose %x, %k {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, input_zero_point = -128 : i32} : (tensor<1x4x4x8xi8>, tensor<6x3x3x8xi8>) -> tensor<1x8x8x6xi32>
  func.return
}

// CHECK-LABEL: func.func @conv2d_transpose_16x8(
func.func @conv2d_transpose_16x8(%x: tensor<1x4x4x8xi16>, %k: tensor<3x2x2x8xi8>) {
  // CHECK: %r = relay.nn.conv2d_transpose %x, %k {groups = 2 : i64, out_dtype = i64} : (tensor<1x4x4x8xi16>, tensor<3x2x2x8xi8>) -> tensor<1x5x5x6xi64>
  %r = relay.nn.conv2d_transpose %x, %k {groups = 2 : i64, out_dtype = i64} : (tensor<1x4x4x8xi16>, tensor<3x2x2x8xi8>) -> tensor<1x5x5x6xi64>
  func.return
}

// CHECK-LABEL: func.func @conv3d_transpose(
func.func @conv3d_transpose(%x: tensor<1x2x4x4x8xui8>, %k: tensor<6x2x3x3x8xi8>) {
  // CHECK: %r = relay.nn.conv3d_transpose %x, %k {strides = array<i64: 2, 2, 2>, input_zero_point = 7 : i32, kernel_zero_point = 1 : i32} : (tensor<1x2x4x4x8xui8>, tensor<6x2x3x3x8xi8>) -> tensor<1x4x9x9x6xi32>
  %r = relay.nn.conv3d_transpose %x, %k {strides = array<i64: 2, 2, 2>, input_zero_point = 7 : i32, kernel_zero_point = 1 : i32} : (tensor<1x2x4x4x8xui8>, tensor<6x2x3x3x8xi8>) -> tensor<1x4x9x9x6xi32>
  func.return
}
