// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: qnn.divide: takes codes
func.func @divide(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  %r = qnn.divide %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, output_scale = 1.0 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = 2 : i32} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: qnn.prelu: element types differ
func.func @prelu(%x: tensor<4xi8>, %y: tensor<4xui8>) {
  %r = qnn.prelu %x, %y {input_scale = 0.5 : f32, input_zero_point = 3 : i32, alpha_scale = 0.125 : f32, alpha_zero_point = 1 : i32, output_scale = 0.25 : f32, output_zero_point = -4 : i32, multiplier = 1073741824 : i32, shift = 2 : i32, alpha_multiplier = 1073741824 : i32, alpha_shift = -1 : i32} : (tensor<4xi8>, tensor<4xui8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.equal: element types differ
func.func @equal(%x: tensor<4xi8>, %y: tensor<4xui8>) {
  %r = qnn.equal %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<4xi8>, tensor<4xui8>) -> tensor<4xi1>
  func.return
}

// -----

// CHECK: qnn.equal: rounding "up" is none of
func.func @equal(%x: tensor<4xi8>, %y: tensor<4xi8>) {
  %r = qnn.equal %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32, rounding = "up"} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
  func.return
}

// -----

// CHECK: qnn.gelu: takes 8 or 16-bit codes
func.func @gelu(%x: tensor<4xi32>) {
  %r = qnn.gelu %x {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.25 : f32, output_zero_point = -4 : i32} : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: qnn.abs: multiplier and shift belong together
func.func @abs(%x: tensor<4xi8>) {
  %r = qnn.abs %x {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.25 : f32, output_zero_point = -4 : i32, shift = 2 : i32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.hard_swish: output_shift is positive
func.func @hard_swish(%x: tensor<4xi8>) {
  %r = qnn.hard_swish %x {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.25 : f32, output_zero_point = -4 : i32, output_multiplier = 16384 : i32, output_shift = 1 : i32, relu_multiplier = 21845 : i32, relu_shift = 5 : i32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: qnn.l2_normalize: takes 8-bit codes, not i16
func.func @l2_normalize(%x: tensor<4xi16>) {
  %r = qnn.l2_normalize %x {input_zero_point = 3 : i32} : (tensor<4xi16>) -> tensor<4xi16>
  func.return
}

// -----

// CHECK: qnn.l2_normalize: takes rank 1 or more
func.func @l2_normalize(%x: tensor<i8>) {
  %r = qnn.l2_normalize %x {input_zero_point = 3 : i32} : (tensor<i8>) -> tensor<i8>
  func.return
}
