// RUN: relay-opt %s -p qnn-legalize | filecheck %s

// Codes of 8 bits are exact in float32: the product needs no float64.
func.func @dequantize(%x: tensor<4xi8>) -> tensor<4xf32> {
  %0 = qnn.dequantize %x {scale = 0.5 : f32, zero_point = 7 : i32} : (tensor<4xi8>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @dequantize
// CHECK-NEXT:    [[I:%.+]] = relay.cast %x {dtype = i32}
// CHECK-NEXT:    [[Z:%.+]] = relay.constant dense<7> : tensor<i32>
// CHECK-NEXT:    [[D:%.+]] = relay.subtract [[I]], [[Z]]
// CHECK-NEXT:    [[F:%.+]] = relay.cast [[D]] {dtype = f32}
// CHECK-NEXT:    [[S:%.+]] = relay.constant dense<5.000000e-01> : tensor<f32>
// CHECK-NEXT:    relay.multiply [[F]], [[S]]

// A function of a code is a table.
func.func @sigmoid(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = qnn.sigmoid %x {input_scale = 0.5 : f32, input_zero_point = 0 : i32, output_scale = 0.00390625 : f32, output_zero_point = -128 : i32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return %0 : tensor<4xi8>
}
// CHECK-LABEL: func.func @sigmoid
// CHECK-NEXT:    [[T:%.+]] = relay.constant dense<{{.*}}> : tensor<256xi8>
// CHECK-NEXT:    relay.lookup %x, [[T]]

// Softmax: the difference from the largest code indexes the tables of the exponential and of its rounded term.
func.func @softmax(%x: tensor<2x10xi8>) -> tensor<2x10xi8> {
  %0 = qnn.softmax %x {beta = 1.0 : f32, input_scale = 0.0625 : f32, multiplier = 1073741824 : i32, shift = 23 : i32} : (tensor<2x10xi8>) -> tensor<2x10xi8>
  func.return %0 : tensor<2x10xi8>
}
// CHECK-LABEL: func.func @softmax
// CHECK-NEXT:    [[M:%.+]] = relay.max %x
// CHECK-NEXT:    [[D:%.+]] = relay.subtract [[M]], %x : (tensor<2x1xi8>, tensor<2x10xi8>) -> tensor<2x10xi8>
// CHECK-NEXT:    [[C:%.+]] = relay.cast [[D]] {dtype = ui8}
// CHECK-NEXT:    relay.constant
// CHECK-NEXT:    [[T:%.+]] = relay.lookup [[C]]
// CHECK-NEXT:    [[S:%.+]] = relay.sum [[T]]
// CHECK-NEXT:    [[R:%.+]], [[H:%.+]] = relay.fixed_point_reciprocal [[S]]
// CHECK:         relay.lookup [[C]]
// CHECK-NEXT:    relay.rounding_doubling_high_multiply [[R]]
// CHECK-NEXT:    relay.rounding_right_shift
// CHECK:         relay.clip
// CHECK-NEXT:    relay.cast {{.*}} {dtype = i8}
