// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.nn.conv2d: 4 channels, kernel takes 3 x 1 groups
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x3xi8>) {
  %r = relay.nn.conv2d %x, %k : (tensor<1x8x8x4xi8>, tensor<6x3x3x3xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv2d: kernel_layout must be one of
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %k {kernel_layout = "HOWI"} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv2d: layout NHC must name N, H, W and C
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %k {data_layout = "NHC"} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv2d: 6 output channels are no whole blocks of NHWC4c
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %k {out_layout = "NHWC4c"} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x1x4xi32>
  func.return
}

// -----

// CHECK: relay.nn.max_pool2d: data must have rank 5
func.func @max_pool2d(%x: tensor<1x6x6x3xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, layout = "NHWC4c"} : (tensor<1x6x6x3xi8>) -> tensor<1x5x5x3xi8>
  func.return
}

// -----

// CHECK: relay.nn.conv2d: a window of 9 does not fit in 8 padded to 8
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x9x9x4xi8>) {
  %r = relay.nn.conv2d %x, %k : (tensor<1x8x8x4xi8>, tensor<6x9x9x4xi8>) -> tensor<1x1x1x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.dense: 16 inputs, kernel takes 15
func.func @dense(%x: tensor<2x16xi8>, %k: tensor<10x15xi8>) {
  %r = relay.nn.dense %x, %k : (tensor<2x16xi8>, tensor<10x15xi8>) -> tensor<2x10xi32>
  func.return
}

// -----

// CHECK: relay.nn.dense: integers accumulate in i32 or i64, not i16
func.func @dense(%x: tensor<2x16xi8>, %k: tensor<10x16xi8>) {
  %r = relay.nn.dense %x, %k {out_dtype = i16} : (tensor<2x16xi8>, tensor<10x16xi8>) -> tensor<2x10xi16>
  func.return
}

// -----

// CHECK: relay.nn.bias_add: bias [3] for axis of 4
func.func @bias_add(%x: tensor<2x4xi32>, %b: tensor<3xi32>) {
  %r = relay.nn.bias_add %x, %b : (tensor<2x4xi32>, tensor<3xi32>) -> tensor<2x4xi32>
  func.return
}

// -----

// CHECK: relay.nn.max_pool2d: a window may not lie wholly in the padding
func.func @max_pool2d(%x: tensor<1x6x6x3xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, padding = array<i64: 2, 0, 0, 0>} : (tensor<1x6x6x3xi8>) -> tensor<1x7x5x3xi8>
  func.return
}

// -----

// CHECK: relay.nn.softmax: takes floats, not i8
func.func @softmax(%x: tensor<4xi8>) {
  %r = relay.nn.softmax %x {beta = 1.0 : f32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: relay.image.resize2d: unknown method "cubic"
func.func @resize2d(%x: tensor<1x4x4x3xi8>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>, method = "cubic"} : (tensor<1x4x4x3xi8>) -> tensor<1x8x8x3xi8>
  func.return
}
