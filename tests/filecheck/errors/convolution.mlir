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
