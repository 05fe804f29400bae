func.func @quantize(%x: tensor<1x4xf32>) {
  %q = qnn.quantize %x {scale = 5.000000e-01 : f32, zero_point = 3 : i32, out_dtype = ui8} : (tensor<1x4xf32>) -> tensor<1x4xui8>
  %x2 = qnn.dequantize %q {scale = 5.000000e-01 : f32, zero_point = 3 : i32} : (tensor<1x4xui8>) -> tensor<1x4xf32>
  %codes, %scale = qnn.dynamic_quantize %x : (tensor<1x4xf32>) -> (tensor<1x4xi8>, tensor<1xf32>)
  func.return
}

func.func @quantize_to_even(%x: tensor<3x4xf32>, %n: tensor<4xi32>) {
  %even = qnn.quantize %x {scale = 5.000000e-01 : f32, zero_point = 3 : i32, rounding = "even", out_dtype = ui8} : (tensor<3x4xf32>) -> tensor<3x4xui8>
  %axis = qnn.quantize %x {scale = dense<[5.000000e-01, 2.500000e-01, 1.000000e+00]> : tensor<3xf32>, zero_point = dense<[0, 1, -2]> : tensor<3xi32>, axis = 0 : i64, rounding = "even", out_dtype = i16} : (tensor<3x4xf32>) -> tensor<3x4xi16>
  %narrow = qnn.quantize %x {scale = 5.000000e-01 : f32, zero_point = 0 : i32, rounding = "even", out_dtype = i4} : (tensor<3x4xf32>) -> tensor<3x4xi4>
  %inverse = qnn.quantize %x {scale = 3.000000e-01 : f32, zero_point = 0 : i32, rounding = "even_inverse", out_dtype = i8} : (tensor<3x4xf32>) -> tensor<3x4xi8>
  %sum = qnn.quantize %x {scale = 2.500000e-01 : f32, zero_point = 129 : i32, rounding = "even_sum", out_dtype = ui8} : (tensor<3x4xf32>) -> tensor<3x4xui8>
  %real = qnn.dequantize %n {scale = 1.000000e-01 : f32, zero_point = 0 : i32, product = "f32"} : (tensor<4xi32>) -> tensor<4xf32>
  %codes, %scale, %zero_point = qnn.dynamic_quantize_linear %x : (tensor<3x4xf32>) -> (tensor<3x4xui8>, tensor<f32>, tensor<ui8>)
  func.return
}

func.func @fused(%x: tensor<1x4xui8>, %y: tensor<4xui8>) {
  %add = qnn.add %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -18 : i32, rounding = "ort", left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<1x4xui8>, tensor<4xui8>) -> tensor<1x4xui8>
  %far = qnn.add %x, %y {lhs_scale = 1.000000e-09 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -18 : i32, rounding = "ort", left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<1x4xui8>, tensor<4xui8>) -> tensor<1x4xui8>
  %mul = qnn.mul %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -2 : i32, rounding = "ort", min = 0 : i32, max = 200 : i32} : (tensor<1x4xui8>, tensor<4xui8>) -> tensor<1x4xui8>
  func.return
}

