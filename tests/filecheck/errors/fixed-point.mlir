// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.fixed_point_multiply: operands must be i32
func.func @fixed_point_multiply(%x: tensor<4xi64>, %m: tensor<i32>) {
  %r = relay.fixed_point_multiply %x, %m, %m : (tensor<4xi64>, tensor<i32>, tensor<i32>) -> tensor<4xi64>
  func.return
}

// -----

// CHECK: relay.fixed_point_multiply: 3 numbers in multiplier for axis of 4
func.func @fixed_point_multiply(%x: tensor<4xi32>, %m: tensor<3xi32>, %s: tensor<i32>) {
  %r = relay.fixed_point_multiply %x, %m, %s : (tensor<4xi32>, tensor<3xi32>, tensor<i32>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: relay.fixed_point_multiply: rounding "odd" is none of
func.func @fixed_point_multiply(%x: tensor<4xi32>, %m: tensor<i32>) {
  %r = relay.fixed_point_multiply %x, %m, %m {rounding = "odd"} : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: relay.lookup: the table must be a vector of 256
func.func @lookup(%x: tensor<4xi8>, %t: tensor<255xi8>) {
  %r = relay.lookup %x, %t : (tensor<4xi8>, tensor<255xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: relay.lookup: takes 8- or 16-bit codes
func.func @lookup(%x: tensor<4xi32>, %t: tensor<256xi8>) {
  %r = relay.lookup %x, %t : (tensor<4xi32>, tensor<256xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: relay.fixed_point_multiply: multiplier must be a scalar or a vector, or of the data's rank
func.func @fixed_point_multiply(%x: tensor<2x2x4xi32>, %m: tensor<1x4xi32>, %s: tensor<i32>) {
  %r = relay.fixed_point_multiply %x, %m, %s : (tensor<2x2x4xi32>, tensor<1x4xi32>, tensor<i32>) -> tensor<2x2x4xi32>
  func.return
}

// -----

// CHECK: relay.rounding_doubling_high_multiply: operands must be i32
func.func @rounding_doubling_high_multiply(%x: tensor<4xi32>, %y: tensor<4xi16>) {
  %r = relay.rounding_doubling_high_multiply %x, %y : (tensor<4xi32>, tensor<4xi16>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: relay.rounding_right_shift: operands must be i32
func.func @rounding_right_shift(%x: tensor<4xi32>, %y: tensor<i8>) {
  %r = relay.rounding_right_shift %x, %y : (tensor<4xi32>, tensor<i8>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: relay.fixed_point_reciprocal: the operand must be i32
func.func @fixed_point_reciprocal(%x: tensor<4xi64>) {
  %m, %h = relay.fixed_point_reciprocal %x : (tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>)
  func.return
}
