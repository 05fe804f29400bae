// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.add: element types differ: f32 and i32
func.func @types(%x: tensor<4xf32>, %y: tensor<4xi32>) {
  %r = relay.add %x, %y : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: relay.add: shapes [4] and [3] do not broadcast
func.func @shapes(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  %r = relay.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  func.return
}
