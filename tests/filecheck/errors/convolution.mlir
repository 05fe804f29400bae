// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.nn.conv1d: 4 channels, kernel takes 3 x 1 groups
func.func @conv1d(%x: tensor<1x8x4xi8>, %k: tensor<6x3x3xi8>) {
  %r = relay.nn.conv1d %x, %k : (tensor<1x8x4xi8>, tensor<6x3x3xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv3d: layout NHWC must name NDHWC
func.func @conv3d(%x: tensor<1x8x8x8x4xi8>, %k: tensor<6x3x3x3x4xi8>) {
  %r = relay.nn.conv3d %x, %k {data_layout = "NHWC"} : (tensor<1x8x8x8x4xi8>, tensor<6x3x3x3x4xi8>) -> tensor<1x6x6x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv3d: strides must have 3 numbers, has 2
func.func @conv3d(%x: tensor<1x8x8x8x4xi8>, %k: tensor<6x3x3x3x4xi8>) {
  %r = relay.nn.conv3d %x, %k {strides = array<i64: 2, 2>} : (tensor<1x8x8x8x4xi8>, tensor<6x3x3x3x4xi8>) -> tensor<1x6x6x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv2d_transpose: padding of 3 is wider than the kernel of 3
func.func @conv2d_transpose(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d_transpose %x, %k {padding = array<i64: 3, 0, 0, 0>} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x7x10x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d_transpose: 3 input channels in 2 groups
func.func @conv1d_transpose(%x: tensor<1x8x3xi8>, %k: tensor<6x3x3xi8>) {
  %r = relay.nn.conv1d_transpose %x, %k {groups = 2 : i64} : (tensor<1x8x3xi8>, tensor<6x3x3xi8>) -> tensor<1x10x12xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d: layout 'nwc': is no layout
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d %x, %y {data_layout = "nwc"} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d: padding must not be negative
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d %x, %y {padding = array<i64: -1, 0>} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d: operands must have rank 3
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x4xi8>) {
  %r = relay.nn.conv1d %x, %y : (tensor<1x8x4xi8>, tensor<6x4xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d: groups must be positive
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d %x, %y {groups = 0 : i64} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x6x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d: the kernel is empty
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<6x0x4xi8>) {
  %r = relay.nn.conv1d %x, %y : (tensor<1x8x4xi8>, tensor<6x0x4xi8>) -> tensor<1x9x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d: 5 output channels in 2 groups
func.func @conv1d(%x: tensor<1x8x4xi8>, %y: tensor<5x3x2xi8>) {
  %r = relay.nn.conv1d %x, %y {groups = 2 : i64} : (tensor<1x8x4xi8>, tensor<5x3x2xi8>) -> tensor<1x6x5xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d_transpose: strides and dilation must be positive
func.func @conv1d_transpose(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d_transpose %x, %y {strides = array<i64: 0>} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x10x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d_transpose: output_padding must not be negative
func.func @conv1d_transpose(%x: tensor<1x8x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d_transpose %x, %y {output_padding = array<i64: -1>} : (tensor<1x8x4xi8>, tensor<6x3x4xi8>) -> tensor<1x9x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d_transpose: padding leaves nothing of axis W
func.func @conv1d_transpose(%x: tensor<1x1x4xi8>, %y: tensor<6x3x4xi8>) {
  %r = relay.nn.conv1d_transpose %x, %y {padding = array<i64: 2, 2>} : (tensor<1x1x4xi8>, tensor<6x3x4xi8>) -> tensor<1x1x6xi32>
  func.return
}

// -----

// CHECK: relay.nn.conv1d_transpose: 4 channels, kernel takes 5
func.func @conv1d_transpose(%x: tensor<1x8x4xi8>, %y: tensor<6x3x5xi8>) {
  %r = relay.nn.conv1d_transpose %x, %y : (tensor<1x8x4xi8>, tensor<6x3x5xi8>) -> tensor<1x10x6xi32>
  func.return
}
