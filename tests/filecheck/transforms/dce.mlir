// RUN: relay-opt %s -p dce | filecheck %s
// RUN: relay-opt %s -p canonicalize | filecheck %s

// What no result needs is dropped: relay and qnn ops have no side effects.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[E:%.+]] = relay.exp %x
// CHECK-NEXT:    func.return [[E]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %w = relay.constant dense<1.0> : tensor<3x4xf32>
  %1 = relay.nn.dense %0, %w {out_dtype = f32} : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3xf32>
  %2 = qnn.quantize %1 {scale = 0.5 : f32, zero_point = 3 : i32, out_dtype = i8} : (tensor<3xf32>) -> tensor<3xi8>
  %3 = qnn.dequantize %2 {scale = 0.5 : f32, zero_point = 3 : i32} : (tensor<3xi8>) -> tensor<3xf32>
  func.return %0 : tensor<4xf32>
}
