// RUN: relay-opt %s -p legalize | filecheck %s

// Ops that others make up become those: shapes by reshapes, broadcasts and slices.
func.func @tile(%x: tensor<2x3xf32>) -> tensor<4x3xf32> {
  %0 = relay.tile %x {reps = array<i64: 2, 1>} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return %0 : tensor<4x3xf32>
}
// CHECK-LABEL: func.func @tile
// CHECK-NEXT:    [[A:%.+]] = relay.reshape %x {newshape = array<i64: 1, 2, 1, 3>}
// CHECK-NEXT:    [[B:%.+]] = relay.broadcast_to [[A]] {shape = array<i64: 2, 2, 1, 3>}
// CHECK-NEXT:    [[R:%.+]] = relay.reshape [[B]] {newshape = array<i64: 4, 3>}
// CHECK-NEXT:    func.return [[R]]

// One op, several results.
func.func @split(%x: tensor<5xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
  %0, %1 = relay.split %x {indices_or_sections = array<i64: 2>} : (tensor<5xf32>) -> (tensor<2xf32>, tensor<3xf32>)
  func.return %0, %1 : tensor<2xf32>, tensor<3xf32>
}
// CHECK-LABEL: func.func @split
// CHECK-NEXT:    [[A:%.+]] = relay.strided_slice %x {begin = array<i64: 0>, end = array<i64: 2>
// CHECK-NEXT:    [[B:%.+]] = relay.strided_slice %x {begin = array<i64: 2>, end = array<i64: 5>
// CHECK-NEXT:    func.return [[A]], [[B]]

// Means are sums, divided.
func.func @mean(%x: tensor<4x3xf32>) -> tensor<3xf32> {
  %0 = relay.mean %x {axis = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// CHECK-LABEL: func.func @mean
// CHECK-NEXT:    [[S:%.+]] = relay.sum %x {axis = array<i64: 0>}
// CHECK-NEXT:    [[N:%.+]] = relay.constant dense<4.000000e+00> : tensor<f32>
// CHECK-NEXT:    relay.divide [[S]], [[N]]

// A cumulative sum is a few sums with what is 1, 2, ... before.
func.func @cumsum(%x: tensor<3xi32>) -> tensor<3xi32> {
  %0 = relay.cumsum %x {axis = 0 : i64} : (tensor<3xi32>) -> tensor<3xi32>
  func.return %0 : tensor<3xi32>
}
// CHECK-LABEL: func.func @cumsum
// CHECK-NEXT:    [[P:%.+]] = relay.nn.pad %x {pad_width = array<i64: 1, 0>, pad_value = 0 : i32}
// CHECK-NEXT:    [[Q:%.+]] = relay.strided_slice [[P]] {begin = array<i64: 0>, end = array<i64: 3>
// CHECK-NEXT:    [[A:%.+]] = relay.add %x, [[Q]]
// CHECK-NEXT:    [[P2:%.+]] = relay.nn.pad [[A]] {pad_width = array<i64: 2, 0>, pad_value = 0 : i32}
// CHECK-NEXT:    [[Q2:%.+]] = relay.strided_slice [[P2]]
// CHECK-NEXT:    relay.add [[A]], [[Q2]]

// What has an unknown dimension stays.
func.func @unknown(%x: tensor<?x3xf32>) -> tensor<?x6xf32> {
  %0 = relay.tile %x {reps = array<i64: 1, 2>} : (tensor<?x3xf32>) -> tensor<?x6xf32>
  func.return %0 : tensor<?x6xf32>
}
// CHECK-LABEL: func.func @unknown
// CHECK-NEXT:    relay.tile
