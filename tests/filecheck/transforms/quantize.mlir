// RUN: relay-opt %s -p 'quantize{bias_correction=false statistics="%S/quantize-calibrate.json"}' | filecheck %s
// RUN: relay-opt %s -p 'quantize{from_layer=2}' | filecheck %s --check-prefix=NONE

// The three passes in one; where nothing is marked, nothing needs to be calibrated.
func.func @main(%x: tensor<1x2xf32>) -> tensor<2x1xf32> {
  %w = relay.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = relay.constant dense<[0.5, -0.5]> : tensor<2xf32>
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  %2 = relay.clip %1 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %3 = relay.nn.dense %2, %w {out_dtype = f32} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  %4 = relay.reshape %3 {newshape = array<i64: 2, 1>} : (tensor<1x2xf32>) -> tensor<2x1xf32>
  func.return %4 : tensor<2x1xf32>
}
// CHECK:         qnn.quantize %x {quantize.value = "a0", scale = 0.00784313772 : f32
// CHECK:         qnn.dense
// CHECK-NEXT:    relay.nn.bias_add
// CHECK-NEXT:    qnn.requantize {{.*}}quantize.value = "v4"
// CHECK:         qnn.dense
// CHECK-NEXT:    qnn.requantize {{.*}}quantize.value = "v5"
// CHECK-NEXT:    relay.reshape {{.*}}tensor<2x1xi8>
// CHECK-NEXT:    qnn.dequantize

// NONE-NOT:      qnn.
