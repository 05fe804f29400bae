// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @rescale(
func.func @rescale(%x: tensor<1x2xi32>, %multiplier: tensor<2xi32>, %shift: tensor<i32>) {
  // CHECK: %default = relay.fixed_point_multiply %x, %multiplier, %shift : (tensor<1x2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<1x2xi32>
  %default = relay.fixed_point_multiply %x, %multiplier, %shift : (tensor<1x2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<1x2xi32>
  // CHECK: %single = relay.fixed_point_multiply %x, %multiplier, %shift {axis = 1 : i64, rounding = "upward"} : (tensor<1x2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<1x2xi32>
  %single = relay.fixed_point_multiply %x, %multiplier, %shift {axis = 1 : i64, rounding = "upward"} : (tensor<1x2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<1x2xi32>
  func.return
}

// CHECK-LABEL: func.func @primitives(
func.func @primitives(%x: tensor<4xi32>, %y: tensor<i32>) {
  // CHECK: %high = relay.rounding_doubling_high_multiply %x, %y : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  %high = relay.rounding_doubling_high_multiply %x, %y : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  // CHECK: %shifted = relay.rounding_right_shift %x, %y : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  %shifted = relay.rounding_right_shift %x, %y : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  // CHECK: %mantissa, %headroom = relay.fixed_point_reciprocal %x : (tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  %mantissa, %headroom = relay.fixed_point_reciprocal %x : (tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  func.return
}

// CHECK-LABEL: func.func @lookup(
func.func @lookup(%x: tensor<2x3xi8>, %table: tensor<256xui8>) {
  // CHECK: %r = relay.lookup %x, %table : (tensor<2x3xi8>, tensor<256xui8>) -> tensor<2x3xui8>
  %r = relay.lookup %x, %table : (tensor<2x3xi8>, tensor<256xui8>) -> tensor<2x3xui8>
  func.return
}
