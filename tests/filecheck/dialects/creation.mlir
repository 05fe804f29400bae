// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @zeros(
func.func @zeros() {
  // CHECK: %r0 = relay.zeros {shape = array<i64: 2, 3>, dtype = f32} : tensor<2x3xf32>
  %r0 = relay.zeros {shape = array<i64: 2, 3>, dtype = f32} : tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @ones(
func.func @ones() {
  // CHECK: %r0 = relay.ones {shape = array<i64: 2, 3>, dtype = f32} : tensor<2x3xf32>
  %r0 = relay.ones {shape = array<i64: 2, 3>, dtype = f32} : tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @full(
func.func @full(%a0: tensor<f32>) {
  // CHECK: %r0 = relay.full %a0 {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  %r0 = relay.full %a0 {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  func.return
}

// CHECK-LABEL: func.func @full_like(
func.func @full_like(%a0: tensor<4x2xf32>, %a1: tensor<f32>) {
  // CHECK: %r0 = relay.full_like %a0, %a1 : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  %r0 = relay.full_like %a0, %a1 : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  func.return
}

// CHECK-LABEL: func.func @arange(
func.func @arange() {
  // CHECK: %r0 = relay.arange {start = 7 : i32, stop = -3 : i32, step = -3 : i32} : tensor<4xi32>
  %r0 = relay.arange {start = 7 : i32, stop = -3 : i32, step = -3 : i32} : tensor<4xi32>
  func.return
}

// CHECK-LABEL: func.func @one_hot(
func.func @one_hot(%a0: tensor<2x3xi32>, %a1: tensor<f32>, %a2: tensor<f32>) {
  // CHECK: %r0 = relay.one_hot %a0, %a1, %a2 {depth = 5 : i64} : (tensor<2x3xi32>, tensor<f32>, tensor<f32>) -> tensor<2x3x5xf32>
  %r0 = relay.one_hot %a0, %a1, %a2 {depth = 5 : i64} : (tensor<2x3xi32>, tensor<f32>, tensor<f32>) -> tensor<2x3x5xf32>
  func.return
}

// CHECK-LABEL: func.func @cumsum(
func.func @cumsum(%a0: tensor<2x4x3xf32>) {
  // CHECK: %r0 = relay.cumsum %a0 {axis = 1 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %r0 = relay.cumsum %a0 {axis = 1 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  func.return
}

// CHECK-LABEL: func.func @cumprod(
func.func @cumprod(%a0: tensor<2x4x3xf32>) {
  // CHECK: %r0 = relay.cumprod %a0 {axis = 1 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %r0 = relay.cumprod %a0 {axis = 1 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  func.return
}

// CHECK-LABEL: func.func @sequence_mask(
func.func @sequence_mask(%a0: tensor<4x5x2xf32>, %a1: tensor<5xi32>) {
  // CHECK: %r0 = relay.sequence_mask %a0, %a1 {mask_value = 3.000000e+00 : f32} : (tensor<4x5x2xf32>, tensor<5xi32>) -> tensor<4x5x2xf32>
  %r0 = relay.sequence_mask %a0, %a1 {mask_value = 3.000000e+00 : f32} : (tensor<4x5x2xf32>, tensor<5xi32>) -> tensor<4x5x2xf32>
  func.return
}

// CHECK-LABEL: func.func @matrix_set_diag(
func.func @matrix_set_diag(%a0: tensor<2x3x4xf32>, %a1: tensor<2x3xf32>) {
  // CHECK: %r0 = relay.matrix_set_diag %a0, %a1 : (tensor<2x3x4xf32>, tensor<2x3xf32>) -> tensor<2x3x4xf32>
  %r0 = relay.matrix_set_diag %a0, %a1 : (tensor<2x3x4xf32>, tensor<2x3xf32>) -> tensor<2x3x4xf32>
  func.return
}
