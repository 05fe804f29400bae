// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @conv2d(
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>, %bias: tensor<6xi32>) {
  // CHECK: %conv = relay.nn.conv2d %x, %k {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, input_zero_point = -128 : i32} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x4x4x6xi32>
  %conv = relay.nn.conv2d %x, %k {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, input_zero_point = -128 : i32} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x4x4x6xi32>
  // CHECK: %biased = relay.nn.bias_add %conv, %bias : (tensor<1x4x4x6xi32>, tensor<6xi32>) -> tensor<1x4x4x6xi32>
  %biased = relay.nn.bias_add %conv, %bias : (tensor<1x4x4x6xi32>, tensor<6xi32>) -> tensor<1x4x4x6xi32>
  func.return
}

// CHECK-LABEL: func.func @depthwise(
func.func @depthwise(%x: tensor<?x8x8x4xf32>, %k: tensor<3x3x4x2xf32>) {
  // CHECK: %conv = relay.nn.conv2d %x, %k {dilation = array<i64: 2, 2>, groups = 4 : i64, kernel_layout = "HWOI", out_dtype = f32} : (tensor<?x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<?x4x4x8xf32>
  %conv = relay.nn.conv2d %x, %k {dilation = array<i64: 2, 2>, groups = 4 : i64, kernel_layout = "HWOI", out_dtype = f32} : (tensor<?x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<?x4x4x8xf32>
  func.return
}

// CHECK-LABEL: func.func @dense(
func.func @dense(%x: tensor<2x16xui8>, %k: tensor<10x16xui8>) {
  // CHECK: %r = relay.nn.dense %x, %k {input_zero_point = 128 : i32, kernel_zero_point = 127 : i32} : (tensor<2x16xui8>, tensor<10x16xui8>) -> tensor<2x10xi32>
  %r = relay.nn.dense %x, %k {input_zero_point = 128 : i32, kernel_zero_point = 127 : i32} : (tensor<2x16xui8>, tensor<10x16xui8>) -> tensor<2x10xi32>
  func.return
}

// CHECK-LABEL: func.func @pool(
func.func @pool(%x: tensor<1x6x6x3xi8>) {
  // CHECK: %max = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x6x6x3xi8>) -> tensor<1x3x3x3xi8>
  %max = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x6x6x3xi8>) -> tensor<1x3x3x3xi8>
  // CHECK: %avg = relay.nn.avg_pool2d %x {pool_size = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x6x6x3xi8>) -> tensor<1x6x6x3xi8>
  %avg = relay.nn.avg_pool2d %x {pool_size = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x6x6x3xi8>) -> tensor<1x6x6x3xi8>
  // CHECK: %gaps = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilation = array<i64: 2, 1>, ceil_mode = true} : (tensor<1x6x6x3xi8>) -> tensor<1x3x3x3xi8>
  %gaps = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilation = array<i64: 2, 1>, ceil_mode = true} : (tensor<1x6x6x3xi8>) -> tensor<1x3x3x3xi8>
  // CHECK: %ceil = relay.nn.avg_pool2d %x {pool_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, ceil_mode = true, count_include_pad = true} : (tensor<1x6x6x3xi8>) -> tensor<1x4x4x3xi8>
  %ceil = relay.nn.avg_pool2d %x {pool_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, ceil_mode = true, count_include_pad = true} : (tensor<1x6x6x3xi8>) -> tensor<1x4x4x3xi8>
  func.return
}

// CHECK-LABEL: func.func @softmax(
func.func @softmax(%x: tensor<1x10xf32>) {
  // CHECK: %r = relay.nn.softmax %x {beta = 1.000000e+00 : f32} : (tensor<1x10xf32>) -> tensor<1x10xf32>
  %r = relay.nn.softmax %x {beta = 1.000000e+00 : f32} : (tensor<1x10xf32>) -> tensor<1x10xf32>
  func.return
}

// CHECK-LABEL: func.func @layouts(
func.func @layouts(%x: tensor<1x4x8x8xi8>, %k: tensor<8x4x3x3xi8>) {
  // CHECK: %conv = relay.nn.conv2d %x, %k {data_layout = "NCHW", kernel_layout = "OIHW", out_layout = "NHWC4c"} : (tensor<1x4x8x8xi8>, tensor<8x4x3x3xi8>) -> tensor<1x6x6x2x4xi32>
  %conv = relay.nn.conv2d %x, %k {data_layout = "NCHW", kernel_layout = "OIHW", out_layout = "NHWC4c"} : (tensor<1x4x8x8xi8>, tensor<8x4x3x3xi8>) -> tensor<1x6x6x2x4xi32>
  // CHECK: %max = relay.nn.max_pool2d %conv {pool_size = array<i64: 2, 2>, layout = "NHWC4c"} : (tensor<1x6x6x2x4xi32>) -> tensor<1x5x5x2x4xi32>
  %max = relay.nn.max_pool2d %conv {pool_size = array<i64: 2, 2>, layout = "NHWC4c"} : (tensor<1x6x6x2x4xi32>) -> tensor<1x5x5x2x4xi32>
  func.return
}
