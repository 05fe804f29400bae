// RUN: relay-opt %s -p quantize-realize | filecheck %s
// RUN: relay-opt %s -p 'quantize-realize{io=codes}' | filecheck %s --check-prefix=CODES
// RUN: relay-opt %s -p 'quantize-realize{simulate=true}' | filecheck %s --check-prefix=FAKE

// A marked product becomes one of codes, its bias one of sums, its clamp the bounds of the codes.
func.func @main(%x: tensor<1x2xf32>) -> tensor<2x1xf32> attributes {quantize.dtype = "int8", quantize.arguments = [{value = "a0", group = "a0", scale = 0.0078125 : f32, zero_point = -1 : i32}]} {
  %w = relay.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = relay.constant dense<[0.5, -0.5]> : tensor<2xf32>
  %0 = relay.nn.dense %x, %w {quantize = {integer, kernel_scale = dense<[0.015625, 0.03125]> : tensor<2xf32>, kernel_zero_point = 0 : i32}, out_dtype = f32} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  %1 = relay.nn.bias_add %0, %b {quantize = {integer}} : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  %2 = relay.clip %1 {quantize = {integer, value = "v4", group = "v4", scale = 0.03125 : f32, zero_point = -128 : i32}, a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %3 = relay.reshape %2 {quantize = {integer, value = "v5", group = "v4", scale = 0.03125 : f32, zero_point = -128 : i32}, newshape = array<i64: 2, 1>} : (tensor<1x2xf32>) -> tensor<2x1xf32>
  func.return %3 : tensor<2x1xf32>
}
// CHECK:         func.func @main(%x: tensor<1x2xf32>) -> tensor<2x1xf32> {
// CHECK-NEXT:    [[X:%.+]] = qnn.quantize %x {quantize.value = "a0", scale = 7.812500e-03 : f32, zero_point = -1 : i32, out_dtype = i8}
// CHECK-NEXT:    [[W:%.+]] = relay.constant dense<{{.+}}64, 127], [96, 127]]> : tensor<2x2xi8>
// CHECK-NEXT:    [[B:%.+]] = relay.constant dense<[4096, -2048]> : tensor<2xi32>
// CHECK-NEXT:    [[D:%.+]] = qnn.dense [[X]], [[W]] {input_scale = 7.812500e-03 : f32, input_zero_point = -1 : i32, kernel_scale = dense<[1.562500e-02, 3.125000e-02]> : tensor<2xf32>}
// CHECK-NEXT:    [[S:%.+]] = relay.nn.bias_add [[D]], [[B]] : (tensor<1x2xi32>, tensor<2xi32>)
// CHECK-NEXT:    [[R:%.+]] = qnn.requantize [[S]] {quantize.value = "v4", {{.*}}min = -128 : i32, max = 64 : i32
// CHECK-NEXT:    [[Y:%.+]] = relay.reshape [[R]] {quantize.value = "v5"
// CHECK-NEXT:    [[F:%.+]] = qnn.dequantize [[Y]] {scale = 3.125000e-02 : f32, zero_point = -128 : i32}
// CHECK-NEXT:    func.return [[F]]

// CODES:         func.func @main(%x: tensor<1x2xi8>) -> tensor<2x1xi8> attributes {relay.inputs = [{name = "arg0", kind = "input", dtype = i8, scale = 7.812500e-03 : f32, zero_point = -1 : i64}]
// CODES-NOT:     qnn.quantize

// FAKE:          [[Q:%.+]] = qnn.quantize %x
// FAKE-NEXT:     [[X:%.+]] = qnn.dequantize [[Q]]
// FAKE:          relay.nn.dense [[X]], {{.*}} {out_dtype = f32}
// FAKE:          relay.clip
// FAKE-NEXT:     qnn.quantize
