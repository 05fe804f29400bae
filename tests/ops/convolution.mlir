func.func @conv1d(%x: tensor<1x8x4xf32>, %k: tensor<6x3x4xf32>) {
  %r = relay.nn.conv1d %x, %k {strides = array<i64: 2>, padding = array<i64: 1, 0>, out_dtype = f32} : (tensor<1x8x4xf32>, tensor<6x3x4xf32>) -> tensor<1x4x6xf32>
  func.return
}

func.func @conv3d(%x: tensor<?x4x5x6x7xi8>, %k: tensor<8x3x3x3x4xi8>) {
  %r = relay.nn.conv3d %x, %k {dilation = array<i64: 1, 1, 2>, data_layout = "NCDHW", kernel_layout = "ODHWI", input_zero_point = 3 : i32} : (tensor<?x4x5x6x7xi8>, tensor<8x3x3x3x4xi8>) -> tensor<?x8x3x4x3xi32>
  func.return
}

func.func @conv1d_transpose(%x: tensor<1x4x8xf32>, %k: tensor<4x6x3xf32>) {
  %r = relay.nn.conv1d_transpose %x, %k {strides = array<i64: 2>, data_layout = "NCW", kernel_layout = "IOW", out_dtype = f32, output_padding = array<i64: 1>} : (tensor<1x4x8xf32>, tensor<4x6x3xf32>) -> tensor<1x6x18xf32>
  func.return
}

func.func @conv2d_transpose(%x: tensor<1x4x4x8xi8>, %k: tensor<6x3x3x8xi8>) {
  %r = relay.nn.conv2d_transpose %x, %k {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, input_zero_point = -128 : i32} : (tensor<1x4x4x8xi8>, tensor<6x3x3x8xi8>) -> tensor<1x8x8x6xi32>
  func.return
}

func.func @conv2d_transpose_16x8(%x: tensor<1x4x4x8xi16>, %k: tensor<3x2x2x8xi8>) {
  %r = relay.nn.conv2d_transpose %x, %k {groups = 2 : i64, out_dtype = i64} : (tensor<1x4x4x8xi16>, tensor<3x2x2x8xi8>) -> tensor<1x5x5x6xi64>
  func.return
}

func.func @conv3d_transpose(%x: tensor<1x2x4x4x8xui8>, %k: tensor<6x2x3x3x8xi8>) {
  %r = relay.nn.conv3d_transpose %x, %k {strides = array<i64: 2, 2, 2>, input_zero_point = 7 : i32, kernel_zero_point = 1 : i32} : (tensor<1x2x4x4x8xui8>, tensor<6x2x3x3x8xi8>) -> tensor<1x4x9x9x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d: 4 channels, kernel takes 3 x 1 groups
func.func @conv1d(%x: tensor<1x8x4xi8>, %k: tensor<6x3x3xi8>) {
  %r = relay.nn.conv1d %x, %k : (tensor<1x8x4xi8>, tensor<6x3x3xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv3d: layout NHWC must name NDHWC
func.func @conv3d(%x: tensor<1x8x8x8x4xi8>, %k: tensor<6x3x3x3x4xi8>) {
  %r = relay.nn.conv3d %x, %k {data_layout = "NHWC"} : (tensor<1x8x8x8x4xi8>, tensor<6x3x3x3x4xi8>) -> tensor<1x6x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv3d: strides must have 3 numbers, has 2
func.func @conv3d(%x: tensor<1x8x8x8x4xi8>, %k: tensor<6x3x3x3x4xi8>) {
  %r = relay.nn.conv3d %x, %k {strides = array<i64: 2, 2>} : (tensor<1x8x8x8x4xi8>, tensor<6x3x3x3x4xi8>) -> tensor<1x6x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d_transpose: padding of 3 is wider than the kernel of 3
func.func @conv2d_transpose(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d_transpose %x, %k {padding = array<i64: 3, 0, 0, 0>} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x7x10x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d_transpose: 3 input channels in 2 groups
func.func @conv1d_transpose(%x: tensor<1x8x3xi8>, %k: tensor<6x3x3xi8>) {
  %r = relay.nn.conv1d_transpose %x, %k {groups = 2 : i64} : (tensor<1x8x3xi8>, tensor<6x3x3xi8>) -> tensor<1x10x12xi32>
  func.return
}

// -----
// error: relay.nn.conv1d: layout 'nwc': is no layout
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d %x, %y {data_layout = "nwc"} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d: padding must not be negative
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d %x, %y {padding = array<i64: -1, 0>} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d: operands must have rank 3
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x4xi8>) {
  %r = relay.nn.conv1d %x, %y : (tensor<1x8x4xi8>, tensor<6x4xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d: groups must be positive
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d %x, %y {groups = 0 : i64} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d: the kernel is empty
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x0x4xi8>) {
  %r = relay.nn.conv1d %x, %y : (tensor<1x8x4xi8>, tensor<6x0x4xi8>) -> tensor<1x9x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d: 5 output channels in 2 groups
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<5x3x2xi8>) {
  %r = relay.nn.conv1d %x, %y {groups = 2 : i64} : (tensor<1x8x4xi8>, tensor<5x3x2xi8>) -> tensor<1x6x5xi32>
  func.return
}

// -----
// error: relay.nn.conv1d_transpose: strides and dilation must be positive
func.func @conv1d_transpose(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d_transpose %x, %y {strides = array<i64: 0>} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x10x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d_transpose: output_padding must not be negative
func.func @conv1d_transpose(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d_transpose %x, %y {output_padding = array<i64: -1>} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x9x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d_transpose: padding leaves nothing of axis W
func.func @conv1d_transpose(%x: tensor<1x1x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d_transpose %x, %y {padding = array<i64: 2, 2>} : (tensor<1x1x4xi8>, tensor<6x3x4xi8>) -> tensor<1x1x6xi32>
  func.return
}

// -----
// error: relay.nn.conv1d_transpose: 4 channels, kernel takes 5
func.func @conv1d_transpose(%x: tensor<1x8x4xi8>, %y: tensor<6x3x5xi8>) {
  %r = relay.nn.conv1d_transpose %x, %y : (tensor<1x8x4xi8>, tensor<6x3x5xi8>) -> tensor<1x10x6xi32>
  func.return
}
