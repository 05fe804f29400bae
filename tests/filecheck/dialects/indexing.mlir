// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @gather(
func.func @gather(%a0: tensor<3x5x4xf32>, %a1: tensor<3x2x4xi32>) {
  // CHECK: %r0 = relay.gather %a0, %a1 {axis = 1 : i64} : (tensor<3x5x4xf32>, tensor<3x2x4xi32>) -> tensor<3x2x4xf32>
  %r0 = relay.gather %a0, %a1 {axis = 1 : i64} : (tensor<3x5x4xf32>, tensor<3x2x4xi32>) -> tensor<3x2x4xf32>
  func.return
}

// CHECK-LABEL: func.func @adv_index(
func.func @adv_index(%a0: tensor<3x5x4xf32>, %a1: tensor<2x1xi32>, %a2: tensor<6xi32>) {
  // CHECK: %r0 = relay.adv_index %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<2x1xi32>, tensor<6xi32>) -> tensor<2x6x4xf32>
  %r0 = relay.adv_index %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<2x1xi32>, tensor<6xi32>) -> tensor<2x6x4xf32>
  func.return
}

// CHECK-LABEL: func.func @reverse_sequence(
func.func @reverse_sequence(%a0: tensor<3x5x4xf32>, %a1: tensor<3xi32>) {
  // CHECK: %r0 = relay.reverse_sequence %a0, %a1 : (tensor<3x5x4xf32>, tensor<3xi32>) -> tensor<3x5x4xf32>
  %r0 = relay.reverse_sequence %a0, %a1 : (tensor<3x5x4xf32>, tensor<3xi32>) -> tensor<3x5x4xf32>
  func.return
}

// CHECK-LABEL: func.func @scatter(
func.func @scatter(%a0: tensor<3x5x4xf32>, %a1: tensor<6x5x4xi32>, %a2: tensor<6x5x4xf32>) {
  // CHECK: %r0 = relay.scatter %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<6x5x4xi32>, tensor<6x5x4xf32>) -> tensor<3x5x4xf32>
  %r0 = relay.scatter %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<6x5x4xi32>, tensor<6x5x4xf32>) -> tensor<3x5x4xf32>
  func.return
}

// CHECK-LABEL: func.func @scatter_add(
func.func @scatter_add(%a0: tensor<3x5x4xf32>, %a1: tensor<6x5x4xi32>, %a2: tensor<6x5x4xf32>) {
  // CHECK: %r0 = relay.scatter_add %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<6x5x4xi32>, tensor<6x5x4xf32>) -> tensor<3x5x4xf32>
  %r0 = relay.scatter_add %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<6x5x4xi32>, tensor<6x5x4xf32>) -> tensor<3x5x4xf32>
  func.return
}

// CHECK-LABEL: func.func @scatter_nd(
func.func @scatter_nd(%a0: tensor<3x5x4xf32>, %a1: tensor<7x2xi32>, %a2: tensor<7x4xf32>) {
  // CHECK: %r0 = relay.scatter_nd %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<7x2xi32>, tensor<7x4xf32>) -> tensor<3x5x4xf32>
  %r0 = relay.scatter_nd %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<7x2xi32>, tensor<7x4xf32>) -> tensor<3x5x4xf32>
  func.return
}

// CHECK-LABEL: func.func @strided_set(
func.func @strided_set(%a0: tensor<3x5x4xf32>, %a1: tensor<3x2x2xf32>) {
  // CHECK: %r0 = relay.strided_set %a0, %a1 {begin = array<i64: 0, 1, 0>, end = array<i64: 3, 5, 4>, strides = array<i64: 1, 2, 3>} : (tensor<3x5x4xf32>, tensor<3x2x2xf32>) -> tensor<3x5x4xf32>
  %r0 = relay.strided_set %a0, %a1 {begin = array<i64: 0, 1, 0>, end = array<i64: 3, 5, 4>, strides = array<i64: 1, 2, 3>} : (tensor<3x5x4xf32>, tensor<3x2x2xf32>) -> tensor<3x5x4xf32>
  func.return
}

// CHECK-LABEL: func.func @invert_permutation(
func.func @invert_permutation(%a0: tensor<9xi32>) {
  // CHECK: %r0 = relay.invert_permutation %a0 : (tensor<9xi32>) -> tensor<9xi32>
  %r0 = relay.invert_permutation %a0 : (tensor<9xi32>) -> tensor<9xi32>
  func.return
}

// CHECK-LABEL: func.func @unravel_index(
func.func @unravel_index(%a0: tensor<2x3xi32>) {
  // CHECK: %r0 = relay.unravel_index %a0 {shape = array<i64: 2, 3, 4>} : (tensor<2x3xi32>) -> tensor<3x2x3xi32>
  %r0 = relay.unravel_index %a0 {shape = array<i64: 2, 3, 4>} : (tensor<2x3xi32>) -> tensor<3x2x3xi32>
  func.return
}
