// RUN: relay-opt %s -p legalize | filecheck %s

// A convolution keeps its zero points, without those that are 0; a requantize becomes integer arithmetic that clips to
// full bounds too, because casts wrap.
func.func @conv(%x: tensor<1x4x4x2xi8>, %w: tensor<3x1x1x2xi8>, %b: tensor<3xi32>) -> tensor<1x4x4x3xi8> {
  %0 = qnn.conv2d %x, %w {input_scale = 0.5 : f32, input_zero_point = -3 : i32, kernel_scale = 0.25 : f32} : (tensor<1x4x4x2xi8>, tensor<3x1x1x2xi8>) -> tensor<1x4x4x3xi32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x4x4x3xi32>, tensor<3xi32>) -> tensor<1x4x4x3xi32>
  %2 = qnn.requantize %1 {input_scale = dense<[0.5, 0.25, 0.125]> : tensor<3xf32>, output_scale = 2.0 : f32, output_zero_point = 4 : i32, multiplier = dense<1073741824> : tensor<3xi32>, shift = dense<[-1, -2, -3]> : tensor<3xi32>, out_dtype = i8} : (tensor<1x4x4x3xi32>) -> tensor<1x4x4x3xi8>
  func.return %2 : tensor<1x4x4x3xi8>
}
// CHECK-LABEL: func.func @conv
// CHECK-NEXT:    [[C:%.+]] = relay.nn.conv2d %x, %w {{{.*}}input_zero_point = -3 : i32{{.*}}} : (tensor<1x4x4x2xi8>, tensor<3x1x1x2xi8>) -> tensor<1x4x4x3xi32>
// CHECK-NEXT:    [[B:%.+]] = relay.nn.bias_add [[C]], %b
// CHECK-NEXT:    [[M:%.+]] = relay.constant dense<1073741824> : tensor<3xi32>
// CHECK-NEXT:    [[S:%.+]] = relay.constant dense<[-1, -2, -3]> : tensor<3xi32>
// CHECK-NEXT:    [[F:%.+]] = relay.fixed_point_multiply [[B]], [[M]], [[S]]
// CHECK-NEXT:    [[Z:%.+]] = relay.constant dense<4> : tensor<i32>
// CHECK-NEXT:    [[A:%.+]] = relay.add [[F]], [[Z]]
// CHECK-NEXT:    [[K:%.+]] = relay.clip [[A]] {a_min = -128 : i32, a_max = 127 : i32}
// CHECK-NEXT:    [[R:%.+]] = relay.cast [[K]] {dtype = i8}
// CHECK-NEXT:    func.return [[R]]

// A positive exponent is a left shift before the product; a zero point of 0 leaves no trace.
func.func @positive_exponent(%x: tensor<4xi32>) -> tensor<4xi8> {
  %0 = qnn.requantize %x {input_scale = 1.0 : f32, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = 1073741824 : i32, shift = 2 : i32, min = 0 : i32, out_dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  func.return %0 : tensor<4xi8>
}
// CHECK-LABEL: func.func @positive_exponent
// CHECK-NEXT:    [[E:%.+]] = relay.constant dense<2> : tensor<i32>
// CHECK-NEXT:    [[L:%.+]] = relay.left_shift %x, [[E]]
// CHECK-NEXT:    [[M:%.+]] = relay.constant dense<1073741824> : tensor<i32>
// CHECK-NEXT:    [[S:%.+]] = relay.constant dense<0> : tensor<i32>
// CHECK-NEXT:    [[F:%.+]] = relay.fixed_point_multiply [[L]], [[M]], [[S]]
// CHECK-NEXT:    [[K:%.+]] = relay.clip [[F]] {a_min = 0 : i32, a_max = 127 : i32}
// CHECK-NEXT:    relay.cast [[K]] {dtype = i8}

// Floats beyond the codes' range are clipped before they are cast; NaN is not greater than the lower bound, so it becomes that.
func.func @quantize(%x: tensor<4xf32>) -> tensor<4xui8> {
  %0 = qnn.quantize %x {scale = 0.5 : f32, zero_point = 10 : i32, out_dtype = ui8} : (tensor<4xf32>) -> tensor<4xui8>
  func.return %0 : tensor<4xui8>
}
// CHECK-LABEL: func.func @quantize
// CHECK:         [[D:%.+]] = relay.divide %x
// CHECK-NEXT:    [[R:%.+]] = relay.round [[D]]
// CHECK-NEXT:    [[L:%.+]] = relay.constant dense<-1.000000e+01> : tensor<f32>
// CHECK-NEXT:    [[G:%.+]] = relay.greater [[R]], [[L]]
// CHECK-NEXT:    [[W:%.+]] = relay.where [[G]], [[R]], [[L]]
// CHECK-NEXT:    [[H:%.+]] = relay.constant dense<2.450000e+02> : tensor<f32>
// CHECK-NEXT:    [[K:%.+]] = relay.minimum [[W]], [[H]]
// CHECK-NEXT:    [[I:%.+]] = relay.cast [[K]] {dtype = i32}
// CHECK:         [[A:%.+]] = relay.add [[I]]
// CHECK-NEXT:    relay.cast [[A]] {dtype = ui8}

// What an external compiler takes stays as it is.
func.func @theirs(%x: tensor<4xi8>) -> tensor<4xf32> attributes {compiler = "other"} {
  %0 = qnn.dequantize %x {scale = 0.5 : f32, zero_point = 0 : i32} : (tensor<4xi8>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @theirs
// CHECK-NEXT:    qnn.dequantize %x
