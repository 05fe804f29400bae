// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.variance: takes floats, not i32
func.func @variance(%x: tensor<2x3xi32>, %y: tensor<2x3xi32>) {
  %r = relay.variance %x, %y {axis = array<i64: 0>} : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<3xi32>
  func.return
}

// -----

// CHECK: relay.variance: element types differ: f32 and i32
func.func @variance(%x: tensor<2x3xf32>, %y: tensor<2x3xi32>) {
  %r = relay.variance %x, %y {axis = array<i64: 0>} : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<3xf32>
  func.return
}

// -----

// CHECK: relay.variance: the mean has more axes than the input
func.func @variance(%x: tensor<3xf32>, %y: tensor<2x3xf32>) {
  %r = relay.variance %x, %y {axis = array<i64: 0>} : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<f32>
  func.return
}
