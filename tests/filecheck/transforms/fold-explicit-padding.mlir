// RUN: relay-opt %s -p fold-explicit-padding | filecheck %s

func.func @conv(%x: tensor<1x8x8x4xi8>, %k: tensor<8x3x3x4xi8>) -> tensor<1x9x9x8xi32> {
  %p = relay.nn.pad %x {pad_width = array<i64: 0, 0, 1, 1, 0, 2, 0, 0>, pad_value = -3 : i8} : (tensor<1x8x8x4xi8>) -> tensor<1x10x10x4xi8>
  %r = relay.nn.conv2d %p, %k {padding = array<i64: 0, 1, 1, 0>, input_zero_point = -3 : i32} : (tensor<1x10x10x4xi8>, tensor<8x3x3x4xi8>) -> tensor<1x9x9x8xi32>
  func.return %r : tensor<1x9x9x8xi32>
}
// CHECK-LABEL: func.func @conv
// CHECK-NEXT:    [[R:%.+]] = relay.nn.conv2d %x, %k {padding = array<i64: 1, 1, 2, 2>
// CHECK-NEXT:    func.return [[R]]

// In NCHW height and width are the last axes.
func.func @maximum(%x: tensor<1x4x8x8xi8>) -> tensor<1x4x8x7xi8> {
  %p = relay.nn.pad %x {pad_width = array<i64: 0, 0, 0, 0, 1, 0, 0, 0>, pad_value = -128 : i8} : (tensor<1x4x8x8xi8>) -> tensor<1x4x9x8xi8>
  %r = relay.nn.max_pool2d %p {pool_size = array<i64: 2, 2>, layout = "NCHW"} : (tensor<1x4x9x8xi8>) -> tensor<1x4x8x7xi8>
  func.return %r : tensor<1x4x8x7xi8>
}
// CHECK-LABEL: func.func @maximum
// CHECK-NEXT:    relay.nn.max_pool2d %x {{.*}}padding = array<i64: 1, 0, 0, 0>

// A window with gaps may lie further outside; with `ceil_mode` more padding could be another number of windows.
func.func @windows(%x: tensor<1x8x8x4xi8>) -> (tensor<1x8x8x4xi8>, tensor<1x5x5x4xi8>) {
  %p = relay.nn.pad %x {pad_width = array<i64: 0, 0, 2, 0, 2, 0, 0, 0>, pad_value = -128 : i8} : (tensor<1x8x8x4xi8>) -> tensor<1x10x10x4xi8>
  %r = relay.nn.max_pool2d %p {pool_size = array<i64: 2, 2>, dilation = array<i64: 2, 2>} : (tensor<1x10x10x4xi8>) -> tensor<1x8x8x4xi8>
  %s = relay.nn.max_pool2d %p {pool_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, ceil_mode = true} : (tensor<1x10x10x4xi8>) -> tensor<1x5x5x4xi8>
  func.return %r, %s : tensor<1x8x8x4xi8>, tensor<1x5x5x4xi8>
}
// CHECK-LABEL: func.func @windows
// CHECK-NEXT:    [[P:%.+]] = relay.nn.pad %x
// CHECK-NEXT:    relay.nn.max_pool2d %x {{.*}}padding = array<i64: 2, 2, 0, 0>
// CHECK-NEXT:    relay.nn.max_pool2d [[P]]

// Padding with another number, of channels, or of a mean stays.
func.func @stays(%x: tensor<1x8x8x4xi8>, %k: tensor<8x1x1x5xi8>) -> (tensor<1x8x8x8xi32>, tensor<1x8x8x5xi8>) {
  %p = relay.nn.pad %x {pad_width = array<i64: 0, 0, 0, 0, 0, 0, 0, 1>, pad_value = 0 : i8} : (tensor<1x8x8x4xi8>) -> tensor<1x8x8x5xi8>
  %r = relay.nn.conv2d %p, %k : (tensor<1x8x8x5xi8>, tensor<8x1x1x5xi8>) -> tensor<1x8x8x8xi32>
  %q = relay.nn.pad %p {pad_width = array<i64: 0, 0, 1, 0, 1, 0, 0, 0>, pad_value = 7 : i8} : (tensor<1x8x8x5xi8>) -> tensor<1x9x9x5xi8>
  %s = relay.nn.max_pool2d %q {pool_size = array<i64: 2, 2>} : (tensor<1x9x9x5xi8>) -> tensor<1x8x8x5xi8>
  func.return %r, %s : tensor<1x8x8x8xi32>, tensor<1x8x8x5xi8>
}
// CHECK-LABEL: func.func @stays
// CHECK:         [[P:%.+]] = relay.nn.pad %x
// CHECK-NEXT:    relay.nn.conv2d [[P]]
// CHECK-NEXT:    [[Q:%.+]] = relay.nn.pad [[P]]
// CHECK-NEXT:    relay.nn.max_pool2d [[Q]]
