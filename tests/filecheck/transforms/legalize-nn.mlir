// RUN: relay-opt %s -p legalize,fold-constant | filecheck %s

// CHECK-LABEL: func.func @conv1d(
func.func @conv1d(%x: tensor<1x8x4xf32>, %k: tensor<6x3x4xf32>) -> tensor<1x4x6xf32> {
  // CHECK: relay.nn.conv2d {{%.+}}, {{%.+}} {strides = array<i64: 1, 2>, padding = array<i64: 0, 1, 0, 0>, out_dtype = f32} : (tensor<1x1x8x4xf32>, tensor<6x1x3x4xf32>) -> tensor<1x1x4x6xf32>
  %r = relay.nn.conv1d %x, %k {strides = array<i64: 2>, padding = array<i64: 1, 0>, out_dtype = f32} : (tensor<1x8x4xf32>, tensor<6x3x4xf32>) -> tensor<1x4x6xf32>
  func.return %r : tensor<1x4x6xf32>
}

// CHECK-LABEL: func.func @depthwise(
func.func @depthwise(%x: tensor<1x8x4xi8>) -> tensor<1x6x4xi32> {
  // CHECK: relay.nn.conv2d {{.*}}groups = 4 : i64, kernel_layout = "HWOI"
  %k = relay.constant dense<1> : tensor<4x3x1xi8>
  %r = relay.nn.conv1d %x, %k {groups = 4 : i64} : (tensor<1x8x4xi8>, tensor<4x3x1xi8>) -> tensor<1x6x4xi32>
  func.return %r : tensor<1x6x4xi32>
}

// CHECK-LABEL: func.func @conv3d(
func.func @conv3d(%x: tensor<1x4x5x6x7xi8>, %k: tensor<8x2x3x3x7xi8>) -> tensor<1x3x3x4x8xi32> {
  // CHECK: relay.concatenate {{.*}} -> tensor<3x5x6x1x2x7xi8>
  // CHECK: relay.nn.conv2d {{.*}} {input_zero_point = 3 : i32} : (tensor<3x5x6x14xi8>, tensor<8x3x3x14xi8>) -> tensor<3x3x4x8xi32>
  %r = relay.nn.conv3d %x, %k {input_zero_point = 3 : i32} : (tensor<1x4x5x6x7xi8>, tensor<8x2x3x3x7xi8>) -> tensor<1x3x3x4x8xi32>
  func.return %r : tensor<1x3x3x4x8xi32>
}

// Four output channels, one for each pixel of a stride; the second row and column of the kernel's taps have one tap less.
// CHECK-LABEL: func.func @conv2d_transpose(
func.func @conv2d_transpose(%x: tensor<1x4x4x1xi8>) -> tensor<1x9x9x1xi32> {
  // CHECK: %[[K:.+]] = relay.constant dense<{{\[}}[{{\[}}[9], [7]], {{\[}}[3], [1]]], {{\[}}{{\[}}[0], [8]], {{\[}}[0], [2]]], {{\[}}{{\[}}[0], [0]], {{\[}}[6], [4]]], {{\[}}{{\[}}[0], [0]], {{\[}}[0], [5]]]]> : tensor<4x2x2x1xi8>
  // CHECK: relay.nn.conv2d %x, %[[K]] {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x4x4x1xi8>, tensor<4x2x2x1xi8>) -> tensor<1x5x5x4xi32>
  // CHECK: relay.transpose {{.*}} {axes = array<i64: 0, 1, 4, 2, 5, 3, 6>}
  // CHECK: relay.strided_slice {{.*}} -> tensor<1x9x9x1xi32>
  %k = relay.constant dense<[[[[1], [2], [3]], [[4], [5], [6]], [[7], [8], [9]]]]> : tensor<1x3x3x1xi8>
  %r = relay.nn.conv2d_transpose %x, %k {strides = array<i64: 2, 2>} : (tensor<1x4x4x1xi8>, tensor<1x3x3x1xi8>) -> tensor<1x9x9x1xi32>
  func.return %r : tensor<1x9x9x1xi32>
}

// CHECK-LABEL: func.func @matmul(
func.func @matmul(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>) -> tensor<4x5xf32> {
  // CHECK: %[[T:.+]] = relay.transpose %b {axes = array<i64: 1, 0>}
  // CHECK-NEXT: relay.nn.dense %a, %[[T]] {out_dtype = f32}
  %r = relay.nn.matmul %a, %b {out_dtype = f32} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  func.return %r : tensor<4x5xf32>
}

// CHECK-LABEL: func.func @batch_matmul(
func.func @batch_matmul(%a: tensor<2x1x4x8xi8>, %b: tensor<3x5x8xi8>) -> tensor<2x3x4x5xi32> {
  // CHECK: relay.nn.batch_matmul {{.*}} {input_zero_point = 4 : i32, transpose_b = false} : (tensor<6x4x8xi8>, tensor<6x8x5xi8>) -> tensor<6x4x5xi32>
  %r = relay.nn.batch_matmul %a, %b {input_zero_point = 4 : i32} : (tensor<2x1x4x8xi8>, tensor<3x5x8xi8>) -> tensor<2x3x4x5xi32>
  func.return %r : tensor<2x3x4x5xi32>
}

// CHECK-LABEL: func.func @softmax(
func.func @softmax(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK: %[[T:.+]] = relay.transpose %x {axes = array<i64: 0, 2, 1>}
  // CHECK-NEXT: %[[S:.+]] = relay.nn.softmax %[[T]] {beta = 1.000000e+00 : f32} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  // CHECK-NEXT: relay.transpose %[[S]] {axes = array<i64: 0, 2, 1>}
  %r = relay.nn.softmax %x {beta = 1.0 : f32, axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %r : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @mirror_pad(
func.func @mirror_pad(%x: tensor<4xi8>) -> tensor<7xi8> {
  // CHECK: %[[B:.+]] = relay.strided_slice %x {begin = array<i64: 2>, end = array<i64: 0>, strides = array<i64: -1>}
  // CHECK: %[[A:.+]] = relay.strided_slice %x {begin = array<i64: 2>, end = array<i64: 1>, strides = array<i64: -1>}
  // CHECK: relay.concatenate %[[B]], %x, %[[A]]
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: 2, 1>, mode = "REFLECT"} : (tensor<4xi8>) -> tensor<7xi8>
  func.return %r : tensor<7xi8>
}
