// RUN: relay-opt %s -p signed-codes | filecheck %s
// RUN: relay-opt %s -p signed-codes,signed-codes | filecheck %s

// Codes, zero points and bounds are 128 less; the function's argument and result stay unsigned.
// CHECK-LABEL: func.func @product
// CHECK-NEXT:    [[X:%.+]] = qnn.requantize %x {{{.*}}output_zero_point = -128 : i32{{.*}}out_dtype = i8}
// CHECK-NEXT:    [[K:%.+]] = relay.constant dense<72> : tensor<3x3x3x2xi8>
// CHECK-NEXT:    [[C:%.+]] = qnn.conv2d [[X]], [[K]] {{{.*}}input_zero_point = -8 : i32{{.*}}kernel_zero_point = 2 : i32}
// CHECK-NEXT:    [[R:%.+]] = qnn.requantize [[C]] {{{.*}}output_zero_point = -118 : i32{{.*}}min = -118 : i32, out_dtype = i8}
// CHECK-NEXT:    [[P:%.+]] = relay.nn.max_pool2d [[R]]
// CHECK-NEXT:    [[U:%.+]] = qnn.requantize [[P]] {{{.*}}output_zero_point = 128 : i32{{.*}}out_dtype = ui8}
// CHECK-NEXT:    func.return [[U]]
func.func @product(%x: tensor<1x4x4x2xui8>) -> tensor<1x1x1x3xui8> {
  %k = relay.constant dense<200> : tensor<3x3x3x2xui8>
  %c = qnn.conv2d %x, %k {input_scale = 0.1 : f32, input_zero_point = 120 : i32, kernel_scale = 0.5 : f32, kernel_zero_point = 130 : i32} : (tensor<1x4x4x2xui8>, tensor<3x3x3x2xui8>) -> tensor<1x2x2x3xi32>
  %r = qnn.requantize %c {input_scale = 0.05 : f32, output_scale = 1.0 : f32, output_zero_point = 10 : i32, multiplier = 1717986918 : i32, shift = -4 : i32, min = 10 : i32, out_dtype = ui8} : (tensor<1x2x2x3xi32>) -> tensor<1x2x2x3xui8>
  %p = relay.nn.max_pool2d %r {pool_size = array<i64: 2, 2>} : (tensor<1x2x2x3xui8>) -> tensor<1x1x1x3xui8>
  func.return %p : tensor<1x1x1x3xui8>
}

// An average of codes rounds away from 0: of others it would round elsewhere.
// CHECK-LABEL: func.func @average
// CHECK-NEXT:    relay.nn.avg_pool2d %x
// CHECK-NEXT:    func.return
func.func @average(%x: tensor<1x2x2x3xui8>) -> tensor<1x1x1x3xui8> {
  %p = relay.nn.avg_pool2d %x {pool_size = array<i64: 2, 2>} : (tensor<1x2x2x3xui8>) -> tensor<1x1x1x3xui8>
  func.return %p : tensor<1x1x1x3xui8>
}
