func.func @batch_flatten(%x: tensor<?x4x5x6xf32>) {
  %r = relay.nn.batch_flatten %x : (tensor<?x4x5x6xf32>) -> tensor<?x120xf32>
  func.return
}

func.func @mirror_pad(%x: tensor<1x4x5x6xi8>) {
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: 0, 0, 1, 2, 3, 0, 0, 0>, mode = "REFLECT"} : (tensor<1x4x5x6xi8>) -> tensor<1x7x8x6xi8>
  func.return
}

func.func @blocks(%x: tensor<1x4x5x6xi8>) {
  %r = relay.nn.space_to_batch_nd %x {block_shape = array<i64: 2, 3>, paddings = array<i64: 0, 0, 1, 0>, pad_value = 7 : i8} : (tensor<1x4x5x6xi8>) -> tensor<6x2x2x6xi8>
  %s = relay.nn.batch_to_space_nd %r {block_shape = array<i64: 2, 3>, crops = array<i64: 0, 0, 1, 0>} : (tensor<6x2x2x6xi8>) -> tensor<1x4x5x6xi8>
  func.return
}

func.func @pixels(%x: tensor<1x8x4x5xf32>) {
  %r = relay.nn.depth_to_space %x {block_size = 2 : i64, layout = "NCHW", mode = "CRD"} : (tensor<1x8x4x5xf32>) -> tensor<1x2x8x10xf32>
  %s = relay.nn.space_to_depth %r {block_size = 2 : i64, layout = "NCHW"} : (tensor<1x2x8x10xf32>) -> tensor<1x8x4x5xf32>
  func.return
}

func.func @dilate(%x: tensor<1x4x5xf32>) {
  %r = relay.nn.dilate %x {strides = array<i64: 1, 2, 3>, dilation_value = 0.000000e+00 : f32} : (tensor<1x4x5xf32>) -> tensor<1x7x13xf32>
  func.return
}

func.func @fifo_buffer(%x: tensor<1x2x5xf32>, %b: tensor<1x6x5xf32>) {
  %r = relay.nn.fifo_buffer %x, %b {axis = 1 : i64} : (tensor<1x2x5xf32>, tensor<1x6x5xf32>) -> tensor<1x6x5xf32>
  func.return
}

// -----
// error: relay.nn.mirror_pad: 4 elements more than an axis of 4 can give
func.func @mirror_pad(%x: tensor<4xi8>) {
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: 4, 0>, mode = "REFLECT"} : (tensor<4xi8>) -> tensor<8xi8>
  func.return
}

// -----
// error: relay.nn.space_to_batch_nd: 5 is no whole number of 2
func.func @space_to_batch_nd(%x: tensor<1x5x4xi8>) {
  %r = relay.nn.space_to_batch_nd %x {block_shape = array<i64: 2>, paddings = array<i64: 0, 0>, pad_value = 0 : i8} : (tensor<1x5x4xi8>) -> tensor<2x2x4xi8>
  func.return
}

// -----
// error: relay.nn.batch_to_space_nd: a batch of 3 in blocks of 2
func.func @batch_to_space_nd(%x: tensor<3x5x4xi8>) {
  %r = relay.nn.batch_to_space_nd %x {block_shape = array<i64: 2>, crops = array<i64: 0, 0>} : (tensor<3x5x4xi8>) -> tensor<1x10x4xi8>
  func.return
}

// -----
// error: relay.nn.depth_to_space: 6 channels in blocks of 2
func.func @depth_to_space(%x: tensor<1x2x2x6xi8>) {
  %r = relay.nn.depth_to_space %x {block_size = 2 : i64} : (tensor<1x2x2x6xi8>) -> tensor<1x4x4x1xi8>
  func.return
}

// -----
// error: relay.nn.fifo_buffer: the buffer holds less than the data
func.func @fifo_buffer(%x: tensor<3x2xi8>, %b: tensor<2x2xi8>) {
  %r = relay.nn.fifo_buffer %x, %b : (tensor<3x2xi8>, tensor<2x2xi8>) -> tensor<2x2xi8>
  func.return
}

// -----
// error: relay.nn.mirror_pad: pad_width needs two numbers for each of 2 axes, has 2
func.func @mirror_pad(%x: tensor<2x3xi8>) {
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: 1, 1>} : (tensor<2x3xi8>) -> tensor<4x3xi8>
  func.return
}

// -----
// error: relay.nn.mirror_pad: pad_width must not be negative
func.func @mirror_pad(%x: tensor<3xi8>) {
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: -1, 0>} : (tensor<3xi8>) -> tensor<2xi8>
  func.return
}

