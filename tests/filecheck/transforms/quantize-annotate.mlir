// RUN: relay-opt %s -p quantize-annotate | filecheck %s
// RUN: relay-opt %s -p 'quantize-annotate{from_layer=1}' | filecheck %s --check-prefix=LATER
// RUN: relay-opt %s -p 'quantize-annotate{from_layer=2}' | filecheck %s --check-prefix=NONE

// A layer is the product, its bias and its clamp; the reshape shares the scale of what it moves.
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
// CHECK:         func.func @main{{.*}}quantize.dtype = "int8", quantize.arguments = [{value = "a0", group = "a0"}]
// CHECK:         relay.nn.dense %x, %w {quantize = {integer}
// CHECK-NEXT:    relay.nn.bias_add %0, %b {quantize = {integer}}
// CHECK-NEXT:    relay.clip %1 {quantize = {integer, value = "v4", group = "v4"}
// CHECK-NEXT:    relay.nn.dense %2, %w {quantize = {integer, value = "v5", group = "v5"}
// CHECK-NEXT:    relay.reshape %3 {quantize = {integer, value = "v6", group = "v5"}

// LATER:         relay.nn.dense %x, %w {out_dtype
// LATER:         relay.clip %1 {quantize = {value = "v4", group = "v4"}
// LATER-NEXT:    relay.nn.dense %2, %w {quantize = {integer, value = "v5", group = "v5"}

// NONE-NOT:      quantize =
