// RUN: relay-opt %s -p dead-pixels | filecheck %s

// A 3x3 convolution that only a strided 1x1 convolution reads, by way of elementwise ops, takes its strides. Of what
// another one reads wholly, the addition reads a slice.

// CHECK-LABEL: func.func @through_an_addition
// CHECK:         [[A:%.+]] = relay.nn.conv2d %x, %w {padding = array<i64: 1, 1, 1, 1>}
// CHECK-NEXT:    [[B:%.+]] = relay.cast [[A]] {dtype = i8}
// CHECK-NEXT:    [[C:%.+]] = relay.nn.conv2d [[B]], %w {padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>}
// CHECK-NEXT:    [[S:%.+]] = relay.strided_slice [[A]] {begin = array<i64: 0, 0, 0, 0>, end = array<i64: 1, 5, 8, 2>, strides = array<i64: 1, 2, 2, 1>}
// CHECK-NEXT:    [[D:%.+]] = relay.add [[C]], [[S]] : (tensor<1x3x4x2xi32>, tensor<1x3x4x2xi32>) -> tensor<1x3x4x2xi32>
// CHECK-NEXT:    [[E:%.+]] = relay.cast [[D]] {dtype = i8}
// CHECK-NEXT:    relay.nn.conv2d [[E]], %v : (tensor<1x3x4x2xi8>, tensor<2x1x1x2xi8>) -> tensor<1x3x4x2xi32>
func.func @through_an_addition(%x: tensor<1x5x8x2xi8>, %w: tensor<2x3x3x2xi8>, %v: tensor<2x1x1x2xi8>) -> tensor<1x3x4x2xi32> {
  %a = relay.nn.conv2d %x, %w {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x5x8x2xi8>, tensor<2x3x3x2xi8>) -> tensor<1x5x8x2xi32>
  %b = relay.cast %a {dtype = i8} : (tensor<1x5x8x2xi32>) -> tensor<1x5x8x2xi8>
  %c = relay.nn.conv2d %b, %w {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x5x8x2xi8>, tensor<2x3x3x2xi8>) -> tensor<1x5x8x2xi32>
  %d = relay.add %c, %a : (tensor<1x5x8x2xi32>, tensor<1x5x8x2xi32>) -> tensor<1x5x8x2xi32>
  %e = relay.cast %d {dtype = i8} : (tensor<1x5x8x2xi32>) -> tensor<1x5x8x2xi8>
  %f = relay.nn.conv2d %e, %v {strides = array<i64: 2, 2>} : (tensor<1x5x8x2xi8>, tensor<2x1x1x2xi8>) -> tensor<1x3x4x2xi32>
  func.return %f : tensor<1x3x4x2xi32>
}