func.func @requantize(%x: tensor<1x2xi32>) {
  %tensor = qnn.requantize %x {input_scale = 2.500000e-01 : f32, output_scale = 5.000000e-01 : f32, output_zero_point = -1 : i32, multiplier = 1073741824 : i32, shift = 0 : i32, min = -1 : i32, max = 127 : i32, out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  %axis = qnn.requantize %x {input_scale = dense<[2.500000e-01, 5.000000e-01]> : tensor<2xf32>, output_scale = 5.000000e-01 : f32, output_zero_point = 0 : i32, multiplier = dense<1073741824> : tensor<2xi32>, shift = dense<[0, 1]> : tensor<2xi32>, out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  %double = qnn.requantize %x {input_scale = 2.500000e-01 : f32, output_scale = 5.000000e-01 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 0 : i32, real_multiplier = 5.000000e-01 : f64, rounding = "f64_away", out_dtype = i8} : (tensor<1x2xi32>) -> tensor<1x2xi8>
  func.return
}

func.func @conv2d(%x: tensor<1x4x4x2xi8>, %k: tensor<3x1x1x2xi8>) {
  %r = qnn.conv2d %x, %k {input_scale = 5.000000e-01 : f32, input_zero_point = -128 : i32, kernel_scale = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>} : (tensor<1x4x4x2xi8>, tensor<3x1x1x2xi8>) -> tensor<1x4x4x3xi32>
  func.return
}

func.func @dense(%x: tensor<1x16xi8>, %k: tensor<10x16xi8>) {
  %r = qnn.dense %x, %k {input_scale = 5.000000e-01 : f32, input_zero_point = 4 : i32, kernel_scale = 2.500000e-01 : f32} : (tensor<1x16xi8>, tensor<10x16xi8>) -> tensor<1x10xi32>
  func.return
}

func.func @binary(%x: tensor<1x4xi8>, %y: tensor<4xi8>) {
  %add = qnn.add %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -18 : i32, left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32, min = -128 : i32, max = 127 : i32} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  %subtract = qnn.subtract %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -18 : i32, left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, rhs_multiplier = 1073741824 : i32, rhs_shift = -1 : i32} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  %mul = qnn.mul %x, %y {lhs_scale = 5.000000e-01 : f32, lhs_zero_point = 1 : i32, rhs_scale = 2.500000e-01 : f32, rhs_zero_point = 2 : i32, output_scale = 1.000000e+00 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -2 : i32, rounding = "tflite_single"} : (tensor<1x4xi8>, tensor<4xi8>) -> tensor<1x4xi8>
  func.return
}

func.func @mean(%x: tensor<1x4x4x8xui8>) {
  %r = qnn.mean %x {axis = array<i64: 1, 2>, keepdims = true, input_scale = 5.000000e-01 : f32, input_zero_point = 128 : i32, output_scale = 5.000000e-01 : f32, output_zero_point = 128 : i32, multiplier = 1073741824 : i32, shift = -3 : i32} : (tensor<1x4x4x8xui8>) -> tensor<1x1x1x8xui8>
  func.return
}

