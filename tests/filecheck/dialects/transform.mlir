// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @expand_dims(
func.func @expand_dims(%a0: tensor<2x3x4xf32>) {
  // CHECK: %r0 = relay.expand_dims %a0 {axis = 1 : i64, num_newaxis = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<2x1x1x3x4xf32>
  %r0 = relay.expand_dims %a0 {axis = 1 : i64, num_newaxis = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<2x1x1x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @squeeze(
func.func @squeeze(%a0: tensor<1x3x1xf32>) {
  // CHECK: %r0 = relay.squeeze %a0 {axis = array<i64: -1>} : (tensor<1x3x1xf32>) -> tensor<1x3xf32>
  %r0 = relay.squeeze %a0 {axis = array<i64: -1>} : (tensor<1x3x1xf32>) -> tensor<1x3xf32>
  func.return
}

// CHECK-LABEL: func.func @stack(
func.func @stack(%a0: tensor<2x3x4xf32>, %a1: tensor<2x3x4xf32>) {
  // CHECK: %r0 = relay.stack %a0, %a1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x2x3x4xf32>
  %r0 = relay.stack %a0, %a1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x2x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @repeat(
func.func @repeat(%a0: tensor<2x3x4xf32>) {
  // CHECK: %r0 = relay.repeat %a0 {repeats = 3 : i64, axis = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<6x3x4xf32>
  %r0 = relay.repeat %a0 {repeats = 3 : i64, axis = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<6x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @split(
func.func @split(%a0: tensor<2x3x4xf32>) {
  // CHECK: %r0, %r1 = relay.split %a0 {indices_or_sections = 2 : i64, axis = -1 : i64} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>)
  %r0, %r1 = relay.split %a0 {indices_or_sections = 2 : i64, axis = -1 : i64} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>)
  func.return
}

// CHECK-LABEL: func.func @tile(
func.func @tile(%a0: tensor<2x3x4xf32>) {
  // CHECK: %r0 = relay.tile %a0 {reps = array<i64: 2, 1, 3>} : (tensor<2x3x4xf32>) -> tensor<4x3x12xf32>
  %r0 = relay.tile %a0 {reps = array<i64: 2, 1, 3>} : (tensor<2x3x4xf32>) -> tensor<4x3x12xf32>
  func.return
}

// CHECK-LABEL: func.func @reverse(
func.func @reverse(%a0: tensor<2x3x4xf32>) {
  // CHECK: %r0 = relay.reverse %a0 {axis = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %r0 = relay.reverse %a0 {axis = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @meshgrid(
func.func @meshgrid(%a0: tensor<3xf32>, %a1: tensor<f32>, %a2: tensor<4xf32>) {
  // CHECK: %r0, %r1, %r2 = relay.meshgrid %a0, %a1, %a2 : (tensor<3xf32>, tensor<f32>, tensor<4xf32>) -> (tensor<3x1x4xf32>, tensor<3x1x4xf32>, tensor<3x1x4xf32>)
  %r0, %r1, %r2 = relay.meshgrid %a0, %a1, %a2 : (tensor<3xf32>, tensor<f32>, tensor<4xf32>) -> (tensor<3x1x4xf32>, tensor<3x1x4xf32>, tensor<3x1x4xf32>)
  func.return
}

// CHECK-LABEL: func.func @cast_like(
func.func @cast_like(%a0: tensor<2x3x4xf32>, %a1: tensor<6x4xi16>) {
  // CHECK: %r0 = relay.cast_like %a0, %a1 : (tensor<2x3x4xf32>, tensor<6x4xi16>) -> tensor<2x3x4xi16>
  %r0 = relay.cast_like %a0, %a1 : (tensor<2x3x4xf32>, tensor<6x4xi16>) -> tensor<2x3x4xi16>
  func.return
}

// CHECK-LABEL: func.func @reshape_like(
func.func @reshape_like(%a0: tensor<2x3x4xf32>, %a1: tensor<6x4xi16>) {
  // CHECK: %r0 = relay.reshape_like %a0, %a1 : (tensor<2x3x4xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  %r0 = relay.reshape_like %a0, %a1 : (tensor<2x3x4xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  func.return
}

// CHECK-LABEL: func.func @broadcast_to_like(
func.func @broadcast_to_like(%a0: tensor<6x1xf32>, %a1: tensor<6x4xi16>) {
  // CHECK: %r0 = relay.broadcast_to_like %a0, %a1 : (tensor<6x1xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  %r0 = relay.broadcast_to_like %a0, %a1 : (tensor<6x1xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  func.return
}

// CHECK-LABEL: func.func @collapse_sum_like(
func.func @collapse_sum_like(%a0: tensor<5x6x4xf32>, %a1: tensor<6x4xi16>) {
  // CHECK: %r0 = relay.collapse_sum_like %a0, %a1 : (tensor<5x6x4xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  %r0 = relay.collapse_sum_like %a0, %a1 : (tensor<5x6x4xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  func.return
}

// CHECK-LABEL: func.func @slice_like(
func.func @slice_like(%a0: tensor<7x5xf32>, %a1: tensor<6x4xi16>) {
  // CHECK: %r0 = relay.slice_like %a0, %a1 {axes = array<i64>} : (tensor<7x5xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  %r0 = relay.slice_like %a0, %a1 {axes = array<i64>} : (tensor<7x5xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  func.return
}

// CHECK-LABEL: func.func @collapse_sum_to(
func.func @collapse_sum_to(%a0: tensor<2x3x4xf32>) {
  // CHECK: %r0 = relay.collapse_sum_to %a0 {shape = array<i64: 3, 1>} : (tensor<2x3x4xf32>) -> tensor<3x1xf32>
  %r0 = relay.collapse_sum_to %a0 {shape = array<i64: 3, 1>} : (tensor<2x3x4xf32>) -> tensor<3x1xf32>
  func.return
}

// CHECK-LABEL: func.func @layout_transform(
func.func @layout_transform(%a0: tensor<2x3x4x8xf32>) {
  // CHECK: %r0 = relay.layout_transform %a0 {src_layout = "NHWC", dst_layout = "NCHW"} : (tensor<2x3x4x8xf32>) -> tensor<2x8x3x4xf32>
  %r0 = relay.layout_transform %a0 {src_layout = "NHWC", dst_layout = "NCHW"} : (tensor<2x3x4x8xf32>) -> tensor<2x8x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @reinterpret(
func.func @reinterpret(%a0: tensor<2x3x4xf32>) {
  // CHECK: %r0 = relay.reinterpret %a0 {dtype = i32} : (tensor<2x3x4xf32>) -> tensor<2x3x4xi32>
  %r0 = relay.reinterpret %a0 {dtype = i32} : (tensor<2x3x4xf32>) -> tensor<2x3x4xi32>
  func.return
}
