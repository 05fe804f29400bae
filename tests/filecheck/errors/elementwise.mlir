// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.add: element types differ: f32 and i32
func.func @add(%x: tensor<4xf32>, %y: tensor<4xi32>) {
  %r = relay.add %x, %y : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: relay.add: shapes [4] and [3] do not broadcast
func.func @add(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  %r = relay.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: relay.negative: result 0 is tensor<5xf32>; expected tensor<4xf32>
func.func @negative(%x: tensor<4xf32>) {
  %r = relay.negative %x : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

// CHECK: relay.exp: takes floats, not i32
func.func @exp(%x: tensor<4xi32>) {
  %r = relay.exp %x : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: relay.left_shift: takes integers, not f32
func.func @left_shift(%x: tensor<4xf32>) {
  %r = relay.left_shift %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: relay.where: the condition must be i1
func.func @where(%c: tensor<4xi8>, %x: tensor<4xf32>) {
  %r = relay.where %c, %x, %x : (tensor<4xi8>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: relay.clip: bound 0 : i32 is not of f32
func.func @clip(%x: tensor<4xf32>) {
  %r = relay.clip %x {a_min = 0 : i32, a_max = 6 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: relay.where: element types differ: f32 and i8
func.func @where(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xi8>) {
  %r = relay.where %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
  func.return
}

// -----

func.func @add_of_booleans(%x: tensor<2xi1>) {
  // CHECK: relay.add: takes numbers, not i1; cast them first
  %0 = relay.add %x, %x : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  func.return
}

// -----

func.func @negative_of_booleans(%x: tensor<2xi1>) {
  // CHECK: relay.negative: takes numbers, not i1; cast them first
  %0 = relay.negative %x : (tensor<2xi1>) -> tensor<2xi1>
  func.return
}