func.func @functions(%x: tensor<1x10xi8>) {
  %softmax = qnn.softmax %x {beta = 1.000000e+00 : f32, input_scale = 1.250000e-01 : f32, multiplier = 1073741824 : i32, shift = 24 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  %table = qnn.table_softmax %x {input_scale = 1.250000e-01 : f32, output_scale = 3.906250e-03 : f32, output_zero_point = -128 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  %sigmoid = qnn.sigmoid %x {input_scale = 1.250000e-01 : f32, input_zero_point = 0 : i32, output_scale = 3.906250e-03 : f32, output_zero_point = -128 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  %tanh = qnn.tanh %x {input_scale = 1.250000e-01 : f32, input_zero_point = 0 : i32, output_scale = 7.812500e-03 : f32, output_zero_point = 0 : i32} : (tensor<1x10xi8>) -> tensor<1x10xi8>
  func.return
}

func.func @concatenate(%x: tensor<1x2xui8>, %y: tensor<1x3xui8>) {
  %r = qnn.concatenate %x, %y {axis = 1 : i64, input_scales = dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>, input_zero_points = dense<[128, 127]> : tensor<2xi32>, output_scale = 5.000000e-01 : f32, output_zero_point = 128 : i32} : (tensor<1x2xui8>, tensor<1x3xui8>) -> tensor<1x5xui8>
  func.return
}

// -----
// error: qnn.quantize: takes f32
func.func @quantize(%x: tensor<4xi8>) {
  %r = qnn.quantize %x {scale = 1.0 : f32, zero_point = 0 : i32, out_dtype = i8} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.quantize: rounding "up" is none of ('away', 'even', 'even_inverse', 'even_sum')
func.func @quantize(%x: tensor<4xf32>) {
  %r = qnn.quantize %x {scale = 1.0 : f32, zero_point = 0 : i32, rounding = "up", out_dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.dequantize: product "f16" is none of ('f64', 'f32')
func.func @dequantize(%x: tensor<4xi8>) {
  %r = qnn.dequantize %x {scale = 1.0 : f32, zero_point = 0 : i32, product = "f16"} : (tensor<4xi8>) -> tensor<4xf32>
  func.return
}

// -----
// error: qnn.dynamic_quantize_linear: takes f32
func.func @dynamic(%x: tensor<4xi8>) {
  %c, %s, %z = qnn.dynamic_quantize_linear %x : (tensor<4xi8>) -> (tensor<4xui8>, tensor<f32>, tensor<ui8>)
  func.return
}

// -----
// error: qnn.mul: rounding "ort" takes 8-bit codes, not i16
func.func @mul(%x: tensor<4xi16>) {
  %r = qnn.mul %x, %x {lhs_scale = 0.5 : f32, lhs_zero_point = 0 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 0 : i32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = -2 : i32, rounding = "ort"} : (tensor<4xi16>, tensor<4xi16>) -> tensor<4xi16>
  func.return
}

// -----
// error: qnn.quantize: scale must be positive
func.func @quantize(%x: tensor<4xf32>) {
  %r = qnn.quantize %x {scale = 0.0 : f32, zero_point = 0 : i32, out_dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.quantize: i32 is no type of codes
func.func @quantize(%x: tensor<4xf32>) {
  %r = qnn.quantize %x {scale = 1.0 : f32, zero_point = 0 : i32, out_dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  func.return
}

// -----
// error: qnn.dequantize: 2 numbers in scale for axis of 4
func.func @dequantize(%x: tensor<4xi8>) {
  %r = qnn.dequantize %x {scale = dense<1.0> : tensor<2xf32>, zero_point = 0 : i32} : (tensor<4xi8>) -> tensor<4xf32>
  func.return
}

// -----
// error: qnn.requantize: rounding f64_away needs real_multiplier
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 1 : i32, rounding = "f64_away", out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.requantize: shift must lie in -31..14
func.func @requantize(%x: tensor<4xi64>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 15 : i32, out_dtype = i16} : (tensor<4xi64>) -> tensor<4xi16>
  func.return
}

// -----
// error: qnn.requantize: shift must lie in -31..30
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 31 : i32, out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.requantize: min is above max
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 1 : i32, min = 1 : i32, max = 0 : i32, out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.softmax: takes 8- or 16-bit codes, not i32
func.func @softmax(%x: tensor<4xi32>) {
  %r = qnn.softmax %x {beta = 1.0 : f32, input_scale = 1.0 : f32, multiplier = 1073741824 : i32, shift = 24 : i32} : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----
// error: qnn.table_softmax: takes 8-bit codes, not i16
func.func @softmax(%x: tensor<4xi16>) {
  %r = qnn.table_softmax %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32} : (tensor<4xi16>) -> tensor<4xi16>
  func.return
}

// -----
// error: qnn.table_softmax: takes rank 1 or more
func.func @softmax(%x: tensor<i8>) {
  %r = qnn.table_softmax %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32} : (tensor<i8>) -> tensor<i8>
  func.return
}

// -----
// error: qnn.concatenate: input_scales needs 2 numbers
func.func @concatenate(%x: tensor<4xui8>) {
  %r = qnn.concatenate %x, %x {axis = 0 : i64, input_scales = dense<1.0> : tensor<3xf32>, input_zero_points = dense<0> : tensor<2xi32>, output_scale = 1.0 : f32, output_zero_point = 0 : i32} : (tensor<4xui8>, tensor<4xui8>) -> tensor<8xui8>
  func.return
}

// -----
// error: qnn.svdf: 4 filters are not divisible by the rank
func.func @svdf(%x: tensor<1x3xi8>, %f: tensor<4x3xi8>, %t: tensor<4x5xi16>, %s: tensor<1x20xi16>) {
  %r0, %r1 = qnn.svdf %x, %f, %t, %s {input_zero_point = 1 : i32, rank = 3 : i64, feature_multiplier = 1073741824 : i32, feature_shift = -3 : i32, multiplier = 1073741824 : i32, shift = -9 : i32, output_zero_point = 4 : i32} : (tensor<1x3xi8>, tensor<4x3xi8>, tensor<4x5xi16>, tensor<1x20xi16>) -> (tensor<1x2xi8>, tensor<1x20xi16>)
  func.return
}

// -----
// error: qnn.lstm: state is not [1, 2]
func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x2xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<2x2xi16>) {
  %r0, %r1, %r2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1> : tensor<4xi32>, input_shift = dense<0> : tensor<4xi32>, recurrent_multiplier = dense<1> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<1x5x3xi8>, tensor<8x3xi8>, tensor<8x2xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<2x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<2x2xi16>)
  func.return
}

// -----
// error: qnn.mul: element types differ
func.func @mul(%x: tensor<4xi8>, %y: tensor<4xui8>) {
  %r = qnn.mul %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, output_scale = 1.0 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -2 : i32} : (tensor<4xi8>, tensor<4xui8>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.mul: rounding "upwards" is none of
func.func @mul(%x: tensor<4xi8>, %y: tensor<4xi8>) {
  %r = qnn.mul %x, %y {lhs_scale = 0.5 : f32, lhs_zero_point = 1 : i32, rhs_scale = 0.25 : f32, rhs_zero_point = 2 : i32, output_scale = 1.0 : f32, output_zero_point = 3 : i32, multiplier = 1073741824 : i32, shift = -2 : i32, rounding = "upwards"} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.sigmoid: takes 8- or 16-bit codes, not f32
func.func @sigmoid(%x: tensor<4xf32>) {
  %r = qnn.sigmoid %x {input_scale = 0.125 : f32, input_zero_point = 0 : i32, output_scale = 0.00390625 : f32, output_zero_point = -128 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: qnn.softmax: takes rank 1 or more
func.func @softmax(%x: tensor<i8>) {
  %r = qnn.softmax %x {beta = 1.0 : f32, input_scale = 0.125 : f32, multiplier = 1073741824 : i32, shift = 24 : i32} : (tensor<i8>) -> tensor<i8>
  func.return
}

// -----
// error: qnn.dequantize: scale must be a scalar or a vector, or of the data's rank
func.func @dequantize(%x: tensor<4xi8>) {
  %r = qnn.dequantize %x {scale = dense<1.0> : tensor<2x4xf32>, zero_point = 0 : i32} : (tensor<4xi8>) -> tensor<4xf32>
  func.return
}

// -----
// error: qnn.requantize: rounding "up" is none of
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 1 : i32, rounding = "up", out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.requantize: takes integers
func.func @requantize(%x: tensor<4xf32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 1 : i32, out_dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.dequantize: takes integers of 2 bits and more, not i1
func.func @dequantize(%x: tensor<4xi1>) {
  %r = qnn.dequantize %x {scale = 1.0 : f32, zero_point = 0 : i32} : (tensor<4xi1>) -> tensor<4xf32>
  func.return
}

// -----
// error: qnn.dequantize: takes integers of 2 bits and more, not f32
func.func @dequantize(%x: tensor<4xf32>) {
  %r = qnn.dequantize %x {scale = 1.0 : f32, zero_point = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: qnn.dynamic_quantize: takes f32
func.func @dynamic_quantize(%x: tensor<2x4xf64>) {
  %c, %s = qnn.dynamic_quantize %x : (tensor<2x4xf64>) -> (tensor<2x4xi8>, tensor<2xf32>)
  func.return
}

// -----
// error: qnn.dynamic_quantize: takes rank 1 or more
func.func @dynamic_quantize(%x: tensor<f32>) {
  %c, %s = qnn.dynamic_quantize %x : (tensor<f32>) -> (tensor<i8>, tensor<f32>)
  func.return
}

// -----
// error: qnn.requantize: output_zero_point 1000 is outside -128..127
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 1000 : i32, multiplier = 1073741824 : i32, shift = 0 : i32, out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.requantize: min 128 leaves no code of -128..127
func.func @requantize(%x: tensor<4xi32>) {
  %r = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 0 : i32, min = 128 : i32, out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return
}

// -----
// error: qnn.dequantize: zero_point -1 is outside 0..255
func.func @dequantize(%x: tensor<4xui8>) {
  %r = qnn.dequantize %x {scale = 1.0 : f32, zero_point = -1 : i32} : (tensor<4xui8>) -> tensor<4xf32>
  func.return
}
