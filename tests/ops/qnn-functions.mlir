func.func @functions(%x: tensor<2x4xi8>) {
  %gelu = qnn.gelu %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32, approximate = true} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %elu = qnn.elu %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %exp = qnn.exp %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %log = qnn.log %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %sqrt = qnn.sqrt %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %rsqrt = qnn.rsqrt %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32, multiplier = 1073741824 : i32, shift = 2 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %abs = qnn.abs %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32, multiplier = 1073741824 : i32, shift = 2 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %same = qnn.abs %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %leaky = qnn.leaky_relu %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32, alpha = -5.000000e-01 : f32, multiplier = 1073741824 : i32, shift = 2 : i32, alpha_multiplier = 1073741824 : i32, alpha_shift = 1 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %hard_swish = qnn.hard_swish %x {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32, output_multiplier = 16384 : i32, output_shift = -5 : i32, relu_multiplier = 21845 : i32, relu_shift = 5 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %norm = qnn.l2_normalize %x {input_zero_point = 3 : i32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  func.return
}

func.func @binary(%x: tensor<2x4xi8>, %y: tensor<4xi8>) {
  %quotient = qnn.divide %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = 2 : i32, min = -128 : i32, max = 127 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi8>
  %difference = qnn.squared_difference %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = 2 : i32, left_shift = 7 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi8>
  %slope = qnn.prelu %x, %y {input_scale = 5.000000e-01 : f32, input_zero_point = 3 : i32, alpha_scale = 1.250000e-01 : f32, alpha_zero_point = 1 : i32, output_scale = 2.500000e-01 : f32, output_zero_point = -4 : i32, multiplier = 1073741824 : i32, shift = 2 : i32, alpha_multiplier = 1073741824 : i32, alpha_shift = -1 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi8>
  func.return
}

func.func @compare(%x: tensor<2x4xi8>, %y: tensor<4xi8>) {
  %equal = qnn.equal %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi1>
  %not_equal = qnn.not_equal %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi1>
  %less = qnn.less %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi1>
  %less_equal = qnn.less_equal %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi1>
  %greater = qnn.greater %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi1>
  %greater_equal = qnn.greater_equal %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi1>
  func.return
}

// -----
// error: qnn.divide: takes codes
func.func @divide(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  %r = qnn.divide %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, output_scale = 1.0 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = 2 : i32} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----
// error: qnn.prelu: element types differ
func.func @prelu(%x: tensor<4xi8>, %y: tensor<4xui8>) {
  %r = qnn.prelu %x, %y {input_scale = 0.5 : f32, input_zero_point = 3 : i32, alpha_scale = 0.125 : f32, alpha_zero_point = 1 : i32, output_scale = 0.25 : f32, output_zero_point = -4 : i32, multiplier = 1073741824 : i32, shift = 2 : i32, alpha_multiplier = 1073741824 : i32, alpha_shift = -1 : i32} : (tensor<4xi8>, tensor<4xui8>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.equal: element types differ
func.func @equal(%x: tensor<4xi8>, %y: tensor<4xui8>) {
  %r = qnn.equal %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<4xi8>, tensor<4xui8>) -> tensor<4xi1>
  func.return
}

// -----
// error: qnn.equal: rounding "up" is none of
func.func @equal(%x: tensor<4xi8>, %y: tensor<4xi8>) {
  %r = qnn.equal %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, left_shift = 8 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32, rounding = "up"} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
  func.return
}

// -----
// error: qnn.gelu: takes 8 or 16-bit codes
func.func @gelu(%x: tensor<4xi32>) {
  %r = qnn.gelu %x {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.25 : f32, output_zero_point = -4 : i32} : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----
// error: qnn.abs: multiplier and shift belong together
func.func @abs(%x: tensor<4xi8>) {
  %r = qnn.abs %x {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.25 : f32, output_zero_point = -4 : i32, shift = 2 : i32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.hard_swish: output_shift is positive
func.func @hard_swish(%x: tensor<4xi8>) {
  %r = qnn.hard_swish %x {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.25 : f32, output_zero_point = -4 : i32, output_multiplier = 16384 : i32, output_shift = 1 : i32, relu_multiplier = 21845 : i32, relu_shift = 5 : i32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.l2_normalize: takes 8-bit codes, not i16
func.func @l2_normalize(%x: tensor<4xi16>) {
  %r = qnn.l2_normalize %x {input_zero_point = 3 : i32} : (tensor<4xi16>) -> tensor<4xi16>
  func.return
}

// -----
// error: qnn.l2_normalize: takes rank 1 or more
func.func @l2_normalize(%x: tensor<i8>) {
  %r = qnn.l2_normalize %x {input_zero_point = 3 : i32} : (tensor<i8>) -> tensor<i8>
  func.return
}
