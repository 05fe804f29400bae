func.func @conv2d_transpose(%x: tensor<1x4x4x2xi8>, %k: tensor<3x2x2x2xi8>) {
  %r = qnn.conv2d_transpose %x, %k {input_scale = 5.000000e-01 : f32, input_zero_point = -128 : i32, kernel_scale = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>, strides = array<i64: 2, 2>} : (tensor<1x4x4x2xi8>, tensor<3x2x2x2xi8>) -> tensor<1x8x8x3xi32>
  func.return
}

func.func @batch_matmul(%a: tensor<2x3x4xi16>, %b: tensor<2x4x5xi16>) {
  %r = qnn.batch_matmul %a, %b {input_scale = 5.000000e-01 : f32, input_zero_point = 0 : i32, kernel_scale = 2.500000e-01 : f32, transpose_b = false, out_dtype = i64} : (tensor<2x3x4xi16>, tensor<2x4x5xi16>) -> tensor<2x3x5xi64>
  func.return
}

func.func @sum(%x: tensor<1x4x4x8xui8>, %y: tensor<1x10xi16>) {
  %r = qnn.sum %x {axis = array<i64: 1, 2>, keepdims = true, input_scale = 5.000000e-01 : f32, input_zero_point = 128 : i32, output_scale = 5.000000e-01 : f32, output_zero_point = 128 : i32, multiplier = 1073741824 : i32, shift = 1 : i32} : (tensor<1x4x4x8xui8>) -> tensor<1x1x1x8xui8>
  %s = qnn.softmax %y {beta = 1.000000e+00 : f32, input_scale = 1.250000e-01 : f32, multiplier = 1073741824 : i32, shift = 4 : i32} : (tensor<1x10xi16>) -> tensor<1x10xi16>
  func.return
}