// -----
// error: relay.nn.mirror_pad: mode must be one of
func.func @mirror_pad(%x: tensor<3xi8>) {
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: 1, 0>, mode = "ZERO"} : (tensor<3xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.nn.mirror_pad: mirrors an axis of unknown size
func.func @mirror_pad(%x: tensor<?xi8>) {
  %r = relay.nn.mirror_pad %x {pad_width = array<i64: 1, 0>} : (tensor<?xi8>) -> tensor<?xi8>
  func.return
}

// -----
// error: relay.nn.batch_flatten: takes rank 1 or more
func.func @batch_flatten(%x: tensor<i8>) {
  %r = relay.nn.batch_flatten %x : (tensor<i8>) -> tensor<1x1xi8>
  func.return
}

// -----
// error: relay.nn.space_to_batch_nd: block_shape must have 1 to 2 numbers
func.func @space_to_batch_nd(%x: tensor<1x4x4xi8>) {
  %r = relay.nn.space_to_batch_nd %x {block_shape = array<i64: 2, 2, 2>, paddings = array<i64>, pad_value = 0 : i8} : (tensor<1x4x4xi8>) -> tensor<4x2x2xi8>
  func.return
}

// -----
// error: relay.nn.space_to_batch_nd: block_shape must be positive
func.func @space_to_batch_nd(%x: tensor<1x4x4xi8>) {
  %r = relay.nn.space_to_batch_nd %x {block_shape = array<i64: 0>, paddings = array<i64: 0, 0>, pad_value = 0 : i8} : (tensor<1x4x4xi8>) -> tensor<4x2x2xi8>
  func.return
}

// -----
// error: relay.nn.space_to_batch_nd: pad_value is not i8
func.func @space_to_batch_nd(%x: tensor<1x4x4xi8>) {
  %r = relay.nn.space_to_batch_nd %x {block_shape = array<i64: 2>, paddings = array<i64: 0, 0>, pad_value = 0 : i32} : (tensor<1x4x4xi8>) -> tensor<2x2x4xi8>
  func.return
}

// -----
// error: relay.nn.batch_to_space_nd: crops 5 of 4
func.func @batch_to_space_nd(%x: tensor<2x2x4xi8>) {
  %r = relay.nn.batch_to_space_nd %x {block_shape = array<i64: 2>, crops = array<i64: 2, 3>} : (tensor<2x2x4xi8>) -> tensor<1x0x4xi8>
  func.return
}

// -----
// error: relay.nn.space_to_depth: data must have rank 4
func.func @space_to_depth(%x: tensor<4x4x1xi8>) {
  %r = relay.nn.space_to_depth %x {block_size = 2 : i64} : (tensor<4x4x1xi8>) -> tensor<2x2x4xi8>
  func.return
}

// -----
// error: relay.nn.space_to_depth: block_size must be positive
func.func @space_to_depth(%x: tensor<1x4x4x1xi8>) {
  %r = relay.nn.space_to_depth %x {block_size = 0 : i64} : (tensor<1x4x4x1xi8>) -> tensor<1x2x2x4xi8>
  func.return
}

// -----
// error: relay.nn.space_to_depth: 3 is no whole number of 2
func.func @space_to_depth(%x: tensor<1x4x3x1xi8>) {
  %r = relay.nn.space_to_depth %x {block_size = 2 : i64} : (tensor<1x4x3x1xi8>) -> tensor<1x2x2x4xi8>
  func.return
}

// -----
// error: relay.nn.depth_to_space: mode must be one of
func.func @depth_to_space(%x: tensor<1x2x2x4xi8>) {
  %r = relay.nn.depth_to_space %x {block_size = 2 : i64, mode = "RCD"} : (tensor<1x2x2x4xi8>) -> tensor<1x4x4x1xi8>
  func.return
}

// -----
// error: relay.nn.dilate: strides needs a number for each axis
func.func @dilate(%x: tensor<2x3xi8>) {
  %r = relay.nn.dilate %x {strides = array<i64: 2>, dilation_value = 0 : i8} : (tensor<2x3xi8>) -> tensor<3x5xi8>
  func.return
}

// -----
// error: relay.nn.dilate: strides must be positive
func.func @dilate(%x: tensor<2xi8>) {
  %r = relay.nn.dilate %x {strides = array<i64: 0>, dilation_value = 0 : i8} : (tensor<2xi8>) -> tensor<3xi8>
  func.return
}

// -----
// error: relay.nn.dilate: dilation_value is not i8
func.func @dilate(%x: tensor<2xi8>) {
  %r = relay.nn.dilate %x {strides = array<i64: 2>, dilation_value = 0.0 : f32} : (tensor<2xi8>) -> tensor<3xi8>
  func.return
}

// -----
// error: relay.nn.fifo_buffer: data [1, 3] and buffer [4, 2] differ beside axis 0
func.func @fifo_buffer(%x: tensor<1x3xi8>, %y: tensor<4x2xi8>) {
  %r = relay.nn.fifo_buffer %x, %y : (tensor<1x3xi8>, tensor<4x2xi8>) -> tensor<4x2xi8>
  func.return
}

// -----
// error: relay.nn.fifo_buffer: element types differ
func.func @fifo_buffer(%x: tensor<1x2xi8>, %y: tensor<4x2xi16>) {
  %r = relay.nn.fifo_buffer %x, %y : (tensor<1x2xi8>, tensor<4x2xi16>) -> tensor<4x2xi8>
  func.return
}
