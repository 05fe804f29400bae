func.func @pool1d(%x: tensor<?x8x4xf32>) {
  %max = relay.nn.max_pool1d %x {pool_size = array<i64: 3>, strides = array<i64: 2>, padding = array<i64: 1, 1>} : (tensor<?x8x4xf32>) -> tensor<?x4x4xf32>
  %avg = relay.nn.avg_pool1d %x {pool_size = array<i64: 3>, strides = array<i64: 2>, ceil_mode = true, count_include_pad = true} : (tensor<?x8x4xf32>) -> tensor<?x4x4xf32>
  func.return
}

func.func @pool3d(%x: tensor<1x3x4x6x8xi8>) {
  %max = relay.nn.max_pool3d %x {layout = "NCDHW", pool_size = array<i64: 2, 2, 2>, dilation = array<i64: 1, 2, 1>} : (tensor<1x3x4x6x8xi8>) -> tensor<1x3x3x4x7xi8>
  %avg = relay.nn.avg_pool3d %x {layout = "NCDHW", pool_size = array<i64: 2, 2, 2>, strides = array<i64: 2, 2, 2>} : (tensor<1x3x4x6x8xi8>) -> tensor<1x3x2x3x4xi8>
  func.return
}

func.func @global(%x: tensor<1x4x6x8xui8>) {
  %max = relay.nn.global_max_pool2d %x : (tensor<1x4x6x8xui8>) -> tensor<1x1x1x8xui8>
  %avg = relay.nn.global_avg_pool2d %x {layout = "NCHW"} : (tensor<1x4x6x8xui8>) -> tensor<1x4x1x1xui8>
  func.return
}

func.func @adaptive1d(%x: tensor<1x7x8xf32>) {
  %max = relay.nn.adaptive_max_pool1d %x {output_size = array<i64: 3>} : (tensor<1x7x8xf32>) -> tensor<1x3x8xf32>
  %avg = relay.nn.adaptive_avg_pool1d %x {output_size = array<i64: 3>} : (tensor<1x7x8xf32>) -> tensor<1x3x8xf32>
  func.return
}

func.func @adaptive2d(%x: tensor<1x7x9x8xf32>) {
  %max = relay.nn.adaptive_max_pool2d %x {output_size = array<i64: 3, 4>} : (tensor<1x7x9x8xf32>) -> tensor<1x3x4x8xf32>
  %avg = relay.nn.adaptive_avg_pool2d %x {layout = "NCHW", output_size = array<i64: 3, 4>} : (tensor<1x7x9x8xf32>) -> tensor<1x7x3x4xf32>
  func.return
}

func.func @adaptive3d(%x: tensor<1x5x7x9x8xf32>) {
  %max = relay.nn.adaptive_max_pool3d %x {output_size = array<i64: 2, 3, 4>} : (tensor<1x5x7x9x8xf32>) -> tensor<1x2x3x4x8xf32>
  %avg = relay.nn.adaptive_avg_pool3d %x {output_size = array<i64: 2, 3, 4>} : (tensor<1x5x7x9x8xf32>) -> tensor<1x2x3x4x8xf32>
  func.return
}

// -----
// error: relay.nn.max_pool1d: a window of 5 does not fit in 4
func.func @max_pool1d(%x: tensor<1x4x4xi8>) {
  %r = relay.nn.max_pool1d %x {pool_size = array<i64: 3>, dilation = array<i64: 2>} : (tensor<1x4x4xi8>) -> tensor<1x1x4xi8>
  func.return
}

// -----
// error: relay.nn.avg_pool3d: a window may not lie wholly in the padding
func.func @avg_pool3d(%x: tensor<1x4x4x4x4xi8>) {
  %r = relay.nn.avg_pool3d %x {pool_size = array<i64: 1, 2, 2>, padding = array<i64: 1, 0, 0, 0, 0, 0>} : (tensor<1x4x4x4x4xi8>) -> tensor<1x5x3x3x4xi8>
  func.return
}

// -----
// error: relay.nn.adaptive_max_pool2d: output_size needs a number for each spatial axis
func.func @adaptive_max_pool2d(%x: tensor<1x4x4x4xi8>) {
  %r = relay.nn.adaptive_max_pool2d %x {output_size = array<i64: 1>} : (tensor<1x4x4x4xi8>) -> tensor<1x1x1x4xi8>
  func.return
}

// -----
// error: relay.nn.max_pool1d: data must have rank 3
func.func @max_pool1d(%x: tensor<1x4xf32>) {
  %r = relay.nn.max_pool1d %x {pool_size = array<i64: 2>} : (tensor<1x4xf32>) -> tensor<1x3xf32>
  func.return
}

// -----
// error: relay.nn.max_pool1d: strides must be positive
func.func @max_pool1d(%x: tensor<1x4x8xf32>) {
  %r = relay.nn.max_pool1d %x {pool_size = array<i64: 2>, strides = array<i64: 0>} : (tensor<1x4x8xf32>) -> tensor<1x3x8xf32>
  func.return
}

// -----
// error: relay.nn.max_pool1d: pool_size needs a number for each axis
func.func @max_pool1d(%x: tensor<1x4x8xf32>) {
  %r = relay.nn.max_pool1d %x {pool_size = array<i64>} : (tensor<1x4x8xf32>) -> tensor<1x3x8xf32>
  func.return
}

// -----
// error: relay.nn.max_pool1d: padding must not be negative
func.func @max_pool1d(%x: tensor<1x4x8xf32>) {
  %r = relay.nn.max_pool1d %x {pool_size = array<i64: 2>, padding = array<i64: -1, 0>} : (tensor<1x4x8xf32>) -> tensor<1x3x8xf32>
  func.return
}

// -----
// error: relay.nn.adaptive_max_pool1d: output_size must be positive
func.func @adaptive_max_pool1d(%x: tensor<1x7x8xf32>) {
  %r = relay.nn.adaptive_max_pool1d %x {output_size = array<i64: 0>} : (tensor<1x7x8xf32>) -> tensor<1x0x8xf32>
  func.return
}

// -----
// error: relay.nn.adaptive_max_pool1d: takes no empty data
func.func @adaptive_max_pool1d(%x: tensor<1x0x8xf32>) {
  %r = relay.nn.adaptive_max_pool1d %x {output_size = array<i64: 3>} : (tensor<1x0x8xf32>) -> tensor<1x3x8xf32>
  func.return
}
