// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.nn.mirror_pad: 4 elements more than an axis of 4 can give
func.func @mirror_pad(%x: tensor<4xi8>) {
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: 4, 0>, mode = "REFLECT"} : (tensor<4xi8>) -> tensor<8xi8>
  func.return
}

// -----

// CHECK: relay.nn.space_to_batch_nd: 5 is no whole number of 2
func.func @space_to_batch_nd(%x: tensor<1x5x4xi8>) {
  %r = relay.nn.space_to_batch_nd %x {block_shape = array<i64: 2>, paddings = array<i64: 0, 0>, pad_value = 0 : i8} : (tensor<1x5x4xi8>) -> tensor<2x2x4xi8>
  func.return
}

// -----

// CHECK: relay.nn.batch_to_space_nd: a batch of 3 in blocks of 2
func.func @batch_to_space_nd(%x: tensor<3x5x4xi8>) {
  %r = relay.nn.batch_to_space_nd %x {block_shape = array<i64: 2>, crops = array<i64: 0, 0>} : (tensor<3x5x4xi8>) -> tensor<1x10x4xi8>
  func.return
}

// -----

// CHECK: relay.nn.depth_to_space: 6 channels in blocks of 2
func.func @depth_to_space(%x: tensor<1x2x2x6xi8>) {
  %r = relay.nn.depth_to_space %x {block_size = 2 : i64} : (tensor<1x2x2x6xi8>) -> tensor<1x4x4x1xi8>
  func.return
}

// -----

// CHECK: relay.nn.fifo_buffer: the buffer holds less than the data
func.func @fifo_buffer(%x: tensor<3x2xi8>, %b: tensor<2x2xi8>) {
  %r = relay.nn.fifo_buffer %x, %b : (tensor<3x2xi8>, tensor<2x2xi8>) -> tensor<2x2xi8>
  func.return
}
