// RUN: relay-opt %s -p relay-to-linalg,linalg-specialize-generic-ops | filecheck %s

// Products of matrices; the second one is stored transposed, which indexing maps say.

// CHECK-LABEL: func.func @dense
// CHECK:         "linalg.matmul"(%x, %w, {{%.+}}) <{indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
func.func @dense(%x: tensor<2x5xf32>, %w: tensor<4x5xf32>) -> tensor<2x4xf32> {
  %r = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  func.return %r : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @batch_matmul
// CHECK:         "linalg.batch_matmul"(%x, {{%.+}}, {{%.+}})
func.func @batch_matmul(%x: tensor<2x3x5xi8>, %y: tensor<2x4x5xi8>) -> tensor<2x3x4xi32> {
  %r = relay.nn.batch_matmul %x, %y {transpose_b = true} : (tensor<2x3x5xi8>, tensor<2x4x5xi8>) -> tensor<2x3x4xi32>
  func.return %r : tensor<2x3x4xi32>
}

// Products with zero points have a name where no matrix is transposed.

// CHECK-LABEL: func.func @batch_matmul_of_codes
// CHECK:         [[A:%.+]] = arith.constant -3 : i32
// CHECK:         "linalg.quantized_batch_matmul"(%x, %y, [[A]], {{%.+}}, {{%.+}})
// CHECK:       func.func @dense_of_codes
// CHECK-NOT:     linalg.quantized
func.func @batch_matmul_of_codes(%x: tensor<2x3x5xi8>, %y: tensor<2x5x4xi8>) -> tensor<2x3x4xi32> {
  %0 = relay.nn.batch_matmul %x, %y {transpose_b = false, input_zero_point = -3 : i32, kernel_zero_point = 7 : i32, out_dtype = i32} : (tensor<2x3x5xi8>, tensor<2x5x4xi8>) -> tensor<2x3x4xi32>
  func.return %0 : tensor<2x3x4xi32>
}
func.func @dense_of_codes(%x: tensor<2x5xi8>, %w: tensor<4x5xi8>) -> tensor<2x4xi32> {
  %0 = relay.nn.dense %x, %w {input_zero_point = -3 : i32, out_dtype = i32} : (tensor<2x5xi8>, tensor<4x5xi8>) -> tensor<2x4xi32>
  func.return %0 : tensor<2x4xi32>
}

// Convolutions; with zero points, which are inputs, the kernel's being 0.

// CHECK-LABEL: func.func @conv2d(
// CHECK:         linalg.conv_2d_nhwc_fhwc {strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>} ins(%x, %w :
func.func @conv2d(%x: tensor<1x7x6x4xf32>, %w: tensor<5x3x3x4xf32>) -> tensor<1x3x4x5xf32> {
  %r = relay.nn.conv2d %x, %w {strides = array<i64: 2, 1>, out_dtype = f32} : (tensor<1x7x6x4xf32>, tensor<5x3x3x4xf32>) -> tensor<1x3x4x5xf32>
  func.return %r : tensor<1x3x4x5xf32>
}

// CHECK-LABEL: func.func @conv2d_of_codes
// CHECK-DAG:     [[Z:%.+]] = arith.constant -7 : i32
// CHECK:         [[K:%.+]] = arith.constant 0 : i32
// CHECK-NEXT:    "linalg.conv_2d_nhwc_fhwc_q"(%x, %w, [[Z]], [[K]], {{%.+}})
// CHECK:         ^bb0({{%.+}}: i8, {{%.+}}: i8, [[ZP:%.+]]: i32, {{%.+}}: i32, {{%.+}}: i32):
// CHECK:           arith.subi {{%.+}}, [[ZP]] : i32
func.func @conv2d_of_codes(%x: tensor<1x7x6x4xi8>, %w: tensor<5x3x3x4xi8>) -> tensor<1x5x4x5xi32> {
  %r = relay.nn.conv2d %x, %w {input_zero_point = -7 : i32} : (tensor<1x7x6x4xi8>, tensor<5x3x3x4xi8>) -> tensor<1x5x4x5xi32>
  func.return %r : tensor<1x5x4x5xi32>
}

// CHECK-LABEL: func.func @depthwise
// CHECK:         "linalg.depthwise_conv_2d_nhwc_hwc_q"
func.func @depthwise(%x: tensor<1x7x6x4xi8>, %w: tensor<3x3x4x1xi8>) -> tensor<1x5x4x4xi32> {
  %r = relay.nn.conv2d %x, %w {groups = 4 : i64, kernel_layout = "HWOI", input_zero_point = 3 : i32} : (tensor<1x7x6x4xi8>, tensor<3x3x4x1xi8>) -> tensor<1x5x4x4xi32>
  func.return %r : tensor<1x5x4x4xi32>
}

// A name widens with signs: codes without one stay in a nest.

// CHECK-LABEL: func.func @unsigned_codes
// CHECK:         linalg.generic
// CHECK:           arith.extui
func.func @unsigned_codes(%x: tensor<1x7x6x4xui8>, %w: tensor<5x3x3x4xi8>) -> tensor<1x5x4x5xi32> {
  %r = relay.nn.conv2d %x, %w : (tensor<1x7x6x4xui8>, tensor<5x3x3x4xi8>) -> tensor<1x5x4x5xi32>
  func.return %r : tensor<1x5x4x5xi32>
}

// Pools, and sums of tensors.

// CHECK-LABEL: func.func @pools
// CHECK:         "linalg.pooling_nhwc_max"(%x, {{%.+}}, {{%.+}}) <{{.*}}strides = dense<2> : tensor<2xi64>
// CHECK:         "linalg.pooling_nhwc_max_unsigned"(%y,
// CHECK:         "linalg.pooling_nhwc_sum"(%x,
// CHECK:         linalg.add ins(%z, %u : tensor<3xf32>, tensor<3xf32>)
func.func @pools(%x: tensor<1x4x4x2xi8>, %y: tensor<1x4x4x2xui8>, %z: tensor<3xf32>, %u: tensor<3xf32>) -> (tensor<1x2x2x2xi8>, tensor<1x2x2x2xui8>, tensor<1x2x2x2xi8>, tensor<3xf32>) {
  %a = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
  %b = relay.nn.max_pool2d %y {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x4x4x2xui8>) -> tensor<1x2x2x2xui8>
  %c = relay.nn.avg_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
  %d = relay.add %z, %u : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %a, %b, %c, %d : tensor<1x2x2x2xi8>, tensor<1x2x2x2xui8>, tensor<1x2x2x2xi8>, tensor<3xf32>
}
