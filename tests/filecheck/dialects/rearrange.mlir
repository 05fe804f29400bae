// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @batch_flatten(
func.func @batch_flatten(%x: tensor<?x4x5x6xf32>) {
  // CHECK: %r = relay.nn.batch_flatten %x : (tensor<?x4x5x6xf32>) -> tensor<?x120xf32>
  %r = relay.nn.batch_flatten %x : (tensor<?x4x5x6xf32>) -> tensor<?x120xf32>
  func.return
}

// CHECK-LABEL: func.func @mirror_pad(
func.func @mirror_pad(%x: tensor<1x4x5x6xi8>) {
  // CHECK: %r = relay.nn.mirror_pad %x {pad_width = array<i64: 0, 0, 1, 2, 3, 0, 0, 0>, mode = "REFLECT"} : (tensor<1x4x5x6xi8>) -> tensor<1x7x8x6xi8>
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: 0, 0, 1, 2, 3, 0, 0, 0>, mode = "REFLECT"} : (tensor<1x4x5x6xi8>) -> tensor<1x7x8x6xi8>
  func.return
}

// CHECK-LABEL: func.func @blocks(
func.func @blocks(%x: tensor<1x4x5x6xi8>) {
  // CHECK: %r = relay.nn.space_to_batch_nd %x {block_shape = array<i64: 2, 3>, paddings = array<i64: 0, 0, 1, 0>, pad_value = 7 : i8} : (tensor<1x4x5x6xi8>) -> tensor<6x2x2x6xi8>
  %r = relay.nn.space_to_batch_nd %x {block_shape = array<i64: 2, 3>, paddings = array<i64: 0, 0, 1, 0>, pad_value = 7 : i8} : (tensor<1x4x5x6xi8>) -> tensor<6x2x2x6xi8>
  // CHECK: %s = relay.nn.batch_to_space_nd %r {block_shape = array<i64: 2, 3>, crops = array<i64: 0, 0, 1, 0>} : (tensor<6x2x2x6xi8>) -> tensor<1x4x5x6xi8>
  %s = relay.nn.batch_to_space_nd %r {block_shape = array<i64: 2, 3>, crops = array<i64: 0, 0, 1, 0>} : (tensor<6x2x2x6xi8>) -> tensor<1x4x5x6xi8>
  func.return
}

// CHECK-LABEL: func.func @pixels(
func.func @pixels(%x: tensor<1x8x4x5xf32>) {
  // CHECK: %r = relay.nn.depth_to_space %x {block_size = 2 : i64, layout = "NCHW", mode = "CRD"} : (tensor<1x8x4x5xf32>) -> tensor<1x2x8x10xf32>
  %r = relay.nn.depth_to_space %x {block_size = 2 : i64, layout = "NCHW", mode = "CRD"} : (tensor<1x8x4x5xf32>) -> tensor<1x2x8x10xf32>
  // CHECK: %s = relay.nn.space_to_depth %r {block_size = 2 : i64, layout = "NCHW"} : (tensor<1x2x8x10xf32>) -> tensor<1x8x4x5xf32>
  %s = relay.nn.space_to_depth %r {block_size = 2 : i64, layout = "NCHW"} : (tensor<1x2x8x10xf32>) -> tensor<1x8x4x5xf32>
  func.return
}

// CHECK-LABEL: func.func @dilate(
func.func @dilate(%x: tensor<1x4x5xf32>) {
  // CHECK: %r = relay.nn.dilate %x {strides = array<i64: 1, 2, 3>, dilation_value = 0.000000e+00 : f32} : (tensor<1x4x5xf32>) -> tensor<1x7x13xf32>
  %r = relay.nn.dilate %x {strides = array<i64: 1, 2, 3>, dilation_value = 0.000000e+00 : f32} : (tensor<1x4x5xf32>) -> tensor<1x7x13xf32>
  func.return
}

// CHECK-LABEL: func.func @fifo_buffer(
func.func @fifo_buffer(%x: tensor<1x2x5xf32>, %b: tensor<1x6x5xf32>) {
  // CHECK: %r = relay.nn.fifo_buffer %x, %b {axis = 1 : i64} : (tensor<1x2x5xf32>, tensor<1x6x5xf32>) -> tensor<1x6x5xf32>
  %r = relay.nn.fifo_buffer %x, %b {axis = 1 : i64} : (tensor<1x2x5xf32>, tensor<1x6x5xf32>) -> tensor<1x6x5xf32>
  func.return
}
